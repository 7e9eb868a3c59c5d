//! The one loop of all benches: copy, prepare, run and count, verify, time, record.

use std::cell::RefCell;
use std::ops::DerefMut;

use anyhow::Result;
use bytemuck::Pod;
use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::driver::Stats;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::ops;
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation, Timing, has_times};
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::{Record, Subject};
use warpstride::stream::Stream;
use warpstride::view::{View, ViewMut};

use crate::output::Output;
use crate::run::Run;
use crate::runs::Kept;
use crate::{args, array_bytes, ensure_room, open, peaks, reference};

/// The most bytes of an array whose launch takes a large part of the time. `bench` times the launch
/// of such an array too.
const SMALL: usize = 1 << 20;

/// A planned operation, whose operands lie in the sets of a rotation.
pub(crate) trait Work {
    /// Returns the rotation.
    fn rotation(&mut self) -> &mut Rotation;

    /// Names the kernel of the plan, or the first of several.
    fn kernel(&self) -> Option<&'static str>;

    /// Queues one part of a run on the arrays of `set`.
    fn run(&mut self, set: usize, part: usize) -> Result<(), Error>;

    /// Says whether the first set's results are those of the CPU.
    fn is_right(&mut self) -> Result<bool>;

    /// Counts the parts, each of fewer launches than a stream's queue holds; at least one.
    fn parts(&self) -> usize {
        1
    }

    /// Counts the kernels in a graph of the work; `None` if it has no graph, or they are not known.
    fn nodes(&self) -> Option<u64> {
        None
    }

    /// Says whether the work may be timed where the device has times.
    fn is_timed(&self) -> bool {
        true
    }
}

/// The findings of the loop about some work.
pub(crate) struct Outcome {
    pub(crate) kernel: Option<&'static str>,
    pub(crate) verified: bool,
    pub(crate) launches: Option<u64>,
    pub(crate) counters: Option<Counters>,
    pub(crate) timing: Option<Timing>,
    /// Microseconds from launch to launch.
    pub(crate) launch_us: Option<f64>,
}

impl Outcome {
    /// Returns the record, beside a copy of `copy_gbps`.
    pub(crate) fn record(
        self,
        subject: Subject,
        samples: usize,
        copy_gbps: Option<f64>,
        peaks: Option<&Peaks>,
    ) -> Record {
        let Self { kernel, verified, launches, counters, timing, launch_us } = self;
        let record = Record { samples, launches, counters, launch_us, ..Record::new(subject, kernel, verified) };
        match timing {
            Some(timing) => record.timed(&timing, copy_gbps, peaks),
            None => record,
        }
    }
}

/// Runs work once and returns its launches, and its counters on a device that counts.
pub(crate) fn count(work: &mut dyn Work) -> Result<(Option<u64>, Option<Counters>)> {
    let device = work.rotation().device().clone();
    let (before, calls) = (device.counters()?, device.stats());
    run(work)?;
    let launches = launched(&device.stats().since(&calls), work.nodes());
    Ok((launches, device.counters()?.zip(before).map(|(after, before)| after - before)))
}

/// Counts the launches among calls to the driver, and the `nodes` of each launch of a graph; `None`
/// if there were none, or they are not known.
pub(crate) fn launched(calls: &Stats, nodes: Option<u64>) -> Option<u64> {
    let of_graphs = match calls.calls_of("graph_launch") {
        0 => 0,
        graphs => graphs * nodes?,
    };
    let launches = calls.calls_of("launch") + calls.calls_of("launch_cooperative") + of_graphs;
    (launches > 0).then_some(launches)
}

/// Verifies work, and times `samples` runs if it is right and time means something. Also times the
/// launch of `small` work.
pub(crate) fn measure(work: &mut dyn Work, samples: usize, small: bool) -> Result<Outcome> {
    let (launches, counters) = count(work)?;
    let verified = work.is_right()?;
    let (mut timing, mut launch_us) = (None, None);
    if verified && work.is_timed() && work.rotation().is_cold() {
        let device = work.rotation().device().clone();
        let stream = device.default_stream();
        let mut set = 0;
        timing = Some(measure::time_parts(&device, stream, samples, work.parts(), |part| {
            if part == 0 {
                set = work.rotation().advance();
            }
            work.run(set, part)
        })?);
        launch_us = small.then(|| measure::launch_us(stream, || run(work))).transpose()?;
    }
    Ok(Outcome { kernel: work.kernel(), verified, launches, counters, timing, launch_us })
}

/// Queues all parts of a run on the next set.
fn run(work: &mut dyn Work) -> Result<(), Error> {
    let set = work.rotation().advance();
    (0..work.parts()).try_for_each(|part| work.run(set, part))
}

/// A device, how cases are measured on it, and the run that they will be.
pub(super) struct Bench<'a> {
    pub(super) device: Device,
    pub(super) output: &'a Output,
    pub(super) kept: Kept<'a>,
    samples: usize,
    date: String,
    /// The ceilings, and when they were measured; `None` where nothing is timed.
    ceilings: Option<(Peaks, String)>,
    /// GB/s of copies of arrays of a number of bytes.
    copies: RefCell<Vec<(usize, f64)>>,
}

impl<'a> Bench<'a> {
    /// Reads the kept run, of which `case` alone is compared if there is one, and opens the device.
    pub(super) fn open(
        args: &'a args::Bench,
        case: Option<&str>,
        samples: usize,
        ceilings: fn(&Device, &Output) -> Result<peaks::Kept>,
        (backend, output): (Backend, &'a Output),
    ) -> Result<Self> {
        let mut kept = Kept::new(args.save.as_deref(), args.compare.as_deref())?;
        case.map_or(Ok(()), |case| kept.narrow_to(case))?;
        let device = open(backend, output)?;
        kept.check_device(&device)?;
        let date = jiff::Timestamp::now().to_string();
        let ceilings = if has_times(&device) { Some(ceilings(&device, output)?) } else { None };
        let ceilings = ceilings.map(|kept| (kept.peaks, kept.date));
        Ok(Self { device, output, kept, samples, date, ceilings, copies: RefCell::default() })
    }

    /// The ceilings that times are compared with.
    pub(super) fn peaks(&self) -> Option<&Peaks> {
        self.ceilings.as_ref().map(|(peaks, _)| peaks)
    }

    /// The run of these records.
    pub(super) fn run(&self, cases: Vec<Record>) -> Run {
        Run::new(&self.device, self.date.clone(), self.ceilings.clone(), cases)
    }

    /// Measures the work that `prepare` makes.
    pub(super) fn record<'w>(
        &self,
        subject: Subject,
        prepare: impl FnOnce() -> Result<Box<dyn Work + 'w>>,
    ) -> Result<Record> {
        let progress = self.output.progress(2);
        progress.doing("preparing");
        let bytes = subject.dtype.map_or(Ok(0), |dtype| array_bytes(&subject.shape, dtype))?;
        let copy = self.copy_gbps(bytes)?;
        let mut work = prepare()?;
        progress.step();
        progress.doing(format!("measuring {}", subject.op));
        let outcome = measure(&mut *work, self.samples, bytes <= SMALL)?;
        Ok(outcome.record(subject, self.samples, copy, self.peaks()))
    }

    /// Returns the GB/s of a copy of an array of `bytes` bytes, which is measured once in a run;
    /// `None` where time means nothing.
    fn copy_gbps(&self, bytes: usize) -> Result<Option<f64>> {
        if bytes == 0 || !has_times(&self.device) {
            return Ok(None);
        }
        if let Some(&(_, gbps)) = self.copies.borrow().iter().find(|(len, _)| *len == bytes) {
            return Ok(Some(gbps));
        }
        let gbps = copy_gbps(&self.device, bytes, self.samples)?;
        self.copies.borrow_mut().push((bytes, gbps));
        Ok(Some(gbps))
    }
}

/// Measures the GB/s of a copy of `bytes` random bytes, on a device that has times.
pub(crate) fn copy_gbps(device: &Device, bytes: usize, samples: usize) -> Result<f64> {
    let rotation = Rotation::new(device, &[bytes; 2]);
    ensure_room(Rotation::padded(bytes), 1, &[(device, rotation.arrays(2))])?;
    let ColdRuns { mut rotation, sources, mut results } =
        ColdRuns::new(rotation, &reference::random::<u8>(bytes)?, bytes)?;
    let stream = device.default_stream();
    let timing = measure::time(device, stream, samples, || {
        let set = rotation.advance();
        ops::copy_into(sources.view(set)?, results.view_mut(set)?, stream)
    })?;
    Ok(timing.gbps(2 * bytes as u64))
}

/// Makes the elements of one array from those of another. Both come as one axis, which the launch
/// splits into its own shape, and the launch is queued on a stream.
pub(crate) trait Launch<S, D = S>: FnMut(View<'_, S>, ViewMut<'_, D>, &Stream) -> Result<(), Error> {}
impl<S, D, F: FnMut(View<'_, S>, ViewMut<'_, D>, &Stream) -> Result<(), Error>> Launch<S, D> for F {}

/// The sources and the results of a rotation.
pub(crate) struct ColdRuns<S: Element, D: Element = S> {
    pub(crate) rotation: Rotation,
    pub(crate) sources: RotatingBuffer<S>,
    pub(crate) results: RotatingBuffer<D>,
}

impl<S: Element, D: Element> ColdRuns<S, D> {
    /// Makes sources that all are `elements`, and results of `len` elements.
    pub(crate) fn new(rotation: Rotation, elements: &[S], len: usize) -> Result<Self> {
        let (sources, results) = (rotation.upload(elements)?, rotation.zeros(len)?);
        Ok(Self { rotation, sources, results })
    }

    /// Makes the first set the next, and its result wrong everywhere: what a kernel leaves out of
    /// the `expected` elements is seen. Those may be fewer than the result has.
    pub(crate) fn begin(&mut self, expected: &[D]) -> Result<()>
    where
        D: Pod,
    {
        let mut wrong = reference::complement(expected)?;
        wrong.resize(self.results.len(), D::zeroed());
        self.rotation.restart();
        Ok(self.results.upload_first(&wrong)?)
    }
}

impl<S: Element, D: Element> AsMut<Rotation> for ColdRuns<S, D> {
    fn as_mut(&mut self) -> &mut Rotation {
        &mut self.rotation
    }
}

/// A kernel on arrays in the sets of a rotation, which it owns or borrows.
struct OnArrays<A, L, R> {
    arrays: A,
    kernel: Option<&'static str>,
    launch: L,
    is_right: R,
}

/// Makes work of a launch on the arrays of a set, and of a check of the first set's results.
pub(crate) fn on_arrays<'w, T: AsMut<Rotation> + 'static>(
    arrays: impl DerefMut<Target = T> + 'w,
    kernel: Option<&'static str>,
    launch: impl FnMut(&mut T, usize) -> Result<(), Error> + 'w,
    is_right: impl Fn(&T) -> Result<bool> + 'w,
) -> Box<dyn Work + 'w> {
    Box::new(OnArrays { arrays, kernel, launch, is_right })
}

/// Makes work that makes the elements of one array from those of another. Both come as one axis,
/// which the launch splits into its own shape.
pub(crate) fn one_to_one<'w, S: Element, D: Element>(
    arrays: impl DerefMut<Target = ColdRuns<S, D>> + 'w,
    kernel: Option<&'static str>,
    mut launch: impl Launch<S, D> + 'w,
    is_right: impl Fn(&[D]) -> bool + 'w,
) -> Box<dyn Work + 'w> {
    let launch = move |ColdRuns { rotation, sources, results }: &mut ColdRuns<S, D>, set: usize| {
        launch(sources.view(set)?, results.view_mut(set)?, rotation.device().default_stream())
    };
    on_arrays(arrays, kernel, launch, move |arrays| Ok(is_right(&arrays.results.download_first(arrays.results.len())?)))
}

impl<T, A, L, R> Work for OnArrays<A, L, R>
where
    T: AsMut<Rotation> + 'static,
    A: DerefMut<Target = T>,
    L: FnMut(&mut T, usize) -> Result<(), Error>,
    R: Fn(&T) -> Result<bool>,
{
    fn rotation(&mut self) -> &mut Rotation {
        self.arrays.as_mut()
    }

    fn kernel(&self) -> Option<&'static str> {
        self.kernel
    }

    fn run(&mut self, set: usize, _: usize) -> Result<(), Error> {
        (self.launch)(&mut self.arrays, set)
    }

    fn is_right(&mut self) -> Result<bool> {
        (self.is_right)(&self.arrays)
    }
}
