//! `warpstride transpose IN.npy OUT.npy`.

use anyhow::{Context, Result};
use bytemuck::Pod;
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::ops::{self, Align, PermutePlan, TransposePlan, Variant};

use super::npy::{self, Source};
use super::output::{self, Output};
use super::target::Target;
use super::{args, by_width, ensure_room, open};

pub(super) fn run(args: &args::Transpose, backend: Backend, output: &Output) -> Result<()> {
    let source = Source::open(&args.input)?;
    let [rows, cols] = source.matrix()?;
    let dtype = source.dtype;
    let target = Target::check(&args.output, &args.input)?;
    let device = open(backend, output)?;
    ensure_room(source.bytes, 1, &[(&device, 2)])
        .with_context(|| format!("cannot transpose {}", args.input.display()))?;
    let kernel = by_width!(dtype, T => transpose::<T>(&device, source, &target, args, output))?;

    output.note(format!("{}: {cols} x {rows} {dtype}", args.output.display()));
    let document = json!({
        "device": output::info_json(device.info()),
        // Not every path is text.
        "input": args.input.display().to_string(),
        "output": args.output.display().to_string(),
        "shape": [rows, cols],
        "dtype": dtype.name(),
        "kernel": kernel,
        "variant": args.variant.map(Variant::name),
    });
    output.result("", document).with_context(|| format!("{} was written", args.output.display()))
}

/// Does it, and names the kernel that did.
fn transpose<T: Element + Pod>(
    device: &Device,
    source: Source,
    target: &Target,
    args: &args::Transpose,
    output: &Output,
) -> Result<Option<&'static str>> {
    let ([rows, cols], descr, fortran) = (source.matrix()?, source.descr.clone(), source.fortran);
    let progress = output.progress(3);

    progress.doing("reading");
    let mut elements = source.read::<T>()?;
    progress.step();

    progress.doing("transposing");
    let kernel = turn(device, &mut elements, [rows, cols], fortran, args.variant)
        .with_context(|| format!("cannot transpose {}", args.input.display()))?;
    progress.step();

    progress.doing("writing");
    target.replace(|file| npy::write(file, &descr, &[cols, rows], bytemuck::cast_slice(&elements)))?;
    progress.step();
    Ok(kernel)
}

/// Replaces the elements of a matrix by those of its transpose in C order.
fn turn<T: Element>(
    device: &Device,
    elements: &mut [T],
    [rows, cols]: [usize; 2],
    fortran: bool,
    variant: Option<Variant>,
) -> Result<Option<&'static str>, Error> {
    let buffer = device.upload(elements)?;
    // A matrix in Fortran order is its transpose in C order, looked at the other way round.
    let view = if fortran { buffer.view(&[cols, rows])?.t() } else { buffer.view(&[rows, cols])? };
    let mut transposed = device.alloc::<T>(elements.len())?;
    let result = transposed.view_mut(&[cols, rows])?;
    let (from, to, width) = (view.layout(), result.layout(), size_of::<T>());
    let align = Align::ALLOCATION;
    let kernel = match variant {
        Some(variant) => TransposePlan::new(from, to, width, variant)?.entry(),
        None => PermutePlan::new(from, align, &to.t(), align, width, ops::Target::of(device))?.entry(),
    };
    ops::transpose_into(view, result, variant, device.default_stream())?;
    transposed.download_into(elements)?;
    Ok(kernel)
}
