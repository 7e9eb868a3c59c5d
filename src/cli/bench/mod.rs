//! `warpstride bench OP`: one operation on random numbers, verified, and on a GPU timed and held against what the device can do.

mod arithmetic;
mod conversion;
mod lines;
mod permute;
mod report;
mod suite;

use anyhow::Result;
use serde_json::json;
use warpstride::device::Backend;
use warpstride::ops::{AxisReduction, Elementwise, Reduction};

use super::output::Output;
use super::{args, permuted_layouts, tune};
use arithmetic::Arithmetic;
use lines::{Along, Lines};
use permute::Moved;

/// Arrays of at most so many bytes take so little time that their launches matter, which are then timed as well.
const SMALL: usize = 1 << 20;

/// What the arithmetic takes.
const NUMBERS: &str = "--elements N --dtype T";

/// What reductions take.
const REDUCED: &str = "--elements N | --shape S --axis K, --dtype T";

/// What operations on rows take.
const ROWS: &str = "--shape S --dtype T";

/// The operations, what they take, and what they do.
const OPERATIONS: [[&str; 3]; 19] = [
    ["permute", "--shape S --axes A --dtype T", "an array with its axes in another order, into C order"],
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
];

pub(super) fn run(args: &args::Bench, backend: Backend, output: &Output) -> Result<()> {
    use args::Operation;

    let Some(operation) = &args.operation else {
        return match args {
            args::Bench { all: true, .. } => suite::run(args, backend, output),
            args::Bench { tune: true, .. } => tune::run(backend, output),
            _ => list(output),
        };
    };
    let (arithmetic, numbers) = match operation {
        Operation::Permute { permuted: args::Permuted { shape, axes, dtype }, samples } => {
            // What is wrong with the shape is said before any device is opened.
            permuted_layouts(shape, axes)?;
            return Moved { op: "permute", dtype: *dtype, shape, axes: Some(axes) }.bench(backend, samples, output);
        }
        Operation::Copy(args::Elements { elements, dtype, samples }) => {
            return Moved { op: "copy", dtype: *dtype, shape: &[*elements], axes: None }
                .bench(backend, samples, output);
        }
        Operation::Normalize(images) => return conversion::normalize(images, backend, output),
        Operation::Cast(cast) => return conversion::cast(cast, backend, output),
        Operation::Gather(rows) => return conversion::rows(rows, false, backend, output),
        Operation::Scatter(rows) => return conversion::rows(rows, true, backend, output),
        Operation::Fill(numbers) => (Arithmetic::Fill, numbers),
        Operation::Mul(numbers) => (Arithmetic::Elementwise(Elementwise::Mul), numbers),
        Operation::Add(numbers) => (Arithmetic::Elementwise(Elementwise::Add), numbers),
        Operation::Triad(numbers) => (Arithmetic::Elementwise(Elementwise::Triad), numbers),
        Operation::Nstream(numbers) => (Arithmetic::Elementwise(Elementwise::NStream), numbers),
        Operation::Axpy(numbers) => (Arithmetic::Elementwise(Elementwise::Axpy), numbers),
        Operation::Sum(reduced) => return reduction(AxisReduction::Sum, reduced, backend, output),
        Operation::Dot(numbers) => (Arithmetic::Reduction(Reduction::Dot), numbers),
        Operation::Min(reduced) => return reduction(AxisReduction::Min, reduced, backend, output),
        Operation::Max(reduced) => return reduction(AxisReduction::Max, reduced, backend, output),
        Operation::Argmax(reduced) => return reduction(AxisReduction::ArgMax, reduced, backend, output),
        Operation::Softmax(rows) => return along_rows(Along::Softmax, rows, backend, output),
        Operation::MeanVariance(rows) => return along_rows(Along::MeanVariance, rows, backend, output),
    };
    arithmetic.bench(numbers, backend, output)
}

/// A reduction over all elements, or along an axis.
fn reduction(reduction: AxisReduction, reduced: &args::Reduced, backend: Backend, output: &Output) -> Result<()> {
    let args::Reduced { elements, shape, axis, dtype, samples } = reduced;
    let over_all = match reduction {
        AxisReduction::Sum => Some(Reduction::Sum),
        AxisReduction::Min => Some(Reduction::Min),
        AxisReduction::Max => Some(Reduction::Max),
        AxisReduction::ArgMax => None,
    };
    let along = Along::Reduction(reduction);
    match (elements, shape, over_all) {
        (_, Some(shape), _) => Lines { along, shape, axis: axis.unwrap_or(0) }.bench(*dtype, *samples, backend, output),
        (&elements, None, Some(over_all)) => {
            let numbers = args::Arithmetic { elements: elements.unwrap_or(0), dtype: *dtype, samples: *samples };
            Arithmetic::Reduction(over_all).bench(&numbers, backend, output)
        }
        (&elements, None, None) => {
            Lines { along, shape: &[elements.unwrap_or(0)], axis: 0 }.bench(*dtype, *samples, backend, output)
        }
    }
}

fn along_rows(along: Along, rows: &args::Rowwise, backend: Backend, output: &Output) -> Result<()> {
    let args::Rowwise { shape, dtype, samples } = rows;
    Lines { along, shape, axis: shape.len().saturating_sub(1) }.bench(*dtype, *samples, backend, output)
}

fn list(output: &Output) -> Result<()> {
    let mut text = String::new();
    for [op, takes, does] in OPERATIONS {
        text += &format!("{op:13} {takes:46} {does}\n");
    }
    let entries = OPERATIONS.map(|[op, takes, does]| json!({ "op": op, "arguments": takes, "about": does }));
    output.result(&text, json!({ "operations": entries }))
}
