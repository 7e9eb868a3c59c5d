//! Runs pipelines, verifies and times them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::threads;
use super::workload::{Pixel, Stages, Workload};
use crate::run::pipelines::{Bound, PipelineRun, Stage};
use warpstride::device::Device;
use warpstride::error::Result;
use warpstride::pipeline::{Mode, Options, Pipeline, Run, Summary, Timeline};
use warpstride::roofline::measure::has_times;

/// Elements times steps that a CPU checks, at most.
const CHECKED: usize = 1 << 24;
/// Batches whose stages a timeline shows.
const SHOWN: usize = 8;

/// Fills frames from a number on; many threads call it at once.
pub(crate) type Source<'a, I> = dyn Fn(u64, &mut [I]) -> Result<()> + Sync + 'a;
/// Takes the results of frames from a number on, in order.
pub(crate) type Sink<'a> = dyn FnMut(u64, &[f32]) -> Result<()> + 'a;

/// The frames of runs, and what is done with them.
pub(crate) struct Job<'a, I: Pixel> {
    /// The device that it runs on.
    pub(crate) device: &'a Device,
    /// The frames and the work.
    pub(crate) workload: Workload,
    /// The number of frames, at least 1.
    pub(crate) frames: u64,
    /// The source of the frames.
    pub(crate) source: &'a Source<'a, I>,
    /// The name of the source's spans.
    pub(crate) source_name: &'static str,
    /// The threads that make frames, at least 1.
    pub(crate) threads: usize,
    /// True if slots keep the frames that verified the run, so that the host makes no others.
    pub(crate) reuses: bool,
}

/// One case of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    /// The mode.
    pub(crate) mode: Mode,
    /// Frames of a batch, at least 1.
    pub(crate) batch: usize,
    /// Slots of the ring.
    pub(crate) slots: usize,
}

/// A pipeline, and the addresses of the slots that hold frames.
struct Ring<I: Pixel> {
    pipeline: Pipeline<I, f32>,
    filled: Mutex<BTreeSet<usize>>,
}

/// The results of a run of a pipeline.
struct Driven {
    summary: Summary,
    /// Seconds that the ends were at work, those of the source by one thread after the other.
    source_seconds: f64,
    sink_seconds: f64,
}

impl<I: Pixel> Job<'_, I> {
    fn ring(&self, case: Case, timeline: usize) -> Result<Ring<I>> {
        let elements = case.batch * self.workload.elements();
        let options = Options { mode: case.mode, slots: case.slots, timeline, source: self.source_name };
        let pipeline = Pipeline::new(self.device, elements, elements, options)?;
        Ok(Ring { pipeline, filled: Mutex::default() })
    }

    /// Runs the first `frames` frames through a pipeline. If it `reuses` them, a slot that holds
    /// frames keeps them, those of a run before too. The sink is on this thread.
    fn drive(
        &self,
        ring: &mut Ring<I>,
        case: Case,
        (frames, reuses): (u64, bool),
        sink: &mut dyn FnMut(u64, &[f32]) -> Result<()>,
    ) -> Result<Driven> {
        let (batch, elements) = (case.batch as u64, self.workload.elements());
        let frames_of = |number: u64| frames.saturating_sub(number * batch).min(batch) as usize;
        let mut stages = Stages::<I>::new(self.device, self.workload, case.batch)?;
        let (pipeline, filled) = (&mut ring.pipeline, &ring.filled);
        let nanoseconds = AtomicU64::new(0);
        let fill = |number: u64, slot: &mut [I]| {
            let count = frames_of(number);
            if count == 0 {
                return Ok(None);
            }
            let start = Instant::now();
            let holds_none = filled.lock().unwrap_or_else(PoisonError::into_inner).insert(slot.as_ptr() as usize);
            if holds_none || !reuses {
                (self.source)(number * batch, &mut slot[..count * elements])?;
            }
            nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            Ok(Some(count * elements))
        };
        let mut sink_time = Duration::ZERO;
        let mut take = |number: u64, results: &mut [f32]| {
            let start = Instant::now();
            let taken = sink(number * batch, results);
            sink_time += start.elapsed();
            taken
        };
        let Run { feed, engine, drain } = pipeline.start()?;
        let (feed, fill) = (&feed, &fill);
        let summary = thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                // The run's first error is the engine's to return.
                threads::start(scope, "source", move || while feed.fill(fill).unwrap_or(false) {})?;
            }
            let queue = || engine.drive(|work| stages.queue(work, work.filled / elements));
            let engine = threads::start(scope, "queue", queue)?;
            while drain.take(&mut take).unwrap_or(false) {}
            drop(drain);
            engine.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        })?;
        let source_seconds = nanoseconds.into_inner() as f64 / 1e9;
        Ok(Driven { summary, source_seconds, sink_seconds: sink_time.as_secs_f64() })
    }

    /// Returns whether the results of the first batches are those of a CPU, while each slot is used
    /// again and others are on their way.
    fn verify(&self, ring: &mut Ring<I>, case: Case) -> Result<bool> {
        let elements = self.workload.elements();
        let batches = 2 * ring.pipeline.slots() as u64 + 1;
        let frames = self.frames.min(batches.saturating_mul(case.batch as u64));
        let mut inputs = vec![I::default(); case.batch * elements];
        let steps = (self.workload.steps as usize).saturating_add(1);
        // An odd distance meets all channels and columns.
        let all = (frames as usize).saturating_mul(elements);
        let apart = (all.saturating_mul(steps) / CHECKED) | 1;
        let (mut wrong, mut seen) = (false, 0);
        self.drive(ring, case, (frames, false), &mut |first, results| {
            let count = (frames - first).min(case.batch as u64) as usize;
            wrong |= results.len() != count * elements;
            (self.source)(first, &mut inputs[..count * elements])?;
            for at in (0..results.len().min(count * elements)).step_by(apart) {
                let frame = &inputs[at / elements * elements..][..elements];
                wrong |= self.workload.expected(frame, at % elements).to_bits() != results[at].to_bits();
            }
            seen += count as u64;
            Ok(())
        })?;
        Ok(!wrong && seen == frames)
    }
}

/// Verifies some batches, and then runs and times all frames, compared with `bound`. The sink is
/// called on this thread.
///
/// # Errors
///
/// The error of source or sink; `OutOfMemory` if host or device have too few bytes; else the
/// driver's error.
pub(crate) fn measure<I: Pixel>(
    job: &Job<'_, I>,
    case: Case,
    bound: Option<Bound>,
    sink: &mut Sink<'_>,
) -> Result<PipelineRun> {
    let device = job.device;
    let before = device.pinned_memory().in_use;
    let mut ring = job.ring(case, 0)?;
    let host_bytes = (device.pinned_memory().in_use - before) as u64;
    let slots = ring.pipeline.slots();
    let mut run = PipelineRun {
        mode: case.mode.name().into(),
        batch: case.batch,
        slots,
        frames: job.frames,
        verified: job.verify(&mut ring, case)?,
        host_bytes,
        bound,
        ..PipelineRun::default()
    };
    if !run.verified {
        return Ok(run);
    }
    let batches = job.frames.div_ceil(case.batch as u64);
    // Work of a shorter last batch may be captured anew, as soon as its slot is filled.
    let is_even = job.frames.is_multiple_of(case.batch as u64);
    let end = if is_even { batches - 1 } else { (batches - 1).saturating_sub(slots as u64 + 1) };
    // Behind two turns of the ring, or one: each slot has captured its work then. Where a run has
    // no turn, behind the first batch.
    let steady = [2, 1].map(|turns| turns * slots as u64).into_iter().find(|&turns| turns < end).unwrap_or(0);
    let (mut first, mut last) = (device.stats(), None);
    let driven = job.drive(&mut ring, case, (job.frames, job.reuses), &mut |frame, results| {
        let batch = frame / case.batch as u64;
        if batch == steady {
            first = device.stats();
        }
        if batch == end {
            last = Some(device.stats());
        }
        sink(frame, results)
    })?;
    let between = end.saturating_sub(steady);
    let waits = last.filter(|_| between > 0).map(|last| last.since(&first).can_synchronize);
    run.waits_per_batch = waits.map(|waits| waits as f64 / between as f64);
    if has_times(device) {
        let frames = job.frames as f64;
        let rate = |seconds: f64| (seconds > 0.0).then(|| frames / seconds);
        run.seconds = Some(driven.summary.wall.as_secs_f64());
        run.frames_per_second = run.seconds.and_then(rate);
        run.fraction_of_bound = bound.and_then(|bound| Some(run.frames_per_second? / bound.frames_per_second()));
        run.source_frames_per_second = rate(driven.source_seconds / job.threads as f64).filter(|_| !job.reuses);
        run.sink_frames_per_second = rate(driven.sink_seconds);
    }
    Ok(run)
}

/// Runs some batches again and records their stages. Sinks do nothing in this run.
///
/// # Errors
///
/// As [`measure`].
pub(crate) fn timeline<I: Pixel>(job: &Job<'_, I>, case: Case) -> Result<Timeline> {
    let mut ring = job.ring(case, SHOWN)?;
    let batches = (4 * ring.pipeline.slots()).max(2 * SHOWN) as u64;
    let frames = job.frames.min(batches * case.batch as u64);
    let driven = job.drive(&mut ring, case, (frames, job.reuses), &mut |_, _| Ok(()))?;
    Ok(driven.summary.timeline.unwrap_or_default())
}

/// Returns the stages of a timeline, from its first start on.
pub(crate) fn stages(timeline: &Timeline) -> Vec<Stage> {
    let zero = timeline.spans.iter().map(|span| span.start_us).fold(f64::INFINITY, f64::min);
    let stage = |span: &warpstride::pipeline::Span| Stage {
        name: span.name.into(),
        track: span.track.name().into(),
        batch: span.batch,
        start_us: span.start_us - zero,
        end_us: span.end_us - zero,
    };
    timeline.spans.iter().map(stage).collect()
}
