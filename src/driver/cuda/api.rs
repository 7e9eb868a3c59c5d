//! The CUDA driver's functions, found in its library at run time. The only file of the driver that names cudarc.
//!
//! cudarc finds the library and has the signatures. We call through a table of our own for three reasons:
//!
//! - The table is filled before the first call. A function that an old driver lacks is one error when the device is opened;
//!   cudarc's own functions look for themselves when first called, and panic.
//! - Results come back as plain numbers. cudarc declares them as a Rust enum of the codes known to one CUDA version, and a
//!   newer driver that answers with another code would be undefined behaviour.
//! - Any `cuda-*` feature of cudarc serves every driver, since what is called does not depend on it.
//!
//! The signatures are still cudarc's: the compiler compares ours with them.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::error::{Error, ErrorKind, Result};

pub(super) use sys::{CUcontext, CUdevice, CUevent, CUfunction, CUmodule, CUstream};
pub(super) use sys::{CUdevice_attribute as Attribute, CUjit_option as JitOption};

/// The end of a list of launch extras, and what introduces its two entries. In `cuda.h` these are small numbers cast to
/// pointers, which bindings leave out.
pub(super) const LAUNCH_PARAM_END: *mut c_void = ptr::null_mut();
pub(super) const LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);
pub(super) const LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);
pub(super) const STREAM_NON_BLOCKING: c_uint = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
pub(super) const EVENT_DEFAULT: c_uint = sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint;

/// The type that cudarc gives an argument: ours, unless another is named.
macro_rules! theirs {
    ($ours:ty) => {
        $ours
    };
    ($ours:ty, $theirs:ty) => {
        $theirs
    };
}

/// A signature that differs from cudarc's does not compile.
macro_rules! same {
    ($symbol:ident: $type:ty) => {
        const _: $type = sys::$symbol;
    };
    ($symbol:ident: $type:ty, unchecked) => {};
}

macro_rules! api {
    ($($symbol:ident($($argument:ty $(as $theirs:ty)?),* $(,)?) $($unchecked:ident)?;)*) => {
        /// The functions under their own names; each returns a `CUresult` as a number.
        #[allow(non_snake_case)]
        #[derive(Debug)]
        pub(super) struct Api {
            $(pub(super) $symbol: unsafe extern "C" fn($($argument),*) -> u32,)*
        }

        $(same!($symbol: unsafe fn($(theirs!($argument $(, $theirs)?)),*) -> sys::CUresult $(, $unchecked)?);)*

        #[cfg(test)]
        impl Api {
            /// Functions that do nothing but note that they were called and answer as [`stub::fail`] told them.
            pub(super) fn stub() -> Self {
                stub::reset();
                Self {
                    $($symbol: {
                        unsafe extern "C" fn stub($(_: $argument),*) -> u32 {
                            stub::answer(stringify!($symbol))
                        }
                        stub
                    },)*
                }
            }
        }

        impl Api {
            /// Finds every function, or the first that is not there.
            fn load() -> Result<Self> {
                // SAFETY: called after `library_is_present`, without which this would panic. The library stays loaded.
                let library = unsafe { sys::culib() };
                Ok(Self {
                    $($symbol: {
                        type Function = unsafe extern "C" fn($($argument),*) -> u32;
                        // SAFETY: the function has this type: the same signature as cudarc's, checked above, but for
                        // result codes, which are 32-bit numbers on both sides.
                        let found = unsafe { library.get::<Function>(stringify!($symbol).as_bytes()) };
                        *found.map_err(|_| missing(stringify!($symbol)))?
                    },)*
                })
            }
        }
    };
}

api! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuGetErrorName(u32 as sys::CUresult, *mut *const c_char);
    cuGetErrorString(u32 as sys::CUresult, *mut *const c_char);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuDeviceGetAttribute(*mut c_int, Attribute, CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuCtxGetCurrent(*mut CUcontext);
    cuCtxPushCurrent_v2(CUcontext);
    cuCtxPopCurrent_v2(*mut CUcontext);
    cuCtxSynchronize();
    cuCtxResetPersistingL2Cache();
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, CUstream);
    cuMemcpyDtoDAsync_v2(u64, u64, usize, CUstream);
    cuMemsetD8Async(u64, c_uchar, usize, CUstream);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamDestroy_v2(CUstream);
    cuStreamSynchronize(CUstream);
    cuStreamWaitEvent(CUstream, CUevent, c_uint);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventDestroy_v2(CUevent);
    cuEventRecord(CUevent, CUstream);
    cuEventQuery(CUevent);
    cuEventSynchronize(CUevent);
    // cudarc has it up to level 12.9, and drivers have it still: only CUDA's header renamed it.
    cuEventElapsedTime(*mut f32, CUevent, CUevent) unchecked;
    cuModuleLoadDataEx(*mut CUmodule, *const c_void, c_uint, *mut JitOption, *mut *mut c_void);
    cuModuleUnload(CUmodule);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuLaunchKernel(
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void,
    );
}

/// The driver's functions, looked for once in a process.
///
/// # Errors
///
/// `Unavailable` where there is no driver, `DriverTooOld` where it lacks a function.
pub(super) fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    let found = API.get_or_init(|| if library_is_present() { Api::load() } else { Err(no_library()) });
    found.as_ref().map_err(Clone::clone)
}

fn library_is_present() -> bool {
    // SAFETY: loads and unloads the system's own library of that name, whose initialisers have no preconditions.
    unsafe { sys::is_culib_present() }
}

fn no_library() -> Error {
    let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so or libcuda.so.1" };
    let context = format!(
        "no NVIDIA driver was found; install one, put the folder of its {name} where the system's loader looks, or take the \
         software GPU (`Backend::Soft`)"
    );
    Error::new(ErrorKind::Unavailable, context)
}

fn missing(symbol: &str) -> Error {
    let context = format!(
        "the NVIDIA driver is too old: its library has no {symbol}; install a driver for CUDA 11.4 or newer, or take the \
         software GPU (`Backend::Soft`)"
    );
    Error::new(ErrorKind::DriverTooOld, context)
}

/// What [`Api::stub`]'s functions answer and note, for each test's thread.
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

    /// Notes a call; its result code.
    pub(in crate::driver::cuda) fn answer(function: &'static str) -> u32 {
        CALLS.with_borrow_mut(|calls| calls.push(function));
        FAILS.with_borrow(|fails| fails.get(function).copied().unwrap_or_default())
    }

    /// Lets a function answer `code` from now on.
    pub(in crate::driver::cuda) fn fail(function: &'static str, code: u32) {
        FAILS.with_borrow_mut(|fails| fails.insert(function, code));
    }

    /// The calls since the table was made.
    pub(in crate::driver::cuda) fn calls() -> Vec<&'static str> {
        CALLS.with_borrow(Vec::clone)
    }
}
