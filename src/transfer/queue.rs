//! Queues the boxes of a copy, after all former uses of its device memory.

use super::boxes::Boxes;
use crate::context::{Allocation, Shared, copies, queue_in_order};
use crate::driver::{Copy3d, Place};
use crate::element::Element;
use crate::error::{Result, counted};
use crate::layout::Layout;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Checks that a device's memory is on the stream's device.
pub(super) fn check_device(memory: &Shared<Allocation>, stream: &Stream) -> Result<()> {
    memory.device().context().check_same(stream.context(), "the device memory and the stream")
}

/// Queues a copy from host to device.
///
/// # Safety
///
/// - The storage of `layout` at `host` is valid for reads, and no other code writes it, until the
///   stream is synchronised past this copy, also if this returns an error.
pub(super) unsafe fn upload<T: Element>(
    stream: &Stream,
    (host, layout): (*const T, Layout),
    dst: &ViewMut<'_, T>,
) -> Result<()> {
    check_device(dst.memory(), stream)?;
    stream.check_not_capturing("a copy from the host")?;
    let boxes = Boxes::plan(&layout, dst.layout(), size_of::<T>())?;
    let places = [Place::Host(host.cast::<u8>().cast_mut()), Place::Device(dst.storage_address())];
    // SAFETY: the caller's promise about the host's storage; the boxes lie within both storages,
    // and the view borrows its memory exclusively, so no row of it is another's.
    unsafe { queue(stream, [dst.memory()], &boxes, places, "to the device") }
}

/// Queues a copy from device to host.
///
/// # Safety
///
/// - The storage of `layout` at `host` is valid for writes, and no other code reads or writes it,
///   until the stream is synchronised past this copy, also if this returns an error.
/// - The layout does not overlap itself.
pub(super) unsafe fn download<T: Element>(
    stream: &Stream,
    src: &View<'_, T>,
    (host, layout): (*mut T, Layout),
) -> Result<()> {
    check_device(src.memory(), stream)?;
    stream.check_not_capturing("a copy to the host")?;
    let boxes = Boxes::plan(src.layout(), &layout, size_of::<T>())?;
    let places = [Place::Device(src.storage_address()), Place::Host(host.cast())];
    // SAFETY: the caller's promises about the host's storage; the boxes lie within both storages.
    unsafe { queue(stream, [src.memory()], &boxes, places, "to the host") }
}

/// Queues a copy within the device.
pub(super) fn copy<T: Element>(stream: &Stream, src: &View<'_, T>, dst: &ViewMut<'_, T>) -> Result<()> {
    check_device(src.memory(), stream)?;
    check_device(dst.memory(), stream)?;
    let boxes = Boxes::plan(src.layout(), dst.layout(), size_of::<T>())?;
    let places = [src.storage_address(), dst.storage_address()].map(Place::Device);
    // SAFETY: the boxes lie within both storages. The destination borrows its elements exclusively,
    // so no row of it shares a byte with another or with the source.
    unsafe { queue(stream, [src.memory(), dst.memory()], &boxes, places, "on the device") }
}

/// Queues boxes from the first place to the second, in the order of the uses of these allocations.
/// An error names their bytes and the `direction`.
///
/// # Safety
///
/// - The boxes lie within the storages at both places. A device's is that of one of the
///   allocations, which are of the stream's device.
/// - The host's, if there is one, is valid, and no other code writes it, or reads it if it is the
///   target, until the stream is synchronised past this copy.
/// - No row of the target shares a byte with another, or with the source.
unsafe fn queue<const N: usize>(
    stream: &Stream,
    memories: [&Shared<Allocation>; N],
    boxes: &Boxes,
    places: [Place; 2],
    direction: &str,
) -> Result<()> {
    if boxes.bytes() == 0 {
        return Ok(());
    }
    let queued = queue_in_order(stream, memories, || {
        // SAFETY: the caller's promises, about one of the boxes.
        boxes.iter(places).try_for_each(|part| unsafe { queue_one(stream, &part) })
    });
    queued.map_err(|error| error.while_doing(format_args!("copying {} {direction}", counted(boxes.bytes(), "byte"))))
}

/// Queues one box. One row of pageable memory of the host may be copied when this returns.
///
/// # Safety
///
/// - As [`Memory::copy_3d`](crate::driver::Memory::copy_3d).
/// - As [`copies::upload`] of the side on the device.
unsafe fn queue_one(stream: &Stream, copy: &Copy3d) -> Result<()> {
    let driver = stream.context().driver();
    let Copy3d { dst, src, width, height: 1, depth: 1 } = *copy else {
        // SAFETY: the caller's promises.
        return unsafe { driver.copy_3d(copy, stream.handle()) };
    };
    match (dst.place, src.place) {
        // SAFETY: the caller's promises, about the only row.
        (Place::Device(dst), Place::Host(src)) => unsafe { copies::upload(stream, dst, src, width) },
        // SAFETY: as above.
        (Place::Host(dst), Place::Device(src)) => unsafe { copies::download(stream, dst, src, width) },
        // SAFETY: as above.
        (Place::Device(dst), Place::Device(src)) => unsafe { driver.copy_d2d(dst, src, width as u64, stream.handle()) },
        // SAFETY: as above; the driver refuses it.
        (Place::Host(_), Place::Host(_)) => unsafe { driver.copy_3d(copy, stream.handle()) },
    }
}
