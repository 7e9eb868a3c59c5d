use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::*;
use crate::driver::{Memory as _, Streams as _};
use crate::error::ErrorKind;

fn wait(soft: &Soft, stream: StreamHandle) -> Result<()> {
    // SAFETY: no test destroys a stream.
    unsafe { soft.stream_synchronize(stream) }
}

fn noting(log: &Arc<Mutex<Vec<u32>>>, value: u32) -> HostCall {
    let log = Arc::clone(log);
    Box::new(move || {
        lock(&log).push(value);
        Ok(())
    })
}

/// A program's function may need what another thread holds while it calls the driver.
#[test]
fn a_call_of_the_host_leaves_the_driver_to_other_threads() {
    for seed in [0, 2] {
        let soft = Soft::with_seed(seed);
        let (busy, other) = (soft.stream_create().unwrap(), soft.stream_create().unwrap());
        let log = Arc::default();
        let ((begin, begun), (go_on, told)) = (mpsc::channel(), mpsc::channel());
        let told = Mutex::new(told);
        let call = move || {
            begin.send(()).unwrap();
            lock(&told).recv().unwrap();
            Ok(())
        };
        soft.call_host(busy, "waiting for a thread", None, Box::new(call)).unwrap();
        soft.call_host(busy, "noting", None, noting(&log, 2)).unwrap();
        soft.call_host(other, "noting", None, noting(&log, 1)).unwrap();
        thread::scope(|scope| {
            let [first, second] = [0, 1].map(|_| scope.spawn(|| wait(&soft, busy)));
            begun.recv().unwrap();
            let memory = soft.alloc(16).unwrap();
            assert_eq!(soft.poll_stream(busy), Ok(false), "the call runs");
            wait(&soft, other).unwrap();
            assert_eq!(*lock(&log), [1]);
            let soft = &soft;
            let freed = scope.spawn(move || {
                // SAFETY: no work uses the memory.
                unsafe { soft.free(memory) }
            });
            thread::sleep(Duration::from_millis(10));
            assert!(!freed.is_finished(), "a free waits for all work");
            go_on.send(()).unwrap();
            for waited in [first, second, freed] {
                waited.join().unwrap().unwrap();
            }
        });
        assert_eq!((lock(&log).as_slice(), soft.poll_stream(busy)), (&[1, 2][..], Ok(true)));
    }
}

#[test]
fn a_call_that_fails_or_panics_fails_the_device_for_all_threads() {
    for panics in [false, true] {
        let soft = Soft::new();
        let stream = soft.stream_create().unwrap();
        let (begin, begun) = mpsc::channel();
        let call = move || {
            begin.send(()).unwrap();
            thread::sleep(Duration::from_millis(20));
            assert!(!panics, "as calls may");
            Err(crate::Error::argument("as calls may"))
        };
        soft.call_host(stream, "failing", None, Box::new(call)).unwrap();
        thread::scope(|scope| {
            let first = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| wait(&soft, stream))));
            begun.recv().unwrap();
            assert!(wait(&soft, stream).is_err());
            assert_eq!(first.join().unwrap().is_err(), panics);
        });
        let kind = if panics { ErrorKind::Driver } else { ErrorKind::InvalidArgument };
        assert_eq!(soft.alloc(1).unwrap_err().kind(), kind);
    }
}

#[test]
fn a_condition_holds_a_stream_back_until_the_host_meets_it() {
    let soft = Soft::new();
    let (stream, log) = (soft.stream_create().unwrap(), Arc::default());
    let met = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&met);
    soft.wait_until(stream, move || seen.load(Ordering::Relaxed)).unwrap();
    soft.call_host(stream, "noting", None, noting(&log, 1)).unwrap();
    assert_eq!(soft.poll_stream(stream), Ok(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(10));
            assert!(lock(&log).is_empty());
            met.store(true, Ordering::Relaxed);
        });
        wait(&soft, stream).unwrap();
    });
    assert_eq!(*lock(&log), [1]);
}
