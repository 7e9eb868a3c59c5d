//! `warpstride bench --all`: a fixed list of cases in one run.

use anyhow::{Result, ensure};
use half::{bf16, f16};
use serde::Deserialize;
use serde_json::json;
use warpstride::counters::Counters;
use warpstride::device::{Backend, Device};
use warpstride::element::DType;
use warpstride::ops::{AxisReduction, Elementwise, Reduction};
use warpstride::roofline::compare::{self, Change};
use warpstride::roofline::measure::{Clocks, Rotation, has_times};
use warpstride::roofline::model::DeviceModel;
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::report::{Case, Group, Machine, Run, SCHEMA, Times};

use super::Measured;
use super::affine::Mapped;
use super::arithmetic::{self, Arithmetic, Computed, Operands};
use super::axis::{Along, AlongAxis};
use super::conversion::Conversion;
use super::permute::Moved;
use super::report::{Outcome, Subject};
use crate::cli::output::Output;
use crate::cli::{args, compare as ladder, failure, open, peaks, report, runs};

/// Timed runs of a case.
const SAMPLES: usize = 20;
/// Bytes of an array of the streams where they are only counted.
const COUNTED: usize = 64 << 10;
/// Most elements that the software GPU permutes for a case.
const SMALL: usize = 1 << 14;
/// Permutes that convert what they move: from which type to which, the axis of the result whose indices have factors and offsets of
/// their own, the shape, and the axes. Images of pixels to planes and back, activations of many channels, and matrices.
type Mapping = (DType, DType, Option<usize>, &'static [usize], &'static [usize]);
const MAPPED: [Mapping; 6] = [
    (DType::F32, DType::F32, None, &[16384, 16384], &[1, 0]),
    (DType::F32, DType::F16, None, &[16384, 16384], &[1, 0]),
    (DType::U8, DType::F32, None, &[16384, 16384], &[1, 0]),
    (DType::F16, DType::F16, Some(1), &[64, 56, 56, 256], &[0, 3, 1, 2]),
    (DType::F32, DType::Bf16, Some(3), &[64, 256, 55, 55], &[0, 2, 3, 1]),
    (DType::U8, DType::F16, Some(1), &[64, 1080, 1920, 3], &[0, 3, 1, 2]),
];
/// The matrices that every kernel transposes, on a GPU and elsewhere.
const MATRICES: [&[usize]; 2] = [&[4096, 16384], &[256]];

const ARITHMETIC: [Arithmetic; 10] = [
    Arithmetic::Fill,
    Arithmetic::Elementwise(Elementwise::Mul),
    Arithmetic::Elementwise(Elementwise::Add),
    Arithmetic::Elementwise(Elementwise::Triad),
    Arithmetic::Elementwise(Elementwise::NStream),
    Arithmetic::Elementwise(Elementwise::Axpy),
    Arithmetic::Reduction(Reduction::Sum),
    Arithmetic::Reduction(Reduction::Dot),
    Arithmetic::Reduction(Reduction::Min),
    Arithmetic::Reduction(Reduction::Max),
];

/// What is done along an axis of a matrix.
const MATRIX: [usize; 2] = [8192, 16384];
const ALONG_AXES: [(Along, DType, usize); 9] = [
    (Along::Reduction(AxisReduction::Sum), DType::F32, 0),
    (Along::Reduction(AxisReduction::Sum), DType::F32, 1),
    (Along::Reduction(AxisReduction::Max), DType::F32, 0),
    (Along::Reduction(AxisReduction::Max), DType::F32, 1),
    (Along::Reduction(AxisReduction::ArgMax), DType::F32, 0),
    (Along::Reduction(AxisReduction::ArgMax), DType::F32, 1),
    (Along::Softmax, DType::F32, 1),
    (Along::Softmax, DType::F16, 1),
    (Along::MeanVariance, DType::F32, 1),
];

/// What is made of elements, and where rows go.
const CONVERSIONS: [Conversion; 9] = [
    Conversion::Normalize { shape: [64, 1080, 1920, 3], to: DType::F32 },
    Conversion::Normalize { shape: [64, 1080, 1920, 3], to: DType::F16 },
    Conversion::Cast { shape: [1 << 27], from: DType::U8, to: DType::F32 },
    Conversion::Cast { shape: [1 << 27], from: DType::F32, to: DType::F16 },
    Conversion::Cast { shape: [1 << 27], from: DType::F32, to: DType::U8 },
    Conversion::Cast { shape: [1 << 27], from: DType::F16, to: DType::F32 },
    Conversion::Rows { shape: [1 << 18, 1 << 10], dtype: DType::F32, is_put: false },
    Conversion::Rows { shape: [1 << 18, 1 << 10], dtype: DType::F32, is_put: true },
    Conversion::Strided { shape: [1 << 27], dtype: DType::F32, step: 2 },
];

/// A permute of `benches/cases.json`.
#[derive(Deserialize)]
struct Listed {
    dtype: DType,
    shape: Vec<usize>,
    axes: Vec<usize>,
}

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    // What it is to be compared with is looked at before minutes are spent.
    let before = args.compare.as_deref().map(runs::kept).transpose()?;
    let device = open(backend, output)?;
    if let Some(before) = &before {
        compare::check_devices(&before.device, &Machine::of(&device))?;
    }
    let timed = has_times(&device);
    let date = jiff::Timestamp::now().to_string();
    // Of this run: what was kept may be of another day.
    let peaks = if timed { Some(peaks::measured(&device, output)?.peaks) } else { None };
    let mut suite = Suite { device: &device, timed, peaks: peaks.as_ref(), cases: Vec::new(), output };
    suite.all()?;
    let run = Run {
        schema: SCHEMA,
        ptx: warpstride::ptx::PROVENANCE.into(),
        date,
        version: env!("CARGO_PKG_VERSION").into(),
        device: Machine::of(&device),
        clocks: Clocks::of(&device),
        cases: suite.cases,
        peaks,
    };
    finish(&run, before.as_ref(), args.save.as_deref(), output)
}

/// Keeps a run if it is right, since what is wrong is nothing to compare with, and prints it: also where it could not be kept.
fn finish(run: &Run, before: Option<&Run>, save: Option<&str>, output: &Output) -> Result<()> {
    let wrong: Vec<&str> = run.cases.iter().filter(|case| !case.verified).map(|case| case.name.as_str()).collect();
    let kept = match save.filter(|_| wrong.is_empty()) {
        Some(name) => runs::keep(name, run).map(|file| output.note(format!("kept as {name}: {}", file.display()))),
        None => Ok(()),
    };
    let changes = before.map(|before| compare::changes(before, run)).transpose()?;
    print(run, changes.as_deref(), kept.as_ref().err(), output)?;
    ensure!(wrong.is_empty(), "{} gave wrong elements; please report this as a bug", wrong.join(", "));
    kept?;
    report::ensure_none_worse(changes.as_deref().unwrap_or(&[]))
}

fn print(run: &Run, changes: Option<&[Change]>, error: Option<&anyhow::Error>, output: &Output) -> Result<()> {
    let mut text = report::text(run);
    let mut document = serde_json::to_value(run)?;
    if let Some(changes) = changes {
        text += &report::changes_text(changes);
        document["changes"] = json!(changes);
    }
    if let Some(error) = error {
        document["error"] = failure(error);
    }
    output.result(&text, document)
}

/// The cases in the making.
struct Suite<'a> {
    device: &'a Device,
    timed: bool,
    peaks: Option<&'a Peaks>,
    cases: Vec<Case>,
    output: &'a Output,
}

impl Suite<'_> {
    fn all(&mut self) -> Result<()> {
        self.streams::<f32>(DType::F32)?;
        self.streams::<f64>(DType::F64)?;
        self.streams::<f16>(DType::F16)?;
        self.streams::<bf16>(DType::Bf16)?;
        let listed: Vec<Listed> = serde_json::from_str(include_str!("../../../benches/cases.json"))?;
        for Listed { dtype, mut shape, axes } in listed {
            self.fit(&mut shape);
            let permute = Moved { op: "permute", dtype, shape: &shape, axes: Some(&axes) };
            // Two that differ in size alone may be one by now.
            let name = name(&permute.subject()?);
            if !self.cases.iter().any(|case| case.name == name) {
                self.measured(Group::Permute, &permute)?;
            }
        }
        for (from, to, channels, shape, axes) in MAPPED {
            let mut shape = shape.to_vec();
            self.fit(&mut shape);
            self.measured(Group::Permute, &Mapped { from, to, shape: &shape, axes, channels })?;
        }
        self.transposes()?;
        for (along, dtype, axis) in ALONG_AXES {
            let mut shape = MATRIX;
            self.fit(&mut shape);
            self.measured(Group::Axis, &AlongAxis { along, shape: &shape, axis: [axis], dtype })?;
        }
        for mut conversion in CONVERSIONS {
            self.fit(conversion.shape_mut());
            self.measured(Group::Conversion, &conversion)?;
        }
        Ok(())
    }

    /// Makes the shape small where the device is the software GPU.
    fn fit(&self, shape: &mut [usize]) {
        if !self.timed {
            shrink(shape);
        }
    }

    /// Which of two values suits the device.
    fn of<T>(&self, [gpu, software]: [T; 2]) -> T {
        if self.timed { gpu } else { software }
    }

    fn streams<T: Computed>(&mut self, dtype: DType) -> Result<()> {
        // As those that the ceilings were measured with.
        let bytes = self.peaks.map_or(COUNTED, |peaks| peaks.bytes as usize);
        let shape = [bytes / size_of::<T>()];
        // For all of them, those that touch one array alone too.
        let rotation = Rotation::new(self.device, &[bytes]);
        arithmetic::ensure_operands(&rotation, bytes)?;
        self.measured(Group::Stream, &Moved { op: "copy", dtype, shape: &shape, axes: None })?;
        let progress = self.output.progress(ARITHMETIC.len());
        progress.doing("preparing");
        let mut operands = Operands::<T>::new(rotation, shape[0])?;
        for arithmetic in ARITHMETIC {
            progress.doing(format!("{} {dtype}", arithmetic.name()));
            let outcome = operands.measure(arithmetic, SAMPLES)?;
            self.add(Group::Stream, &arithmetic.subject(&shape, dtype, bytes as u64), outcome);
            progress.step();
        }
        Ok(())
    }

    fn measured(&mut self, group: Group, measured: &dyn Measured) -> Result<()> {
        let outcome = measured.outcome(self.device, SAMPLES, self.output)?;
        self.add(group, &measured.subject()?, outcome);
        Ok(())
    }

    fn add(&mut self, group: Group, subject: &Subject<'_>, outcome: Outcome) {
        let Subject { op, dtype, shape, axes, from, read, written } = *subject;
        let times = outcome.timing.as_ref().zip(self.peaks);
        self.cases.push(Case {
            name: name(subject),
            group,
            op: op.into(),
            dtype,
            shape: shape.into(),
            axes: axes.map(Into::into),
            from,
            read,
            written,
            kernel: outcome.kernel.map(Into::into),
            verified: outcome.verified,
            times: times.map(|((timing, _), peaks)| Times::new(timing, read, written, peaks)),
            counters: outcome.counters,
            counted_shape: None,
            predicted_ms: None,
        });
    }

    /// Every kernel on square matrices. Of one too large to be counted, the counters are those of a smaller one, multiplied: the
    /// rows of both begin at the same places of their sectors, and both are whole tiles, so the launches differ in length alone.
    fn transposes(&mut self) -> Result<()> {
        let model = DeviceModel::of(&self.device.info().name);
        let mut counted: Option<(usize, Vec<Option<Counters>>)> = None;
        for &size in self.of(MATRICES) {
            let rows = ladder::of_squares(self.device, size, self.output)?;
            let scaled = counted.as_ref().filter(|_| rows.iter().all(|row| row.counters.is_none()));
            let bytes = (size * size * size_of::<f32>()) as u64;
            for (at, row) in rows.iter().enumerate() {
                let counters = match scaled {
                    Some((smaller, all)) => all[at].map(|counters| counters * (size / smaller).pow(2) as u64),
                    None => row.counters,
                };
                let times = row.timing.as_ref().zip(self.peaks);
                let predicted =
                    model.zip(counters).map(|(model, counters)| model.predict(&counters, bytes, bytes, row.launches));
                self.cases.push(Case {
                    name: format!("transpose {} f32 {size}x{size}", row.variant),
                    group: Group::Transpose,
                    op: row.variant.clone(),
                    dtype: DType::F32,
                    shape: vec![size; 2],
                    axes: None,
                    from: None,
                    read: bytes,
                    written: bytes,
                    kernel: row.entry.map(Into::into),
                    verified: row.verified,
                    times: times.map(|(timing, peaks)| Times::new(timing, bytes, bytes, peaks)),
                    counters,
                    counted_shape: scaled.map(|&(smaller, _)| vec![smaller; 2]),
                    predicted_ms: predicted.map(|predicted| predicted.ms),
                });
            }
            if scaled.is_none() {
                counted = Some((size, rows.iter().map(|row| row.counters).collect()));
            }
        }
        Ok(())
    }
}

/// Halves the longest axis until the software GPU is soon done with it.
fn shrink(shape: &mut [usize]) {
    while shape.iter().product::<usize>() > SMALL {
        let Some(longest) = shape.iter_mut().max() else { return };
        *longest = longest.div_ceil(2);
    }
}

/// What a case is called.
fn name(subject: &Subject<'_>) -> String {
    let Subject { op, dtype, shape, axes, from, .. } = *subject;
    let from = from.map_or(String::new(), |from| format!("{from} to "));
    let preposition = if matches!(op, "permute" | "affine") { "by" } else { "along" };
    let axes = axes.map_or(String::new(), |axes| format!(" {preposition} {}", listed(axes, ",")));
    format!("{op} {from}{dtype} {}{axes}", listed(shape, "x"))
}

fn listed(numbers: &[usize], between: &str) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_run_is_not_kept() {
        let device = Device::open(Backend::Soft).expect("the software GPU is always there");
        let output = Output::new(false, true);
        let mut suite = Suite { device: &device, timed: false, peaks: None, cases: Vec::new(), output: &output };
        let copy = Moved { op: "copy", dtype: DType::F32, shape: &[64], axes: None };
        suite.measured(Group::Stream, &copy).expect("a copy runs");
        let mut run = Run {
            schema: SCHEMA,
            ptx: String::new(),
            date: String::new(),
            version: String::new(),
            device: Machine::of(&device),
            clocks: None,
            cases: suite.cases,
            peaks: None,
        };
        run.cases[0].verified = false;
        let name = format!("wrong-{}", std::process::id());
        let error = finish(&run, None, Some(&name), &output).unwrap_err();
        assert!(error.to_string().contains("copy f32 64 gave wrong elements"), "{error}");
        assert!(runs::kept(&name).is_err(), "{name} is kept");
    }
}
