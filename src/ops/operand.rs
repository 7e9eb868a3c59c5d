//! Checks views and raw addresses against an operation. `span.rs` adds the checks of plans that
//! depend on where contiguous elements start.

use std::ops::Range;

use crate::abi::{EntryId, Family, Index, Key, WIDTHS};
use crate::array::DeviceArray;
use crate::context::{Allocation, Shared, queue_in_order};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, Result, counted, require};
use crate::layout::Layout;
use crate::memory::DeviceBuffer;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A view in the form that the launch of a plan needs. Its storage is aligned as allocations are.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    /// Its name in errors.
    pub(super) name: &'static str,
    /// The type of its elements.
    pub(super) dtype: DType,
    /// The layout of its elements in the storage.
    pub(super) layout: &'a Layout,
    memory: &'a Shared<Allocation>,
    is_written: bool,
}

impl<'a> Operand<'a> {
    /// Makes an operand that is read.
    pub(super) fn read<T: Element>(name: &'static str, view: &'a View<'_, T>) -> Self {
        Self { name, dtype: T::DTYPE, layout: view.layout(), memory: view.memory(), is_written: false }
    }

    /// Makes an operand that is written.
    pub(super) fn written<T: Element>(name: &'static str, view: &'a ViewMut<'_, T>) -> Self {
        Self { name, dtype: T::DTYPE, layout: view.layout(), memory: view.memory(), is_written: true }
    }

    /// Makes an operand that is written first, in a new buffer.
    pub(super) fn made<T: Element>(name: &'static str, buffer: &'a DeviceBuffer<T>, layout: &'a Layout) -> Self {
        Self { name, dtype: T::DTYPE, layout, memory: buffer.memory(), is_written: true }
    }

    /// Returns the same memory with elements of a type under a layout.
    pub(super) fn with<'b>(self, dtype: DType, layout: &'b Layout) -> Operand<'b>
    where
        'a: 'b,
    {
        Operand { dtype, layout, ..self }
    }

    /// The device of the elements.
    #[inline]
    pub(super) fn device(&self) -> &'a Device {
        self.memory.device()
    }

    /// Returns the bytes from the start of the storage to the first element.
    ///
    /// # Errors
    ///
    /// `Layout` if the elements do not lie in C order without gaps.
    pub(super) fn first_byte(&self) -> Result<u64> {
        let Self { name, dtype, layout, is_written, .. } = *self;
        if layout.is_standard_layout() {
            return Ok((layout.offset() * dtype.width()) as u64);
        }
        let (does, instead) = if is_written {
            ("writes", "write to a new array (alloc_array), and copy that to this view (copy_into)")
        } else {
            ("takes", "copy it first (contiguous, copy_into)")
        };
        Err(Error::layout(format!(
            "the elements of the {name} of shape {:?} have strides {:?}, and this operation {does} them in C order without gaps; \
             {instead}",
            layout.shape(),
            layout.strides()
        )))
    }

    /// Checks that it has the planned layout and elements of this width.
    pub(super) fn check(&self, planned: &Layout, width: usize) -> Result<()> {
        let Self { name, dtype, layout, .. } = *self;
        if layout == planned && dtype.width() == width {
            return Ok(());
        }
        let described = |layout: &Layout, width: usize| {
            let (width, placed, offset) = (counted(width, "byte"), layout.described(), layout.offset());
            format!("elements of {width} in {placed} from element {offset} of {}", layout.storage_len())
        };
        Err(Error::layout(format!(
            "the {name} has {}, and the plan was made for {}; make a plan for this {name}",
            described(layout, dtype.width()),
            described(planned, width)
        )))
    }
}

/// Returns a new array of a shape, which `compute` fills on the default stream of the device.
#[track_caller]
pub(super) fn in_new_array<T: Element>(
    device: &Device,
    shape: &[usize],
    compute: impl FnOnce(&mut DeviceArray<T>, &Stream) -> Result<()>,
) -> Result<DeviceArray<T>> {
    let mut result = device.alloc_array::<T>(shape)?;
    compute(&mut result, device.default_stream())?;
    Ok(result)
}

/// Launches a plan at the addresses of its operands' storages.
///
/// A `dyn Fn` makes the compiler build `queue` once for each number of operands.
type Launch<'a, const N: usize> = dyn Fn(&Device, [u64; N], StreamHandle) -> Result<()> + 'a;

/// Queues the launches of a plan on `stream` after all former uses of its operands, which must be
/// on the stream's device.
pub(super) fn queue<const N: usize>(operands: [Operand<'_>; N], stream: &Stream, launch: &Launch<'_, N>) -> Result<()> {
    let memories = operands.map(|operand| operand.memory);
    let Some(device) = shared_device(&memories, stream)? else { return Ok(()) };
    queue_in_order(stream, memories, || launch(device, memories.map(|memory| memory.address()), stream.handle()))
}

/// Checks that operands and stream are on one device. Every launch does; an operation of several
/// launches calls this before the first.
pub(super) fn check_device<const N: usize>(operands: [Operand<'_>; N], stream: &Stream) -> Result<()> {
    shared_device(&operands.map(|operand| operand.memory), stream).map(|_| ())
}

/// Returns the device of memories and stream, which must be one; `None` without memories.
fn shared_device<'a>(memories: &[&'a Shared<Allocation>], stream: &Stream) -> Result<Option<&'a Device>> {
    for pair in memories.windows(2) {
        pair[1].device().context().check_same(pair[0].device().context(), "the buffers")?;
    }
    let Some(last) = memories.last() else { return Ok(None) };
    last.device().context().check_same(stream.context(), "the buffers and the stream")?;
    Ok(Some(last.device()))
}

/// Checks that the kernels support elements of `width` bytes.
pub(crate) fn check_width(width: usize) -> Result<()> {
    if WIDTHS.contains(&width) {
        return Ok(());
    }
    Err(Error::argument(format!(
        "elements of {width} were given; they must have 1, 2, 4, 8 or 16",
        width = counted(width, "byte")
    )))
}

/// Returns the family's entry for elements of this width.
pub(super) fn entry(family: &Family, width: usize, index: Index) -> Result<EntryId> {
    family.entry(width, index).ok_or_else(|| {
        let why = family.gap(Key::width(width).and(Key::index(index))).map_or(String::new(), |why| format!(": {why}"));
        let (family, width) = (family.stem(), counted(width, "byte"));
        Error::argument(format!("{family} has no kernel for elements of {width}{why}"))
    })
}

/// Checks that every byte of the layout's storage has an address.
pub(super) fn check_bytes(which: &str, layout: &Layout, width: usize) -> Result<()> {
    match layout.storage_len().checked_mul(width) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Error::layout(format!(
            "the {which}'s storage of {} of {width} has more bytes than can be addressed ({}); use a layout \
                 of a smaller storage",
            counted(layout.storage_len(), "element"),
            isize::MAX,
            width = counted(width, "byte")
        ))),
    }
}

/// Checks that elements can be copied or mapped, as `done` says, from one layout to another; each
/// has a width.
pub(super) fn check_pair([src, dst]: [&Layout; 2], [from, to]: [usize; 2], done: &str) -> Result<()> {
    check_bytes("source", src, from)?;
    check_bytes("destination", dst, to)?;
    require!(
        src.shape() == dst.shape(),
        Layout,
        "shape {:?} cannot be {done} to shape {:?}; they must be equal",
        src.shape(),
        dst.shape()
    );
    check_disjoint(dst)
}

/// Checks that a layout may be written to.
pub(super) fn check_disjoint(dst: &Layout) -> Result<()> {
    if !dst.overlaps_itself() {
        return Ok(());
    }
    Err(Error::layout(format!(
        "the destination's strides {:?} may reach an element of shape {:?} twice; write to a layout that does not overlap \
             itself",
        dst.strides(),
        dst.shape()
    )))
}

/// Checks that each raw address is a multiple of its power of two. Every raw launch asks, so the
/// answer takes few steps.
#[inline]
pub(super) fn check_aligned(addresses: &[(&str, u64, u64)]) -> Result<()> {
    for &(which, address, align) in addresses {
        if address & (align - 1) != 0 {
            return Err(misaligned(which, address, align));
        }
    }
    Ok(())
}

#[cold]
fn misaligned(which: &str, address: u64, align: u64) -> Error {
    Error::argument(format!(
        "the {which}'s address {address:#x} is not aligned to {align} bytes; pass a multiple of {align}"
    ))
}

/// Checks that a source and a destination share no byte.
#[inline]
pub(super) fn check_apart(source: Range<u128>, destination: Range<u128>) -> Result<()> {
    check_named_apart(["source", "destination"], source, destination)
}

/// Checks that two named operands share no byte.
#[inline]
pub(super) fn check_named_apart(names: [&str; 2], one: Range<u128>, other: Range<u128>) -> Result<()> {
    if are_apart(&one, &other) {
        return Ok(());
    }
    Err(overlapping(names, one, other))
}

/// Returns whether two ranges share no byte.
#[inline]
pub(super) fn are_apart(one: &Range<u128>, other: &Range<u128>) -> bool {
    one.start >= other.end || other.start >= one.end
}

#[cold]
fn overlapping(names: [&str; 2], one: Range<u128>, other: Range<u128>) -> Error {
    Error::argument(format!(
        "the {}, bytes {:#x} to {:#x}, and the {}, bytes {:#x} to {:#x}, overlap; use other memory for the {}",
        names[0], one.start, one.end, names[1], other.start, other.end, names[1]
    ))
}

/// Checks that each written operand shares no byte with the operands that are read and the other
/// written ones.
pub(super) fn check_written_apart(read: &[(&str, Range<u128>)], written: &[(&str, Range<u128>)]) -> Result<()> {
    for (at, (name, range)) in written.iter().enumerate() {
        let others = read.iter().chain(&written[..at]).filter(|(_, taken)| !taken.is_empty() && !range.is_empty());
        for (other, taken) in others {
            check_named_apart([other, name], taken.clone(), range.clone())?;
        }
    }
    Ok(())
}

/// Checks that two operands of these names, each of `bytes` without gaps, are the same memory or
/// share no byte.
pub(super) fn check_same_or_apart(names: [&str; 2], one: u64, other: u64, bytes: u64) -> Result<()> {
    if one == other || one.abs_diff(other) >= bytes {
        return Ok(());
    }
    Err(Error::argument(format!(
        "the {} at {one:#x} overlaps the {} at {other:#x}, and each has {}; pass the same address or memory apart",
        names[0],
        names[1],
        counted(bytes, "byte")
    )))
}

/// Returns the bytes from an address on. Wide integers hold any raw address.
pub(super) fn bytes_from(address: u64, bytes: u128) -> Range<u128> {
    u128::from(address)..u128::from(address) + bytes
}

/// Returns the bytes from the first to the last that a layout reaches.
pub(super) fn byte_range(address: u64, layout: &Layout, width: usize) -> Range<u128> {
    let elements = layout.storage_range();
    let at = |element: usize| u128::from(address) + element as u128 * width as u128;
    at(elements.start)..at(elements.end)
}

/// Checks that two operands have one shape.
pub(super) fn check_shapes(one: &Layout, other: &Layout) -> Result<()> {
    if one.shape() == other.shape() {
        return Ok(());
    }
    Err(Error::layout(format!(
        "the operands have shapes {:?} and {:?}; give views of one shape (split_axis, broadcast and contiguous help)",
        one.shape(),
        other.shape()
    )))
}
