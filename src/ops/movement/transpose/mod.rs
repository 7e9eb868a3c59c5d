//! Transposes matrices: `dst[c, r] = src[r, c]`, from any layout to any layout.

mod plan;
mod variant;

pub use plan::TransposePlan;
pub use variant::Variant;

use crate::array::DeviceArray;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::layout::Layout;
use crate::ops::operand::in_new_array;
use crate::ops::{copy_into, copy_into_raw};
use crate::stream::Stream;
use crate::view::{View, ViewMut};
use plan::check_matrices;

/// Returns the transpose of a matrix of shape `[rows, cols]` in a new buffer, in C order as `[cols,
/// rows]`. It is queued on the default stream of the source's device. The layout chooses the
/// kernel, as in [`PermutePlan::new`](crate::ops::PermutePlan::new).
///
/// # Errors
///
/// `Layout` if `src` does not have two axes; `OutOfMemory` if the result does not fit; else the
/// driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let matrix = device.upload(&[1, 2, 3, 4, 5, 6])?;
/// let transposed = warpstride::ops::transpose(matrix.view(&[2, 3])?)?;
/// assert_eq!(transposed.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn transpose<'a, T: Element>(src: impl Into<View<'a, T>>) -> Result<DeviceArray<T>> {
    let src = src.into();
    let &[rows, cols] = src.shape() else { return Err(not_a_matrix("source", src.layout())) };
    in_new_array(src.device(), &[cols, rows], |dst, stream| transpose_into(src, dst, None, stream))
}

/// Queues the transpose of `src`, of shape `[rows, cols]`, into `dst`, of shape `[cols, rows]`, on
/// `stream`. Without a variant, the layouts choose the kernel, as in
/// [`PermutePlan::new`](crate::ops::PermutePlan::new).
///
/// # Errors
///
/// `Layout` if an operand is not a matrix or the shapes do not fit; `InvalidArgument` if the
/// operands and the stream are not on one device; else the driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::ops::{Variant, transpose_into};
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let matrix = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let mut result = device.alloc_array(&[3, 2])?;
/// for variant in [None, Some(Variant::Naive), Some(Variant::Staggered)] {
///     transpose_into(&matrix, &mut result, variant, device.default_stream())?;
///     assert_eq!(result.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// }
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn transpose_into<'a, T: Element>(
    src: impl Into<View<'a, T>>,
    dst: impl Into<ViewMut<'a, T>>,
    variant: Option<Variant>,
    stream: &Stream,
) -> Result<()> {
    let (src, dst) = (src.into(), dst.into());
    let Some(variant) = variant else {
        check_matrices(src.layout(), dst.layout())?;
        return copy_into(src, dst.t(), stream);
    };
    TransposePlan::new(src.layout(), dst.layout(), size_of::<T>(), variant)?.launch(src, dst, stream)
}

/// Queues a transpose between memory that others own, by addresses: the `CUdeviceptr` and
/// `CUstream` of cudarc, cust or candle.
///
/// `src` and `dst` are the addresses at which the layouts' storages start; `width` is the size of
/// an element in bytes.
///
/// # Errors
///
/// As [`transpose_into`]; `InvalidArgument` also if the width is not 1, 2, 4, 8 or 16, an address
/// is not a multiple of it, or the ranges overlap; `Layout` also if `dst_layout` may reach an
/// element twice.
///
/// # Safety
///
/// [The raw contract](crate::ops#the-raw-contract).
#[expect(clippy::too_many_arguments, reason = "a raw entry point takes what a caller in another language would pass")]
pub unsafe fn transpose_raw(
    device: &Device,
    src: u64,
    src_layout: &Layout,
    dst: u64,
    dst_layout: &Layout,
    width: usize,
    variant: Option<Variant>,
    stream: StreamHandle,
) -> Result<()> {
    let Some(variant) = variant else {
        check_matrices(src_layout, dst_layout)?;
        // SAFETY: as the caller promises.
        return unsafe { copy_into_raw(device, src, src_layout, dst, &dst_layout.t(), width, stream) };
    };
    // SAFETY: as the caller promises.
    unsafe { TransposePlan::new(src_layout, dst_layout, width, variant)?.launch_raw(device, src, dst, stream) }
}

fn not_a_matrix(which: &str, layout: &Layout) -> Error {
    Error::layout(format!(
        "the {which} of a transpose has shape {:?}, of {}; it must have two (index_axis and merge_axes make fewer, \
             insert_axis more)",
        layout.shape(),
        counted(layout.rank(), "axis")
    ))
}
