//! `warpstride transpose IN.npy OUT.npy`.

use anyhow::{Result, ensure};
use bytemuck::Pod;
use serde_json::json;
use warpstride::device::Backend;
use warpstride::element::Element;
use warpstride::ops;

use super::npy::{Source, Target};
use super::output::{self, Output};
use super::{args, by_width, open};

pub(super) fn run(args: &args::Transpose, backend: Backend, output: &Output) -> Result<()> {
    let source = Source::open(&args.input)?;
    ensure!(
        source.shape.len() == 2,
        "{} has {} axes and a transpose takes 2; reshape it to rows and columns",
        args.input.display(),
        source.shape.len()
    );
    let target = Target::create(&args.output, &args.input)?;
    by_width!(source.dtype, T => transpose::<T>(args, source, target, backend, output))
}

fn transpose<T: Element + Pod>(
    args: &args::Transpose,
    source: Source,
    target: Target,
    backend: Backend,
    output: &Output,
) -> Result<()> {
    let (rows, cols) = (source.shape[0], source.shape[1]);
    let (dtype, descr, fortran) = (source.dtype, source.descr.clone(), source.fortran);
    let device = open(backend, output)?;
    let progress = output.progress(3);

    progress.doing("reading");
    let mut elements = source.read::<T>()?;
    progress.step();

    progress.doing("transposing");
    let buffer = device.upload(&elements)?;
    // A matrix in Fortran order is its transpose in C order, looked at the other way round.
    let view = if fortran { buffer.view(&[cols, rows])?.t() } else { buffer.view(&[rows, cols])? };
    let mut transposed = device.alloc::<T>(rows * cols)?;
    ops::transpose_into(view, transposed.view_mut(&[cols, rows])?, args.variant, device.default_stream())?;
    transposed.download_into(&mut elements)?;
    progress.step();

    progress.doing("writing");
    target.save(&descr, &[cols, rows], bytemuck::cast_slice(&elements))?;
    progress.step();
    drop(progress);

    output.note(format!("{}: {cols} x {rows} {dtype}", args.output.display()));
    output.result(
        "",
        json!({
            "device": output::info_json(device.info()),
            "input": args.input,
            "output": args.output,
            "shape": [rows, cols],
            "dtype": dtype.name(),
            "variant": args.variant.map(|variant| variant.to_string()),
        }),
    )
}
