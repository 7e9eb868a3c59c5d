//! `warpstride transpose IN.npy OUT.npy`.

use anyhow::{Context, Result};
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::error::{Error, counted};
use warpstride::io::ArrayFile;
use warpstride::ops::{Plan, TransposePlan, Variant};
use warpstride::view::{View, ViewMut};

use super::output::{self, Output};
use super::permute::{self, Work};
use super::{args, by_width, destination, ensure_room, input, open, refuse, streamed};

pub(super) fn run(args: &args::Transpose, backend: Backend, output: &Output) -> Result<()> {
    let source = input::array(&args.input)?;
    let [rows, cols] = matrix(&*source)?;
    let (dtype, name) = (source.dtype(), source.type_name());
    let target = destination::checked(&args.output, &[&args.input], output)?;
    let device = open(backend, output)?;
    let failed = || format!("cannot transpose {}", args.input.display());
    let work = Work { doing: "transposing", shape: &[cols, rows], device: &device, output };
    let is_streamed = args.variant.is_none()
        && streamed::is_needed(&args.streamed, &*source, &target, &device, output).with_context(failed)?;
    let done = if is_streamed {
        streamed::run(&args.streamed, &*source, &[1, 0], &target, &work).with_context(failed)?
    } else {
        ensure_room(source.bytes(), 1, &[(&device, 2)]).with_context(failed)?;
        by_width!(dtype, T => {
            permute::rearrange::<T>(source, &target, &work, |view, result| transpose(&device, view, result, args.variant))
        })
        .with_context(failed)?
        .into()
    };

    output.note(format!("{}: {cols} x {rows} {name}", args.output.display()));
    let document = json!({
        "device": output::info_json(device.info()),
        // Not every path is text.
        "input": args.input.display().to_string(),
        "output": args.output.display().to_string(),
        "shape": [rows, cols],
        "dtype": name,
        "kernel": done.kernel,
        "variant": args.variant.map(Variant::name),
        "device_memory": done.device_memory,
        "tiles": done.tiles,
        "resumed_tiles": done.resumed_tiles,
    });
    output.result("", document).with_context(|| format!("{} was written", args.output.display()))
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

/// Queues a transpose, and names the kernel that does it.
fn transpose<T: Element>(
    device: &Device,
    src: View<'_, T>,
    dst: ViewMut<'_, T>,
    variant: Option<Variant>,
) -> Result<Option<&'static str>, Error> {
    let Some(variant) = variant else { return permute::copy(device, src.t(), dst) };
    let plan = TransposePlan::new(src.layout(), dst.layout(), size_of::<T>(), variant)?;
    plan.launch(src, dst, device.default_stream())?;
    Ok(plan.entry())
}
