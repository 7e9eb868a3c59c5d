//! `warpstride permute IN.npy OUT.npy --axes 0,2,1`.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytemuck::Pod;
use serde_json::json;
use warpstride::device::{Backend, Device};
use warpstride::distributed::{Distributed, Gpus, Split};
use warpstride::driver::DriverKind;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::io::{ArrayFile, Destination, npy};
use warpstride::layout::{Layout, fewer_axes};
use warpstride::ops::{self, Align, PermutePlan, Plan, TransposePlan, Variant};
use warpstride::view::{View, ViewMut};

use super::output::{self, Output};
use super::{Refusal, args, by_width, destination, ensure_room, gpus, input, open, streamed};

pub(super) fn run(args: &args::Permute, backend: Backend, output: &Output) -> Result<()> {
    let source = input::first_array(&args.input, output)?;
    let failed = || format!("cannot permute {}", args.input.display());
    let axes = args.axes.of(source.shape()).with_context(failed)?;
    let permuted = in_order(source.shape(), &axes);
    let paths = (&*args.input, &*args.output);
    let (verb, doing, streamed) = ("permute", "permuting", &args.streamed);
    let order = Order { verb, doing, paths, streamed, axes: &axes, variant: None, shows_axes: true };
    order.run(source, &permuted, &format!("{permuted:?}"), backend, output)
}

/// Returns the extents of axes in an order that names each of them once.
fn in_order(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    axes.iter().map(|&axis| shape[axis]).collect()
}

/// The axes of a file's array go into another order, in another file.
pub(super) struct Order<'a> {
    pub(super) verb: &'static str,
    /// As the progress says it.
    pub(super) doing: &'static str,
    /// The files: the input and the output.
    pub(super) paths: (&'a Path, &'a Path),
    pub(super) streamed: &'a args::Streamed,
    pub(super) axes: &'a [usize],
    /// The kernel of a transpose, where one is asked for.
    pub(super) variant: Option<Variant>,
    /// Tells if the document has the axes; a transpose has the variant instead.
    pub(super) shows_axes: bool,
}

impl Order<'_> {
    /// Moves the elements to an array of `shape`, which a note calls `called`.
    pub(super) fn run(
        self,
        source: Box<dyn ArrayFile>,
        shape: &[usize],
        called: &str,
        backend: Backend,
        output: &Output,
    ) -> Result<()> {
        let Self { verb, doing, paths: (from, to), streamed, axes, variant, shows_axes } = self;
        let failed = || format!("cannot {verb} {}", from.display());
        let (extents, dtype, name) = (source.shape().to_vec(), source.dtype(), source.type_name());
        let (stored, order) = fewer_axes(&extents, axes);
        Layout::row_major(&stored).with_context(failed)?;
        let moved = in_order(&stored, &order);
        let target = destination::checked(to, &[from], output)?;
        let device = open(backend, output)?;
        let work = Work { doing, shape, stored: &stored, moved: &moved, device: &device, output };
        let is_streamed = variant.is_none()
            && streamed.gpus.is_none()
            && streamed::is_needed(streamed, &*source, &target, &device, output).with_context(failed)?;
        let (kernel, tiles) = if let Some(count) = streamed.gpus {
            let gpus = Arc::new(gpus::open(&device, count)?);
            // Software GPUs have their memory on the host.
            let on_host = if device.info().kind == DriverKind::Soft { 2 } else { 0 };
            ensure_room(source.bytes(), on_host, &[]).with_context(failed)?;
            ensure_room(source.bytes().div_ceil(count), 0, &[(&device, 2)]).with_context(failed)?;
            by_width!(dtype, T => over_gpus::<T>(source, &target, &work, &order, &gpus)).with_context(failed)?;
            (None, None)
        } else if is_streamed {
            let done = streamed::run(streamed, &*source, axes, &target, &work).with_context(failed)?;
            (done.kernel, Some(done))
        } else {
            ensure_room(source.bytes(), 1, &[(&device, 2)]).with_context(failed)?;
            let kernel = by_width!(dtype, T => {
                rearrange::<T>(source, &target, &work, |view, result| match variant {
                    Some(variant) => transpose(&device, view, result, variant),
                    None => copy(&device, view.permuted_axes(&order)?, result),
                })
            });
            (kernel.with_context(failed)?, None)
        };
        output.note(format!("{}: {called} {name}", to.display()));
        let mut document = json!({
            "device": output::info_json(device.info()),
            // Not every path is text.
            "input": from.display().to_string(),
            "output": to.display().to_string(),
            "shape": extents,
        });
        if shows_axes {
            document["axes"] = json!(axes);
        }
        document["dtype"] = json!(name);
        document["kernel"] = json!(kernel);
        if !shows_axes {
            document["variant"] = json!(variant.map(Variant::name));
        }
        document["gpus"] = json!(streamed.gpus);
        document["device_memory"] = json!(tiles.as_ref().map(|done| done.device_memory));
        document["tiles"] = json!(tiles.as_ref().map(|done| done.tiles));
        document["resumed_tiles"] = json!(tiles.as_ref().map(|done| done.resumed_tiles));
        output.result("", document).with_context(|| format!("{} was written", to.display()))
    }
}

/// Queues a transpose by a kernel, and names it.
fn transpose<T: Element>(
    device: &Device,
    src: View<'_, T>,
    dst: ViewMut<'_, T>,
    variant: Variant,
) -> Result<Option<&'static str>, Error> {
    let plan = TransposePlan::new(src.layout(), dst.layout(), size_of::<T>(), variant)?;
    plan.launch(src, dst, device.default_stream())?;
    Ok(plan.entry())
}

/// Queues a copy, and names the kernel that does it.
fn copy<T: Element>(device: &Device, src: View<'_, T>, dst: ViewMut<'_, T>) -> Result<Option<&'static str>, Error> {
    let (align, target) = (Align::ALLOCATION, ops::Target::of(device));
    let plan = PermutePlan::new(src.layout(), align, dst.layout(), align, size_of::<T>(), target)?;
    let entry = plan.entry();
    plan.launch(src, dst, device.default_stream())?;
    Ok(entry)
}

/// The purpose of moving a file's elements.
pub(super) struct Work<'a> {
    /// As the progress says it.
    pub(super) doing: &'static str,
    /// The shape of the result.
    pub(super) shape: &'a [usize],
    /// The shapes of the source and of the result with axes that layouts can have.
    stored: &'a [usize],
    moved: &'a [usize],
    pub(super) device: &'a Device,
    pub(super) output: &'a Output,
}

/// Reads a file, has its elements moved to an array of another shape, and writes that in C order.
/// Names the kernel that moved them.
fn rearrange<T: Element + Pod>(
    source: Box<dyn ArrayFile>,
    target: &Destination,
    work: &Work<'_>,
    moved: impl FnOnce(View<'_, T>, ViewMut<'_, T>) -> Result<Option<&'static str>, Error>,
) -> Result<Option<&'static str>> {
    let (mut shape, descr, fortran) = (work.stored.to_vec(), source.descr().to_owned(), source.is_fortran());
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
    let kernel = moved(if fortran { view.t() } else { view }, result.view_mut(work.moved)?)?;
    result.download_into(&mut elements)?;
    progress.step();

    progress.doing("writing");
    destination::replace(target, |file| npy::write(file, &descr, work.shape, bytemuck::cast_slice(&elements)))?;
    progress.step();
    Ok(kernel)
}

/// Does the same over several GPUs, of which each reads its own part of the file; an array without
/// axes stays as it is. Each has a part of the source's first axis as it is stored, and then of the
/// result's.
fn over_gpus<T: Element + Pod>(
    source: Box<dyn ArrayFile>,
    target: &Destination,
    work: &Work<'_>,
    order: &[usize],
    gpus: &Arc<Gpus>,
) -> Result<()> {
    let (mut shape, descr, fortran) = (work.stored.to_vec(), source.descr().to_owned(), source.is_fortran());
    if shape.is_empty() {
        let elements = input::elements::<T>(source)?;
        return destination::replace(target, |file| {
            npy::write(file, &descr, work.shape, bytemuck::cast_slice(&elements))
        });
    }
    let mut axes = order.to_vec();
    if fortran {
        shape.reverse();
        axes.iter_mut().for_each(|axis| *axis = shape.len() - 1 - *axis);
    }
    let by_first = |shape: &[usize]| Split::whole(shape)?.cut(0, gpus.len());
    let progress = work.output.progress(3);

    progress.doing("reading");
    let spread = Distributed::<T>::scatter_stored(gpus, &by_first(&shape)?, &*source).map_err(Refusal::of_file)?;
    progress.step();

    progress.doing(work.doing);
    let permuted = spread.permute(axes, &by_first(work.moved)?)?;
    drop(spread);
    gpus.synchronize()?;
    progress.step();

    progress.doing("writing");
    permuted.gather_stored(&npy::header_bytes(&descr, work.shape), target).map_err(Refusal::of_file)?;
    progress.step();
    Ok(())
}
