//! `warpstride bench OP`: one operation on random numbers, verified, and on a GPU timed and
//! compared with the ceilings of the device.

pub(crate) mod again;
mod arithmetic;
mod axis;
mod case;
mod conversion;
pub(super) mod drawn;
pub(super) mod listed;
pub(super) mod measure;
mod random;
mod redistribute;
mod suite;

use std::slice;

use crate::export::{json, text};
use anyhow::Result;
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::element::DType;
use warpstride::error::{Error, ErrorKind};
use warpstride::layout::Layout;
use warpstride::ops::{Align, Binary, Elementwise, PermutePlan, Reduction, Target};

use super::output::Output;
use super::{args, number, peaks, runs, tune};
use arithmetic::{Arithmetic, Repeated};
use axis::Along;
use case::{Case, Op};
use measure::Bench;
use random::Source;

/// Most elements of a case on the software GPU, which is soon done with them.
const SMALL: usize = 1 << 14;

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    let Some(operation) = &args.operation else {
        return match args {
            args::Bench { all: true, .. } => suite::run(args, backend, output),
            args::Bench { tune: true, .. } => tune::run(backend, output),
            args::Bench { list_saved: true, .. } => runs::list(output),
            _ => list(output),
        };
    };
    if let args::Operation::Permute(args::Permutes { random, part, cases, file, samples, measure, .. }) = operation {
        let source = match (random, file) {
            (Some(random), _) if *cases => return random::print(*random, *part, output),
            (Some(random), _) => Some(Source::Drawn(*random, *part)),
            (None, file) => file.as_deref().map(listed::read).transpose()?.map(Source::List),
        };
        if let Some(source) = source {
            return random::run(args, &source, *measure, samples.samples.into(), backend, output);
        }
    }
    let axes = operation.axes().map_err(|wrong| Error::new(ErrorKind::InvalidArgument, wrong))?;
    let (case, args::Samples { samples }) = match case_of(operation, &axes) {
        Ok(of_one_gpu) => of_one_gpu,
        Err(spread) => return redistribute::run(args, spread, backend, output),
    };
    let (subject, samples) = (case.subject()?, usize::from(samples));
    let bench = Bench::open(args, Some(&subject.name()), samples, peaks::known, (backend, output))?;
    if let args::Operation::Permute(args::Permutes { measure: true, shape: Some(shape), dtype, .. }) = operation {
        let from = Layout::row_major(shape)?.permuted_axes(&axes)?;
        measure_plan(&bench.device, [&from, &Layout::row_major(from.shape())?], dtype.width())?;
    }
    let run = bench.run(vec![bench.record(subject, || case.prepare(&bench.device))?]);
    bench.kept.finish(&run, text::record(&run, &run.cases[0]), json::document_of_one(&run)?, output)
}

/// Measures the kernels that take a permute, and keeps the fastest in the tuning file. Returns how
/// many times as long the kernel takes that is planned without measurements.
fn measure_plan(device: &Device, [from, to]: [&Layout; 2], width: usize) -> Result<f64> {
    let (align, target) = (Align::ALLOCATION, Target::of(device));
    Ok(PermutePlan::new(from, align, to, align, width, target)?.measure_beside(device)?)
}

/// The operation that was typed, and how often it is timed; the array, if it is spread over several
/// GPUs.
fn case_of<'a>(
    operation: &'a args::Operation,
    axes: &'a [usize],
) -> Result<(Case<'a>, args::Samples), &'a args::Spread> {
    use args::Operation;

    let arithmetic = |arithmetic, args::Arithmetic { elements, dtype, samples }: &'a args::Arithmetic| {
        (Op::Arithmetic(arithmetic), *dtype, slice::from_ref(elements), *samples)
    };
    let elementwise = |operation, numbers| arithmetic(Arithmetic::Elementwise(operation), numbers);
    let rows = |is_put, args::Rows { shape, dtype, samples }: &'a args::Rows| {
        (Op::Rows { is_put }, *dtype, &shape[..], *samples)
    };
    let whole_rows = |along, args::Rowwise { shape, dtype, samples }: &'a args::Rowwise| {
        (Op::Along(along, shape.len().saturating_sub(1)), *dtype, &shape[..], *samples)
    };
    let (op, dtype, shape, samples) = match operation {
        Operation::Permute(args::Permutes { shape, dtype, samples, .. }) => {
            (Op::Permute(axes), *dtype, shape.as_deref().unwrap_or(&[]), *samples)
        }
        Operation::Affine(args::Affine { shape, from, to, channels, samples, .. }) => {
            (Op::Affine { axes, from: *from, channels: *channels }, *to, &shape[..], *samples)
        }
        Operation::Copy(args::Elements { elements, dtype, samples }) => {
            (Op::Copy, *dtype, slice::from_ref(elements), *samples)
        }
        Operation::Normalize(args::Images { shape, dtype, samples }) => (Op::Normalize, *dtype, &shape[..], *samples),
        Operation::Cast(args::Cast { elements, from, to, samples }) => {
            (Op::Cast { from: *from }, *to, slice::from_ref(elements), *samples)
        }
        Operation::StridedCopy(args::Strided { elements: args::Elements { elements, dtype, samples }, step }) => {
            (Op::Strided { step: step.get() }, *dtype, slice::from_ref(elements), *samples)
        }
        Operation::Gather(indexed) => rows(false, indexed),
        Operation::Scatter(indexed) => rows(true, indexed),
        Operation::Fill(numbers) => arithmetic(Arithmetic::Fill, numbers),
        Operation::Mul(numbers) => elementwise(Elementwise::Mul, numbers),
        Operation::Add(numbers) => arithmetic(Arithmetic::Binary(Binary::Add), numbers),
        Operation::Sub(numbers) => arithmetic(Arithmetic::Binary(Binary::Sub), numbers),
        Operation::Multiply(numbers) => arithmetic(Arithmetic::Binary(Binary::Mul), numbers),
        Operation::Div(numbers) => arithmetic(Arithmetic::Binary(Binary::Div), numbers),
        Operation::AddRow(numbers) => arithmetic(Arithmetic::Added(Repeated::Row), numbers),
        Operation::AddColumn(numbers) => arithmetic(Arithmetic::Added(Repeated::Column), numbers),
        Operation::Triad(numbers) => elementwise(Elementwise::Triad, numbers),
        Operation::Nstream(numbers) => elementwise(Elementwise::NStream, numbers),
        Operation::Axpy(numbers) => elementwise(Elementwise::Axpy, numbers),
        Operation::Dot(numbers) => arithmetic(Arithmetic::Dot, numbers),
        Operation::Sum(reduced) => reduction(Reduction::Sum, reduced),
        Operation::Min(reduced) => reduction(Reduction::Min, reduced),
        Operation::Max(reduced) => reduction(Reduction::Max, reduced),
        Operation::Argmax(reduced) => reduction(Reduction::ArgMax, reduced),
        Operation::Softmax(array) => whole_rows(Along::Softmax, array),
        Operation::MeanVariance(array) => whole_rows(Along::MeanVariance, array),
        Operation::Redistribute(spread) => return Err(spread),
    };
    Ok((Case { op, dtype, shape }, samples))
}

/// A reduction along an axis, or over all elements. The index of the greatest element is found
/// along the only axis, and integers are reduced along it.
fn reduction(reduction: Reduction, reduced: &args::Reduced) -> (Op<'_>, DType, &[usize], args::Samples) {
    let args::Reduced { elements, shape, axis, dtype, samples } = reduced;
    let op = match elements {
        Some(_) if reduction != Reduction::ArgMax && number::is_float(*dtype) => {
            Op::Arithmetic(Arithmetic::Reduction(reduction))
        }
        _ => Op::Along(Along::Reduction(reduction), axis.unwrap_or(0)),
    };
    let shape = elements.as_ref().map(slice::from_ref).or(shape.as_deref()).unwrap_or(&[]);
    (op, *dtype, shape, *samples)
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
        shown += &format!("{op:13}  {about}: {arguments}\n");
    }
    output.result(&shown, json!({ "operations": operations }))
}
