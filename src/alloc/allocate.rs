//! The trait of allocators, and the types of its calls.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::driver::{Driver, StreamHandle};
use crate::error::Result;

/// A stream, as an allocator knows it: blocks that were freed on a lane can be used again there at
/// once, because the stream orders the uses.
///
/// [`Allocate::open`] makes a lane, and [`Allocate::close`] takes it back.
#[derive(Debug, PartialEq, Eq)]
pub struct Lane {
    /// A small number that no other open lane of the allocator has.
    pub id: u32,
    /// The stream, in the driver of the allocator's memory.
    pub stream: StreamHandle,
}

/// A request for memory, as an allocator gets it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The number of bytes, at least 1.
    pub bytes: u64,
    /// The lane whose work uses the block first.
    pub lane: &'a Lane,
    /// The line of the program that wants the block, for logs and errors.
    pub site: &'static Location<'static>,
}

impl<'a> Request<'a> {
    /// A request of the line that calls this.
    #[track_caller]
    pub fn new(bytes: u64, lane: &'a Lane) -> Self {
        Self { bytes, lane, site: Location::caller() }
    }
}

/// A block of device memory from an allocator. It is not `Clone`, so it is freed once.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The first byte, at a multiple of 256.
    pub address: u64,
    /// The requested number of bytes.
    pub bytes: u64,
    /// True if no work that used this memory before may still run, so that any stream may use the
    /// block first. Otherwise only the stream that it was requested for may.
    pub fresh: bool,
    /// The allocator's own number for the block.
    pub token: u64,
}

/// The bytes that an allocator holds, and the number of its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Figures {
    /// Bytes of the blocks that are in use.
    pub active: u64,
    /// The most bytes that were active at once, as far as the allocator looked: see its own
    /// documentation.
    pub peak_active: u64,
    /// Bytes taken from the driver and not given back.
    pub reserved: u64,
    /// The most bytes that were reserved at once.
    pub peak_reserved: u64,
    /// Bytes that are reserved and not in use.
    pub free: u64,
    /// Bytes of the largest free block.
    pub largest_free: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Blocks given out so far.
    pub allocations: u64,
    /// Allocations that took something from the driver or from another lane, or had to look beyond
    /// their own lane.
    pub misses: u64,
    /// Times that memory was taken from the driver.
    pub taken: u64,
    /// Times that memory was given back to it.
    pub given_back: u64,
}

impl Figures {
    /// The part of the free bytes that no request of their number could get: 1 - largest free block
    /// / all free bytes. 0 if nothing is free.
    pub fn fragmentation(&self) -> f64 {
        if self.free == 0 { 0.0 } else { 1.0 - self.largest_free as f64 / self.free as f64 }
    }
}

/// Counts of the calls of an allocator that threads share.
#[derive(Debug, Default)]
pub(super) struct Counts {
    active: AtomicU64,
    peak: AtomicU64,
    allocations: AtomicU64,
    frees: AtomicU64,
}

impl Counts {
    pub(super) fn allocated(&self, bytes: u64) {
        let active = self.active.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(active, Relaxed);
        self.allocations.fetch_add(1, Relaxed);
    }

    pub(super) fn freed(&self, bytes: u64) {
        self.active.fetch_sub(bytes, Relaxed);
        self.frees.fetch_add(1, Relaxed);
    }

    pub(super) fn frees(&self) -> u64 {
        self.frees.load(Relaxed)
    }

    /// Returns what was counted, in figures that are otherwise `others`.
    pub(super) fn figures(&self, others: Figures) -> Figures {
        // Another thread may free between the reads.
        let [active, peak_active, allocations, frees] =
            [&self.active, &self.peak, &self.allocations, &self.frees].map(|sum| sum.load(Relaxed));
        let blocks = allocations.saturating_sub(frees);
        Figures { active, peak_active, allocations, blocks, ..others }
    }
}

/// Allocates and frees device memory in the order of streams, so that neither call waits for queued
/// work. An allocator may wrap another one, to limit it, count or log.
///
/// All methods may be called from any thread.
///
/// # Errors
///
/// Every method may also report an earlier asynchronous failure on the device, as
/// [`Driver`](crate::driver::Driver)'s do.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side:
///
/// - A block stays valid until it is freed, and shares no byte with another live block. Its address
///   is a multiple of 256, and its `bytes` are the requested number.
/// - Work that is queued on the lane's stream after `alloc` returned runs after all work that used
///   the same memory before. If the block is fresh, so does work on any stream.
/// - Two lanes that are open at the same time have different ids.
pub unsafe trait Allocate: Send + Sync + fmt::Debug {
    /// Returns whether the memory and the streams of this allocator are those of `driver`, and of
    /// no other.
    fn is_over(&self, driver: &Arc<dyn Driver>) -> bool;

    /// Makes a lane for a stream, which has no other open lane.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` where there are too many lanes; else an error of the driver.
    ///
    /// # Safety
    ///
    /// - `stream` is a live stream of the driver, and stays live until the lane is closed.
    unsafe fn open(&self, stream: StreamHandle) -> Result<Lane>;

    /// Closes a lane, even if it returns an error. It does not wait for the stream's work unless
    /// the driver fails.
    ///
    /// # Safety
    ///
    /// - [`open`](Self::open) of this allocator returned the lane.
    /// - Nothing names the lane from now on.
    unsafe fn close(&self, lane: &Lane) -> Result<()>;

    /// Allocates a block with unspecified contents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for 0 bytes; `OutOfMemory` if there are too few bytes, also after
    /// everything that is cached was given back.
    ///
    /// # Safety
    ///
    /// - `request.lane` is open: [`open`](Self::open) of this allocator returned it, and it has not
    ///   been closed.
    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block>;

    /// Frees a block, even if it returns an error. It does not wait for work unless the
    /// implementation says so.
    ///
    /// # Safety
    ///
    /// - [`alloc`](Self::alloc) of this allocator returned `block` as it is, and it has not been
    ///   freed.
    /// - `lane` is open, as for `alloc`.
    /// - All work that uses the block has run, or is queued on `lane`'s stream, or that stream
    ///   waits for it.
    /// - No work queued from now on uses the block.
    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()>;

    /// Gives cached memory back to the driver, the longest unused first, until at most `keep` bytes
    /// are free or nothing more can go. Returns the bytes given back. It may wait for work.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    fn trim(&self, keep: u64) -> Result<u64>;

    /// Returns what is held.
    fn figures(&self) -> Figures;

    /// Returns all memory that is held, block by block. An allocator that keeps no such list
    /// returns an empty one.
    ///
    /// Other threads may allocate and free meanwhile. The segments, and the places of their blocks,
    /// are those of one moment. The state, lane and site of a block are those of some moment of the
    /// call: a block that is allocated meanwhile may still be `cached`, or be `active` with its
    /// former site, and one that is freed may still be `active`. So the sums need not add up to the
    /// figures.
    fn snapshot(&self) -> Snapshot;
}

/// All memory that an allocator holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The sums.
    pub figures: Figures,
    /// The segments taken from the driver, by address.
    pub segments: Vec<SegmentView>,
}

/// A piece of memory that was taken from the driver at once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SegmentView {
    /// The first byte.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// The blocks that it is divided into, by address, without gaps.
    pub blocks: Vec<BlockView>,
}

/// A block within a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BlockView {
    /// The first byte.
    pub address: u64,
    /// Its length, a multiple of 256.
    pub bytes: u64,
    /// `active`; `cached` on a lane, for requests of the same size; or `free`.
    pub state: BlockState,
    /// The lane that used it last; `None` once any lane may use it.
    pub lane: Option<u32>,
    /// The line that allocated it, `src/main.rs:7:9`, for an active block.
    pub site: Option<String>,
}

/// The state of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum BlockState {
    /// In use.
    Active,
    /// Free, kept by a lane for requests of its size.
    Cached,
    /// Free.
    Free,
}
