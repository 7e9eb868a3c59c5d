//! The engine on the software GPU, whose copies run late: a slot that is used too early shows.

use std::sync::Arc;

use super::*;
use crate::driver::Memory;
use crate::driver::soft::Soft;
use crate::driver::trace::Trace;

/// Small slots, so that small copies pass through each of them several times.
const POLICY: Policy =
    Policy { fewest_bytes: 1, bytes_a_thread: 1, most_threads: 4, slot_bytes: 512, fewest_slot_bytes: 256 };

/// An engine, and a pool for its slots. The engine is dropped first, as by a device.
struct Engine {
    staging: Staging,
    pool: HostPool,
}

fn engine(driver: Arc<dyn Driver>) -> Engine {
    let driver = Arc::new(Counted::new(driver));
    let pool = HostPool::new(Arc::clone(&driver) as _);
    Engine {
        staging: Staging { policies: [POLICY, Policy { slot_bytes: 1024, ..POLICY }], ..Staging::new(driver) },
        pool,
    }
}

fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251 + seed as usize) as u8).collect()
}

/// Copies `bytes` bytes to the device and back by `threads` threads, and returns what came back,
/// and whether both were staged.
fn there_and_back(engine: &Engine, bytes: &[u8], threads: usize) -> Result<(Vec<u8>, bool)> {
    let Engine { staging, pool } = engine;
    let driver = &staging.driver;
    let (mut back, address) = (vec![0; bytes.len()], driver.alloc(bytes.len() as u64)?);
    // SAFETY: the allocation has these bytes, which nothing else uses.
    let up = unsafe { staging.copy(pool, Direction::Upload, address, bytes.as_ptr().cast_mut(), bytes.len(), threads) };
    // SAFETY: the vector and the allocation have these bytes, which nothing else uses.
    let down = unsafe { staging.copy(pool, Direction::Download, address, back.as_mut_ptr(), bytes.len(), threads) };
    // SAFETY: nothing uses the allocation any more.
    let freed = unsafe { driver.free(address) };
    let staged = up? & down?;
    freed.map(|()| (back, staged))
}

#[test]
fn copies_at_the_same_time_share_no_slot() {
    for seed in 0..4 {
        let engine = engine(Arc::new(Soft::with_seed(seed)));
        std::thread::scope(|scope| {
            for caller in 0..3 {
                let engine = &engine;
                scope.spawn(move || {
                    for round in 0..5 {
                        let sent = pattern(7000 + round, caller * 100 + round as u64);
                        assert!(there_and_back(engine, &sent, 2).unwrap().0 == sent, "caller {caller}, seed {seed}");
                    }
                });
            }
        });
    }
}

/// Returns the outcome of copies over `trace`, after which all that they made is released.
fn outcome(trace: &Arc<Trace>, sent: &[u8]) -> Result<(Vec<u8>, bool)> {
    let engine = engine(Arc::clone(trace) as Arc<dyn Driver>);
    let outcome = there_and_back(&engine, sent, 2);
    drop(engine);
    assert!(trace.live().is_empty(), "alive after {outcome:?}: {:?}", trace.live());
    outcome
}

#[test]
fn every_call_may_fail_and_nothing_hangs_or_leaks() {
    let sent = pattern(9000, 7);
    for seed in 0..4 {
        let trace = Arc::new(Trace::new(Arc::new(Soft::with_seed(seed))));
        assert!(outcome(&trace, &sent).unwrap().0 == sent);
        let calls = trace.calls().len();
        let failures = [Trace::fail_nth, Trace::fail_from].map(|fail| (0..calls).map(move |index| (fail, index)));
        for (fail, index) in failures.into_iter().flatten() {
            let trace = Arc::new(Trace::new(Arc::new(Soft::with_seed(seed))));
            fail(&trace, index);
            match outcome(&trace, &sent) {
                Err(error) => assert!(error.to_string().contains("injected failure"), "{error}"),
                // Threads that poll make the number of calls vary. A lane that cannot be made, or
                // released, is missing and no more; without any, nothing is copied.
                Ok((back, staged)) => assert!(back == sent || !staged, "call {index}, seed {seed}"),
            }
        }
    }
}

/// A copy that stayed queued after a failure would write into memory that the caller has back.
#[test]
fn after_a_failure_no_copy_is_queued() {
    for seed in 0..4 {
        for index in 0..60 {
            let trace = Arc::new(Trace::new(Arc::new(Soft::with_seed(seed))));
            let engine = engine(Arc::clone(&trace) as Arc<dyn Driver>);
            let address = trace.alloc(20_000).unwrap();
            let mut host = vec![0; 20_000];
            trace.fail_nth(trace.calls().len() + index);
            // SAFETY: the vector and the allocation have these bytes, which nothing else uses.
            let _ = unsafe {
                engine.staging.copy(&engine.pool, Direction::Download, address, host.as_mut_ptr(), host.len(), 3)
            };
            trace.fail_nothing();
            host.fill(0x5A);
            // This runs all that is queued. SAFETY: nothing uses the allocation any more.
            unsafe { trace.free(address) }.unwrap();
            assert!(host.iter().all(|&byte| byte == 0x5A), "call {index}, seed {seed}");
        }
    }
}

#[test]
fn without_memory_for_slots_nothing_is_copied_and_the_caller_learns_it() {
    let trace = Arc::new(Trace::new(Arc::new(Soft::new())));
    trace.fail_method(crate::driver::trace::Method::AllocHost);
    let (_, staged) = outcome(&trace, &pattern(100, 1)).unwrap();
    assert!(!staged);
    assert!(!trace.calls().iter().any(|call| call.name() == "stream_create"), "a helper was made for nothing");
}

#[test]
fn helpers_are_kept_between_copies_and_end_with_the_engine() {
    let trace = Arc::new(Trace::new(Arc::new(Soft::new())));
    let engine = engine(Arc::clone(&trace) as Arc<dyn Driver>);
    let sent = pattern(9000, 3);
    there_and_back(&engine, &sent, 3).unwrap();
    let live = trace.live();
    // The pool cuts small slots out of one allocation.
    assert_eq!((live.streams.len(), live.events.len(), live.host_allocations.len()), (3, 3 * SLOTS, 1));
    let before = trace.calls().len();
    there_and_back(&engine, &sent, 3).unwrap();
    let made: Vec<_> = trace.calls().split_off(before);
    assert!(
        !made.iter().any(|call| ["stream_create", "event_create", "alloc_host"].contains(&call.name())),
        "{made:?}"
    );
    drop(engine);
    assert!(trace.live().is_empty());
}

#[test]
fn the_software_gpu_copies_by_itself_unless_it_is_asked_not_to() {
    let engine = engine(Arc::new(Soft::new()));
    for (route, threads) in [(Route::Auto, 0), (Route::Driver, 0), (Route::Staged(3.try_into().unwrap()), 3)] {
        engine.staging.set_route(route);
        assert_eq!(engine.staging.threads(Direction::Upload, 1 << 30), threads);
        assert_eq!(engine.staging.threads(Direction::Download, 1 << 30), threads);
    }
}
