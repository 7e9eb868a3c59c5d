//! `HoldBack`: producers that are faster than the device wait for its oldest work.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use warpstride::alloc::{Allocate, Caching, HoldBack, Lane, Logged, Request};
use warpstride::driver::soft::{Config, Soft};
use warpstride::driver::trace::{Method, Trace};
use warpstride::driver::{Driver, Streams};

use crate::hooked::Hooked;
use crate::long::PATIENCE;

const MIB: u64 = 1 << 20;

#[test]
fn a_producer_that_is_too_fast_waits_for_the_oldest_work() {
    let soft = Arc::new(Soft::with_config(Config { memory_bytes: 32 * MIB, ..Config::default() }));
    let trace = Arc::new(Trace::new(Arc::clone(&soft) as Arc<dyn Driver>));
    let cache = Caching::new(Arc::clone(&soft) as Arc<dyn Driver>).unwrap();
    let held_back = HoldBack::new(cache, Arc::clone(&trace) as Arc<dyn Driver>, 1 << 20);
    let stream = soft.stream_create().unwrap();
    // SAFETY: the stream is live.
    let lane = unsafe { held_back.open(stream) }.unwrap();
    let waits = || trace.calls().iter().filter(|call| call.name() == "event_synchronize").count();
    for turn in 0..64 {
        // SAFETY: the lane is open.
        let block = unsafe { held_back.alloc(&Request::new(100_000, &lane)) }.unwrap();
        // SAFETY: it was just given out, and no work uses it.
        unsafe { held_back.free(block, &lane) }.unwrap();
        assert!(turn > 9 || waits() == 0, "ten blocks are within the limit");
    }
    assert!((20..64).contains(&waits()), "{} waits", waits());
    // SAFETY: all blocks are freed.
    unsafe { held_back.close(&lane) }.unwrap();
    drop(held_back);
    assert!(trace.live().is_empty());
}

#[test]
fn other_producers_wait_with_the_one_that_waits() {
    producers_wait_together(|held_back| Box::new(held_back));
}

#[test]
fn a_log_lets_others_free_while_producers_wait() {
    producers_wait_together(|held_back| Box::new(Logged::new(held_back, Box::new(std::io::sink()))));
}

/// One producer waits for the only event. The others have no work of their own to wait for, and the
/// limit holds for them too. A free does not wait.
fn producers_wait_together(stack: fn(HoldBack<Caching>) -> Box<dyn Allocate>) {
    for the_wait_fails in [false, true] {
        let soft = Arc::new(Soft::with_config(Config { memory_bytes: 32 * MIB, ..Config::default() }));
        let trace = Arc::new(Trace::new(Arc::clone(&soft) as Arc<dyn Driver>));
        if the_wait_fails {
            trace.fail_method(Method::EventSynchronize);
        }
        let (waits, begun) = mpsc::channel();
        let (go_on, held) = mpsc::channel();
        let held = Mutex::new(held);
        let before_wait = move || {
            waits.send(()).unwrap();
            // A later wait goes on at once.
            let _ = held.lock().unwrap().recv();
        };
        let hooked = Hooked { before_wait: Box::new(before_wait), ..Hooked::new(trace) };
        let hooked: Arc<dyn Driver> = Arc::new(hooked);
        let cache = Caching::new(Arc::clone(&hooked)).unwrap();
        let held_back = stack(HoldBack::new(cache, hooked, MIB));
        // SAFETY: the stream is live.
        let lanes = [(); 4].map(|()| unsafe { held_back.open(soft.stream_create().unwrap()) }.unwrap());
        let alloc = |bytes: u64, lane: &Lane| {
            // SAFETY: the lane is open until the end.
            unsafe { held_back.alloc(&Request::new(bytes, lane)) }
        };
        // SAFETY (each call): the allocator gave the block out, and no work uses it.
        let [small, large] = [1000, MIB - 4096].map(|bytes| alloc(bytes, &lanes[0]).unwrap());
        // SAFETY: as above.
        unsafe { held_back.free(large, &lanes[0]) }.unwrap();
        let (granted, grants) = mpsc::channel();
        thread::scope(|scope| {
            let produce = |lane: usize| {
                let (alloc, held_back, lanes, granted) = (&alloc, &held_back, &lanes, granted.clone());
                scope.spawn(move || {
                    let block = alloc(MIB / 4, &lanes[lane]);
                    granted.send(block.is_ok()).unwrap();
                    // SAFETY: as above.
                    block.map(|block| unsafe { held_back.free(block, &lanes[lane]) }.unwrap())
                });
            };
            produce(0);
            begun.recv().unwrap();
            produce(1);
            produce(2);
            let (freed, frees) = mpsc::channel();
            let (held_back, lane) = (&held_back, &lanes[3]);
            scope.spawn(move || {
                // SAFETY: as above.
                freed.send(unsafe { held_back.free(small, lane) }).unwrap();
            });
            let freed = frees.recv_timeout(PATIENCE);
            let early = grants.recv_timeout(Duration::from_millis(100));
            go_on.send(()).unwrap();
            freed.expect("a free waits for no producer").unwrap();
            assert_eq!(early, Err(RecvTimeoutError::Timeout), "a producer passed the limit");
            drop(go_on);
            let granted: Vec<bool> = (0..3).map(|_| grants.recv().unwrap()).collect();
            // A producer that comes after the free waits for the small block, and fails too.
            assert_eq!(granted.contains(&false), the_wait_fails);
        });
        for lane in &lanes {
            // SAFETY: all blocks are freed.
            unsafe { held_back.close(lane) }.unwrap();
        }
    }
}

#[test]
fn a_panic_of_the_driver_leaves_no_producer_waiting() {
    let soft = Arc::new(Soft::new());
    let (waits, begun) = mpsc::channel();
    let (go_on, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let before_wait = move || {
        waits.send(()).unwrap();
        let is_first = held.lock().unwrap().recv().is_ok();
        assert!(!is_first, "the driver panics");
    };
    let hooked = Hooked { before_wait: Box::new(before_wait), ..Hooked::new(Arc::clone(&soft) as Arc<dyn Driver>) };
    let hooked: Arc<dyn Driver> = Arc::new(hooked);
    let held_back = Arc::new(HoldBack::new(Caching::new(Arc::clone(&hooked)).unwrap(), hooked, MIB));
    // SAFETY: the stream is live.
    let lane = Arc::new(unsafe { held_back.open(soft.stream_create().unwrap()) }.unwrap());
    // SAFETY: the lane is open.
    let block = unsafe { held_back.alloc(&Request::new(MIB - 4096, &lane)) }.unwrap();
    // SAFETY: it was just given out, and no work uses it.
    unsafe { held_back.free(block, &lane) }.unwrap();
    let (granted, grants) = mpsc::channel();
    // No scope, because it would wait for a producer that waits for ever.
    let produce = || {
        let (held_back, lane, granted) = (Arc::clone(&held_back), Arc::clone(&lane), granted.clone());
        thread::spawn(move || {
            // SAFETY: the lane is open until the end.
            let block = unsafe { held_back.alloc(&Request::new(MIB / 4, &lane)) };
            granted.send(block.is_ok()).unwrap();
            // SAFETY: as above.
            unsafe { held_back.free(block.unwrap(), &lane) }.unwrap();
        })
    };
    let first = produce();
    begun.recv().unwrap();
    let second = produce();
    assert_eq!(grants.recv_timeout(Duration::from_millis(100)), Err(RecvTimeoutError::Timeout));
    go_on.send(()).unwrap();
    drop(go_on);
    assert!(first.join().is_err(), "the first producer unwinds");
    assert_eq!(grants.recv_timeout(PATIENCE), Ok(true), "the second goes on");
    second.join().unwrap();
    // SAFETY: all blocks are freed.
    unsafe { held_back.close(&lane) }.unwrap();
}
