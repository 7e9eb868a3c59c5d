//! `src/pipeline`: the ring of slots between sources, the engine and sinks.

#[allow(dead_code, reason = "no model runs a pipeline twice")]
#[path = "../../../src/pipeline/ring.rs"]
mod ring;

use loom::sync::Arc;
use loom::thread;

use self::ring::Ring;
use crate::error::Error;

crate::models! {
    every_batch_goes_round_and_all_rest,
    two_sources_fill_one_ring,
    a_sink_that_stops_wakes_all,
    ends_that_leave_wake_all,
}

type Numbers = Ring<u32, u32>;

/// Fills slots until the run is over, or `count` batches are filled.
fn source(ring: &Numbers, count: u64) {
    while let Some((batch, slot)) = ring.wait(|state| state.claim()) {
        ring.change(|state| if batch < count { state.fill(batch, slot, 1) } else { state.end(batch, slot) });
    }
}

/// Queues what is filled, and waits until all rest. Returns the number of batches that were taken.
fn engine(ring: &Numbers) -> u64 {
    while let Some((batch, slot, _)) = ring.wait(|state| state.queue()) {
        ring.change(|state| state.fly(batch, slot));
    }
    ring.change(|state| state.close());
    ring.wait(|state| state.rest()).expect("it comes to rest");
    let finished = ring.finish();
    for (_, slot) in finished.flights {
        ring.restore(slot);
    }
    finished.taken
}

/// Takes batches until the run is over. It stops the run at batch `stop`.
fn sink(ring: &Numbers, stop: u64) {
    let mut next = 0;
    while let Some((batch, slot)) = ring.wait(|state| state.land()) {
        assert_eq!(batch, next, "batches come in order");
        next += 1;
        ring.change(|state| {
            if batch == stop {
                state.stop(Some(Error));
            } else {
                state.take();
            }
            state.free(slot);
        });
    }
}

/// Runs one slot with a source of `count` batches and a sink that stops the run at batch `stop`.
/// Returns how many were taken.
fn taken(count: u64, stop: u64) -> u64 {
    let ring = Arc::new(Numbers::new(vec![0]));
    let [filled, emptied] = [(); 2].map(|()| Arc::clone(&ring));
    let ends = [thread::spawn(move || source(&filled, count)), thread::spawn(move || sink(&emptied, stop))];
    let taken = engine(&ring);
    ends.into_iter().for_each(|end| end.join().unwrap());
    taken
}

fn every_batch_goes_round_and_all_rest() {
    assert_eq!(taken(2, u64::MAX), 2);
}

fn two_sources_fill_one_ring() {
    let ring = Arc::new(Numbers::new(vec![0, 1]));
    let sources = [1, 1].map(|count| {
        let ring = Arc::clone(&ring);
        thread::spawn(move || source(&ring, count))
    });
    // The sink comes after, as there is a slot for the batch.
    while let Some((batch, slot, _)) = ring.wait(|state| state.queue()) {
        ring.change(|state| state.fly(batch, slot));
    }
    ring.change(|state| state.close());
    sink(&ring, u64::MAX);
    sources.into_iter().for_each(|source| source.join().unwrap());
    ring.wait(|state| state.rest()).expect("it comes to rest");
    assert_eq!(ring.finish().taken, 1);
}

fn a_sink_that_stops_wakes_all() {
    assert_eq!(taken(u64::MAX, 0), 0);
}

fn ends_that_leave_wake_all() {
    let ring = Arc::new(Numbers::new(vec![0]));
    let leaving = Arc::clone(&ring);
    let sink = thread::spawn(move || leaving.change(|state| state.leave()));
    if let Some((batch, slot)) = ring.wait(|state| state.claim()) {
        ring.change(|state| state.fill(batch, slot, 1));
    }
    ring.change(|state| state.end_here());
    assert_eq!(engine(&ring), 0);
    sink.join().unwrap();
    ring.begin(|left| assert_eq!(left[..], [0]));
}
