//! Host memory that is dropped while a copy uses it: when it is freed, and which threads wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use warpstride::Device;
use warpstride::driver::soft::Soft;
use warpstride::driver::{Driver, Memory};

use crate::hooked::Hooked;
use crate::long::PATIENCE;

#[test]
fn memory_is_not_freed_where_the_wait_for_its_copy_panics() {
    const LEN: usize = 64 << 10;
    for seed in 0..4 {
        let soft = Arc::new(Soft::with_seed(seed));
        let panics = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&panics);
        let before_wait = move || assert!(!asked.swap(false, Ordering::Relaxed), "the driver panics");
        let hooked = Hooked { before_wait: Box::new(before_wait), ..Hooked::new(Arc::clone(&soft) as Arc<dyn Driver>) };
        let device = Device::with_driver(Arc::new(hooked)).unwrap();
        let array = device.array(&[LEN], &[7_u8; LEN]).unwrap();
        drop(device.default_stream().download(&array, vec![0_u8; LEN]).unwrap());
        panics.store(true, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(move || drop((array, device)))).is_err(), "the wait is the last one");
        // These get the memory if it was freed.
        let others = [(); 4].map(|()| vec![0x55_u8; LEN]);
        // The software GPU runs what is queued before it frees memory.
        let address = soft.alloc(256).unwrap();
        // SAFETY: the memory is this test's, and no work uses it.
        unsafe { soft.free(address) }.unwrap();
        assert!(others.iter().flatten().all(|&byte| byte == 0x55), "seed {seed}: a copy wrote other memory");
    }
}

/// One thread asks the driver whether a copy has run. Another needs the memory of that copy, and
/// waits for the answer. A drop does not.
#[test]
fn a_thread_waits_for_memory_that_another_looks_at() {
    const LEN: usize = 1 << 20;
    let (asks, asked) = mpsc::channel();
    let (go_on, held) = mpsc::channel();
    let held = Mutex::new(held);
    let holds = Arc::new(AtomicBool::new(false));
    let is_first = Arc::clone(&holds);
    let before_query = move || {
        if is_first.swap(false, Ordering::Relaxed) {
            asks.send(()).unwrap();
            held.lock().unwrap().recv().unwrap();
        }
    };
    let hooked = Hooked { before_query: Box::new(before_query), ..Hooked::new(Arc::new(Soft::new())) };
    let device = Device::with_driver(Arc::new(hooked)).unwrap();
    device.set_pinned_limit(2 * LEN);
    let array = device.zeros::<u8>(LEN).unwrap();
    let stream = device.default_stream();
    let download = || stream.download(array.view(&[LEN]).unwrap(), device.pinned(LEN).unwrap()).unwrap();
    let [parked, dropped_later] = [download(), download()];
    drop(parked);
    stream.synchronize().unwrap();
    holds.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| device.pinned_memory());
        asked.recv().unwrap();
        let (drops, dropped) = mpsc::channel();
        scope.spawn(move || {
            drop(dropped_later);
            drops.send(()).unwrap();
        });
        let dropped = dropped.recv_timeout(PATIENCE);
        let (gets, got) = mpsc::channel();
        let device = &device;
        // Both buffers together are the limit.
        let both = move || device.pinned::<u8>(LEN).and_then(|_one| device.pinned::<u8>(LEN).map(drop));
        scope.spawn(move || gets.send(both()).unwrap());
        let early = got.recv_timeout(Duration::from_millis(100));
        go_on.send(()).unwrap();
        dropped.expect("a drop waits for no answer of the driver");
        assert_eq!(early, Err(RecvTimeoutError::Timeout), "the other thread had not given the memory back");
        got.recv().unwrap().expect("both copies have run");
    });
}
