//! `warpstride compare`: every transpose kernel on the same matrix, verified, timed and counted.

use std::ops::Range;
use std::sync::Arc;

use crate::export::json;
use crate::run::Run;
use crate::run::columns::VARIANT;
use crate::run::table::Table;
use anyhow::{Context, Result, ensure};
use bytemuck::Pod;
use serde_json::json;
use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::driver::DriverKind;
use warpstride::driver::soft::Soft;
use warpstride::element::{DType, Element};
use warpstride::error::Error;
use warpstride::io::ArrayFile;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TransposePlan, Variant};
use warpstride::roofline::measure::{Rotation, has_times};
use warpstride::roofline::model::{self, DeviceModel};
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::{Group, Record, Subject};
use warpstride::stream::{Graph, Stream};

use super::bench::measure::{ColdRuns, Work, count, launched, measure};
use super::output::Output;
use super::transpose::matrix;
use super::{args, array_bytes, by_width, ensure_room, input, message, open, reference};

/// Timed runs of a kernel; their median is reported.
const SAMPLES: usize = 20;
/// The same for `column_loop`, whose one run is a launch for every column, and for its graph.
const SLOW_SAMPLES: usize = 5;
/// Columns that `column_loop` is timed by at once, so that all their launches are queued before the
/// first runs: a stream's queue holds about a thousand.
const COLUMNS_AT_ONCE: usize = 256;
/// Most columns of all the sets together that have a graph each. With more the graph is not timed:
/// it would take seconds to make them, and gigabytes.
const MAX_NODES: usize = 1 << 18;
/// Most elements that the software GPU counts for a GPU, which cannot itself: about two seconds of
/// two cores.
const MAX_COUNTED: usize = 1 << 25;

/// Most blocks of a launch that are counted for the model.
const MODELLED_BLOCKS: u64 = 256;

pub(super) fn run(args: &args::Compare, backend: Backend, output: &Output) -> Result<()> {
    let variants = if args.variants.is_empty() { Variant::ALL.to_vec() } else { args.variants.clone() };
    if let Some(path) = &args.input {
        let source = input::first_array(path, output)?;
        matrix(&*source)?;
        let devices = open(backend, output)
            .and_then(|device| Devices::of(device, source.bytes(), source.dtype(), output))
            .with_context(|| format!("cannot compare on {}", path.display()))?;
        by_width!(source.dtype(), T => compare::<T>(&devices, Matrix::read(source)?, &variants, args.model, output))
    } else {
        let bytes = array_bytes(&args.shape, args.dtype)?;
        let devices = Devices::of(open(backend, output)?, bytes, args.dtype, output)?;
        by_width!(args.dtype, T => {
            compare::<T>(&devices, Matrix::random(args.shape, args.dtype, bytes)?, &variants, args.model, output)
        })
    }
}

/// Every kernel on random bits, `size` rows and columns of f32.
pub(super) fn of_squares(device: &Device, size: usize, peaks: Option<&Peaks>, output: &Output) -> Result<Vec<Row>> {
    let bytes = array_bytes(&[size; 2], DType::F32)?;
    let devices = Devices::of(device.clone(), bytes, DType::F32, output)?;
    let matrix = Matrix::<u32>::random([size; 2], DType::F32, bytes)?;
    Ok(ladder(&devices, &matrix, &Variant::ALL, peaks, output)?.0)
}

/// The devices that time and count.
struct Devices {
    named: Device,
    /// The software GPU, where the named device does not count and the matrix is small enough to
    /// count it there: the same launches of the same PTX count the same on both.
    counting: Option<Device>,
}

impl Devices {
    /// Opens what a matrix of `bytes` bytes needs beside the named device, and makes sure that it
    /// fits.
    fn of(named: Device, bytes: usize, dtype: DType, output: &Output) -> Result<Self> {
        let rotation = Rotation::new(&named, &[bytes; 2]);
        // The matrix, its transpose, and the elements that came back from a device; on each device
        // a source, a result and the rotation's.
        let (on_host, on_device) = (3, 2);
        let (each, own) = (Rotation::padded(bytes), (&named, on_device + rotation.arrays(2)));
        ensure_room(each, on_host, &[own])?;
        let mut counting = None;
        if has_times(&named) && bytes / dtype.width() <= MAX_COUNTED {
            let opened = Device::open(Backend::Soft).map_err(anyhow::Error::from);
            match opened.and_then(|soft| ensure_room(each, on_host, &[own, (&soft, on_device)]).map(|()| soft)) {
                Ok(soft) => {
                    output.watch(&soft);
                    counting = Some(soft);
                }
                Err(error) => output.note(format!("nothing is counted: {}", message(&error))),
            }
        }
        Ok(Self { named, counting })
    }
}

/// The matrix to transpose.
struct Matrix<T> {
    rows: usize,
    cols: usize,
    dtype: DType,
    /// True if the elements of a column, not of a row, lie beside each other.
    fortran: bool,
    elements: Vec<T>,
}

impl<T: Element + Pod> Matrix<T> {
    /// Puts the matrix into a rotation of a device.
    fn runs(&self, device: &Device) -> Result<ColdRuns<T>> {
        let rotation = Rotation::new(device, &[size_of_val(&*self.elements); 2]);
        ColdRuns::new(rotation, &self.elements, self.elements.len())
    }

    fn read(source: Box<dyn ArrayFile>) -> Result<Self> {
        let ([rows, cols], dtype, fortran) = (matrix(&*source)?, source.dtype(), source.is_fortran());
        Ok(Self { rows, cols, dtype, fortran, elements: input::elements(source)? })
    }

    /// Random bits.
    fn random([rows, cols]: [usize; 2], dtype: DType, bytes: usize) -> Result<Self> {
        let elements = reference::random(bytes / size_of::<T>())?;
        Ok(Self { rows, cols, dtype, fortran: false, elements })
    }

    /// Returns the transpose in C order, by the CPU. In Fortran order it lies in memory as the
    /// matrix does.
    fn transposed(&self) -> Result<Vec<T>> {
        let axes = if self.fortran { [0, 1] } else { [1, 0] };
        reference::permuted(&self.elements, &[self.rows, self.cols], &axes)
    }
}

/// The work of one row of the table.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kernel {
    /// Moves as many bytes and nothing else; a transpose is measured against it.
    Copy,
    Transpose(Variant),
    /// The launches of `column_loop`, captured once.
    ColumnLoopGraph,
}

impl Kernel {
    /// The rows of these variants, below the copy's. A graph follows the loop that it captures.
    fn all(variants: &[Variant]) -> Vec<Self> {
        let rows = variants.iter().flat_map(|&variant| {
            let graph = (variant == Variant::ColumnLoop).then_some(Self::ColumnLoopGraph);
            [Self::Transpose(variant)].into_iter().chain(graph)
        });
        [Self::Copy].into_iter().chain(rows).collect()
    }

    /// The kernel of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all(&Variant::ALL).into_iter().find(|kernel| kernel.name() == name)
    }

    fn name(self) -> String {
        match self {
            Self::Copy => "copy".into(),
            Self::Transpose(variant) => variant.to_string(),
            Self::ColumnLoopGraph => format!("{}_graph", Variant::ColumnLoop),
        }
    }

    /// Returns the variant of a transpose, and `None` for a copy.
    fn variant(self) -> Option<Variant> {
        match self {
            Self::Copy => None,
            Self::Transpose(variant) => Some(variant),
            Self::ColumnLoopGraph => Some(Variant::ColumnLoop),
        }
    }

    /// Its entry.
    fn entry<T>(self, matrix: &Matrix<T>, target: Target) -> Result<Option<&'static str>> {
        let (rows, cols, width) = (matrix.rows, matrix.cols, size_of::<T>());
        let (source, result) = (Layout::row_major(&[rows, cols])?, Layout::row_major(&[cols, rows])?);
        let Some(variant) = self.variant() else {
            let plan = PermutePlan::new(&source, Align::ALLOCATION, &source, Align::ALLOCATION, width, target)?;
            return Ok(plan.entry());
        };
        let plan = TransposePlan::new(&source, &result, width, variant)?;
        Ok(plan.entry())
    }

    /// Counts the work of a launch, and the launches; `None` in a graph, whose nodes no model
    /// knows, and where there are no elements.
    pub(super) fn work(self, subject: &Subject) -> Result<Option<(model::Work, u64)>> {
        let (&[rows, cols], Some(dtype)) = (&*subject.shape, subject.dtype) else { return Ok(None) };
        let soft = Arc::new(Soft::counting(MODELLED_BLOCKS));
        let device = Device::with_driver(soft.clone())?;
        // The launches of all columns are alike.
        let launches = if self == Self::Transpose(Variant::ColumnLoop) { cols } else { 1 };
        by_width!(dtype, T => self.launch::<T>(&device, [rows, cols], launches))?;
        let bytes = [subject.read, subject.written].map(|bytes| bytes / launches.max(1) as u64);
        let launched = soft.take_launches();
        let work = launched.first().map(|first| model::Work::of_launched(first, MODELLED_BLOCKS, bytes));
        Ok(work.transpose()?.map(|work| (work, launches as u64)))
    }

    /// Launches it once on arrays of a device that only counts.
    fn launch<T: Element>(self, device: &Device, [rows, cols]: [usize; 2], launches: usize) -> Result<()> {
        let source = device.alloc_array::<T>(&[rows, cols])?;
        let mut result = device.alloc_array::<T>(&if self == Self::Copy { [rows, cols] } else { [cols, rows] })?;
        let stream = device.default_stream();
        match self {
            Self::ColumnLoopGraph => {}
            Self::Copy => ops::copy_into(source.view(), result.view_mut(), stream)?,
            Self::Transpose(variant) => {
                let cols = cols / launches.max(1);
                let (source, result) = (source.view().slice(1, ..cols, 1)?, result.view_mut().slice(0, ..cols, 1)?);
                ops::transpose_into(source, result, Some(variant), stream)?;
            }
        }
        Ok(stream.synchronize()?)
    }

    /// How often it is timed, and the columns of the parts that it is timed in, at least one.
    fn samples(self, cols: usize) -> (usize, Vec<Range<usize>>) {
        let (samples, at_once) = match self {
            Self::Transpose(Variant::ColumnLoop) => (SLOW_SAMPLES, COLUMNS_AT_ONCE),
            Self::ColumnLoopGraph => (SLOW_SAMPLES, cols.max(1)),
            _ => (SAMPLES, cols.max(1)),
        };
        (samples, (0..cols.max(1)).step_by(at_once).map(|first| first..cols.min(first + at_once)).collect())
    }
}

/// One row of the table.
pub(super) struct Row {
    /// The record, without a prediction.
    pub(super) record: Record,
    kernel: Kernel,
}

impl Row {
    /// The record with the time that `model` predicts.
    pub(super) fn predicted(self, model: Option<DeviceModel>) -> Record {
        let Self { record, kernel } = self;
        let work = model.and_then(|model| Some((model, kernel.work(&record.subject).ok()??)));
        let predicted = work.and_then(|(model, (work, launches))| model.predict(&work, launches).ok());
        Record { predicted, ..record }
    }
}

fn compare<T: Element + Pod>(
    devices: &Devices,
    matrix: Matrix<T>,
    variants: &[Variant],
    model: Option<DeviceModel>,
    output: &Output,
) -> Result<()> {
    let date = jiff::Timestamp::now().to_string();
    let (rows, counted_on) = ladder(devices, &matrix, variants, None, output)?;
    let model = model.or_else(|| DeviceModel::of(&devices.named.info().name));
    let Matrix { rows: height, cols: width, dtype, .. } = matrix;
    let records = rows.into_iter().map(|row| row.predicted(model)).collect();
    let run = Run::new(&devices.named, date, None, records);
    let mut document = json::document(&run)?;
    // Scripts find the records as rows, too.
    let rows = document["cases"].clone();
    document.extend([
        ("shape".into(), json!([height, width])),
        ("dtype".into(), json!(dtype.name())),
        ("counted_on".into(), json!(counted_on)),
        ("model".into(), json!(model.map(|model| model.name))),
        ("rows".into(), rows),
    ]);
    let heading = format!("{height} x {width} {dtype} on {}", run.device.name);
    output.result(&format!("{heading}\n{}", shown(&run, counted_on, model)), document.into())?;
    let wrong: Vec<&str> = run
        .cases
        .iter()
        .filter(|case| case.verified == Some(false))
        .filter_map(|case| case.subject.variant.as_deref())
        .collect();
    ensure!(wrong.is_empty(), "{} moved elements to the wrong place; please report this as a bug", wrong.join(", "));
    Ok(())
}

/// Runs the copy, and every variant beside it. Also returns the device that the rows' counters come
/// from, if they have any.
fn ladder<T: Element + Pod>(
    devices: &Devices,
    matrix: &Matrix<T>,
    variants: &[Variant],
    peaks: Option<&Peaks>,
    output: &Output,
) -> Result<(Vec<Row>, Option<DriverKind>)> {
    let kernels = Kernel::all(variants);
    let progress = output.progress(kernels.len() + 1);
    progress.doing("preparing");
    let transposed = matrix.transposed()?;
    let mut runs = matrix.runs(&devices.named)?;
    let mut counted = devices.counting.as_ref().and_then(|soft| {
        let runs = matrix.runs(soft);
        runs.inspect_err(|error| output.note(format!("nothing is counted: {}", message(error)))).ok()
    });
    let counted_on = if counted.is_some() { devices.counting.as_ref() } else { Some(&devices.named) };
    progress.step();
    let bytes = size_of_val(&*matrix.elements) as u64;
    let mut rows: Vec<Row> = Vec::with_capacity(kernels.len());
    for kernel in kernels {
        progress.doing(kernel.name());
        let (samples, _) = kernel.samples(matrix.cols);
        let mut rung = Rung::new(kernel, matrix, &transposed, &mut runs)?;
        let mut outcome = measure(&mut rung, samples, false)?;
        if let Some(runs) = &mut counted {
            let counters = Rung::new(kernel, matrix, &transposed, runs).and_then(|mut rung| rung.count());
            outcome.counters = counters.unwrap_or_else(|error| {
                output.note(format!("{} is not counted: {}", kernel.name(), message(&error)));
                None
            });
        }
        let subject =
            Subject::new(Group::Transpose, "transpose", matrix.dtype, &[matrix.rows, matrix.cols], [bytes; 2]);
        let subject = Subject { variant: Some(kernel.name()), ..subject };
        let own = outcome.timing.as_ref().map(|timing| timing.gbps(2 * bytes));
        let copy = rows.first().map_or(own, |copy| copy.record.gbps);
        rows.push(Row { record: outcome.record(subject, samples, copy, peaks), kernel });
        progress.step();
    }
    // A device that does not count leaves every row without.
    let counted_on =
        counted_on.filter(|_| rows.iter().any(|row| row.record.counters.is_some())).map(|device| device.info().kind);
    Ok((rows, counted_on))
}

/// A kernel on a matrix, in the arrays that all kernels share.
struct Rung<'a, T: Element> {
    kernel: Kernel,
    matrix: &'a Matrix<T>,
    expected: &'a [T],
    runs: &'a mut ColdRuns<T>,
    /// The columns of each part.
    parts: Vec<Range<usize>>,
    entry: Option<&'static str>,
    /// A graph for each set; for the first alone where they would be too many.
    graphs: Vec<Graph>,
    /// The kernels of a graph.
    nodes: Option<u64>,
    /// Tells if the graphs have few enough nodes to be timed.
    is_timed: bool,
}

impl<'a, T: Element + Pod> Rung<'a, T> {
    /// Plans the kernel, for a run on the first set.
    fn new(kernel: Kernel, matrix: &'a Matrix<T>, transposed: &'a [T], runs: &'a mut ColdRuns<T>) -> Result<Self> {
        let expected = if kernel == Kernel::Copy { &matrix.elements } else { transposed };
        runs.begin(expected)?;
        let (_, parts) = kernel.samples(matrix.cols);
        let entry = kernel.entry(matrix, Target::of(runs.rotation.device()))?;
        let mut rung =
            Self { kernel, matrix, expected, runs, parts, entry, graphs: Vec::new(), nodes: None, is_timed: true };
        if kernel == Kernel::ColumnLoopGraph {
            let sets = rung.runs.rotation.sets();
            rung.is_timed = sets <= MAX_NODES / matrix.cols.max(1);
            let sets = if rung.is_timed { sets } else { 1 };
            let device = rung.runs.rotation.device().clone();
            let calls = device.stats();
            rung.graphs = (0..sets)
                .map(|set| device.default_stream().capture(|stream| rung.queue(set, 0, stream)))
                .collect::<Result<_, Error>>()?;
            rung.nodes = launched(&device.stats().since(&calls), None).map(|launches| launches / sets.max(1) as u64);
        }
        Ok(rung)
    }

    /// Returns the counters of one run, where its result is right.
    fn count(&mut self) -> Result<Option<Counters>> {
        let ((_, counters), is_right) = (count(self)?, self.is_right()?);
        let name = &self.runs.rotation.device().info().name;
        ensure!(is_right, "{name} moved elements to the wrong place; please report this as a bug");
        Ok(counters)
    }

    /// Queues the kernel for the columns of a part; a copy is always of all.
    fn queue(&mut self, set: usize, part: usize, stream: &Stream) -> Result<(), Error> {
        let Matrix { rows, cols, fortran, .. } = *self.matrix;
        let (source, result) = (self.runs.sources.view(set)?, self.runs.results.view_mut(set)?);
        let Some(variant) = self.kernel.variant() else { return ops::copy_into(source, result, stream) };
        let columns = self.parts[part].clone();
        let view =
            if fortran { source.split_axis(0, &[cols, rows])?.t() } else { source.split_axis(0, &[rows, cols])? };
        let result = result.split_axis(0, &[cols, rows])?.slice(0, columns.clone(), 1)?;
        ops::transpose_into(view.slice(1, columns, 1)?, result, Some(variant), stream)
    }
}

impl<T: Element + Pod> Work for Rung<'_, T> {
    fn nodes(&self) -> Option<u64> {
        self.nodes
    }

    fn rotation(&mut self) -> &mut Rotation {
        &mut self.runs.rotation
    }

    fn kernel(&self) -> Option<&'static str> {
        self.entry
    }

    fn run(&mut self, set: usize, part: usize) -> Result<(), Error> {
        let device = self.runs.rotation.device().clone();
        let stream = device.default_stream();
        match self.graphs.get(set) {
            Some(graph) => graph.launch(stream),
            None => self.queue(set, part, stream),
        }
    }

    fn is_right(&mut self) -> Result<bool> {
        Ok(reference::are_equal(&self.runs.results.download_first(self.expected.len())?, self.expected))
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn is_timed(&self) -> bool {
        self.is_timed
    }
}

/// The table and the meaning of its columns.
fn shown(run: &Run, counted_on: Option<DriverKind>, model: Option<DeviceModel>) -> String {
    let mut text = format!("{}\n", Table::of(VARIANT, &run.cases));
    if let Some(model) = model {
        text += &format!("predicted ms: by the model of {}, from the counters; not measured.\n", model.name);
    }
    if !run.has_times() {
        return text + COUNTED + "\n";
    }
    let gapped = run.cases.iter().filter(|case| case.gapless == Some(false));
    let gapped = gapped.filter_map(|case| case.subject.variant.as_deref()).collect::<Vec<_>>();
    text + &timed_footer(&gapped, counted_on) + "\n"
}

/// The meaning of the columns of a GPU's table: which kernels could not be queued before they ran,
/// and which device counted.
fn timed_footer(gapped: &[&str], counted_on: Option<DriverKind>) -> String {
    let mut text =
        format!("ms: median of {SAMPLES} runs (column_loop and its graph: {SLOW_SAMPLES}), each with a cold L2 cache.");
    if !gapped.is_empty() {
        text += &format!(" Gaps between launches included: {}.", gapped.join(", "));
    }
    text += "\nGB/s: 10^9 bytes read and written a second, as the matrix has them; of copy: against the copy kernel.\n";
    text += match counted_on {
        Some(DriverKind::Soft) => "Sectors and bank conflicts: the software GPU's, for the same launches.",
        Some(_) => "Sectors and bank conflicts: the device's own.",
        None => "Sectors and bank conflicts: not counted; the software GPU does it for up to 2^25 elements.",
    };
    text
}

/// Under the software GPU's table.
const COUNTED: &str = "\
verified: every element against a transpose by the CPU.
sectors/ideal: 32-byte sectors that loads or stores touch, for \
each that would hold the bytes they ask for; 1.00x is best.
bank conflicts: passes through shared memory beyond what the \
width needs.
No GB/s: the software GPU counts traffic exactly but does not model time.";

#[cfg(test)]
mod tests;
