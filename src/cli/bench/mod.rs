//! `warpstride bench OP`: one operation on random numbers, verified, and on a GPU timed and held against what the device can do.

mod affine;
mod arithmetic;
mod conversion;
mod permute;
mod report;
mod suite;

use anyhow::Result;
use serde_json::json;
use warpstride::device::Backend;
use warpstride::ops::{Elementwise, Reduction};

use super::output::Output;
use super::{args, permuted_layouts, tune};
use affine::Mapped;
use arithmetic::Arithmetic;
use permute::Moved;

/// Arrays of at most so many bytes take so little time that their launches matter, which are then timed as well.
const SMALL: usize = 1 << 20;

/// What the arithmetic takes.
const NUMBERS: &str = "--elements N --dtype T";

/// The operations, what they take, and what they do.
const OPERATIONS: [[&str; 3]; 17] = [
    ["permute", "--shape S --axes A --dtype T", "an array with its axes in another order, into C order"],
    ["affine", "--shape S --axes A --from T --to T", "the same, scaled, shifted and of another type: c = f a + o"],
    ["copy", NUMBERS, "as many bytes and nothing else: the yardstick"],
    ["fill", NUMBERS, "c = s"],
    ["mul", NUMBERS, "c = s a"],
    ["add", NUMBERS, "c = a + b"],
    ["triad", NUMBERS, "c = a + s b"],
    ["nstream", NUMBERS, "c = c + a + s b"],
    ["axpy", NUMBERS, "c = c + s a"],
    ["sum", NUMBERS, "all elements summed; halves in single precision"],
    ["dot", NUMBERS, "the products of two arrays summed"],
    ["min", NUMBERS, "the least element"],
    ["max", NUMBERS, "the greatest element"],
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
        Operation::Affine(args::Affine { shape, axes, from, to, channels, samples }) => {
            let mapped = Mapped { from: *from, to: *to, shape, axes, channels: *channels };
            return mapped.bench(backend, samples, output);
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
        Operation::Sum(numbers) => (Arithmetic::Reduction(Reduction::Sum), numbers),
        Operation::Dot(numbers) => (Arithmetic::Reduction(Reduction::Dot), numbers),
        Operation::Min(numbers) => (Arithmetic::Reduction(Reduction::Min), numbers),
        Operation::Max(numbers) => (Arithmetic::Reduction(Reduction::Max), numbers),
    };
    arithmetic.bench(numbers, backend, output)
}

fn list(output: &Output) -> Result<()> {
    let mut text = String::new();
    for [op, takes, does] in OPERATIONS {
        text += &format!("{op:9} {takes:35} {does}\n");
    }
    let entries = OPERATIONS.map(|[op, takes, does]| json!({ "op": op, "arguments": takes, "about": does }));
    output.result(&text, json!({ "operations": entries }))
}
