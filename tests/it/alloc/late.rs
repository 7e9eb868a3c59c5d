//! The cache over the late software GPU, whose work runs in any order that waits and events allow:
//! a block that another lane gets too early shows as wrong bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpstride::alloc::{Allocate, Block, Caching, Lane, Request};
use warpstride::driver::soft::{Config, Soft};
use warpstride::driver::trace::{Live, Method, Trace};
use warpstride::driver::{Driver, EventHandle, Memory, StreamHandle, Streams};
use warpstride::error::ErrorKind;

use crate::long::short_or_long;

use super::Random;

/// Bytes of a block that are written and read, at both ends.
const ENDS: u64 = 64;

/// A block in use, with the value of its bytes.
struct Held {
    block: Block,
    lane: usize,
    value: u8,
}

struct Program {
    /// The test's own calls go here, and the allocator's through `trace`, which makes them fail.
    soft: Arc<Soft>,
    trace: Arc<Trace>,
    caching: Arc<Caching>,
    lanes: Vec<Lane>,
    event: EventHandle,
    held: Vec<Held>,
    live: BTreeMap<u64, u64>,
    random: Random,
    allocations: usize,
    failures: usize,
}

/// The results of a program.
struct Ran {
    /// The trace of the calls that the allocator has made.
    trace: Arc<Trace>,
    allocations: usize,
    /// Requests that failed although memory was left.
    failures: usize,
}

impl Program {
    fn new(seed: u64) -> Self {
        let soft = Arc::new(Soft::with_config(Config { seed, memory_bytes: 24 << 20, ..Config::default() }));
        let trace = Arc::new(Trace::new(Arc::clone(&soft) as Arc<dyn Driver>));
        let caching = Arc::new(Caching::new(Arc::clone(&trace) as Arc<dyn Driver>).unwrap());
        let lane = |_| {
            let stream = soft.stream_create().unwrap();
            // SAFETY: the stream lives as long as the program.
            unsafe { caching.open(stream) }.unwrap()
        };
        let lanes = (0..8).map(lane).collect();
        let event = soft.event_create().unwrap();
        let (held, live, random) = (Vec::new(), BTreeMap::new(), Random(seed));
        Self { soft, trace, caching, lanes, event, held, live, random, allocations: 0, failures: 0 }
    }

    fn stream(&self, lane: usize) -> StreamHandle {
        self.lanes[lane].stream
    }

    /// Fills both ends of a block.
    fn fill(&self, held: &Held) {
        let bytes = held.block.bytes.min(ENDS);
        for at in [held.block.address, held.block.address + held.block.bytes - bytes] {
            // SAFETY: the range lies in a live block, whose last uses the stream waits for.
            unsafe { self.soft.fill(at, held.value, bytes, self.stream(held.lane)) }.unwrap();
        }
    }

    /// Reads both ends of a block.
    fn check(&self, held: &Held) {
        let bytes = held.block.bytes.min(ENDS);
        let mut found = [[0; ENDS as usize]; 2];
        for (end, at) in found.iter_mut().zip([held.block.address, held.block.address + held.block.bytes - bytes]) {
            // SAFETY: the range lies in a live block; the bytes live until the wait below.
            unsafe { self.soft.copy_d2h(end.as_mut_ptr(), at, bytes as usize, self.stream(held.lane)) }.unwrap();
        }
        // SAFETY: the stream is live.
        unsafe { self.soft.stream_synchronize(self.stream(held.lane)) }.unwrap();
        let right = found.iter().all(|end| end[..bytes as usize].iter().all(|&byte| byte == held.value));
        assert!(right, "a block of {} bytes was used by two at a time", held.block.bytes);
    }

    fn alloc(&mut self) {
        let lane = self.random.below(8) as usize;
        let most = [2 << 10, 200 << 10, 5 << 20][self.random.below(3) as usize];
        let bytes = if self.random.below(3) == 0 { 1 << self.random.below(20) } else { 1 + self.random.below(most) };
        // SAFETY: the lanes are open until the end of `run`.
        match unsafe { self.caching.alloc(&Request::new(bytes, &self.lanes[lane])) } {
            Ok(block) => {
                let before = self.live.range(..block.address + bytes).next_back();
                assert!(before.is_none_or(|(_, &end)| end <= block.address), "live blocks overlap");
                self.live.insert(block.address, block.address + bytes);
                // A fresh block may be used anywhere first.
                let lane = if block.fresh { self.random.below(8) as usize } else { lane };
                let held = Held { block, lane, value: self.random.below(256) as u8 };
                self.fill(&held);
                self.held.push(held);
                self.allocations += 1;
            }
            Err(error) if error.kind() == ErrorKind::OutOfMemory => (),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Driver, "{error}");
                self.failures += 1;
            }
        }
    }

    /// Uses a block on another stream.
    fn hand_on(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.random.below(self.held.len() as u64) as usize;
        let (from, to) = (self.held[at].lane, self.random.below(8) as usize);
        // SAFETY: the event and both streams are live.
        unsafe { self.soft.event_record(self.event, self.stream(from)) }.unwrap();
        // SAFETY: as above.
        unsafe { self.soft.event_wait(self.event, self.stream(to)) }.unwrap();
        self.held[at].lane = to;
        self.held[at].value = self.random.below(256) as u8;
        self.fill(&self.held[at]);
    }

    fn free(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.random.below(self.held.len() as u64) as usize;
        let held = self.held.swap_remove(at);
        // A check waits for the stream, and would hide what runs late.
        if self.random.below(8) == 0 {
            self.check(&held);
        }
        self.live.remove(&held.block.address);
        // SAFETY: the allocator gave it out, and its work is queued on the lane's stream.
        unsafe { self.caching.free(held.block, &self.lanes[held.lane]) }.unwrap();
    }

    fn run(mut self, operations: usize) -> Ran {
        for _ in 0..operations {
            match self.random.below(16) {
                0..8 => self.alloc(),
                8..10 => self.hand_on(),
                _ => self.free(),
            }
        }
        for held in std::mem::take(&mut self.held) {
            self.check(&held);
            // SAFETY: as in `free`.
            unsafe { self.caching.free(held.block, &self.lanes[held.lane]) }.unwrap();
        }
        let figures = self.caching.figures();
        assert_eq!((figures.active, figures.blocks), (0, 0));
        let Self { soft, trace, caching, lanes, allocations, failures, .. } = self;
        for lane in &lanes {
            // SAFETY: no block names the lane any more. It is closed even if a call fails.
            let _ = unsafe { caching.close(lane) };
            // SAFETY: nothing uses the stream from now on.
            unsafe { soft.stream_destroy(lane.stream) }.unwrap();
        }
        drop(caching);
        Ran { trace, allocations, failures }
    }

    /// Runs where nothing is made to fail. Memory runs out for some requests, and no other fails.
    fn run_well(self, operations: usize) -> Arc<Trace> {
        let ran = self.run(operations);
        assert_eq!(ran.failures, 0);
        assert!(ran.allocations > operations / 4, "only {} allocations", ran.allocations);
        ran.trace
    }
}

fn leaks_nothing(trace: &Trace) {
    assert!(trace.live().is_empty(), "leaked: {:?}", trace.live());
}

/// The long form runs 10^6 operations.
#[test]
fn no_block_is_used_by_two_at_a_time() {
    for seed in 0..64 {
        leaks_nothing(&Program::new(seed).run_well(short_or_long(150, 15_625)));
    }
}

/// The short form makes every 37th call fail.
#[test]
fn every_call_to_the_driver_may_fail() {
    for seed in 0..short_or_long(1, 4) {
        let trace = Program::new(seed).run_well(300);
        leaks_nothing(&trace);
        let calls = trace.calls().len();
        assert!(calls > 300, "only {calls} calls");
        for call in (1..calls).step_by(short_or_long(37, 1)) {
            let program = Program::new(seed);
            program.trace.fail_nth(call);
            leaks_nothing(&program.run(300).trace);
        }
    }
}

/// The last uses of memory cannot be waited for on a device that is lost, so it stays allocated.
#[test]
fn all_calls_from_one_on_may_fail() {
    for call in (1..300).step_by(short_or_long(37, 1)) {
        let program = Program::new(1);
        program.trace.fail_from(call);
        let live = program.run(300).trace.live();
        let rest = Live { pool_allocations: BTreeMap::new(), ..live };
        assert!(rest.is_empty(), "leaked: {rest:?}");
    }
}

/// Frees a block whose work is queued, lets `methods` fail during `then`, and returns the bytes
/// that are still allocated after the allocator has ended.
fn left_where_waits_fail(methods: &[Method], then: impl FnOnce(&Caching, &Lane)) -> u64 {
    let soft = Arc::new(Soft::with_config(Config { seed: 1, ..Config::default() }));
    let trace = Arc::new(Trace::new(Arc::clone(&soft) as Arc<dyn Driver>));
    let caching = Caching::new(Arc::clone(&trace) as Arc<dyn Driver>).unwrap();
    let stream = soft.stream_create().unwrap();
    // SAFETY: the stream is live until the lane is closed.
    let lane = unsafe { caching.open(stream) }.unwrap();
    // SAFETY: the lane is open.
    let block = unsafe { caching.alloc(&Request::new(6 << 20, &lane)) }.unwrap();
    // SAFETY: the range lies in a live block, and the work is queued on the lane's stream.
    unsafe { soft.fill(block.address, 1, block.bytes, stream) }.unwrap();
    // SAFETY: the allocator gave it out, and its work is queued on the lane's stream.
    unsafe { caching.free(block, &lane) }.unwrap();
    methods.iter().for_each(|&method| trace.fail_method(method));
    then(&caching, &lane);
    trace.fail_nothing();
    drop(caching);
    // SAFETY: the stream is live.
    unsafe { soft.stream_synchronize(stream) }.unwrap();
    trace.live().pool_allocations.values().sum()
}

#[test]
fn memory_that_nothing_can_wait_for_stays_allocated() {
    let trim = |caching: &Caching, lane: &Lane| {
        let error = caching.trim(0).unwrap_err();
        assert!(error.to_string().contains("injected failure"), "{error}");
        // SAFETY: no block names the lane any more.
        let _ = unsafe { caching.close(lane) };
    };
    let close = |caching: &Caching, lane: &Lane| {
        // SAFETY: no block names the lane any more.
        unsafe { caching.close(lane) }.unwrap_err();
    };
    for (kept, methods) in [(0, &[Method::EventWait][..]), (6 << 20, &[Method::EventWait, Method::EventSynchronize])] {
        assert_eq!(left_where_waits_fail(methods, trim), kept, "{methods:?}");
    }
    for (kept, methods) in
        [(0, &[Method::EventRecord][..]), (6 << 20, &[Method::EventRecord, Method::StreamSynchronize])]
    {
        assert_eq!(left_where_waits_fail(methods, close), kept, "{methods:?}");
    }
}
