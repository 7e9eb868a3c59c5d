//! `warpstride bench OP`: one operation on random numbers, verified, and on a GPU timed and held against what the device can do.

mod affine;
mod arithmetic;
mod conversion;
mod axis;
mod permute;
mod report;
mod suite;

use std::slice;

use anyhow::Result;
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::error::{Error, ErrorKind};
use warpstride::ops::{Elementwise, Reduction};

use super::output::Output;
use super::{args, open, tune};
use affine::Mapped;
use arithmetic::{Arithmetic, OnArrays};
use axis::{Along, AlongAxis};
use conversion::Conversion;
use permute::Moved;
use report::{Outcome, Subject};

/// Arrays of at most so many bytes take so little time that their launches matter, which are then timed as well.
const SMALL: usize = 1 << 20;

/// What the arithmetic takes.
const NUMBERS: &str = "--elements N --dtype T";

/// What reductions take.
const REDUCED: &str = "--elements N | --shape S --axis K, --dtype T";

/// What operations on rows take.
const ROWS: &str = "--shape S --dtype T";

/// The operations, what they take, and what they do.
const OPERATIONS: [[&str; 3]; 21] = [
    ["permute", "--shape S --axes A --dtype T", "an array with its axes in another order, into C order"],
    ["affine", "--shape S --axes A --from T --to T", "the same, scaled, shifted and of another type: c = f a + o"],
    ["copy", NUMBERS, "as many bytes and nothing else: the yardstick"],
    ["fill", NUMBERS, "c = s"],
    ["mul", NUMBERS, "c = s a"],
    ["add", NUMBERS, "c = a + b"],
    ["triad", NUMBERS, "c = a + s b"],
    ["nstream", NUMBERS, "c = c + a + s b"],
    ["axpy", NUMBERS, "c = c + s a"],
    ["sum", REDUCED, "elements summed, all or along an axis; halves in single precision"],
    ["dot", NUMBERS, "the products of two arrays summed"],
    ["min", REDUCED, "the least element"],
    ["max", REDUCED, "the greatest element"],
    ["argmax", REDUCED, "where the greatest element lies, the first of several"],
    ["softmax", ROWS, "e^(x - greatest) over their sum, of each row of the last axis"],
    ["mean-variance", ROWS, "mean and variance of each row of the last axis"],
    ["normalize", "--shape N,H,W,C --dtype T", "images of bytes, pixel by pixel, to normalised planes"],
    ["cast", "--elements N --from T --to T", "elements to another type"],
    ["gather", "--shape R,W --dtype T", "rows taken by their indices, all in another order"],
    ["scatter", "--shape R,W --dtype T", "rows put by their indices"],
    ["strided-copy", "--elements N --step K --dtype T", "every Kth element of an array"],
];

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    let Some(operation) = &args.operation else {
        return match args {
            args::Bench { all: true, .. } => suite::run(args, backend, output),
            args::Bench { tune: true, .. } => tune::run(backend, output),
            _ => list(output),
        };
    };
    let axes = operation.axes().map_err(|wrong| Error::new(ErrorKind::InvalidArgument, wrong))?;
    let (measured, samples) = measured(operation, &axes);
    measured.bench(samples, backend, output)
}

/// An operation on arrays of a shape, which is measured alone, or with `--all` in its turn.
trait Measured {
    /// What is done, and the bytes that it takes: what is wrong with it is said before any device is opened.
    ///
    /// # Errors
    ///
    /// Where there is no such operation, or no such array.
    fn subject(&self) -> Result<Subject<'_>>;

    /// Verifies it, and times it where time means something.
    ///
    /// # Errors
    ///
    /// Where there is no room, or the device fails.
    fn outcome(&self, device: &Device, samples: usize, output: &Output) -> Result<Outcome>;

    fn bench(&self, samples: args::Samples, backend: Backend, output: &Output) -> Result<()> {
        let (subject, samples) = (self.subject()?, usize::from(samples.samples));
        let device = open(backend, output)?;
        subject.report(&device, &self.outcome(&device, samples, output)?, samples, output)
    }
}

/// What an operation of the command line is, and how often it is timed.
fn measured<'a>(operation: &'a args::Operation, axes: &'a [usize]) -> (Box<dyn Measured + 'a>, args::Samples) {
    use args::Operation;

    let on_arrays = |arithmetic, numbers: &args::Arithmetic| -> (Box<dyn Measured + 'a>, args::Samples) {
        let args::Arithmetic { elements, dtype, samples } = *numbers;
        (Box::new(OnArrays { arithmetic, shape: [elements], dtype }), samples)
    };
    let elementwise = |operation, numbers| on_arrays(Arithmetic::Elementwise(operation), numbers);
    match operation {
        Operation::Permute { permuted: args::Permuted { shape, dtype, .. }, samples } => {
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

fn indexed(rows: &args::Rows, is_put: bool) -> (Box<dyn Measured + '_>, args::Samples) {
    let args::Rows { shape, dtype, samples } = *rows;
    (Box::new(Conversion::Rows { shape, dtype, is_put }), samples)
}

/// A reduction along an axis, or over all elements. The index of the greatest element is found along the
/// only axis.
fn reduction(reduction: Reduction, reduced: &args::Reduced) -> (Box<dyn Measured + '_>, args::Samples) {
    let args::Reduced { elements, shape, axis, dtype, samples } = reduced;
    let dtype = *dtype;
    let along_axis = |shape| AlongAxis { along: Along::Reduction(reduction), shape, axis: [axis.unwrap_or(0)], dtype };
    let measured: Box<dyn Measured + '_> = match (elements, shape) {
        (&Some(elements), _) if reduction != Reduction::ArgMax => {
            Box::new(OnArrays { arithmetic: Arithmetic::Reduction(reduction), shape: [elements], dtype })
        }
        (Some(elements), _) => Box::new(along_axis(slice::from_ref(elements))),
        (None, shape) => Box::new(along_axis(shape.as_deref().unwrap_or(&[]))),
    };
    (measured, *samples)
}

fn along_rows(along: Along, rows: &args::Rowwise) -> (Box<dyn Measured + '_>, args::Samples) {
    let args::Rowwise { shape, dtype, samples } = rows;
    (Box::new(AlongAxis { along, shape, axis: [shape.len().saturating_sub(1)], dtype: *dtype }), *samples)
}

fn list(output: &Output) -> Result<()> {
    let mut text = String::new();
    for [op, takes, does] in OPERATIONS {
        text += &format!("{op:13} {takes:46} {does}\n");
    }
    let entries = OPERATIONS.map(|[op, takes, does]| json!({ "op": op, "arguments": takes, "about": does }));
    output.result(&text, json!({ "operations": entries }))
}
