//! Replays of a log on an allocator.

use std::fmt::Write;
use std::panic::Location;
use std::time::{Duration, Instant};

use anyhow::Result;
use warpstride::alloc::{Allocate, Block, Caching, Figures, Lane, Request};
use warpstride::driver::StreamHandle;
use warpstride::error::{Error, ErrorKind, counted};

use super::log::{Call, Log};

/// Most samples of the course of a replay.
const SAMPLES: usize = 1000;

/// The outcome of a replay.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The most bytes in use at once, by the log.
    pub(super) peak_active: u64,
    /// The most bytes that the allocator held at once.
    pub(super) peak_reserved: u64,
    /// 1 - largest free block / all free bytes, when the most bytes were in use.
    pub(super) fragmentation: f64,
    /// Nanoseconds for a call, the mean over all allocations and frees.
    pub(super) ns_per_call: f64,
    /// The allocator's figures at the end of the log.
    pub(super) figures: Figures,
    /// The course of the replay, in at most about 1,000 samples.
    pub(super) samples: Vec<Sample>,
}

impl Outcome {
    /// Peak reserved over peak active bytes; 1 for a log without allocations.
    pub(super) fn ratio(&self) -> f64 {
        if self.peak_active == 0 { 1.0 } else { self.peak_reserved as f64 / self.peak_active as f64 }
    }
}

/// A moment of a replay.
#[derive(Debug)]
pub(super) struct Sample {
    /// Calls before it.
    pub(super) calls: usize,
    /// Bytes in use, by the log.
    pub(super) active: u64,
    /// Bytes that the allocator held.
    pub(super) reserved: u64,
}

/// Runs a log on a [`Caching`] over `bytes` bytes of memory that does not exist.
pub(super) fn replay_simulated(log: &Log, bytes: u64) -> Result<Outcome> {
    let streams: Vec<_> = (0..u64::from(log.streams)).map(StreamHandle).collect();
    // SAFETY: a simulation has no streams.
    unsafe { replay(log, &Caching::simulated(bytes), &streams) }
}

/// Runs a log on an allocator, with a lane for each stream of the log, and frees what the log
/// leaves. No work uses the blocks, so what is measured is the allocator alone.
///
/// # Safety
///
/// - `streams` has a live stream of the allocator's driver for each stream of the log, which has
///   no open lane.
pub(super) unsafe fn replay(log: &Log, allocator: &dyn Allocate, streams: &[StreamHandle]) -> Result<Outcome> {
    let (mut lanes, mut blocks) = (Vec::with_capacity(streams.len()), Vec::new());
    blocks.resize_with(log.slots as usize, || None);
    let opened = streams.iter().try_for_each(|&stream| {
        // SAFETY: the caller promises it.
        lanes.push(unsafe { allocator.open(stream) }?);
        Ok(())
    });
    let played = opened.and_then(|()| play(log, allocator, &lanes, &mut blocks));
    let mut ended = Ok(());
    for block in blocks.into_iter().flatten() {
        // SAFETY: this allocator returned the block, and no work uses it.
        ended = ended.and(unsafe { allocator.free(block, &lanes[0]) });
    }
    for lane in &lanes {
        // SAFETY: this function opened the lane, and has freed all its blocks.
        ended = ended.and(unsafe { allocator.close(lane) });
    }
    Ok(ended.and(played)?)
}

/// Makes the calls of a log. `blocks` are those in use, by their slots.
fn play(
    log: &Log,
    allocator: &dyn Allocate,
    lanes: &[Lane],
    blocks: &mut [Option<Block>],
) -> warpstride::Result<Outcome> {
    let (peak, peak_active) = log.peak;
    let stride = log.calls.len().div_ceil(SAMPLES).max(1);
    let (mut samples, mut fragmentation, mut active) = (Vec::new(), 0.0, 0);
    let (mut at, mut took) = (0, Duration::ZERO);
    while at < log.calls.len() {
        // The clock stands still while samples are taken.
        let next = (at / stride + 1) * stride;
        let stop = if at <= peak && peak < next { peak + 1 } else { next }.min(log.calls.len());
        let start = Instant::now();
        for call in &log.calls[at..stop] {
            let &Call { is_free, slot, bytes, stream, .. } = call;
            let (block, lane) = (&mut blocks[slot as usize], &lanes[stream as usize]);
            if is_free {
                let block = block.take().expect("a log frees what it has allocated");
                // SAFETY: this allocator returned the block, and no work uses it.
                unsafe { allocator.free(block, lane) }.map_err(|error| of_call(log, call, &error))?;
                active -= bytes;
            } else {
                let request = Request { bytes, lane, site: Location::caller() };
                // SAFETY: `replay` opened the lanes, and closes them after the run.
                let allocated = unsafe { allocator.alloc(&request) };
                *block = Some(allocated.map_err(|error| of_call(log, call, &error))?);
                active += bytes;
            }
        }
        took += start.elapsed();
        at = stop;
        let figures = allocator.figures();
        if at == peak + 1 {
            fragmentation = figures.fragmentation();
        }
        samples.push(Sample { calls: at, active, reserved: figures.reserved });
    }
    let figures = allocator.figures();
    let ns_per_call = took.as_nanos() as f64 / log.calls.len().max(1) as f64;
    Ok(Outcome { peak_active, peak_reserved: figures.peak_reserved, fragmentation, ns_per_call, figures, samples })
}

/// Names the line of the log in the error of a call and, where the memory is full, the lines whose
/// blocks hold most of it. Those of the allocator's error are lines of this program.
fn of_call(log: &Log, call: &Call, error: &Error) -> Error {
    let of_line = |call: &Call| format!("line {} of the log", call.line);
    let line = if call.line == 0 { String::new() } else { of_line(call) + ": " };
    if error.kind() != ErrorKind::OutOfMemory {
        return Error::new(error.kind(), format!("{line}{error}"));
    }
    let mut sentence = format!("{line}{}", error.what());
    if call.line != 0 {
        for (at, holder) in log.holders(call).iter().enumerate() {
            let before = if at == 0 { "; most is held by " } else { ", " };
            let _ = write!(sentence, "{before}{} ({})", of_line(holder), counted(holder.bytes, "byte"));
        }
    }
    Error::new(error.kind(), sentence + "; replay the log on a GPU with more memory")
}
