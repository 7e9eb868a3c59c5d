//! Operations: a pure plan, then a launch.
//!
//! A plan is made from layouts and alignments alone; it can be compared, printed and kept. Launching it allocates nothing and
//! waits for nothing, but the first launch of a kernel, which loads it ([`device`](crate::device) says what that asks of you).
//! Each operation also has a raw entry point, `*_raw`, for memory and streams that others own: a `CUdeviceptr` and a `CUstream`
//! of cust, cudarc or candle are the addresses and handles that it takes.
//!
//! # Memory of others
//!
//! Open the GPU that the memory is on by its number ([`Backend::Cuda`](crate::device::Backend::Cuda)). On CUDA we use the
//! primary context of a device, as nearly everybody does, so that addresses and streams need no translation:
//!
//! | from | address | handle of the stream |
//! |---|---|---|
//! | the driver's API | the `CUdeviceptr` | the `CUstream` as a number |
//! | the runtime's API | the pointer of `cudaMalloc` as a number | the `cudaStream_t` as a number; 0 for none |
//! | cust 0.3 | `buffer.as_device_ptr().as_raw()` | `stream.as_inner() as usize as u64` |
//! | cudarc 0.19 | `interop::cudarc` does it, safely | |
//! | candle 0.10, 0.11 | as cudarc's, which they are: `examples/candle` | |
//! | torch, CuPy, Numba | `data_ptr()`, `data.ptr`, `__cuda_array_interface__` | `cuda_stream`, `ptr` |
//!
//! A raw entry point queues its work and returns. It knows of no other work on the memory: what must run before is queued
//! on the same stream, or the stream waits for it; and whoever reads the result, or frees the memory, waits for the stream.

pub mod affine;
pub mod cast;
mod copy;
pub mod elementwise;
pub mod gather;
pub mod in_place;
pub mod normalize;
pub mod permute;
pub mod probe;
pub mod reduce;
pub mod reduce_axis;
pub mod rowwise;
mod span;
pub mod spin;
mod target;
pub mod transpose;
pub mod tuning;

pub use affine::{Affine, AffinePlan, affine_into, affine_into_raw};
pub use cast::{cast, cast_entry, cast_raw};
pub use elementwise::{Elementwise, Operands, add, axpy, elementwise_raw, fill, fill_raw, mul, nstream, triad};
pub use gather::{IndexedRows, gather_rows, gather_rows_raw, scatter_rows, scatter_rows_raw};
pub use in_place::{InPlacePlan, transpose_in_place, transpose_in_place_raw};
pub use normalize::{Images, Normalization, normalize, normalize_entry, normalize_raw};
pub use permute::{Explanation, PermutePlan, contiguous, copy_into, copy_into_raw, copy_into_tuned, permute};
pub use reduce::{Reduced, Reduction, Scratch, dot, dot_into, max, max_into, min, min_into, reduce_raw, sum, sum_into};
pub use reduce_axis::{
    AxisPlan, AxisReduced, AxisReduction, argmax, argmax_axis, argmax_axis_into, argmax_into, max_axis, max_axis_into,
    min_axis, min_axis_into, reduce_axis_raw, sum_axis, sum_axis_into,
};
pub use rowwise::{
    Moments, Rows, mean_variance, mean_variance_into, mean_variance_raw, softmax, softmax_into, softmax_raw,
};
pub use spin::spin;
pub use target::{Align, Target};
pub use transpose::{TransposePlan, Variant, transpose, transpose_into, transpose_raw};
pub use tuning::TileShape;

use std::ops::Range;

use crate::abi::{EntryId, Family, Index, WIDTHS};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::layout::Layout;
use crate::memory::Allocation;
use crate::stream::{Stream, queue_in_order};

/// Whether the kernels have elements of `width` bytes.
fn check_width(width: usize) -> Result<()> {
    if WIDTHS.contains(&width) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!("elements of {width} were given; they must have 1, 2, 4, 8 or 16", width = counted(width, "byte")),
    ))
}

/// The family's entry for elements of that width.
fn entry(family: &Family, width: usize, index: Index) -> Result<EntryId> {
    family.entry(width, index).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!("there is no kernel for elements of {width}", width = counted(width, "byte")),
        )
    })
}

/// Narrow arithmetic where it reaches every element of a layout from any other, and counts every index.
fn index(layout: &Layout) -> Index {
    let reach = layout.storage_range().len();
    let most = layout.shape().iter().fold(reach.saturating_sub(1), |most, &extent| most.max(extent));
    if most <= i32::MAX as usize { Index::Narrow } else { Index::Wide }
}

/// Whether every byte of the layout's storage can be addressed.
fn check_bytes(which: &str, layout: &Layout, width: usize) -> Result<()> {
    match layout.storage_len().checked_mul(width) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Layout,
            format!(
                "the {which}'s storage of {} of {width} has more bytes than can be addressed ({}); use a layout \
                 of a smaller storage",
                counted(layout.storage_len(), "element"),
                isize::MAX,
                width = counted(width, "byte")
            ),
        )),
    }
}

/// Whether a layout may be written to.
fn check_disjoint(dst: &Layout) -> Result<()> {
    if !dst.overlaps_itself() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Layout,
        format!(
            "the destination's strides {:?} may reach an element of shape {:?} twice; write to a layout that does not overlap \
             itself",
            dst.strides(),
            dst.shape()
        ),
    ))
}

/// Queues `launch` on `stream` behind all former uses of these memories, which must be of the stream's device.
fn queue_among<const N: usize>(
    memories: [&Allocation; N],
    stream: &Stream,
    launch: impl FnOnce() -> Result<()>,
) -> Result<()> {
    for pair in memories.windows(2) {
        pair[1].device().context().check_same(pair[0].device().context(), "the buffers")?;
    }
    if let Some(memory) = memories.first() {
        memory.device().context().check_same(stream.context(), "the buffers and the stream")?;
    }
    queue_in_order(stream, memories.map(Allocation::last_use), launch)
}

/// What can be seen to be wrong with raw addresses, of a source and a destination, each with its layout and the width of its
/// elements: not aligned to them, or one side over the other.
fn check_addresses(source: (u64, &Layout, usize), destination: (u64, &Layout, usize)) -> Result<()> {
    check_aligned(&[("source", source.0, source.2 as u64), ("destination", destination.0, destination.2 as u64)])?;
    let range = |(address, layout, width)| byte_range(address, layout, width);
    check_apart(range(source), range(destination))
}

/// Whether each raw address, of the operand that it is named after, is a multiple of what it is given with.
fn check_aligned(addresses: &[(&str, u64, u64)]) -> Result<()> {
    match addresses.iter().find(|(_, address, align)| !address.is_multiple_of(*align)) {
        None => Ok(()),
        Some((which, address, align)) => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("the {which}'s address {address:#x} is not aligned to {align} bytes; pass a multiple of {align}"),
        )),
    }
}

/// Whether what is read and what is written, in bytes, have none in common.
fn check_apart(source: Range<u128>, destination: Range<u128>) -> Result<()> {
    if source.start >= destination.end || destination.start >= source.end {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "the source, bytes {:#x} to {:#x}, and the destination, bytes {:#x} to {:#x}, overlap; use other memory for the \
             result",
            source.start, source.end, destination.start, destination.end
        ),
    ))
}

/// The bytes from the first to the last that a layout reaches. Wide, because a raw address may be anything.
fn byte_range(address: u64, layout: &Layout, width: usize) -> Range<u128> {
    let elements = layout.storage_range();
    let at = |element: usize| u128::from(address) + element as u128 * width as u128;
    at(elements.start)..at(elements.end)
}
