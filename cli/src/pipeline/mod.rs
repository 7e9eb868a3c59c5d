//! `warpstride pipeline`: frames through the device and back.

mod bound;
mod measure;
mod workload;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::{fs, io, thread};

use crate::export::{chrome, json, text};
use crate::run::Run;
use crate::run::pipelines::{Bound, PipelineRun, Pipelines};
use anyhow::{Context, Result};
use warpstride::device::{Backend, Device};
use warpstride::element::DType;
use warpstride::error::{Error, ErrorKind, counted};
use warpstride::io::{Destination, npy};
use warpstride::pipeline::frames::{Images, Synthetic};
use warpstride::pipeline::{Mode, Timeline};
use warpstride::roofline::measure::has_times;

use measure::{Case, Job, Sink, Source};
pub(crate) use workload::steps;
use workload::{Pixel, Workload};

use super::output::{Output, Progress};
use super::{args, array_bytes, destination, ensure_room, open, refuse, require};

/// Frames, their shape and the batch sizes, on a GPU and on the software GPU.
const FRAMES: u64 = 8192;
const FRAMES_SOFT: u64 = 100;
const SHAPE: [usize; 3] = [3, 224, 224];
const SHAPE_SOFT: [usize; 3] = [3, 32, 32];
const BATCHES: [usize; 3] = [1, 8, 64];
const BATCHES_SOFT: [usize; 3] = [1, 8, 32];

/// The seed of random frames.
const SEED: u64 = 17;

/// Most threads that make frames.
const MOST_THREADS: usize = 8;

/// Skipped files that a note names.
const NAMED: usize = 3;

pub(super) fn run(args: &args::Pipeline, backend: Backend, output: &Output) -> Result<()> {
    let targets = Targets::checked(args, output)?;
    let images = args.input.as_ref().map(|folder| Images::open(folder, args.size)).transpose()?;
    if let (Some(folder), Some(images)) = (&args.input, &images) {
        targets.spare(folder, images)?;
    }
    let device = open(backend, output)?;
    let sweep = Sweep { args, device: &device, output, targets: &targets };
    let date = jiff::Timestamp::now().to_string();
    let pipelines = match (&images, args.dtype) {
        (Some(images), _) => sweep.of_images(images)?,
        (None, DType::F32) => sweep.of_random::<f32>()?,
        (None, _) => sweep.of_random::<u8>()?,
    };
    let run = Run { pipeline: Some(pipelines), ..Run::new(&device, date, None, Vec::new()) };
    let wrong = run.wrong();
    output.result(&text::run(&run), json::document(&run)?.into())?;
    require!(wrong.is_empty(), Driver, "{} gave wrong results; please report this as a bug", wrong.join(", "));
    Ok(())
}

/// The files that are written.
struct Targets {
    output: Option<Destination>,
    trace: Option<Destination>,
}

impl Targets {
    fn checked(args: &args::Pipeline, output: &Output) -> Result<Self> {
        let checked = |path: Option<&Path>| path.map(|path| destination::checked(path, &[], output)).transpose();
        let all = Self { output: checked(args.output.as_deref())?, trace: checked(args.trace.as_deref())? };
        if let (Some(one), Some(other)) = (&all.output, &all.trace) {
            require!(one != other, InvalidArgument, "--output and --trace are one file; name another for one");
        }
        Ok(all)
    }

    /// Makes sure that no image is replaced, under this name or another one.
    fn spare(&self, folder: &Path, images: &Images) -> Result<()> {
        let targets = [&self.output, &self.trace].into_iter().flatten();
        let targets: Vec<_> = targets.map(Destination::path).filter(|path| path.is_file()).collect();
        if targets.is_empty() {
            return Ok(());
        }
        let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut sources: Vec<PathBuf> =
            listed.with_context(|| format!("cannot list {}; try again", folder.display()))?;
        // They are sorted.
        sources.retain(|path| images.skipped().binary_search(path).is_err());
        targets.into_iter().try_for_each(|path| destination::spared(path, &sources))
    }
}

/// The runs that were asked for.
struct Sweep<'a> {
    args: &'a args::Pipeline,
    device: &'a Device,
    output: &'a Output,
    targets: &'a Targets,
}

impl Sweep<'_> {
    fn of_images(&self, images: &Images) -> Result<Pipelines> {
        let skipped = images.skipped();
        if !skipped.is_empty() {
            let names = skipped.iter().take(NAMED).map(|path| path.display().to_string()).collect::<Vec<_>>();
            let more = if skipped.len() > NAMED { ", ..." } else { "" };
            self.output.note(format!("skipped {}: {}{more}", counted(skipped.len(), "other file"), names.join(", ")));
        }
        let [height, width, channels] = images.shape();
        let elements = images.elements();
        let fill = |first: u64, batch: &mut [u8]| {
            (first..).zip(batch.chunks_mut(elements)).try_for_each(|(number, frame)| images.fill(number, frame))
        };
        let workload = Workload { shape: [channels, height, width], is_planar: false, steps: self.args.steps() };
        self.all(&self.job(workload, images.frames(), &fill, "image_decoding"))
    }

    fn of_random<T: Pixel>(&self) -> Result<Pipelines> {
        let default = if has_times(self.device) { (FRAMES, SHAPE) } else { (FRAMES_SOFT, SHAPE_SOFT) };
        if !has_times(self.device) && self.args.shape.is_none() {
            let [channels, height, width] = default.1;
            self.output.note(format!(
                "frames of {channels} x {height} x {width}, small because this is the software GPU; --shape C,H,W takes others"
            ));
        }
        let shape = self.args.shape.unwrap_or(default.1);
        // Before the product of the extents is taken.
        array_bytes(&shape, DType::F32)?;
        let frames = Synthetic { seed: SEED, elements: shape.iter().product() };
        let fill = |first: u64, batch: &mut [T]| {
            frames.fill(first, batch);
            Ok(())
        };
        let workload = Workload { shape, is_planar: T::DTYPE == DType::F32, steps: self.args.steps() };
        let count = self.args.frames.unwrap_or(default.0);
        self.all(&self.job(workload, count, &fill, "random_generation"))
    }

    fn job<'j, T: Pixel>(
        &'j self,
        workload: Workload,
        frames: u64,
        source: &'j Source<'j, T>,
        source_name: &'static str,
    ) -> Job<'j, T> {
        // Most of the host's threads: one queues, and one takes results.
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads.saturating_sub(2).clamp(1, MOST_THREADS.min(self.args.slots));
        Job { device: self.device, workload, frames, source, source_name, threads, reuses: self.args.reuse }
    }

    fn modes(&self) -> &[Mode] {
        match &self.args.mode {
            Some(modes) => modes,
            None if self.args.output.is_some() => &[Mode::Streams],
            None => &Mode::ALL,
        }
    }

    fn batches(&self) -> Vec<usize> {
        let default = if has_times(self.device) { BATCHES } else { BATCHES_SOFT };
        match &self.args.batch[..] {
            [] if self.args.output.is_some() => default[2..].into(),
            [] => default.into(),
            given => given.into(),
        }
    }

    /// Runs every mode at every batch size.
    fn all<T: Pixel>(&self, job: &Job<'_, T>) -> Result<Pipelines> {
        let Job { workload, device, .. } = job;
        let (elements, slots) = (workload.elements(), self.args.slots);
        let batches = self.batches();
        for &batch in &batches {
            let [channels, height, width] = workload.shape;
            let bytes = array_bytes(&[batch, channels, height, width], DType::F32)? / 4;
            let Some(bytes) = bytes.checked_mul(4 + size_of::<T>()) else {
                refuse!(Layout, "a batch of {batch} frames has more bytes than an address can count; use smaller ones")
            };
            // Host and device hold the batches of the slots or those that measure the link, each
            // with its results, and one to check results with or between the operations.
            let held = slots.max(bound::IN_FLIGHT) + 1;
            ensure_room(bytes, held, &[(device, held)])?;
        }
        let cases = (batches.len() * self.modes().len()) as u64;
        let progress = self.output.progress_with_rate(job.frames.saturating_mul(cases));
        let (mut runs, mut last) = (Vec::new(), Timeline::default());
        for &batch in &batches {
            // Page-locked memory of the size before is of no use for this one.
            device.trim_pinned(0)?;
            progress.doing(format!("link and compute, batches of {batch}"));
            let bound = || bound::measure::<T>(device, *workload, batch);
            let bound = has_times(device).then(bound).transpose()?;
            for &mode in self.modes() {
                progress.doing(format!("{mode}, batches of {batch}"));
                let (run, timeline) = self.one(job, Case { mode, batch, slots }, bound, &progress)?;
                last = timeline.unwrap_or(last);
                runs.push(run);
            }
        }
        drop(progress);
        self.trace(&runs, &last)?;
        let source = match &self.args.input {
            _ if self.args.reuse => "reused",
            Some(_) => "images",
            None => "random",
        };
        Ok(Pipelines {
            source: source.into(),
            threads: job.threads,
            shape: workload.shape,
            dtype: T::DTYPE,
            input_bytes: (elements * size_of::<T>()) as u64,
            output_bytes: (elements * size_of::<f32>()) as u64,
            steps: workload.steps,
            intensity: workload.intensity(),
            runs,
        })
    }

    /// Measures one case and then, where it is wanted, the stages of some batches in another run.
    fn measured<T: Pixel>(
        &self,
        job: &Job<'_, T>,
        case: Case,
        bound: Option<Bound>,
        sink: &mut Sink<'_>,
    ) -> Result<(PipelineRun, Option<Timeline>), Error> {
        let mut run = measure::measure(job, case, bound, sink)?;
        if !run.verified || !(has_times(self.device) || self.targets.trace.is_some()) {
            return Ok((run, None));
        }
        let timeline = measure::timeline(job, case)?;
        if has_times(self.device) {
            run.overlap = Some(timeline.overlap());
            run.idle = Some(timeline.idle());
            run.timeline = Some(measure::stages(&timeline));
        }
        Ok((run, Some(timeline)))
    }

    /// Runs one case, and writes its results where they are wanted once all of its runs have
    /// worked.
    fn one<T: Pixel>(
        &self,
        job: &Job<'_, T>,
        case: Case,
        bound: Option<Bound>,
        progress: &Progress,
    ) -> Result<(PipelineRun, Option<Timeline>)> {
        let elements = job.workload.elements();
        let advance = |results: &[f32]| progress.advance((results.len() / elements) as u64);
        let Some(target) = &self.targets.output else {
            let mut sink = |_, results: &[f32]| {
                advance(results);
                Ok(())
            };
            return Ok(self.measured(job, case, bound, &mut sink)?);
        };
        let [channels, height, width] = job.workload.shape;
        let Ok(frames) = usize::try_from(job.frames) else {
            refuse!(Layout, "{} frames are more than an array has; use fewer", job.frames)
        };
        let shape = [frames, channels, height, width];
        array_bytes(&shape, DType::F32)?;
        // `replace` would put what stops the run into a sentence about the file.
        let mut ran = None;
        let replaced = target.replace(|file| {
            file.write_all(&npy::header_bytes("<f4", &shape))?;
            let mut failed = None;
            let mut sink = |_, results: &[f32]| {
                advance(results);
                file.write_all(bytemuck::cast_slice(results)).map_err(|error| {
                    let known = Error::new(ErrorKind::Io, error.to_string());
                    failed = Some(error);
                    known
                })
            };
            let run = self.measured(job, case, bound, &mut sink);
            failed.map_or(Ok(()), Err)?;
            let is_right = run.as_ref().is_ok_and(|(run, _)| run.verified);
            ran = Some(run);
            if is_right { Ok(()) } else { Err(io::Error::other("the run stopped")) }
        });
        let ran = ran.transpose()?;
        if ran.as_ref().is_none_or(|(run, _)| run.verified) {
            replaced.map_err(super::Refusal::of_file)?;
            self.output.note(format!("{}: {frames} x {channels} x {height} x {width} f32", target.path().display()));
        }
        match ran {
            Some(run) => Ok(run),
            None => refuse!(Io, "{} was not written; try again", target.path().display()),
        }
    }

    /// Writes the stages of the last run.
    fn trace(&self, runs: &[PipelineRun], timeline: &Timeline) -> Result<()> {
        let (Some(target), Some(run)) = (&self.targets.trace, runs.last()) else { return Ok(()) };
        let trace = chrome::trace(&run.name(), &measure::stages(timeline)).to_string();
        destination::replace(target, |file| file.write_all(trace.as_bytes()))?;
        let note =
            if has_times(self.device) { "" } else { "; its times are the software GPU's and say nothing about a GPU" };
        self.output.note(format!("{}: the stages of {}{note}", target.path().display(), run.name()));
        Ok(())
    }
}
