//! Tests the driver over stub functions: its behaviour without a GPU, and after failed calls.

use std::cell::{Cell, RefCell};

use super::api::CUcontext;
use super::*;
use crate::driver::{DriverKind, FunctionHandle, GraphExecHandle, GraphHandle, Graphs, ModuleHandle, Modules, Streams};
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

/// Returns a device over stub functions, on a thread whose current context is `current`.
fn stubbed(current: usize) -> Cuda {
    CURRENT.set(current);
    let stubs = Api { cuCtxGetCurrent: get_current, cuCtxPushCurrent_v2: push, cuCtxPopCurrent_v2: pop, ..Api::stub() };
    let info = DeviceInfo {
        name: "a stub".into(),
        kind: DriverKind::Cuda,
        ordinal: 0,
        compute_capability: (9, 0),
        driver_version: "13.0".into(),
        multiprocessors: 1,
        memory_bytes: 1,
        l2_bytes: 0,
        nominal_bandwidth: None,
        max_block_threads: 1,
        max_grid: [1; 3],
        shared_bytes_per_block: 1,
        pci_bus_id: None,
    };
    let context = Context(OURS as CUcontext);
    Cuda {
        api: Box::leak(Box::new(stubs)),
        device: 0,
        context,
        info,
        lost: OnceLock::new(),
        captures: Mutex::default(),
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

/// A launch costs one other call: the look whether our context is current.
#[test]
fn a_launch_is_one_call_and_what_the_context_takes() {
    let shape = LaunchShape { grid: [1; 3], block: [1; 3], dynamic_shared: 0 };
    for (current, expected) in [
        (OURS, &["cuCtxGetCurrent", "cuLaunchKernel"][..]),
        (0, &["cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuLaunchKernel", "cuCtxPopCurrent_v2"]),
    ] {
        let cuda = stubbed(current);
        // SAFETY: the stubs look at no handle.
        unsafe { cuda.launch(FunctionHandle(1), &shape, &[0; 8], StreamHandle(1)) }.unwrap();
        assert_eq!(api::stub::calls(), expected);
    }
}

#[test]
fn a_wait_that_fails_waits_for_the_context_and_one_that_cannot_enter_still_waits() {
    let cuda = stubbed(OURS);
    api::stub::fail("cuStreamSynchronize", code::INVALID_VALUE);
    // SAFETY: the stubs look at no handle.
    unsafe { cuda.stream_synchronize(StreamHandle(1)) }.unwrap_err();
    assert_eq!(api::stub::calls().last(), Some(&"cuCtxSynchronize"));

    let cuda = stubbed(THEIRS);
    api::stub::fail("cuCtxGetCurrent", code::INVALID_CONTEXT);
    // SAFETY: as above.
    unsafe { cuda.stream_synchronize(StreamHandle(1)) }.unwrap();
    assert!(api::stub::calls().contains(&"cuStreamSynchronize"));
}

#[test]
fn what_cannot_enter_is_released_all_the_same() {
    let cuda = stubbed(THEIRS);
    api::stub::fail("cuCtxPushCurrent_v2", code::INVALID_CONTEXT);
    let mut byte = 0;
    // SAFETY: the stubs look at no handle, here and below.
    let _ = unsafe { cuda.free(256) };
    // SAFETY: as above.
    let _ = unsafe { cuda.free_host((&mut byte).into()) };
    // SAFETY: as above.
    let _ = unsafe { cuda.module_unload(ModuleHandle(1)) };
    // SAFETY: as above.
    let _ = unsafe { cuda.stream_destroy(StreamHandle(1)) };
    // SAFETY: as above.
    let _ = unsafe { cuda.event_destroy(EventHandle(1)) };
    let calls = api::stub::calls();
    for call in ["cuMemFree_v2", "cuMemFreeHost", "cuModuleUnload", "cuStreamDestroy_v2", "cuEventDestroy_v2"] {
        assert!(calls.contains(&call), "{call}: {calls:?}");
    }
    assert!(!calls.contains(&"cuCtxSynchronize"), "of another context: {calls:?}");
}

#[test]
fn later_errors_of_a_lost_device_end_in_the_first() {
    let cuda = stubbed(OURS);
    api::stub::fail("cuStreamSynchronize", code::ILLEGAL_ADDRESS);
    // SAFETY: the stubs look at no handle, here and below.
    let cause = unsafe { cuda.stream_synchronize(StreamHandle(1)) }.unwrap_err();
    api::stub::fail("cuMemFree_v2", code::CONTEXT_IS_DESTROYED);
    // SAFETY: as above.
    let later = [unsafe { cuda.free(256) }.unwrap_err(), cuda.alloc(1).unwrap_err(), cuda.memory().unwrap_err()];
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
        // SAFETY: the stubs look at no handle, here and below.
        unsafe { cuda.capture_begin(stream) }.unwrap();
    }
    // SAFETY: as above.
    unsafe { cuda.free(256) }.unwrap();
    // SAFETY: as above.
    unsafe { cuda.module_unload(ModuleHandle(1)) }.unwrap();
    // SAFETY: as above.
    unsafe { cuda.capture_end(streams[0]) }.unwrap();
    let calls = api::stub::calls();
    assert!(!calls.contains(&"cuCtxSynchronize") && !calls.contains(&"cuMemFree_v2"), "{calls:?}");
    // A capture ends even where the driver says that it was broken.
    api::stub::fail("cuStreamEndCapture", code::STREAM_CAPTURE_UNSUPPORTED);
    // SAFETY: as above.
    let error = unsafe { cuda.capture_end(streams[1]) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let calls = api::stub::calls();
    let releases = ["cuCtxSynchronize", "cuMemFree_v2", "cuCtxSynchronize", "cuModuleUnload"];
    let after: Vec<_> = calls.into_iter().filter(|call| releases.contains(call)).collect();
    assert_eq!(after, releases);
    // SAFETY: as above.
    unsafe { cuda.free(512) }.unwrap();
    assert_eq!(api::stub::calls().last(), Some(&"cuMemFree_v2"));
}

#[test]
fn an_update_takes_the_newer_function_where_the_driver_has_it() {
    for (newer, function) in [(true, "cuGraphExecUpdate_v2"), (false, "cuGraphExecUpdate")] {
        let mut cuda = stubbed(OURS);
        if !newer {
            cuda.api =
                Box::leak(Box::new(Api { cuGraphExecUpdate_v2: None, cuCtxGetCurrent: get_current, ..Api::stub() }));
        }
        // SAFETY: the stubs look at no handle, here and below.
        assert!(unsafe { cuda.graph_update(GraphExecHandle(1), GraphHandle(1)) }.unwrap());
        assert_eq!(api::stub::calls().last(), Some(&function));
        api::stub::fail(function, code::GRAPH_EXEC_UPDATE_FAILURE);
        // SAFETY: as above.
        assert!(!unsafe { cuda.graph_update(GraphExecHandle(1), GraphHandle(1)) }.unwrap());
        api::stub::fail(function, code::INVALID_VALUE);
        // SAFETY: as above.
        let error = unsafe { cuda.graph_update(GraphExecHandle(1), GraphHandle(1)) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

/// A launch of a graph costs one other call: the look whether our context is current.
#[test]
fn a_launch_of_a_graph_is_one_call() {
    let cuda = stubbed(OURS);
    // SAFETY: the stubs look at no handle.
    unsafe { cuda.graph_launch(GraphExecHandle(1), StreamHandle(1)) }.unwrap();
    assert_eq!(api::stub::calls(), ["cuCtxGetCurrent", "cuGraphLaunch"]);
}
