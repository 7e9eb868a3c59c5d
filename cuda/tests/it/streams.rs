//! Streams: the order of the default ones, functions of the host, values in memory.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::api::{Context, declare};

declare! {
    fn cuCtxCreate_v2(context: *mut u64, flags: u32, device: i32);
    fn cuCtxDestroy_v2(context: u64);
    fn cuCtxSetCurrent(context: u64);
    fn cuCtxSynchronize();
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize);
    fn cuMemFree_v2(address: u64);
    fn cuMemcpyHtoD_v2(dst: u64, src: *const u8, bytes: usize);
    fn cuMemcpyDtoH_v2(dst: *mut u8, src: u64, bytes: usize);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuStreamCreate(stream: *mut u64, flags: u32);
    fn cuStreamDestroy_v2(stream: u64);
    fn cuStreamSynchronize(stream: u64);
    fn cuStreamQuery(stream: u64);
    fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32);
    fn cuStreamGetCtx_v2(stream: u64, context: *mut u64, green: *mut u64);
    fn cuStreamGetAttribute(stream: u64, attribute: u32, value: *mut [u32; 16]);
    fn cuStreamSetAttribute(stream: u64, attribute: u32, value: *const [u32; 16]);
    fn cuStreamCopyAttributes(to: u64, from: u64);
    fn cuStreamAddCallback(
        stream: u64, callback: Option<extern "C" fn(u64, u32, *mut c_void)>, data: *mut c_void, flags: u32,
    );
    fn cuStreamWaitValue32(stream: u64, address: u64, value: u32, flags: u32);
    fn cuStreamWriteValue32(stream: u64, address: u64, value: u32, flags: u32);
    fn cuStreamWaitValue64_v2(stream: u64, address: u64, value: u64, flags: u32);
    fn cuStreamWriteValue64_v2(stream: u64, address: u64, value: u64, flags: u32);
    fn cuStreamBatchMemOp_v2(stream: u64, count: u32, params: *const [u64; 6], flags: u32);
    fn cuEventCreate(event: *mut u64, flags: u32);
    fn cuEventRecord(event: u64, stream: u64);
    fn cuEventSynchronize(event: u64);
    fn cuEventDestroy_v2(event: u64);
}

declare! {
    fn cuLaunchHostFunc(stream: u64, function: Option<extern "C" fn(*mut c_void)>, data: *mut c_void);
    fn cuLaunchHostFunc_ptsz(stream: u64, function: Option<extern "C" fn(*mut c_void)>, data: *mut c_void);
}

const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;
const NON_BLOCKING: u32 = 1;

/// A list to which work appends.
pub(crate) type Log = Arc<Mutex<Vec<u32>>>;

/// The value that a function of the host appends, and the list.
struct Entry {
    log: Log,
    value: u32,
}

extern "C" fn append(data: *mut c_void) {
    // SAFETY: `note` and `entry` pass a box of this type, which lives until the end of the process.
    let entry = unsafe { &*data.cast::<Entry>() };
    entry.log.lock().unwrap().push(entry.value);
}

/// Returns a function of the host and its data: it appends a value each time it is called.
pub(crate) fn entry(log: &Log, value: u32) -> (extern "C" fn(*mut c_void), *mut c_void) {
    (append, Box::into_raw(Box::new(Entry { log: Arc::clone(log), value })).cast())
}

/// Queues the append of a value to a list.
pub(crate) fn note(stream: u64, log: &Log, value: u32) -> u32 {
    let (function, data) = entry(log, value);
    cuLaunchHostFunc(stream, Some(function), data)
}

pub(crate) fn taken(log: &Log) -> Vec<u32> {
    std::mem::take(&mut *log.lock().unwrap())
}

pub(crate) fn new_stream(flags: u32) -> u64 {
    let mut stream = 0;
    assert_eq!(cuStreamCreate(&mut stream, flags), 0);
    stream
}

pub(crate) fn new_event() -> u64 {
    let mut event = 0;
    assert_eq!(cuEventCreate(&mut event, 0), 0);
    event
}

#[test]
fn the_legacy_stream_and_the_blocking_ones_wait_for_each_other() {
    let _context = Context::new();
    let log = Log::default();
    let blocking = [PER_THREAD, new_stream(0), new_stream(0)];
    let free = new_stream(NON_BLOCKING);
    let all = [LEGACY, blocking[0], blocking[1], blocking[2], free];
    for first in all {
        for second in all {
            assert_eq!((note(first, &log, 1), note(second, &log, 2)), (0, 0));
            assert_eq!(cuStreamSynchronize(second), 0);
            let is_ordered =
                first == second || ((first == LEGACY || second == LEGACY) && first != free && second != free);
            let expected: &[u32] = if is_ordered { &[1, 2] } else { &[2] };
            assert_eq!(taken(&log), expected, "{first:#x}, then {second:#x}");
            assert_eq!(cuCtxSynchronize(), 0);
            taken(&log);
        }
    }
    // The legacy stream carries the order from one blocking stream to another.
    assert_eq!((note(blocking[1], &log, 1), note(LEGACY, &log, 2), note(blocking[2], &log, 3)), (0, 0, 0));
    assert_eq!(cuStreamSynchronize(blocking[2]), 0);
    assert_eq!(taken(&log), [1, 2, 3]);
}

#[test]
fn work_of_a_destroyed_stream_is_waited_for() {
    let _context = Context::new();
    let log = Log::default();
    for flags in [0, NON_BLOCKING] {
        let stream = new_stream(flags);
        assert_eq!((note(stream, &log, 1), cuStreamDestroy_v2(stream)), (0, 0));
        assert_eq!(note(stream, &log, 2), 400, "a stale handle");
        if flags == 0 {
            assert_eq!((note(LEGACY, &log, 3), cuStreamSynchronize(LEGACY)), (0, 0));
            assert_eq!(taken(&log), [1, 3]);
        } else {
            assert_eq!(cuCtxSynchronize(), 0);
            assert_eq!(taken(&log), [1]);
        }
    }
    assert_eq!((cuStreamDestroy_v2(LEGACY), cuStreamDestroy_v2(0)), (400, 400));
}

#[test]
fn a_poll_of_an_idle_stream_succeeds_and_polls_end() {
    let _context = Context::new();
    let (stream, log) = (new_stream(0), Log::default());
    assert_eq!(cuStreamQuery(stream), 0);
    for value in 0..3 {
        assert_eq!(note(stream, &log, value), 0);
    }
    let polls = (0..10).take_while(|_| cuStreamQuery(stream) == 600).count();
    assert_eq!((polls, taken(&log)), (3, vec![0, 1, 2]));
}

extern "C" fn take_lock(data: *mut c_void) {
    // SAFETY: the test passes a lock that outlives the work.
    let lock = unsafe { &*data.cast::<Mutex<u32>>() };
    *lock.lock().unwrap() += 1;
}

/// A program's function may need the lock of an interpreter, which another thread holds while it
/// calls CUDA.
#[test]
fn a_function_of_the_host_may_wait_for_a_thread_that_calls() {
    let context = Context::new();
    let lock = Mutex::new(0);
    let (busy, other, log) = (new_stream(NON_BLOCKING), new_stream(NON_BLOCKING), Log::default());
    let data = (&raw const lock).cast_mut().cast::<c_void>();
    let (held, handle) = (lock.lock().unwrap(), context.handle);
    assert_eq!(cuLaunchHostFunc(busy, Some(take_lock), data), 0);
    thread::scope(|scope| {
        scope.spawn(move || {
            assert_eq!((cuCtxSetCurrent(handle), cuStreamSynchronize(busy)), (0, 0));
        });
        thread::sleep(Duration::from_millis(50));
        let mut address = 0;
        assert_eq!(cuMemAlloc_v2(&mut address, 4), 0);
        assert_eq!((note(other, &log, 7), cuStreamSynchronize(other)), (0, 0), "work of another stream runs");
        assert_eq!(taken(&log), [7]);
        drop(held);
    });
    assert_eq!(*lock.lock().unwrap(), 1);
}

extern "C" fn call_cuda(data: *mut c_void) {
    // SAFETY: the test passes an array of two numbers, which outlives the work.
    let codes = unsafe { &mut *data.cast::<[u32; 2]>() };
    *codes = [cuCtxSynchronize(), cuMemGetInfo_v2(null_mut(), null_mut())];
}

extern "C" fn called_back(stream: u64, code: u32, data: *mut c_void) {
    // SAFETY: the test passes a pair, which outlives the work.
    unsafe { *data.cast::<(u64, u32)>() = (stream, code) };
}

#[test]
fn functions_of_the_host_must_not_call_cuda() {
    let _context = Context::new();
    let stream = new_stream(0);
    let (mut codes, mut told) = ([0_u32; 2], (0_u64, 1_u32));
    let data = (&raw mut codes).cast();
    assert_eq!((cuLaunchHostFunc(stream, Some(call_cuda), data), cuStreamSynchronize(stream)), (0, 0));
    assert_eq!(codes, [800, 800]);
    assert_eq!(cuLaunchHostFunc(stream, None, null_mut()), 1);
    let data = (&raw mut told).cast();
    assert_eq!(cuStreamAddCallback(stream, Some(called_back), data, 1), 1);
    assert_eq!((cuStreamAddCallback(stream, Some(called_back), data, 0), cuStreamSynchronize(stream)), (0, 0));
    assert_eq!(told, (stream, 0));
}

#[test]
fn threads_have_default_streams_whose_work_outlives_them() {
    let context = Context::new();
    let (log, handle) = (Log::default(), context.handle);
    for value in 0..20 {
        thread::scope(|scope| {
            scope.spawn(|| {
                let (function, data) = entry(&log, value);
                assert_eq!(cuCtxSetCurrent(handle), 0);
                assert_eq!(cuLaunchHostFunc_ptsz(0, Some(function), data), 0);
            });
        });
    }
    assert_eq!(cuCtxSynchronize(), 0);
    let mut all = taken(&log);
    all.sort_unstable();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
}

#[test]
fn functions_that_c_calls_at_the_end_of_a_thread_find_its_context() {
    /// The code of the calls, and 1 for that they were made.
    static SEEN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn at_end(context: *mut c_void) {
        SEEN.store(1 + cuCtxSynchronize() + cuCtxSetCurrent(context.addr() as u64), Ordering::Release);
    }

    let context = Context::new();
    let mut key = 0;
    // SAFETY: the function is there as long as the process.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(at_end)) }, 0);
    let handle = context.handle;
    let thread = thread::spawn(move || {
        assert_eq!(cuCtxSetCurrent(handle), 0);
        // SAFETY: the key was just made.
        assert_eq!(unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(handle as usize)) }, 0);
    });
    thread.join().expect("a thread");
    assert_eq!(SEEN.load(Ordering::Acquire), 1);
}

#[test]
fn a_wait_for_a_value_lets_other_work_write_it() {
    let context = Context::new();
    let (waits, writes, log) = (new_stream(NON_BLOCKING), new_stream(NON_BLOCKING), Log::default());
    let mut address = 0;
    assert_eq!(cuMemAlloc_v2(&mut address, 16), 0);
    assert_eq!(cuMemcpyHtoD_v2(address, [0; 16].as_ptr(), 16), 0);
    assert_eq!((cuStreamWaitValue32(waits, address, 5, 0), note(waits, &log, 2)), (0, 0));
    assert_eq!(cuStreamQuery(waits), 600);
    assert_eq!((note(writes, &log, 1), cuStreamWriteValue32(writes, address, 6, 0)), (0, 0));
    assert_eq!(cuStreamSynchronize(waits), 0);
    assert_eq!(taken(&log), [1, 2]);
    // Another thread writes later.
    assert_eq!(cuStreamWaitValue64_v2(waits, address + 8, 1 << 40, 1), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(30));
            assert_eq!(cuCtxSetCurrent(context.handle), 0);
            assert_eq!(cuStreamWriteValue64_v2(writes, address + 8, 1 << 40, 0), 0);
        });
        assert_eq!(cuStreamSynchronize(waits), 0);
    });
    // A list: write 3 with 32 bits, and wait until one of its bits is there.
    let operations = [[2, address, 3, 0, 0, 0], [1, address, 2, 2, 0, 0]];
    assert_eq!((cuStreamBatchMemOp_v2(waits, 2, operations.as_ptr(), 0), cuStreamSynchronize(waits)), (0, 0));
    let mut value = [0; 4];
    assert_eq!((cuMemcpyDtoH_v2(value.as_mut_ptr(), address, 4), value), (0, [3, 0, 0, 0]));
    for (at, flags) in [(address + 1, 0), (64, 0), (address, 9)] {
        assert_eq!(cuStreamWaitValue32(waits, at, 0, flags), 1, "{at:#x} {flags}");
    }
    assert_eq!((cuStreamBatchMemOp_v2(waits, 257, operations.as_ptr(), 0), cuMemFree_v2(address)), (1, 0));
}

#[test]
fn streams_have_a_context_and_attributes() {
    let context = Context::new();
    let (stream, other) = (new_stream(0), new_stream(0));
    let (mut found, mut green) = (0, 1);
    assert_eq!((cuStreamGetCtx_v2(stream, &mut found, &mut green), found, green), (0, context.handle, 0));
    let mut value = [0; 16];
    assert_eq!((cuStreamGetAttribute(stream, 3, &mut value), value[0]), (0, 1));
    value[0] = 2;
    assert_eq!((cuStreamSetAttribute(stream, 3, &value), cuStreamCopyAttributes(other, stream)), (0, 0));
    value[0] = 0;
    assert_eq!((cuStreamGetAttribute(other, 3, &mut value), value[0]), (0, 2));
    assert_eq!(cuStreamGetAttribute(other, 77, &mut value), 1);
}

#[test]
fn events_order_streams_across_contexts() {
    let first = Context::new();
    let log = Log::default();
    let (stream, event) = (new_stream(NON_BLOCKING), new_event());
    let mut second = 0;
    assert_eq!(cuCtxCreate_v2(&mut second, 0, 0), 0);
    let foreign = new_stream(NON_BLOCKING);
    assert_eq!((note(stream, &log, 1), cuEventRecord(event, stream)), (0, 0));
    assert_eq!(cuEventRecord(event, foreign), 400, "an event is recorded in its own context");
    assert_eq!((cuStreamWaitEvent(foreign, event, 0), note(foreign, &log, 2)), (0, 0));
    assert_eq!((cuStreamSynchronize(foreign), taken(&log)), (0, vec![1, 2]));
    assert_eq!((cuStreamWaitEvent(foreign, event, 8), cuEventSynchronize(event), cuEventDestroy_v2(event)), (1, 0, 0));
    assert_eq!((cuCtxDestroy_v2(second), cuCtxSetCurrent(first.handle)), (0, 0));
}
