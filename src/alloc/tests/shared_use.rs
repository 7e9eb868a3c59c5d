//! Several threads use blocks of one caching allocator, on lanes of their own and on one that they
//! share: hits, misses, blocks that go to another thread or lane, figures, snapshots and trims.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, Mutex};

use super::model::Random;
use crate::alloc::upstream::{Taken, Upstream};
use crate::alloc::{Allocate, Block, BlockState, Caching, Lane, Request};
use crate::driver::{Driver, EventHandle, StreamHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

const THREADS: usize = 4;
/// One for each thread, and one for all.
const LANES: usize = THREADS + 1;
/// Most blocks that a thread holds, and most that are on their way to another.
const MOST_HELD: usize = 6;
const MOST_BYTES: u64 = 64 << 10;
/// Bytes that are written and read, at both ends of a block.
const ENDS: u64 = 64;

/// A block in use, with the lane that used it last and the value of its bytes.
struct Held {
    block: Block,
    lane: usize,
    value: u8,
}

impl Held {
    /// The first and the last bytes.
    fn ends(&self) -> [(u64, usize); 2] {
        let bytes = self.block.bytes.min(ENDS);
        [self.block.address, self.block.address + self.block.bytes - bytes].map(|at| (at, bytes as usize))
    }

    /// Writes the value.
    fn write(&self) {
        for (at, bytes) in self.ends() {
            // SAFETY: the range lies in a live block of this thread, which is memory of the host.
            unsafe { pointer(at).write_bytes(self.value, bytes) };
        }
    }

    /// Reads the bytes, which must have the value.
    fn check(&self) {
        for (at, bytes) in self.ends() {
            // SAFETY: as above, and `write` has initialised it.
            let found = unsafe { std::slice::from_raw_parts(pointer(at), bytes) };
            assert!(found.iter().all(|&byte| byte == self.value), "two threads have one block");
        }
    }
}

/// The state that the threads share.
struct Common<'a> {
    caching: &'a Caching,
    lanes: &'a [Lane],
    /// Blocks that one thread has left to another.
    handed: Mutex<Vec<Held>>,
}

struct Thread<'a> {
    common: &'a Common<'a>,
    number: usize,
    random: Random,
    held: Vec<Held>,
    allocations: u64,
}

impl Thread<'_> {
    /// Returns the thread's own lane or the common one.
    fn lane(&mut self) -> usize {
        if self.random.below(2) == 0 { self.number } else { THREADS }
    }

    fn alloc(&mut self) {
        let lane = self.lane();
        let bytes = match self.random.below(4) {
            0 => 1 + self.random.below(MOST_BYTES),
            // Sizes that come back.
            _ => 1 << self.random.below(12),
        };
        let Common { caching, lanes, .. } = self.common;
        // SAFETY: the lanes are open.
        let block = unsafe { caching.alloc(&Request::new(bytes, &lanes[lane])) }.unwrap();
        self.allocations += 1;
        let held = Held { block, lane, value: self.random.below(256) as u8 };
        held.write();
        self.held.push(held);
    }

    fn free(&mut self, held: Held) {
        held.check();
        // SAFETY: the allocator gave it out, and its last use is on that lane.
        unsafe { self.common.caching.free(held.block, &self.common.lanes[held.lane]) }.unwrap();
    }

    /// Takes a block that another thread has left, and uses it on a lane of this one.
    fn take_over(&mut self) {
        let Some(mut held) = lock(&self.common.handed).pop() else { return };
        let lane = self.lane();
        held.lane = lane;
        held.check();
        held.value = self.random.below(256) as u8;
        held.write();
        self.held.push(held);
    }

    fn hand_over(&mut self, held: Held) {
        let mut handed = lock(&self.common.handed);
        if handed.len() < MOST_HELD {
            handed.push(held);
        } else {
            drop(handed);
            self.held.push(held);
        }
    }

    fn look(&mut self) {
        // A thread may hold one more that it takes over.
        const MOST: u64 = (THREADS * (MOST_HELD + 1) + MOST_HELD) as u64;
        let snapshot = self.common.caching.snapshot();
        let figures = snapshot.figures;
        assert!(figures.blocks <= MOST && figures.peak_active <= MOST * MOST_BYTES, "{figures:?}");
        assert!(figures.active <= figures.peak_active && figures.reserved <= figures.peak_reserved, "{figures:?}");
        assert_eq!(figures.reserved, snapshot.segments.iter().map(|segment| segment.bytes).sum::<u64>());
        let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        let active: BTreeMap<u64, u64> = blocks
            .filter(|block| block.state == BlockState::Active)
            .map(|block| (block.address, block.bytes))
            .collect();
        for Held { block, .. } in &self.held {
            assert!(active.get(&block.address).is_some_and(|&bytes| bytes >= block.bytes), "{block:?} is not active");
        }
    }

    fn run(mut self, turns: u32) -> u64 {
        for _ in 0..turns {
            let at = self.random.below(self.held.len().max(1) as u64) as usize;
            match self.random.below(64) {
                0..32 if self.held.len() < MOST_HELD => self.alloc(),
                32..52 if !self.held.is_empty() => {
                    let held = self.held.swap_remove(at);
                    self.free(held);
                }
                52..56 if !self.held.is_empty() => {
                    let held = self.held.swap_remove(at);
                    self.hand_over(held);
                }
                56..60 if self.held.len() <= MOST_HELD => self.take_over(),
                60 => self.look(),
                61 => {
                    let keep = self.random.below(4) << 16;
                    self.common.caching.trim(keep).unwrap();
                }
                _ => (),
            }
        }
        for held in std::mem::take(&mut self.held) {
            self.free(held);
        }
        self.allocations
    }
}

/// Runs the threads, frees what none took over, and closes the lanes.
fn run(caching: &Caching, seed: u64, turns: u32) {
    // SAFETY: nothing is queued on the streams, which do not exist.
    let open = |stream: usize| unsafe { caching.open(StreamHandle(stream as u64)) }.unwrap();
    let lanes: [Lane; LANES] = std::array::from_fn(open);
    let common = Common { caching, lanes: &lanes, handed: Mutex::default() };
    let thread = |number: usize| {
        let random = Random(seed << 8 | number as u64);
        Thread { common: &common, number, random, held: Vec::new(), allocations: 0 }
    };
    let allocations: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || thread(number).run(turns))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let mut last = thread(0);
    last.held = std::mem::take(&mut *lock(&common.handed));
    last.run(0);
    let figures = caching.figures();
    assert_eq!((figures.active, figures.blocks, figures.allocations), (0, 0, allocations));
    assert!(allocations > THREADS as u64 * u64::from(turns) / 5, "only {allocations} allocations");
    assert!(figures.misses > 0 && figures.misses < allocations, "hits and misses: {figures:?}");
    for lane in &lanes {
        // SAFETY: no block names the lane any more.
        unsafe { caching.close(lane) }.unwrap();
    }
}

/// Memory of the host, which threads use at once, so no work is queued anywhere. A sanitizer sees
/// two threads with one block, and uses of memory that was given back.
#[derive(Debug, Default)]
struct HostMemory {
    pieces: Mutex<BTreeMap<u64, u64>>,
}

fn layout(bytes: u64) -> Layout {
    Layout::from_size_align(bytes as usize, 256).unwrap()
}

fn pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

// SAFETY: pieces are allocations of the host, and there is no work that could be unordered.
unsafe impl Upstream for Arc<HostMemory> {
    fn is_of(&self, _: &Arc<dyn Driver>) -> bool {
        false
    }

    unsafe fn take(&self, bytes: u64, _: StreamHandle) -> Result<Taken> {
        // SAFETY: the cache takes no empty pieces.
        let piece = unsafe { std::alloc::alloc(layout(bytes)) };
        if piece.is_null() {
            return Err(Error::new(ErrorKind::OutOfMemory, "the host has no memory"));
        }
        let address = piece.expose_provenance() as u64;
        lock(&self.pieces).insert(address, bytes);
        Ok(Taken { address, fresh: true })
    }

    unsafe fn give(&self, address: u64, bytes: u64, _: &[EventHandle]) -> Result<()> {
        assert_eq!(lock(&self.pieces).remove(&address), Some(bytes), "a piece is given back once and whole");
        // SAFETY: `take` allocated it with this layout.
        unsafe { std::alloc::dealloc(pointer(address), layout(bytes)) };
        Ok(())
    }
}

#[test]
fn no_block_is_given_to_two_threads() {
    for seed in 0..8 {
        let memory = Arc::new(HostMemory::default());
        let caching = Caching::over(Box::new(Arc::clone(&memory)));
        run(&caching, seed, 2000);
        drop(caching);
        assert!(lock(&memory.pieces).is_empty(), "memory leaked");
    }
}
