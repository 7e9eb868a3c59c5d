//! `warpstride permute IN.npy OUT.npy --axes 0,2,1`.

use anyhow::{Context, Result};
use bytemuck::Pod;
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan};
use warpstride::view::{View, ViewMut};

use super::output::{self, Output};
use super::{args, by_width, destination, ensure_room, input, open, streamed};

pub(super) fn run(args: &args::Permute, backend: Backend, output: &Output) -> Result<()> {
    let source = input::array(&args.input)?;
    let failed = || format!("cannot permute {}", args.input.display());
    let (shape, dtype, name) = (source.shape().to_vec(), source.dtype(), source.type_name());
    let layout = Layout::row_major(&shape).with_context(failed)?;
    let axes = args.axes.of(&shape).with_context(failed)?;
    let permuted = layout.permuted_axes(&axes).with_context(failed)?;
    let target = destination::checked(&args.output, &[&args.input], output)?;
    let device = open(backend, output)?;
    let work = Work { doing: "permuting", shape: permuted.shape(), device: &device, output };
    let done = if streamed::is_needed(&args.streamed, &*source, &target, &device, output).with_context(failed)? {
        streamed::run(&args.streamed, &*source, &axes, &target, &work).with_context(failed)?
    } else {
        ensure_room(source.bytes(), 1, &[(&device, 2)]).with_context(failed)?;
        by_width!(dtype, T => {
            rearrange::<T>(source, &target, &work, |view, result| copy(&device, view.permuted_axes(&axes)?, result))
        })
        .with_context(failed)?
        .into()
    };

    output.note(format!("{}: {:?} {name}", args.output.display(), permuted.shape()));
    let document = json!({
        "device": output::info_json(device.info()),
        // Not every path is text.
        "input": args.input.display().to_string(),
        "output": args.output.display().to_string(),
        "shape": shape,
        "axes": axes,
        "dtype": name,
        "kernel": done.kernel,
        "device_memory": done.device_memory,
        "tiles": done.tiles,
        "resumed_tiles": done.resumed_tiles,
    });
    output.result("", document).with_context(|| format!("{} was written", args.output.display()))
}

/// Queues a copy, and names the kernel that does it.
pub(super) fn copy<T: Element>(
    device: &Device,
    src: View<'_, T>,
    dst: ViewMut<'_, T>,
) -> Result<Option<&'static str>, Error> {
    let (align, target) = (Align::ALLOCATION, ops::Target::of(device));
    let plan = PermutePlan::new(src.layout(), align, dst.layout(), align, size_of::<T>(), target)?;
    let entry = plan.entry();
    plan.launch(src, dst, device.default_stream())?;
    Ok(entry)
}

/// What a file's elements are moved for.
pub(super) struct Work<'a> {
    /// As the progress says it.
    pub(super) doing: &'static str,
    /// The shape of the result.
    pub(super) shape: &'a [usize],
    pub(super) device: &'a Device,
    pub(super) output: &'a Output,
}

/// Reads a file, has its elements moved to an array of another shape, and writes that in C order.
/// Names the kernel that moved them.
pub(super) fn rearrange<T: Element + Pod>(
    source: Box<dyn ArrayFile>,
    target: &Destination,
    work: &Work<'_>,
    moved: impl FnOnce(View<'_, T>, ViewMut<'_, T>) -> Result<Option<&'static str>, Error>,
) -> Result<Option<&'static str>> {
    let (mut shape, descr, fortran) = (source.shape().to_vec(), source.descr().to_owned(), source.is_fortran());
    let progress = work.output.progress(3);

    progress.doing("reading");
    let mut elements = input::elements::<T>(source)?;
    progress.step();

    progress.doing(work.doing);
    let buffer = work.device.upload(&elements)?;
    if fortran {
        // Fortran order is C order with the axes reversed.
        shape.reverse();
    }
    let view = buffer.view(&shape)?;
    let mut result = work.device.alloc::<T>(elements.len())?;
    let kernel = moved(if fortran { view.t() } else { view }, result.view_mut(work.shape)?)?;
    result.download_into(&mut elements)?;
    progress.step();

    progress.doing("writing");
    destination::replace(target, |file| npy::write(file, &descr, work.shape, bytemuck::cast_slice(&elements)))?;
    progress.step();
    Ok(kernel)
}
