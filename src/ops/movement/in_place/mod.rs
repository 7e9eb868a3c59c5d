//! Transposes matrices within their own memory.

mod plan;

pub use plan::InPlacePlan;

use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::stream::Stream;
use crate::view::ViewMut;

/// Queues the transpose of a matrix of shape `[rows, cols]`, or of each matrix of `[batch, rows,
/// cols]`, in its own memory on `stream`, and returns the view of the result, of shape `[cols,
/// rows]`.
///
/// - A square matrix may have any strides, which the result keeps. It is read and written once.
/// - Any other matrix is contiguous in C order, and so is the result. It is read and written twice,
///   and a third time if its rows and columns have a common divisor. If its rows or columns are too
///   long for shared memory, this takes scratch memory, at most the greatest of 1/64 of the whole,
///   one row or column along the longer axis, and 32 bytes for each index of the shorter one
///   ([`InPlacePlan::scratch_bytes`]). It frees the scratch at the end, which on CUDA waits for the
///   device.
///
/// [`transpose_into`](crate::ops::transpose_into) another buffer moves fewer bytes. An array keeps
/// its own shape; reshape it to the result's.
///
/// # Errors
///
/// `Layout` if the view is not such a matrix; `InvalidArgument` if matrix and stream are not on one
/// device; `OutOfMemory` if the scratch does not fit; else the driver's error, after which the
/// elements may be in any order.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut matrix = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let transposed = warpstride::ops::transpose_in_place(&mut matrix, device.default_stream())?;
/// assert_eq!(transposed.shape(), [3, 2]);
/// matrix.reshape(&[3, 2])?;
/// assert_eq!(matrix.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn transpose_in_place<'a, T: Element>(
    matrix: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<ViewMut<'a, T>> {
    let matrix = matrix.into();
    let plan = InPlacePlan::new(matrix.layout(), size_of::<T>())?;
    let bytes = plan.scratch_bytes();
    if bytes == 0 {
        let none = matrix.no_bytes()?;
        return plan.launch(matrix, none, stream);
    }
    let mut scratch = matrix.device().alloc_on::<u8>(bytes, stream)?;
    plan.launch(matrix, scratch.view_mut(&[bytes])?, stream)
}

/// Queues a transpose in memory that others own, by addresses: the `CUdeviceptr` and `CUstream` of
/// cudarc, cust or candle.
///
/// `matrix` is the address at which the layout's storage starts, `width` the size of an element in
/// bytes, and `scratch` the address of [`InPlacePlan::scratch_bytes`] bytes, or any number if those
/// are 0. [`transpose_in_place`] describes the result's layout.
///
/// # Errors
///
/// As [`transpose_in_place`]; `InvalidArgument` also if the width is not 1, 2, 4, 8 or 16, an
/// address is not a multiple of it, or the scratch overlaps the matrix; `Layout` also if `layout`
/// may reach an element twice.
///
/// # Safety
///
/// [The raw contract](crate::ops#the-raw-contract), for the matrix and the scratch, which are both
/// read and written.
pub unsafe fn transpose_in_place_raw(
    device: &Device,
    matrix: u64,
    layout: &Layout,
    width: usize,
    scratch: u64,
    stream: StreamHandle,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { InPlacePlan::new(layout, width)?.launch_raw(device, matrix, scratch, stream) }
}

/// Returns the error for a matrix that is neither square nor in C order without gaps.
fn not_in_place(layout: &Layout) -> Error {
    Error::layout(format!(
        "{} cannot be transposed in place: unless it is square, a matrix must lie in C order without gaps; use \
             transpose_into another buffer",
        layout.described()
    ))
}
