//! `warpstride bench OP`: one operation on random numbers, verified, and on a GPU timed and held
//! against the device's ceilings.

mod affine;
mod arithmetic;
mod conversion;
mod drawn;
mod axis;
pub(super) mod measure;
mod permute;
mod random;
mod suite;

use std::slice;

use crate::export::{json, text};
use crate::run::Run;
use anyhow::Result;
use serde_json::json;
use warpstride::device::Backend;
use warpstride::element::DType;
use warpstride::error::{Error, ErrorKind};
use warpstride::ops::{Elementwise, Reduction};
use warpstride::roofline::measure::has_times;

use super::output::Output;
use super::runs::Kept;
use super::{args, open, peaks, tune};
use affine::Mapped;
use arithmetic::{Arithmetic, OnArrays};
use axis::{Along, AlongAxis};
use conversion::Conversion;
use measure::{Bench, Case};
use permute::Moved;

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    let Some(operation) = &args.operation else {
        return match args {
            args::Bench { all: true, .. } => suite::run(args, backend, output),
            args::Bench { tune: true, .. } => tune::run(backend, output),
            _ => list(output),
        };
    };
    if let args::Operation::Permute(args::Permutes { random: Some(random), part, cases, samples, .. }) = operation {
        let drawn = random::List { random: *random, part: *part };
        return if *cases { drawn.print(output) } else { drawn.run(args, samples.samples.into(), backend, output) };
    }
    let axes = operation.axes().map_err(|wrong| Error::new(ErrorKind::InvalidArgument, wrong))?;
    let (case, args::Samples { samples }) = case_of(operation, &axes);
    let (subject, samples) = (case.subject()?, usize::from(samples));
    let mut kept = Kept::new(args.save.as_deref(), args.compare.as_deref())?;
    kept.narrow_to(&subject.name())?;
    let device = open(backend, output)?;
    kept.check_device(&device)?;
    let date = jiff::Timestamp::now().to_string();
    let ceilings = if has_times(&device) { Some(peaks::known(&device, output)?) } else { None };
    let ceilings = ceilings.map(|kept| (kept.peaks, kept.date));
    let bench = Bench::new(&device, samples, ceilings.as_ref().map(|(peaks, _)| peaks), output);
    let record = bench.record(&*case)?;
    let shown = record.clone();
    let run = Run::new(&device, date, ceilings, vec![record]);
    kept.finish(&run, text::record(&run, &shown), json::document_of_one(&run)?, output)
}

/// The operation that was typed, and how often it is timed.
fn case_of<'a>(operation: &'a args::Operation, axes: &'a [usize]) -> (Box<dyn Case + 'a>, args::Samples) {
    use args::Operation;

    let on_arrays = |arithmetic, numbers: &args::Arithmetic| -> (Box<dyn Case + 'a>, args::Samples) {
        let args::Arithmetic { elements, dtype, samples } = *numbers;
        (Box::new(OnArrays { arithmetic, shape: [elements], dtype }), samples)
    };
    let elementwise = |operation, numbers| on_arrays(Arithmetic::Elementwise(operation), numbers);
    match operation {
        Operation::Permute(args::Permutes { shape, dtype, samples, .. }) => {
            let shape = shape.as_deref().unwrap_or(&[]);
            (Box::new(Moved { op: "permute", dtype: *dtype, shape, axes: Some(axes) }), *samples)
        }
        Operation::Affine(args::Affine { shape, from, to, channels, samples, .. }) => {
            (Box::new(Mapped { from: *from, to: *to, shape, axes, channels: *channels }), *samples)
        }
        Operation::Copy(args::Elements { elements, dtype, samples }) => {
            (Box::new(Moved { op: "copy", dtype: *dtype, shape: slice::from_ref(elements), axes: None }), *samples)
        }
        Operation::Normalize(args::Images { shape, dtype, samples }) => {
            (Box::new(Conversion::Normalize { shape: *shape, to: *dtype }), *samples)
        }
        Operation::Cast(args::Cast { elements, from, to, samples }) => {
            (Box::new(Conversion::Cast { shape: [*elements], from: *from, to: *to }), *samples)
        }
        Operation::StridedCopy(args::Strided { elements: args::Elements { elements, dtype, samples }, step }) => {
            (Box::new(Conversion::Strided { shape: [*elements], dtype: *dtype, step: step.get() }), *samples)
        }
        Operation::Gather(rows) => indexed(rows, false),
        Operation::Scatter(rows) => indexed(rows, true),
        Operation::Fill(numbers) => on_arrays(Arithmetic::Fill, numbers),
        Operation::Mul(numbers) => elementwise(Elementwise::Mul, numbers),
        Operation::Add(numbers) => elementwise(Elementwise::Add, numbers),
        Operation::Triad(numbers) => elementwise(Elementwise::Triad, numbers),
        Operation::Nstream(numbers) => elementwise(Elementwise::NStream, numbers),
        Operation::Axpy(numbers) => elementwise(Elementwise::Axpy, numbers),
        Operation::Dot(numbers) => on_arrays(Arithmetic::Dot, numbers),
        Operation::Sum(reduced) => reduction(Reduction::Sum, reduced),
        Operation::Min(reduced) => reduction(Reduction::Min, reduced),
        Operation::Max(reduced) => reduction(Reduction::Max, reduced),
        Operation::Argmax(reduced) => reduction(Reduction::ArgMax, reduced),
        Operation::Softmax(rows) => along_rows(Along::Softmax, rows),
        Operation::MeanVariance(rows) => along_rows(Along::MeanVariance, rows),
    }
}

fn indexed(rows: &args::Rows, is_put: bool) -> (Box<dyn Case + '_>, args::Samples) {
    let args::Rows { shape, dtype, samples } = *rows;
    (Box::new(Conversion::Rows { shape, dtype, is_put }), samples)
}

/// A reduction along an axis, or over all elements. The index of the greatest element is found
/// along the only axis, and integers are reduced along it.
fn reduction(reduction: Reduction, reduced: &args::Reduced) -> (Box<dyn Case + '_>, args::Samples) {
    let args::Reduced { elements, shape, axis, dtype, samples } = reduced;
    let dtype = *dtype;
    let along_axis = |shape| AlongAxis { along: Along::Reduction(reduction), shape, axis: axis.unwrap_or(0), dtype };
    let case: Box<dyn Case + '_> = match (elements, shape) {
        (&Some(elements), _) if reduction != Reduction::ArgMax && is_float(dtype) => {
            Box::new(OnArrays { arithmetic: Arithmetic::Reduction(reduction), shape: [elements], dtype })
        }
        (Some(elements), _) => Box::new(along_axis(slice::from_ref(elements))),
        (None, shape) => Box::new(along_axis(shape.as_deref().unwrap_or(&[]))),
    };
    (case, *samples)
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
}

fn along_rows(along: Along, rows: &args::Rowwise) -> (Box<dyn Case + '_>, args::Samples) {
    let args::Rowwise { shape, dtype, samples } = rows;
    (Box::new(AlongAxis { along, shape, axis: shape.len().saturating_sub(1), dtype: *dtype }), *samples)
}

/// Halves the longest axis until the shape has at most `most` elements.
fn shrink(shape: &mut [usize], most: usize) {
    while shape.iter().product::<usize>() > most {
        let Some(longest) = shape.iter_mut().max() else { return };
        *longest = longest.div_ceil(2);
    }
}

/// Lists the operations, with the arguments and the sentence that the help has.
fn list(output: &Output) -> Result<()> {
    let operations = args::operations();
    let mut shown = String::new();
    for args::Listed { op, arguments, about } in &operations {
        shown += &format!("{op:13} {arguments:62} {about}\n");
    }
    output.result(&shown, json!({ "operations": operations }))
}
