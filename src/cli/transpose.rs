//! `warpstride transpose IN.npy OUT.npy`.

use anyhow::Result;
use bytemuck::Pod;
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::ops::{self, Variant};

use super::npy::{Source, Target};
use super::output::{self, Output};
use super::{args, by_width, open};

pub(super) fn run(args: &args::Transpose, backend: Backend, output: &Output) -> Result<()> {
    let source = Source::open(&args.input)?;
    let [rows, cols] = source.matrix()?;
    let dtype = source.dtype;
    let target = Target::create(&args.output, &args.input)?;
    let device = open(backend, output)?;
    by_width!(dtype, T => transpose::<T>(&device, source, target, args.variant, output))?;

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

fn transpose<T: Element + Pod>(
    device: &Device,
    source: Source,
    target: Target,
    variant: Option<Variant>,
    output: &Output,
) -> Result<()> {
    let ([rows, cols], descr, fortran) = (source.matrix()?, source.descr.clone(), source.fortran);
    let progress = output.progress(3);

    progress.doing("reading");
    let mut elements = source.read::<T>()?;
    progress.step();

    progress.doing("transposing");
    let buffer = device.upload(&elements)?;
    // A matrix in Fortran order is its transpose in C order, looked at the other way round.
    let view = if fortran { buffer.view(&[cols, rows])?.t() } else { buffer.view(&[rows, cols])? };
    let mut transposed = device.alloc::<T>(rows * cols)?;
    ops::transpose_into(view, transposed.view_mut(&[cols, rows])?, variant, device.default_stream())?;
    transposed.download_into(&mut elements)?;
    progress.step();

    progress.doing("writing");
    target.save(&descr, &[cols, rows], bytemuck::cast_slice(&elements))?;
    progress.step();
    Ok(())
}
