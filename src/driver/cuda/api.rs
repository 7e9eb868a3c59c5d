//! The CUDA driver's functions, declared here and found in its library at run time.
//!
//! The declarations come from no crate of bindings, so no dependency decides with which CUDA
//! version this crate builds, and how it links: `docs/adr/0004-host-binding.md` says why. The table
//! is filled before the first call, and a function that an old driver lacks is one error when the
//! device is opened. Results are plain numbers: a newer driver may answer with codes that this
//! crate does not know.
//!
//! With the feature `cudarc` the compiler compares the declarations with cudarc's, which come from
//! CUDA's own headers.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use crate::error::{Error, ErrorKind, Result};

/// The names under which the driver's library is tried, in this order.
const LIBRARIES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else if cfg!(target_vendor = "apple") {
    &["libcuda.dylib"]
} else {
    // The driver's own name first: a CUDA toolkit has a library of stubs by the other.
    &["libcuda.so.1", "libcuda.so"]
};

/// The end of a list of launch extras, and the markers of its two entries. In `cuda.h` these are
/// small numbers cast to pointers.
pub(super) const LAUNCH_PARAM_END: *mut c_void = ptr::null_mut();
pub(super) const LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);
pub(super) const LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);
pub(super) const STREAM_NON_BLOCKING: c_uint = 1;
pub(super) const EVENT_DEFAULT: c_uint = 0;
pub(super) const EVENT_DISABLE_TIMING: c_uint = 2;
pub(super) const MEMHOSTALLOC_WRITECOMBINED: c_uint = 4;
pub(super) const MEMHOSTREGISTER_PORTABLE: c_uint = 1;
pub(super) const CAPTURE_STATUS_NONE: CaptureStatus = 0;

/// The opaque target of a driver's handle.
macro_rules! handles {
    ($($handle:ident to $what:ident;)*) => {$(
        #[derive(Debug)]
        pub(super) enum $what {}
        pub(super) type $handle = *mut $what;
    )*};
}

handles! {
    CUcontext to Ctx;
    CUevent to Event;
    CUfunction to Func;
    CUgraph to Graph;
    CUgraphExec to GraphExec;
    CUgraphNode to GraphNode;
    CUmemoryPool to MemoryPool;
    CUmodule to Mod;
    CUstream to Stream;
}

/// A device, as `cuDeviceGet` numbers it.
pub(super) type CUdevice = c_int;
pub(super) type CUdeviceptr = u64;
/// A result code. `error.rs` has the codes that this crate distinguishes.
pub(super) type CUresult = u32;
/// Why an executable graph was not updated.
pub(super) type UpdateResult = u32;
/// The state of a stream: [`CAPTURE_STATUS_NONE`], or another number while it is captured.
pub(super) type CaptureStatus = u32;

/// CUDA's enumerations: the values that we pass, with their numbers in `cuda.h`.
macro_rules! values {
    ($($(#[$doc:meta])* $ours:ident as $theirs:ident { $($name:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy)]
        #[repr(u32)]
        pub(super) enum $ours {
            $($name = $number,)*
        }

        #[cfg(feature = "cudarc")]
        const _: () = {
            use cudarc::driver::sys::$theirs;
            assert!(size_of::<$ours>() == size_of::<$theirs>());
            $(assert!($ours::$name as u32 == $theirs::$name as u32);)*
        };
    )*};
}

values! {
    /// The attributes of a device that we query.
    Attribute as CUdevice_attribute {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
        CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
        CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    }
    /// The attributes of a pool that we set.
    PoolAttribute as CUmemPool_attribute { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4, }
    /// The kinds of memory that a pool gives out.
    AllocationType as CUmemAllocationType { CU_MEM_ALLOCATION_TYPE_PINNED = 1, }
    /// The places of a pool's memory.
    LocationType as CUmemLocationType { CU_MEM_LOCATION_TYPE_DEVICE = 1, }
    /// The rights of a device to memory of another.
    AccessFlags as CUmemAccess_flags { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3, }
    /// The sides of a copy.
    MemoryType as CUmemorytype { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, }
    /// The options of the driver's PTX compiler.
    JitOption as CUjit_option { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6, }
    /// The attributes of a function that we set.
    FunctionAttribute as CUfunction_attribute { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, }
    /// The modes of a capture that we use.
    CaptureMode as CUstreamCaptureMode { CU_STREAM_CAPTURE_MODE_RELAXED = 2, }
}

/// A structure of CUDA's header. Each field has the offset of the field of cudarc's structure that
/// is named behind it. CUDA's versions name a field differently that has no such name here.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident as $theirs:ident { $($field:ident: $type:ty $(= $same:ident)?,)* })*) => {$(
        $(#[$doc])*
        #[allow(non_camel_case_types, non_snake_case)]
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
        }

        #[cfg(feature = "cudarc")]
        const _: () = {
            use std::mem::offset_of;

            use cudarc::driver::sys;
            assert!(size_of::<$name>() == size_of::<sys::$theirs>());
            $($(assert!(offset_of!($name, $field) == offset_of!(sys::$theirs, $same));)?)*
        };
    )*};
}

structures! {
    /// A copy of a box of bytes.
    CUDA_MEMCPY3D as CUDA_MEMCPY3D {
        // Each side has the bytes, rows and slices before the box, and the level of detail.
        src_before: [usize; 4] = srcXInBytes,
        src_type: MemoryType = srcMemoryType,
        src_host: *const c_void = srcHost,
        src_device: CUdeviceptr = srcDevice,
        src_array: *mut c_void = srcArray,
        reserved0: *mut c_void = reserved0,
        src_pitch: usize = srcPitch,
        src_height: usize = srcHeight,
        dst_before: [usize; 4] = dstXInBytes,
        dst_type: MemoryType = dstMemoryType,
        dst_host: *mut c_void = dstHost,
        dst_device: CUdeviceptr = dstDevice,
        dst_array: *mut c_void = dstArray,
        reserved1: *mut c_void = reserved1,
        dst_pitch: usize = dstPitch,
        dst_height: usize = dstHeight,
        width: usize = WidthInBytes,
        height: usize = Height,
        depth: usize = Depth,
    }

    /// The place of a pool's memory.
    CUmemLocation as CUmemLocation {
        place: LocationType = type_,
        // A union since CUDA 13.2.
        id: c_int,
    }

    /// The access of a device to the memory of a pool.
    CUmemAccessDesc as CUmemAccessDesc {
        location: CUmemLocation = location,
        flags: AccessFlags = flags,
    }

    /// The properties of a pool.
    CUmemPoolProps as CUmemPoolProps {
        kind: AllocationType = allocType,
        handles: c_uint = handleTypes,
        location: CUmemLocation = location,
        security: *mut c_void = win32SecurityAttributes,
        // A limit of the bytes, since CUDA 12.2: 0 means without a limit. The rest must be 0.
        max_size: usize,
        reserved: [c_uchar; 56],
    }
}

/// A call of cudarc's function with arguments of its types: if the declaration differs, this does
/// not compile. The call uses cudarc's functions in the form that depends on whether the program
/// links the driver or loads it.
#[cfg(feature = "cudarc")]
macro_rules! same {
    ($symbol:ident($($name:ident: $argument:ty),*)) => {
        const _: () = {
            #[allow(dead_code, clippy::too_many_arguments)]
            unsafe fn same($($name: $argument),*) -> CUresult {
                // SAFETY: no code calls this.
                unsafe { sys::$symbol($($name),*) }
            }
        };
    };
    // The name without a path is cudarc's where it has one of this name, and else the function
    // below.
    ($symbol:ident($($name:ident: $argument:ty),*) renamed) => {
        const _: () = {
            #[allow(dead_code, non_snake_case)]
            unsafe fn $symbol($(_: $argument),*) -> CUresult {
                CUresult::CUDA_SUCCESS
            }
            {
                #[allow(unused_imports)]
                use sys::*;
                #[allow(dead_code)]
                unsafe fn same($($name: $argument),*) -> CUresult {
                    // SAFETY: no code calls this.
                    unsafe { $symbol($($name),*) }
                }
            }
        };
    };
}

/// Declares a table of functions that old drivers lack. Its `get` finds them; `None` where the
/// driver lacks one.
macro_rules! later_table {
    ($(#[$doc:meta])* $table:ident; $($symbol:ident($($argument:ty),*);)*) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        struct $table {
            $($symbol: unsafe extern "C" fn($($argument),*) -> $crate::driver::cuda::api::CUresult,)*
        }

        impl $table {
            fn get() -> Option<&'static Self> {
                static FOUND: std::sync::OnceLock<Option<$table>> = std::sync::OnceLock::new();
                FOUND.get_or_init(Self::load).as_ref()
            }

            fn load() -> Option<Self> {
                Some(Self {
                    $($symbol: {
                        type Function = unsafe extern "C" fn($($argument),*) -> $crate::driver::cuda::api::CUresult;
                        // SAFETY: CUDA's header declares the function so.
                        unsafe { $crate::driver::cuda::api::later::<Function>(stringify!($symbol)) }?
                    },)*
                })
            }
        }
    };
}
pub(super) use later_table;

macro_rules! api {
    ($($symbol:ident($($name:ident: $argument:ty),* $(,)?) $($renamed:ident)?;)*) => {
        /// The functions under their own names; each returns a `CUresult` as a number.
        #[allow(non_snake_case)]
        #[derive(Debug)]
        pub(super) struct Api {
            $(pub(super) $symbol: unsafe extern "C" fn($($name: $argument),*) -> CUresult,)*
        }

        /// The same declarations over cudarc's types.
        #[cfg(feature = "cudarc")]
        mod theirs {
            use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};

            use cudarc::driver::sys;
            use sys::{CUDA_MEMCPY3D, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmemAccessDesc, CUmemPoolProps};
            use sys::{CUfunction_attribute as FunctionAttribute, CUgraph, CUgraphExec, CUgraphNode};
            use sys::{CUgraphExecUpdateResult as UpdateResult, CUstreamCaptureMode as CaptureMode};
            use sys::CUstreamCaptureStatus as CaptureStatus;
            use sys::{CUdevice_attribute as Attribute, CUjit_option as JitOption, CUmemPool_attribute as PoolAttribute};
            use sys::{CUmemoryPool, CUmodule, CUresult, CUstream};

            $(same!($symbol($($name: $argument),*) $($renamed)?);)*
        }

        #[cfg(test)]
        impl Api {
            /// Returns functions that only record that they were called and answer as
            /// [`stub::fail`] set.
            pub(super) fn stub() -> Self {
                stub::reset();
                Self {
                    $($symbol: {
                        unsafe extern "C" fn stub($(_: $argument),*) -> CUresult {
                            stub::answer(stringify!($symbol))
                        }
                        stub
                    },)*
                }
            }
        }

        impl Api {
            /// Finds every function. The error names the first that the driver lacks.
            fn load(library: &Library) -> Result<Self> {
                Ok(Self {
                    $($symbol: {
                        type Function = unsafe extern "C" fn($($argument),*) -> CUresult;
                        // SAFETY: CUDA's header declares the function so, except for the names of
                        // types: the check above compares cudarc's declarations, which come from
                        // that header, of 11.4 where it renamed the function later. Callers keep
                        // the library loaded.
                        let found = unsafe { library.get::<Function>(stringify!($symbol)) };
                        *found.map_err(|_| missing(stringify!($symbol)))?
                    },)*
                })
            }
        }
    };
}

api! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(error: CUresult, name: *mut *const c_char);
    cuGetErrorString(error: CUresult, text: *mut *const c_char);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: Attribute, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxSynchronize();
    cuCtxResetPersistingL2Cache();
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemHostAlloc(memory: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(memory: *mut c_void);
    cuMemHostRegister_v2(memory: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(memory: *mut c_void);
    cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps);
    cuMemPoolDestroy(pool: CUmemoryPool);
    cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: PoolAttribute, value: *mut c_void);
    cuMemPoolSetAccess(pool: CUmemoryPool, access: *const CUmemAccessDesc, count: usize);
    cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
    cuMemAllocFromPoolAsync(address: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    cuMemcpyHtoDAsync_v2(dst: CUdeviceptr, src: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync_v2(dst: CUdeviceptr, src: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream);
    cuMemsetD8Async(dst: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream);
    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventQuery(event: CUevent);
    cuEventSynchronize(event: CUevent);
    // Drivers still have a renamed function: CUDA's header alone has another name, here from 13.0
    // on, and for updates of graphs from 12.0 on.
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) renamed;
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut JitOption,
        values: *mut *mut c_void,
    );
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuModuleGetGlobal_v2(address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char);
    cuFuncSetAttribute(function: CUfunction, attribute: FunctionAttribute, value: c_int);
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        dynamic_shared: c_uint,
        stream: CUstream,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    cuLaunchCooperativeKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        dynamic_shared: c_uint,
        stream: CUstream,
        params: *mut *mut c_void,
    );
    cuStreamBeginCapture_v2(stream: CUstream, mode: CaptureMode);
    cuStreamIsCapturing(stream: CUstream, status: *mut CaptureStatus);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphDestroy(graph: CUgraph);
    cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
    cuGraphExecDestroy(exec: CUgraphExec);
    cuGraphExecUpdate(exec: CUgraphExec, graph: CUgraph, node: *mut CUgraphNode, result: *mut UpdateResult) renamed;
}

#[cfg(feature = "cudarc")]
const _: () = {
    use cudarc::driver::sys;
    assert!(STREAM_NON_BLOCKING == sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32);
    assert!(EVENT_DEFAULT == sys::CUevent_flags::CU_EVENT_DEFAULT as u32);
    assert!(EVENT_DISABLE_TIMING == sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32);
    assert!(MEMHOSTALLOC_WRITECOMBINED == sys::CU_MEMHOSTALLOC_WRITECOMBINED);
    assert!(MEMHOSTREGISTER_PORTABLE == sys::CU_MEMHOSTREGISTER_PORTABLE);
    // The functions are compared over cudarc's names for these types, so the types are compared
    // here.
    assert!(size_of::<CUdevice>() == size_of::<sys::CUdevice>() && size_of::<CUresult>() == size_of::<sys::CUresult>());
    assert!(size_of::<CUdeviceptr>() == size_of::<sys::CUdeviceptr>());
    assert!(size_of::<UpdateResult>() == size_of::<sys::CUgraphExecUpdateResult>());
    assert!(size_of::<CaptureStatus>() == size_of::<sys::CUstreamCaptureStatus>());
    assert!(CAPTURE_STATUS_NONE == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE as u32);
};

/// Returns the driver's functions, which are loaded once in a process.
///
/// # Errors
///
/// `Unavailable` if there is no driver; `DriverTooOld` if it lacks a function.
pub(super) fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(|| from(LIBRARIES)).as_ref().map_err(Clone::clone)
}

/// The driver's library, once it was found.
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Finds a function that old drivers lack, after [`api`].
///
/// # Safety
///
/// - `F` is the type of the function of this name.
pub(super) unsafe fn later<F: Copy>(symbol: &str) -> Option<F> {
    // SAFETY: as the caller promises; the library stays loaded.
    LIBRARY.get().and_then(|library| unsafe { library.get::<F>(symbol) }.ok().map(|found| *found))
}

/// Returns the functions of the first of these libraries that the system's loader finds, if it has
/// them all.
fn from(names: &[&str]) -> Result<Api> {
    let mut result = Err(no_library(names));
    for name in names {
        // SAFETY: the initialisers of the driver's own library, which has these names, have no
        // preconditions.
        let Ok(library) = (unsafe { Library::new(*name) }) else { continue };
        result = Api::load(&library);
        if result.is_ok() {
            // The functions must stay in place until the process ends.
            LIBRARY.get_or_init(|| library);
            break;
        }
    }
    result
}

fn no_library(names: &[&str]) -> Error {
    let name = names.join(" or ");
    let advice = format!(
        "install one, add the folder that has its {name} to the path of the system's loader, or take the software GPU \
         (`Backend::Soft`)"
    );
    Error::advised(ErrorKind::Unavailable, "no NVIDIA driver was found", advice)
}

fn missing(symbol: &str) -> Error {
    let context = format!("the NVIDIA driver is too old: its library has no {symbol}");
    let advice = "install a driver for CUDA 11.4 or newer, or take the software GPU (`Backend::Soft`)";
    Error::advised(ErrorKind::DriverTooOld, context, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_library_has_no_driver() {
        let error = from(&["libwarpstride-has-none.so", "nor-this.dll"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("libwarpstride-has-none.so or nor-this.dll"), "{error}");
    }

    /// The C library stands for a driver that lacks the first function, and one name stands for the
    /// whole list of libraries.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn a_library_without_a_function_is_of_a_driver_that_is_too_old() {
        let error = from(&["libwarpstride-has-none.so", "libc.so.6"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DriverTooOld);
        assert!(error.to_string().contains("its library has no cuInit;"), "{error}");
    }
}

/// Answers and records the calls of [`Api::stub`]'s functions, for each test's thread.
#[cfg(test)]
pub(super) mod stub {
    use std::cell::RefCell;
    use std::collections::HashMap;

    thread_local! {
        static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
        static FAILS: RefCell<HashMap<&'static str, u32>> = RefCell::default();
    }

    pub(super) fn reset() {
        CALLS.take();
        FAILS.take();
    }

    /// Records a call and returns its result code.
    pub(in crate::driver::cuda) fn answer(function: &'static str) -> u32 {
        CALLS.with_borrow_mut(|calls| calls.push(function));
        FAILS.with_borrow(|fails| fails.get(function).copied().unwrap_or_default())
    }

    /// Makes a function answer `code` from now on.
    pub(in crate::driver::cuda) fn fail(function: &'static str, code: u32) {
        FAILS.with_borrow_mut(|fails| fails.insert(function, code));
    }

    /// Returns the calls since the table was made.
    pub(in crate::driver::cuda) fn calls() -> Vec<&'static str> {
        CALLS.with_borrow(Vec::clone)
    }
}
