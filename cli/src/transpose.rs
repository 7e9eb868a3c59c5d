//! `warpstride transpose IN.npy OUT.npy`.

use anyhow::Result;
use warpstride::device::Backend;
use warpstride::error::counted;
use warpstride::io::ArrayFile;

use super::output::Output;
use super::permute::Order;
use super::{args, input, refuse};

pub(super) fn run(args: &args::Transpose, backend: Backend, output: &Output) -> Result<()> {
    let source = input::first_array(&args.input, output)?;
    let [rows, cols] = matrix(&*source)?;
    let args::Transpose { input, output: to, streamed, variant } = args;
    let (verb, doing, paths) = ("transpose", "transposing", (&**input, &**to));
    let order = Order { verb, doing, paths, streamed, axes: &[1, 0], variant: *variant, shows_axes: false };
    order.run(source, &[cols, rows], &format!("{cols} x {rows}"), backend, output)
}

/// Rows and columns of a file's array, which must have two axes.
pub(super) fn matrix(source: &dyn ArrayFile) -> Result<[usize; 2]> {
    match *source.shape() {
        [rows, cols] => Ok([rows, cols]),
        _ => refuse!(
            InvalidArgument,
            "{} has {} and a transpose takes 2; reshape it to rows and columns",
            source.path().display(),
            counted(source.shape().len(), "axis")
        ),
    }
}
