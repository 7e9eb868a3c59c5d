//! Copies any layout to any layout of the same shape: copies, permutes, transposes, slices,
//! reversals, broadcasts.
//!
//! One operation, [`copy_into`], does all of them: a permute is a copy from a view whose axes are
//! permuted. [`permute`] and [`contiguous`] copy into a new buffer.

mod choose;
mod class;
mod explain;
mod launch;
#[cfg(feature = "distributed")]
mod pairs;
mod plan;
mod recent;
mod strategies;
mod task;

#[cfg(feature = "interp")]
pub use explain::Requested;
#[cfg(feature = "distributed")]
pub(crate) use pairs::PairsPlan;
pub use plan::PermutePlan;

pub(in crate::ops) use class::Class;

use crate::array::DeviceArray;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::layout::{Axes, Layout};
use crate::ops::operand::{Operand, check_aligned, check_width};
use crate::ops::{Align, Target, TileShape};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Queues a copy of every element of `src` to the same index of `dst` on `stream`. Both have the
/// same shape. The layouts choose the kernel; see [`PermutePlan`].
///
/// # Errors
///
/// `Layout` if the shapes differ; `InvalidArgument` if the operands and the stream are not on one
/// device; else the driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let source = device.upload(&[1, 2, 3, 4, 5, 6])?;
/// let mut result = device.zeros::<i32>(6)?;
/// // Every second element, backwards, to the odd positions.
/// let from = source.view(&[6])?.slice(0, .., -2)?;
/// let to = result.view_mut(&[6])?.slice(0, 1.., 2)?;
/// warpstride::ops::copy_into(from, to, device.default_stream())?;
/// assert_eq!(result.download()?, [0, 6, 0, 4, 0, 2]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn copy_into<'a, T: Element>(
    src: impl Into<View<'a, T>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    copy(Operand::read("source", &src.into()), Operand::written("destination", &dst.into()), stream)
}

/// Queues the copy. The source and the destination share no element.
fn copy(src: Operand<'_>, dst: Operand<'_>, stream: &Stream) -> Result<()> {
    let (width, target) = (dst.dtype.width(), Target::of(dst.device()));
    recent::copy([src.layout, dst.layout], width, target)?.plan.queue([src, dst], stream)
}

/// Queues [`copy_into`] by the kernels for large arrays, whatever the size, with these tiles.
/// `bench --tune` compares tiles by this; see [`PermutePlan::tuned`].
///
/// # Errors
///
/// As [`copy_into`].
#[doc(hidden)]
pub fn copy_into_tuned<T: Element>(
    src: View<'_, T>,
    dst: ViewMut<'_, T>,
    tiles: &[TileShape],
    stream: &Stream,
) -> Result<()> {
    let (align, target) = (Align::ALLOCATION, Target::of(dst.memory().device()));
    let plan = PermutePlan::tuned(src.layout(), align, dst.layout(), align, size_of::<T>(), target, tiles)?;
    plan.queue([Operand::read("source", &src), Operand::written("destination", &dst)], stream)
}

/// Queues a copy between memory that others own, by addresses: the `CUdeviceptr` and `CUstream` of
/// cudarc, cust or candle.
///
/// `src` and `dst` are the addresses at which the layouts' storages start. The layouts have the
/// same shape. `width` is the size of an element in bytes.
///
/// # Errors
///
/// As [`copy_into`]; `InvalidArgument` also if the width is not 1, 2, 4, 8 or 16, an address is not
/// a multiple of it, or the ranges overlap; `Layout` also if `dst_layout` may reach an element
/// twice, or the bytes overflow.
///
/// # Safety
///
/// [The raw contract](crate::ops#the-raw-contract).
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::driver::StreamHandle;
/// use warpstride::layout::Layout;
///
/// // For memory of others, take `Backend::Cuda` with the number of their GPU.
/// let device = Device::open(Backend::Soft)?;
/// # let pixels = device.upload(b"rgbRGB")?;
/// # let planes = device.zeros::<u8>(6)?;
/// # let [d_pixels, d_planes, their_stream] = [pixels.address(), planes.address(), device.default_stream().handle().0];
/// # device.synchronize()?;
/// // Two device pointers to six bytes each, and a `CUstream`, all as `u64`.
/// let from = Layout::row_major(&[2, 3])?; // pixels of three colours
/// let to = Layout::row_major(&[3, 2])?.t(); // planes, indexed alike: pixel, colour
/// let stream = StreamHandle(their_stream);
/// // SAFETY: both buffers live until the stream is synchronised, and nothing else uses them until
/// // then.
/// unsafe { warpstride::ops::copy_into_raw(&device, d_pixels, &from, d_planes, &to, size_of::<u8>(), stream) }?;
/// # device.default_stream().synchronize()?;
/// # assert_eq!(planes.download()?, b"rRgGbB");
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub unsafe fn copy_into_raw(
    device: &Device,
    src: u64,
    src_layout: &Layout,
    dst: u64,
    dst_layout: &Layout,
    width: usize,
    stream: StreamHandle,
) -> Result<()> {
    check_width(width)?;
    if !dst_layout.is_empty() {
        check_aligned(&[("source", src, width as u64), ("destination", dst, width as u64)])?;
    }
    let (src_align, dst_align) = (Align::of(src), Align::of(dst));
    let plan = PermutePlan::new(src_layout, src_align, dst_layout, dst_align, width, Target::of(device))?;
    // SAFETY: as the caller promises.
    unsafe { plan.launch_raw(device, src, dst, stream) }
}

/// Returns the elements in C order in a new buffer, with their axes in another order: axis `i` of
/// the result is axis `axes[i]` of `src`. The copy is queued on the default stream of the source's
/// device. NumPy: `ascontiguousarray(transpose(src, axes))`.
///
/// # Errors
///
/// `InvalidArgument` if `axes` is not a permutation of the source's axes; `OutOfMemory` if the
/// result does not fit; else the driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let pixels = device.upload(b"rgbRGB")?;
/// let planes = warpstride::ops::permute(pixels.view(&[2, 3])?, [1, 0])?;
/// assert_eq!(planes.to_vec()?, b"rRgGbB");
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn permute<'a, T: Element>(
    src: impl Into<View<'a, T>>,
    axes: impl TryInto<Axes, Error: Into<Error>>,
) -> Result<DeviceArray<T>> {
    let axes = axes.try_into().map_err(Into::into)?;
    in_new_buffer(&src.into(), Some(&axes))
}

/// Returns the elements of a view in C order in a new buffer. The copy is queued on the default
/// stream of the view's device. Torch: `contiguous`, but this always copies.
///
/// # Errors
///
/// `Layout` if the result's bytes overflow; `OutOfMemory` if the result does not fit; else the
/// driver's error.
#[track_caller]
pub fn contiguous<'a, T: Element>(src: impl Into<View<'a, T>>) -> Result<DeviceArray<T>> {
    in_new_buffer(&src.into(), None)
}

/// The allocator lists the buffer as the caller's.
#[track_caller]
fn in_new_buffer<T: Element>(src: &View<'_, T>, axes: Option<&Axes>) -> Result<DeviceArray<T>> {
    let device = src.device();
    let permute = recent::permute(src.layout(), axes, size_of::<T>(), Target::of(device))?;
    let buffer = device.alloc::<T>(permute.result.storage_len())?;
    let operands = [Operand::read("source", src), Operand::made("destination", &buffer, &permute.result)];
    permute.plan.queue(operands, device.default_stream())?;
    Ok(DeviceArray::with_layout(buffer, permute.result))
}
