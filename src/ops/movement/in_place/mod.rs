//! Transposes of matrices in the memory where they lie.

mod plan;

pub use plan::InPlacePlan;

use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;
use crate::stream::Stream;
use crate::view::ViewMut;

/// Queues the transpose of a matrix of `[rows, cols]`, or of each of `[batch, rows, cols]`, in its
/// own memory on `stream`, and gives the view of the result, of `[cols, rows]`.
///
/// - A square matrix may have any strides, which the result has too. It is read and written once.
/// - Any other is contiguous in C order, and so is the result. It is read and written twice, and a
///   third time where its rows and columns have a common divisor. Where its rows or columns are too
///   long for shared memory, this takes scratch memory, at most the greatest of 1/64 of the whole,
///   one line of elements along the longer axis, and 32 bytes for each index of the shorter one
///   ([`InPlacePlan::scratch_bytes`]), and gives it back at the end, which on CUDA waits for the
///   device.
///
/// [`transpose_into`](crate::ops::transpose_into) another buffer moves fewer bytes.
///
/// # Errors
///
/// `Layout` where the view is not such a matrix, `InvalidArgument` where matrix and stream are not
/// of one device, `OutOfMemory` where the device has no room for the scratch, and what the driver
/// failed with: then the elements may be in any order.
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
pub fn transpose_in_place<'a, T: Element>(
    matrix: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<ViewMut<'a, T>> {
    let matrix = matrix.into();
    let plan = InPlacePlan::new(matrix.layout(), size_of::<T>())?;
    let mut scratch = matrix.device().alloc::<u8>(plan.scratch_bytes())?;
    let bytes = scratch.view_mut(&[plan.scratch_bytes()])?;
    plan.launch(matrix, bytes, stream)
}

/// Queues a transpose in memory that others own, by addresses: a buffer of cudarc, cust or candle,
/// whose `CUdeviceptr` and `CUstream` these are.
///
/// `matrix` is the address of the storage that `layout` is of, `width` the bytes of an element, and
/// `scratch` the address of [`InPlacePlan::scratch_bytes`] bytes; any where those are 0. The
/// result's layout is as in [`transpose_in_place`].
///
/// # Errors
///
/// As [`transpose_in_place`]; `InvalidArgument` also for a width that is not 1, 2, 4, 8 or 16, an
/// address that is not a multiple of it, or a scratch that overlaps the matrix. `Layout` also where
/// `layout` may reach an element twice.
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

/// That a matrix which is not square lies otherwise than in C order without gaps.
fn not_in_place(layout: &Layout) -> Error {
    Error::new(
        ErrorKind::Layout,
        format!(
            "shape {:?} with strides {:?} cannot be transposed in place: unless it is square, a matrix must lie in C order \
             without gaps; use transpose_into another buffer",
            layout.shape(),
            layout.strides()
        ),
    )
}
