//! Runs the allocations of a program again, on any allocator, and reports their cost: the memory
//! held beside the memory in use, and the time.
//!
//! A [`Log`] comes from a file in RMM's columns, as the adaptor
//! [`Logged`](warpstride::alloc::Logged) writes them, or from a seed.

mod csv;
mod log;
mod random;
mod svg;
#[cfg(test)]
mod tests;

pub(crate) use log::{Log, Operation};

use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpstride::alloc::{Allocate, Block, Caching, DriverMemory, Figures, Lane, Request};
use warpstride::driver::{Driver, StreamHandle};
use warpstride::error::Result;

/// Most samples of the course of a replay.
const SAMPLES: usize = 1000;

/// What a replay showed.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub(crate) struct Outcome {
    /// The most bytes in use at once, by the log.
    pub(crate) peak_active: u64,
    /// The most bytes that the allocator held at once.
    pub(crate) peak_reserved: u64,
    /// 1 - largest free block / all free bytes, when the most bytes were in use.
    pub(crate) fragmentation: f64,
    /// Nanoseconds for a call, the mean over all allocations and frees.
    pub(crate) ns_per_call: f64,
    /// What the allocator says at the end of the log.
    pub(crate) figures: Figures,
    /// The course of the replay, in at most about 1,000 samples.
    #[serde(skip)]
    pub(crate) samples: Vec<Sample>,
}

impl Outcome {
    /// Peak reserved over peak active bytes; 1 for a log without allocations.
    pub(crate) fn ratio(&self) -> f64 {
        if self.peak_active == 0 { 1.0 } else { self.peak_reserved as f64 / self.peak_active as f64 }
    }
}

/// A moment of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Operations before it.
    pub(crate) operations: usize,
    /// Bytes in use, by the log.
    pub(crate) active: u64,
    /// Bytes that the allocator held.
    pub(crate) reserved: u64,
}

/// Runs a log on an allocator, with a lane for each stream of the log, and frees what the log
/// leaves.
///
/// No work uses the blocks, so what is measured is the allocator alone.
///
/// # Errors
///
/// The allocator's first error, such as `OutOfMemory`.
///
/// # Safety
///
/// - `streams` has a live stream of the allocator's driver for each of [`Log::streams`], which has
///   no open lane.
pub(crate) unsafe fn replay(log: &Log, allocator: &dyn Allocate, streams: &[StreamHandle]) -> Result<Outcome> {
    let mut lanes = Vec::with_capacity(streams.len());
    let mut outcome = Ok(());
    for &stream in streams.iter().take(log.streams() as usize) {
        // SAFETY: the caller promises it.
        match unsafe { allocator.open(stream) } {
            Ok(lane) => lanes.push(lane),
            Err(error) => outcome = Err(error),
        }
    }
    let mut run = Run { allocator, lanes: &lanes, blocks: Vec::new() };
    run.blocks.resize_with(log.slots() as usize, || None);
    let played = outcome.and_then(|()| run.play(log));
    let mut ended = run.end();
    for lane in &lanes {
        // SAFETY: this function opened the lane, and has freed all its blocks.
        ended = ended.and(unsafe { allocator.close(lane) });
    }
    ended.and(played)
}

/// Runs a log on a [`Caching`] over `bytes` bytes of memory that does not exist.
///
/// # Errors
///
/// As [`replay`].
pub(crate) fn replay_simulated(log: &Log, bytes: u64) -> Result<Outcome> {
    let streams: Vec<_> = (0..u64::from(log.streams())).map(StreamHandle).collect();
    // SAFETY: a simulation has no streams.
    unsafe { replay(log, &Caching::simulated(bytes), &streams) }
}

/// Runs a log on a [`Caching`] over the memory of a driver.
///
/// # Errors
///
/// As [`replay`], or the driver's error when it makes the streams.
pub(crate) fn replay_on(driver: &Arc<dyn Driver>, log: &Log) -> Result<Outcome> {
    let streams = Streams::new(driver, log.streams() as usize)?;
    // SAFETY: the streams live longer than the allocator, and this is their only lane there.
    unsafe { replay(log, &Caching::new(Arc::clone(driver))?, &streams.handles) }
}

/// Returns the nanoseconds of an allocation and a free of `bytes` bytes without a cache: the mean
/// of `pairs` pairs, plain or of the driver's pool.
///
/// # Errors
///
/// The driver's error.
pub(crate) fn pair_without_cache(driver: &Arc<dyn Driver>, pool: bool, bytes: u64, pairs: u32) -> Result<f64> {
    let make = if pool { DriverMemory::pool } else { DriverMemory::new };
    let (memory, streams) = (make(Arc::clone(driver)), Streams::new(driver, 1)?);
    // SAFETY: the stream is live, and no other lane has it.
    let lane = unsafe { memory.open(streams.handles[0]) }?;
    let mut start = Instant::now();
    for pair in 0..=pairs {
        // The first pair warms the driver up.
        if pair == 1 {
            start = Instant::now();
        }
        // SAFETY: the lane is open.
        let block = unsafe { memory.alloc(&Request::new(bytes, &lane)) }?;
        // SAFETY: it was just given out, and nothing uses it.
        unsafe { memory.free(block, &lane) }?;
    }
    let took = start.elapsed();
    // SAFETY: all blocks are freed.
    unsafe { memory.close(&lane) }?;
    Ok(took.as_nanos() as f64 / f64::from(pairs.max(1)))
}

/// Streams that are destroyed in the end.
struct Streams<'a> {
    driver: &'a Arc<dyn Driver>,
    handles: Vec<StreamHandle>,
}

impl<'a> Streams<'a> {
    fn new(driver: &'a Arc<dyn Driver>, count: usize) -> Result<Self> {
        let mut streams = Self { driver, handles: Vec::with_capacity(count) };
        for _ in 0..count {
            streams.handles.push(driver.stream_create()?);
        }
        Ok(streams)
    }
}

impl Drop for Streams<'_> {
    fn drop(&mut self) {
        for &stream in &self.handles {
            // A drop returns no error. SAFETY: nothing uses the stream from now on.
            let _ = unsafe { self.driver.stream_destroy(stream) };
        }
    }
}

/// A replay in progress.
struct Run<'a> {
    allocator: &'a dyn Allocate,
    lanes: &'a [Lane],
    blocks: Vec<Option<Block>>,
}

impl Run<'_> {
    fn play(&mut self, log: &Log) -> Result<Outcome> {
        let (peak, peak_active) = log.peak();
        let stride = log.operations().len().div_ceil(SAMPLES).max(1);
        let (mut samples, mut fragmentation, mut active) = (Vec::new(), 0.0, 0);
        let (mut at, mut took) = (0, Duration::ZERO);
        while at < log.operations().len() {
            // The clock stands still while samples are taken.
            let next = (at / stride + 1) * stride;
            let stop = if at <= peak && peak < next { peak + 1 } else { next }.min(log.operations().len());
            let start = Instant::now();
            for operation in &log.operations()[at..stop] {
                active = self.step(operation, active)?;
            }
            took += start.elapsed();
            at = stop;
            let figures = self.allocator.figures();
            if at == peak + 1 {
                fragmentation = figures.fragmentation();
            }
            samples.push(Sample { operations: at, active, reserved: figures.reserved });
        }
        let figures = self.allocator.figures();
        let ns_per_call = took.as_nanos() as f64 / log.operations().len().max(1) as f64;
        Ok(Outcome { peak_active, peak_reserved: figures.peak_reserved, fragmentation, ns_per_call, figures, samples })
    }

    #[inline]
    fn step(&mut self, operation: &Operation, active: u64) -> Result<u64> {
        match *operation {
            Operation::Alloc { slot, bytes, stream } => {
                let request = Request { bytes, lane: &self.lanes[stream as usize], site: Location::caller() };
                // SAFETY: `replay` opened the lanes, and closes them after the run.
                self.blocks[slot as usize] = Some(unsafe { self.allocator.alloc(&request) }?);
                Ok(active + bytes)
            }
            Operation::Free { slot, stream } => {
                let block = self.blocks[slot as usize].take().expect("a log frees what it has allocated");
                let bytes = block.bytes;
                // SAFETY: this allocator returned the block, and no work uses it.
                unsafe { self.allocator.free(block, &self.lanes[stream as usize]) }?;
                Ok(active - bytes)
            }
        }
    }

    /// Frees what is left.
    fn end(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for block in self.blocks.drain(..).flatten() {
            // SAFETY: this allocator returned the block, and no work uses it.
            outcome = outcome.and(unsafe { self.allocator.free(block, &self.lanes[0]) });
        }
        outcome
    }
}
