//! Tests the driver over stub functions: its behaviour without a GPU, and after failed calls.

use std::cell::{Cell, RefCell};
use std::ptr;

use super::api::CUcontext;
use super::*;
use crate::driver::{
    Copy3d, DriverKind, FunctionHandle, GraphExecHandle, GraphHandle, Graphs, HostKind, ModuleHandle, Modules, Pitched,
    Place, Streams,
};
use crate::launch_shape::LaunchShape;

const OURS: usize = 0x11;
const THEIRS: usize = 0x22;

thread_local! {
    /// The test's current context.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    static BELOW: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn get_current(context: *mut CUcontext) -> u32 {
    // SAFETY: the caller gives room for the result.
    unsafe { *context = CURRENT.get() as CUcontext };
    api::stub::answer("cuCtxGetCurrent")
}

unsafe extern "C" fn push(context: CUcontext) -> u32 {
    let code = api::stub::answer("cuCtxPushCurrent_v2");
    if code == code::SUCCESS {
        BELOW.with_borrow_mut(|below| below.push(CURRENT.replace(context as usize)));
    }
    code
}

unsafe extern "C" fn pop(_context: *mut CUcontext) -> u32 {
    CURRENT.set(BELOW.with_borrow_mut(Vec::pop).expect("what was pushed"));
    api::stub::answer("cuCtxPopCurrent_v2")
}

/// Calls an unsafe method of a device over stub functions.
macro_rules! stubs {
    ($call:expr) => {{
        // SAFETY: the stubs look at no handle and at no memory, of the device or of the host. Where
        // `free_host` unmaps memory that `alloc_host` mapped, the test does not use it any more.
        unsafe { $call }
    }};
}

/// Returns a device over stub functions, on a thread whose current context is `current`.
fn stubbed(current: usize) -> Cuda {
    CURRENT.set(current);
    let stubs = Api { cuCtxGetCurrent: get_current, cuCtxPushCurrent_v2: push, cuCtxPopCurrent_v2: pop, ..Api::stub() };
    let info = DeviceInfo { memory_bytes: 1, ..DeviceInfo::of_none("a stub", DriverKind::Cuda) };
    let context = Context(OURS as CUcontext);
    Cuda {
        api: Box::leak(Box::new(stubs)),
        device: 0,
        context,
        info,
        pool: None,
        lost: OnceLock::new(),
        // Only this test has them.
        captures: Box::leak(Box::default()),
        peers: Mutex::default(),
        parts: Mutex::default(),
    }
}

#[test]
fn the_callers_context_is_current_again_after_a_call() {
    for current in [0, THEIRS, OURS] {
        let cuda = stubbed(current);
        cuda.alloc(8).unwrap();
        assert_eq!(CURRENT.get(), current);
        let pushes = api::stub::calls().iter().filter(|&&call| call == "cuCtxPushCurrent_v2").count();
        assert_eq!(pushes, usize::from(current != OURS));
    }
}

/// A launch, of a graph too, costs one other call: the look whether our context is current.
#[test]
fn a_launch_is_one_call_and_what_the_context_takes() {
    let shape = LaunchShape { grid: [1; 3], block: [1; 3], dynamic_shared: 0 };
    for (current, expected) in [
        (OURS, &["cuCtxGetCurrent", "cuLaunchKernel"][..]),
        (0, &["cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuLaunchKernel", "cuCtxPopCurrent_v2"]),
    ] {
        let cuda = stubbed(current);
        stubs!(cuda.launch(FunctionHandle(1), &shape, &[0; 8], StreamHandle(1))).unwrap();
        assert_eq!(api::stub::calls(), expected);
    }
    let cuda = stubbed(OURS);
    stubs!(cuda.graph_launch(GraphExecHandle(1), StreamHandle(1))).unwrap();
    assert_eq!(api::stub::calls(), ["cuCtxGetCurrent", "cuGraphLaunch"]);
}

#[test]
fn a_wait_that_fails_waits_for_the_context_and_one_that_cannot_enter_still_waits() {
    let cuda = stubbed(OURS);
    api::stub::fail("cuStreamSynchronize", code::INVALID_VALUE);
    stubs!(cuda.stream_synchronize(StreamHandle(1))).unwrap_err();
    assert_eq!(api::stub::calls().last(), Some(&"cuCtxSynchronize"));

    // A wait for the context would break other captures.
    let cuda = stubbed(OURS);
    api::stub::fail("cuStreamSynchronize", code::STREAM_CAPTURE_UNSUPPORTED);
    stubs!(cuda.stream_synchronize(StreamHandle(1))).unwrap_err();
    assert!(!api::stub::calls().contains(&"cuCtxSynchronize"));

    let cuda = stubbed(THEIRS);
    api::stub::fail("cuCtxGetCurrent", code::INVALID_CONTEXT);
    stubs!(cuda.stream_synchronize(StreamHandle(1))).unwrap();
    assert!(api::stub::calls().contains(&"cuStreamSynchronize"));
}

#[test]
fn what_cannot_enter_is_released_all_the_same() {
    let cuda = stubbed(THEIRS);
    api::stub::fail("cuCtxPushCurrent_v2", code::INVALID_CONTEXT);
    let mut byte = 0;
    let _ = stubs!(cuda.free(256));
    let _ = stubs!(cuda.free_host((&mut byte).into()));
    let _ = stubs!(cuda.unregister_host((&mut byte).into()));
    let _ = stubs!(cuda.pool_free(256, StreamHandle(1)));
    let _ = stubs!(cuda.module_unload(ModuleHandle(1)));
    let _ = stubs!(cuda.stream_destroy(StreamHandle(1)));
    let _ = stubs!(cuda.event_destroy(EventHandle(1)));
    let calls = api::stub::calls();
    let of_memory = ["cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuMemFreeAsync"];
    for call in of_memory.into_iter().chain(["cuModuleUnload", "cuStreamDestroy_v2", "cuEventDestroy_v2"]) {
        assert!(calls.contains(&call), "{call}: {calls:?}");
    }
    assert!(!calls.contains(&"cuCtxSynchronize"), "of another context: {calls:?}");
}

#[test]
fn without_a_pool_its_allocations_are_unavailable() {
    let cuda = stubbed(OURS);
    assert!(!cuda.has_pool());
    let error = stubs!(cuda.pool_alloc(8, StreamHandle(1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    cuda.pool_trim(0).unwrap();
    assert_eq!(api::stub::calls(), ["cuCtxGetCurrent"]);
}

#[test]
fn the_pool_keeps_what_is_freed_and_ends_with_the_driver() {
    let mut cuda = stubbed(OURS);
    cuda.pool = Some(cuda.make_pool().unwrap());
    let address = stubs!(cuda.pool_alloc(8, StreamHandle(1))).unwrap();
    stubs!(cuda.pool_free(address, StreamHandle(1))).unwrap();
    cuda.pool_trim(0).unwrap();
    drop(cuda);
    let calls: Vec<_> = api::stub::calls().into_iter().filter(|&call| call != "cuCtxGetCurrent").collect();
    let of_the_pool = ["cuMemPoolCreate", "cuMemPoolSetAttribute", "cuMemAllocFromPoolAsync", "cuMemFreeAsync"];
    let at_the_end = ["cuMemPoolTrimTo", "cuMemPoolDestroy", "cuDevicePrimaryCtxRelease_v2"];
    assert_eq!(calls, [&of_the_pool[..], &at_the_end].concat());
}

#[test]
fn a_pool_that_cannot_be_used_is_destroyed() {
    let cuda = stubbed(OURS);
    api::stub::fail("cuMemPoolSetAttribute", code::INVALID_VALUE);
    assert!(cuda.make_pool().is_err());
    assert!(api::stub::calls().contains(&"cuMemPoolDestroy"), "{:?}", api::stub::calls());
}

#[test]
fn memory_that_is_registered_twice_is_an_invalid_argument() {
    let cuda = stubbed(OURS);
    let mut byte = 0_u8;
    api::stub::fail("cuMemHostRegister_v2", code::HOST_MEMORY_ALREADY_REGISTERED);
    let error = stubs!(cuda.register_host((&mut byte).into(), 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    api::stub::fail("cuMemHostRegister_v2", code::OUT_OF_MEMORY);
    let error = stubs!(cuda.register_host((&mut byte).into(), 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(error.to_string().contains("ulimit -l"), "{error}");
}

/// Returns the calls since the stubs were made, without those for the context and for texts.
fn calls() -> Vec<&'static str> {
    let others = |call: &&str| !call.starts_with("cuCtx") && !call.starts_with("cuGetError");
    api::stub::calls().into_iter().filter(others).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_mapped_and_registered_and_write_combined_memory_is_the_drivers() {
    for bytes in [1, 4097, 5 << 20] {
        let cuda = stubbed(OURS);
        let memory = cuda.alloc_host(bytes, HostKind::Cached).unwrap();
        // SAFETY: it was allocated above with this number of bytes, and nothing else uses it.
        let slice = unsafe { std::slice::from_raw_parts(memory.as_ptr(), bytes) };
        assert!(slice.iter().all(|&byte| byte == 0));
        stubs!(cuda.free_host(memory)).unwrap();
        assert_eq!(calls(), ["cuMemHostRegister_v2", "cuMemHostUnregister"]);
    }
    let cuda = stubbed(OURS);
    // The stub gives no address.
    cuda.alloc_host(5 << 20, HostKind::WriteCombined).unwrap_err();
    assert_eq!(calls(), ["cuMemHostAlloc"]);
}

/// Work that may still run could use memory that goes back to the system.
#[test]
#[cfg(target_os = "linux")]
fn memory_stays_registered_where_the_wait_before_fails() {
    let cuda = stubbed(OURS);
    let memory = cuda.alloc_host(100, HostKind::Cached).unwrap();
    api::stub::fail("cuCtxSynchronize", code::INVALID_VALUE);
    stubs!(cuda.free_host(memory)).unwrap_err();
    assert_eq!(calls(), ["cuMemHostRegister_v2"]);
    // On a device that is lost no work runs.
    let memory = cuda.alloc_host(100, HostKind::Cached).unwrap();
    api::stub::fail("cuCtxSynchronize", code::ILLEGAL_ADDRESS);
    stubs!(cuda.free_host(memory)).unwrap_err();
    assert_eq!(calls().last(), Some(&"cuMemHostUnregister"));
}

#[test]
fn memory_that_cannot_be_registered_is_the_drivers_own() {
    let cuda = stubbed(OURS);
    api::stub::fail("cuMemHostRegister_v2", code::NOT_SUPPORTED);
    // The stub gives no address.
    cuda.alloc_host(5 << 20, HostKind::Cached).unwrap_err();
    assert_eq!(calls().last(), Some(&"cuMemHostAlloc"));
}

/// Returns the calls of a copy of a box between the device and the host, whose rows and slices lie
/// this far apart on the device. On the host they are packed.
fn calls_of_copy([width, height, depth]: [usize; 3], row_pitch: usize, slice_pitch: usize) -> Vec<&'static str> {
    let cuda = stubbed(OURS);
    let src = Pitched { place: Place::Device(256), row_pitch, slice_pitch };
    let host = Place::Host(std::ptr::dangling_mut());
    let dst = Pitched { place: host, row_pitch: width, slice_pitch: width * height };
    stubs!(cuda.copy_3d(&Copy3d { dst, src, width, height, depth }, StreamHandle(1))).unwrap();
    api::stub::calls().into_iter().filter(|&call| call != "cuCtxGetCurrent").collect()
}

#[test]
fn a_box_is_copied_by_one_call_where_the_driver_can() {
    const BOX: &str = "cuMemcpy3DAsync_v2";
    const ROW: &str = "cuMemcpyDtoHAsync_v2";
    assert_eq!(calls_of_copy([4, 3, 2], 8, 32), [BOX]);
    assert_eq!(calls_of_copy([4, 3, 1], 5, 0), [BOX]);
    assert_eq!(calls_of_copy([4, 1, 3], 0, 7), [BOX], "slices of one row are rows");
    assert_eq!(calls_of_copy([4, 1, 1], 0, 0), [ROW]);
    assert_eq!(calls_of_copy([4, 3, 2], 8, 33), [BOX; 2], "the slices are not a number of rows apart");
    assert_eq!(calls_of_copy([4, 3, 2], 8, 4), [BOX; 2], "the slices lie within each other");
    assert_eq!(calls_of_copy([4, 2, 2], 2, 8), [ROW; 4], "the rows overlap");
    assert_eq!(calls_of_copy([4, 2, 2], 1 << 31, 8), [ROW; 4], "a larger pitch than the driver takes");
    assert_eq!(calls_of_copy([4, 0, 2], 8, 32), [""; 0]);
}

#[test]
fn a_copy_within_the_host_is_refused() {
    let cuda = stubbed(OURS);
    let side = Pitched { place: Place::Host(std::ptr::dangling_mut()), row_pitch: 1, slice_pitch: 1 };
    let copy = Copy3d { dst: side, src: side, width: 1, height: 1, depth: 1 };
    let error = stubs!(cuda.copy_3d(&copy, StreamHandle(1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn later_errors_of_a_lost_device_end_in_the_first() {
    let cuda = stubbed(OURS);
    api::stub::fail("cuStreamSynchronize", code::ILLEGAL_ADDRESS);
    let cause = stubs!(cuda.stream_synchronize(StreamHandle(1))).unwrap_err();
    api::stub::fail("cuMemFree_v2", code::CONTEXT_IS_DESTROYED);
    let later = [stubs!(cuda.free(256)).unwrap_err(), cuda.alloc(1).unwrap_err(), cuda.memory().unwrap_err()];
    for error in later {
        assert_eq!(error.kind(), ErrorKind::KernelFault);
        assert!(error.to_string().ends_with(&cause.to_string()), "{error}");
    }
}

/// With a driver the count is at least 1; without one the error says which libraries were tried. It
/// never panics.
#[test]
fn probing_is_safe_with_and_without_a_driver() {
    match count() {
        Ok(count) => assert!(describe(count).unwrap_err().to_string().contains("there is no CUDA device")),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::DriverTooOld), "{error}");
            assert_eq!(Cuda::open(0).unwrap_err(), error);
        }
    }
}

/// A release waits for the context, which would break the capture.
#[test]
fn releases_during_a_capture_wait_for_its_end() {
    let cuda = stubbed(OURS);
    let streams = [StreamHandle(1), StreamHandle(2)];
    for stream in streams {
        stubs!(cuda.capture_begin(stream)).unwrap();
    }
    stubs!(cuda.free(256)).unwrap();
    stubs!(cuda.module_unload(ModuleHandle(1))).unwrap();
    stubs!(cuda.capture_end(streams[0])).unwrap();
    let calls = api::stub::calls();
    assert!(!calls.contains(&"cuCtxSynchronize") && !calls.contains(&"cuMemFree_v2"), "{calls:?}");
    // A capture ends even where the driver says that it was broken.
    api::stub::fail("cuStreamEndCapture", code::STREAM_CAPTURE_UNSUPPORTED);
    let error = stubs!(cuda.capture_end(streams[1])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let calls = api::stub::calls();
    let releases = ["cuCtxSynchronize", "cuMemFree_v2", "cuCtxSynchronize", "cuModuleUnload"];
    let after: Vec<_> = calls.into_iter().filter(|call| releases.contains(call)).collect();
    assert_eq!(after, releases);
    stubs!(cuda.free(512)).unwrap();
    assert_eq!(api::stub::calls().last(), Some(&"cuMemFree_v2"));
}

/// Two devices of a process may have one primary context, and a wait for it breaks the captures of
/// both.
#[test]
fn a_release_waits_for_the_captures_of_all_devices_over_its_context() {
    const SHARED: usize = 0x33;
    let [mut capturing, mut releasing] = [(); 2].map(|()| stubbed(OURS));
    capturing.captures = Captures::of(SHARED as CUcontext);
    releasing.captures = Captures::of(SHARED as CUcontext);
    assert!(!ptr::eq(capturing.captures, Captures::of(THEIRS as CUcontext)));
    let memory = releasing.alloc_host(100, HostKind::Cached);
    stubs!(capturing.capture_begin(StreamHandle(1))).unwrap();
    stubs!(releasing.free(256)).unwrap();
    if let Ok(memory) = memory {
        stubs!(releasing.free_host(memory)).unwrap();
    }
    drop(releasing);
    let calls = api::stub::calls();
    assert!(!calls.contains(&"cuCtxSynchronize") && !calls.contains(&"cuMemFree_v2"), "{calls:?}");
    stubs!(capturing.capture_end(StreamHandle(1))).unwrap();
    let calls = api::stub::calls();
    assert!(calls.contains(&"cuCtxSynchronize") && calls.contains(&"cuMemFree_v2"), "{calls:?}");
    assert!(!calls.contains(&"cuMemFreeHost"), "the memory was mapped: {calls:?}");
}

#[test]
fn an_update_that_the_graph_does_not_take_is_no_error() {
    let cuda = stubbed(OURS);
    let update = |code| {
        api::stub::fail("cuGraphExecUpdate", code);
        stubs!(cuda.graph_update(GraphExecHandle(1), GraphHandle(1))).map_err(|error| error.kind())
    };
    let updates = [code::SUCCESS, code::GRAPH_EXEC_UPDATE_FAILURE, code::INVALID_VALUE].map(update);
    assert_eq!(updates, [Ok(true), Ok(false), Err(ErrorKind::InvalidArgument)]);
}
