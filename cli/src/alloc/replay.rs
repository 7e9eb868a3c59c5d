//! `warpstride alloc replay`: the allocations of a program, run again, and their cost: the memory
//! held beside the memory in use, and the time.

use std::fs::File;
use std::io::BufReader;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::alloc::{Allocate, Block, Caching, Figures, Lane, Request};
use warpstride::device::{Backend, Device};
use warpstride::driver::{DriverKind, StreamHandle};
use warpstride::stream::Stream;

use super::log::{Call, Log};
use crate::output::{self, Output};
use crate::{args, destination, open};

/// Operations of a log from a seed.
const OPERATIONS: usize = 1_000_000;
/// Bytes of the memory that is simulated where there is no GPU.
const MEMORY: u64 = 80 << 30;
const GIB: f64 = (1_u64 << 30) as f64;
/// Most samples of the course of a replay.
const SAMPLES: usize = 1000;

pub(crate) fn run(args: &args::AllocReplay, backend: Backend, output: &Output) -> Result<()> {
    let sources: Vec<&Path> = args.log.iter().map(PathBuf::as_path).collect();
    let target =
        |path: &Option<PathBuf>| path.as_ref().map(|path| destination::checked(path, &sources, output)).transpose();
    let (svg, csv) = (target(&args.svg)?, target(&args.write)?);
    let log = match (&args.log, args.seed) {
        (Some(path), _) => {
            let file = File::open(path).with_context(|| format!("cannot read {}; check the path", path.display()))?;
            Log::read(BufReader::new(file)).with_context(|| path.display().to_string())?
        }
        (None, seed) => Log::random(seed.unwrap_or_default(), OPERATIONS),
    };
    // The software GPU's memory is the host's, which has less than most logs need.
    let gpu = if backend == Backend::Soft { None } else { Some(open(backend, output)?) };
    let gpu = gpu.filter(|device| device.info().kind == DriverKind::Cuda);
    let outcome = match &gpu {
        Some(device) => replay_on(device, &log)?,
        None => replay_simulated(&log, MEMORY)?,
    };
    if let Some(target) = svg {
        let svg = outcome.svg()?;
        destination::replace(&target, |file| file.write_all(svg.as_bytes()))?;
    }
    if let Some(target) = csv {
        destination::replace(&target, |file| log.write(file))?;
    }
    output.result(&text(&log, &outcome, gpu.as_ref()), document(&log, &outcome, gpu.as_ref()))
}

fn text(log: &Log, outcome: &Outcome, gpu: Option<&Device>) -> String {
    let place = gpu.map_or("simulated memory", |device| &device.info().name);
    let figures = &outcome.figures;
    let lines = [
        format!("{} allocations and frees on {} streams, {place}", log.calls.len(), log.streams),
        format!("peak in use    {:10.3} GiB", outcome.peak_active as f64 / GIB),
        format!("peak reserved  {:10.3} GiB, {:.4} times as much", outcome.peak_reserved as f64 / GIB, outcome.ratio()),
        format!("fragmentation  {:10.4} at the peak: 1 - largest free / total free", outcome.fragmentation),
        format!("time           {:10.1} ns a call", outcome.ns_per_call),
        format!("misses         {:10}", figures.misses),
        format!("taken          {:10} from the driver; given back: {}", figures.taken, figures.given_back),
    ];
    lines.join("\n") + "\n"
}

fn document(log: &Log, outcome: &Outcome, gpu: Option<&Device>) -> Value {
    json!({
        "device": gpu.map(|device| output::info_json(device.info())),
        "operations": log.calls.len(),
        "streams": log.streams,
        "ratio": outcome.ratio(),
        "peak_active": outcome.peak_active,
        "peak_reserved": outcome.peak_reserved,
        "fragmentation": outcome.fragmentation,
        "ns_per_call": outcome.ns_per_call,
        "figures": outcome.figures,
    })
}

/// The outcome of a replay.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The most bytes in use at once, by the log.
    pub(super) peak_active: u64,
    /// The most bytes that the allocator held at once.
    pub(super) peak_reserved: u64,
    /// 1 - largest free block / all free bytes, when the most bytes were in use.
    fragmentation: f64,
    /// Nanoseconds for a call, the mean over all allocations and frees.
    ns_per_call: f64,
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

/// Runs a log on a [`Caching`] over the memory of a device.
fn replay_on(device: &Device, log: &Log) -> Result<Outcome> {
    let streams = (0..log.streams).map(|_| device.stream()).collect::<warpstride::Result<Vec<_>>>()?;
    let handles: Vec<_> = streams.iter().map(Stream::handle).collect();
    // SAFETY: the streams live longer than the allocator, which has no other lane for them.
    unsafe { replay(log, &Caching::new(Arc::clone(device.driver()))?, &handles) }
}

/// Runs a log on an allocator, with a lane for each stream of the log, and frees what the log
/// leaves. No work uses the blocks, so what is measured is the allocator alone.
///
/// # Safety
///
/// - `streams` has a live stream of the allocator's driver for each stream of the log, which has
///   no open lane.
unsafe fn replay(log: &Log, allocator: &dyn Allocate, streams: &[StreamHandle]) -> Result<Outcome> {
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
        for &Call { is_free, slot, bytes, stream } in &log.calls[at..stop] {
            let (block, lane) = (&mut blocks[slot as usize], &lanes[stream as usize]);
            if is_free {
                let block = block.take().expect("a log frees what it has allocated");
                // SAFETY: this allocator returned the block, and no work uses it.
                unsafe { allocator.free(block, lane) }?;
                active -= bytes;
            } else {
                let request = Request { bytes, lane, site: Location::caller() };
                // SAFETY: `replay` opened the lanes, and closes them after the run.
                *block = Some(unsafe { allocator.alloc(&request) }?);
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
