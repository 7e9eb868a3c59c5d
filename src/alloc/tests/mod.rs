//! The caching allocator against a model, with each call to the driver failing in turn.

mod model;
mod shared_use;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use self::model::{Model, Random, Work};
use super::{Allocate, Block, BlockState, Caching, Lane, Request};
use crate::driver::StreamHandle;
use crate::error::ErrorKind;
use crate::sync::lock;

/// A block in use, with the lane that used it last.
struct Held {
    block: Block,
    stream: StreamHandle,
    work: BTreeSet<Work>,
}

/// A random program over an allocator.
struct Program {
    model: Arc<Model>,
    caching: Caching,
    random: Random,
    lanes: Vec<Lane>,
    held: Vec<Held>,
    /// End by start.
    live: BTreeMap<u64, u64>,
    active: u64,
    failures: u64,
}

impl Program {
    fn new(seed: u64, memory: u64, pool: bool) -> Self {
        let model = Arc::new(Model::new(seed, memory, pool));
        let caching = Caching::over(Box::new(Arc::clone(&model)));
        let random = Random(seed ^ 0xABCD);
        let (lanes, held, live) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { model, caching, random, lanes, held, live, active: 0, failures: 0 }
    }

    /// Counts a failure that the test has caused.
    fn outcome<T>(&mut self, outcome: crate::error::Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Driver), "{error}");
                self.failures += u64::from(error.kind() == ErrorKind::Driver);
                None
            }
        }
    }

    fn open(&mut self) {
        let stream = lock(&self.model.state).open();
        // SAFETY: the model's stream is live until `close`.
        let opened = unsafe { self.caching.open(stream) };
        if let Some(lane) = self.outcome(opened) {
            assert!(self.lanes.iter().all(|other| other.id != lane.id), "ids are unique");
            self.lanes.push(lane);
        }
    }

    fn close(&mut self, at: usize) {
        let stream = self.lanes[at].stream;
        while let Some(at) = self.held.iter().position(|held| held.stream == stream) {
            self.free(at);
        }
        let lane = self.lanes.swap_remove(at);
        // SAFETY: no block names the lane any more.
        let closed = unsafe { self.caching.close(&lane) };
        self.outcome(closed);
        lock(&self.model.state).destroy(stream);
    }

    fn alloc(&mut self) {
        let at = self.random.below(self.lanes.len() as u64) as usize;
        let most = [4 << 10, 300 << 10, 6 << 20][self.random.below(3) as usize];
        let bytes = match self.random.below(4) {
            // Sizes that come back.
            0 => 1 << self.random.below(20),
            _ => 1 + self.random.below(most),
        };
        let lane = &self.lanes[at];
        let stream = lane.stream;
        // SAFETY: the lane is open.
        let allocated = unsafe { self.caching.alloc(&Request::new(bytes, lane)) };
        let Some(block) = self.outcome(allocated) else { return };
        assert_eq!((block.bytes, block.address % 256), (bytes, 0));
        let before = self.live.range(..block.address + bytes).next_back();
        assert!(before.is_none_or(|(_, &end)| end <= block.address), "live blocks overlap");
        self.live.insert(block.address, block.address + bytes);
        self.active += bytes;
        let mut state = lock(&self.model.state);
        state.begin(block.address, bytes, stream, block.fresh);
        let mut work = BTreeSet::new();
        // Some blocks are never used.
        if self.random.below(4) > 0 {
            work.insert(state.work(stream));
        }
        drop(state);
        self.held.push(Held { block, stream, work });
    }

    /// Uses a block on another stream, which first waits as the types make it wait.
    fn hand_on(&mut self, at: usize) {
        let to = self.lanes[self.random.below(self.lanes.len() as u64) as usize].stream;
        let held = &mut self.held[at];
        let mut state = lock(&self.model.state);
        state.follow(to, held.stream);
        held.work.insert(state.work(to));
        held.stream = to;
    }

    fn free(&mut self, at: usize) {
        let Held { block, stream, work } = self.held.swap_remove(at);
        self.live.remove(&block.address);
        self.active -= block.bytes;
        lock(&self.model.state).end(block.address, block.bytes, work);
        let lane = self.lanes.iter().find(|lane| lane.stream == stream).expect("it is open");
        // SAFETY: the allocator gave the block out, and the model has no later use of it.
        let freed = unsafe { self.caching.free(block, lane) };
        self.outcome(freed);
    }

    fn step(&mut self) {
        let held = self.held.len() as u64;
        match self.random.below(100) {
            0..45 => self.alloc(),
            45..85 if held > 0 => {
                let at = self.random.below(held) as usize;
                self.free(at);
            }
            85..95 if held > 0 => {
                let at = self.random.below(held) as usize;
                self.hand_on(at);
            }
            95 if self.lanes.len() < 9 => self.open(),
            96 if self.lanes.len() > 2 => {
                let at = self.random.below(self.lanes.len() as u64) as usize;
                self.close(at);
            }
            97 => {
                let keep = self.random.below(8) << 20;
                let trimmed = self.caching.trim(keep);
                self.outcome(trimmed);
            }
            _ => (),
        }
    }

    /// Compares the allocator's books with the model's.
    fn check_books(&self) {
        let snapshot = self.caching.snapshot();
        let figures = snapshot.figures;
        assert_eq!((figures.active, figures.blocks), (self.active, self.held.len() as u64));
        assert_eq!(figures.reserved, snapshot.segments.iter().map(|segment| segment.bytes).sum::<u64>());
        let mut active = BTreeSet::new();
        for segment in &snapshot.segments {
            let mut at = segment.address;
            for block in &segment.blocks {
                assert_eq!(block.address, at, "blocks have no gaps");
                at += block.bytes;
                if block.state == BlockState::Active {
                    active.insert(block.address);
                    assert!(block.site.as_ref().is_some_and(|site| site.contains("tests/mod.rs")));
                }
            }
            assert_eq!(at, segment.address + segment.bytes);
        }
        assert_eq!(active, self.live.keys().copied().collect());
    }

    /// Returns the calls to the model and the failures.
    fn run(mut self, steps: u64, fails: Range<u64>) -> (u64, u64) {
        lock(&self.model.state).fails = fails;
        while self.lanes.len() < 4 {
            self.open();
        }
        for step in 0..steps {
            self.step();
            if step % 64 == 0 {
                self.check_books();
            }
        }
        self.check_books();
        while !self.lanes.is_empty() {
            self.close(0);
        }
        let Self { model, caching, failures, .. } = self;
        let figures = caching.figures();
        assert_eq!((figures.active, figures.blocks), (0, 0));
        drop(caching);
        let state = lock(&model.state);
        state.assert_empty();
        (state.calls, failures)
    }
}

#[test]
fn random_programs_overlap_nothing_and_wait_for_all_former_uses() {
    for seed in 0..60 {
        let memory = [1 << 40, 48 << 20][seed as usize % 2];
        let (_, failures) = Program::new(seed, memory, seed % 4 < 2).run(3000, 0..0);
        assert_eq!(failures, 0, "seed {seed}");
    }
}

#[test]
fn every_call_may_fail_and_nothing_leaks() {
    for (seed, pool) in [(1, false), (2, true)] {
        let (calls, _) = Program::new(seed, 48 << 20, pool).run(400, 0..0);
        assert!(calls > 100, "only {calls} calls");
        let mut seen = 0;
        for call in 1..=calls {
            seen += Program::new(seed, 48 << 20, pool).run(400, call..call + 1).1;
            Program::new(seed, 48 << 20, pool).run(400, call..u64::MAX);
        }
        assert!(seen > calls / 2, "only {seen} of {calls} failures were seen");
    }
}
