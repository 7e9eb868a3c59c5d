//! Buffers of cudarc, on its streams.
//!
//! [`Device::from_cudarc`] opens the GPU of a `CudaContext`: both use its primary context, so
//! addresses and streams of one are good for the other. The operations here are queued on the
//! caller's stream like any call of cudarc's: they wait for what used the buffers on other streams
//! before, and later uses on whichever stream wait for them, by the events that cudarc keeps for
//! each buffer. Nothing is allocated, and nothing waits on the host.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use warpstride::device::Device;
//! use warpstride::interop::cudarc::transpose_into;
//!
//! let context = CudaContext::new(0)?;
//! let stream = context.new_stream()?;
//! let matrix = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // of 2 rows and 3 columns
//! let mut result = stream.alloc_zeros::<f32>(6)?;
//!
//! let device = Device::from_cudarc(&context)?; // once
//! transpose_into(&device, matrix.as_view(), [2, 3], result.as_view_mut(), &stream)?;
//! assert_eq!(stream.clone_dtoh(&result)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! cudarc is of one CUDA version in a program, and linked in one way. Both are yours to choose, or
//! candle's or CubeCL's where they have cudarc:
//!
//! ```toml
//! cudarc = { version = "0.19", features = ["cuda-12080"] }
//! warpstride = { version = "0.2", default-features = false, features = ["cudarc"] }
//! ```
//!
//! By default cudarc loads the driver at run time, and targets the CUDA version of the installed
//! `nvcc`, or else the newest version that it supports.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, CudaView, CudaViewMut, DeviceSlice, DriverError};

use crate::device::{Backend, Device};
use crate::driver::{DriverKind, StreamHandle};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result, counted, require};
use crate::layout::Layout;
use crate::ops;
use crate::stream::Stream;

impl Device {
    /// The GPU of a context of cudarc. Its memory and streams can be used with the functions of
    /// [`interop::cudarc`](crate::interop::cudarc), as long as cudarc keeps them.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the context is not the primary one of its GPU, as `CudaContext::new`
    /// makes it; else those of [`Device::open`].
    pub fn from_cudarc(context: &CudaContext) -> Result<Self> {
        check_primary(context)?;
        // If the number is too large, no such device exists either, and opening it says so.
        Self::open(Backend::Cuda(u32::try_from(context.ordinal()).unwrap_or(u32::MAX)))
    }
}

/// Makes a stream of cudarc usable where this crate takes its own: operations queue on it, and
/// [`measure::time`](crate::roofline::measure::time) measures whatever cudarc launches there. The
/// result keeps cudarc's stream alive. While cudarc captures the stream, operations on it are
/// refused, because cudarc's graph would not keep their memory: capture with [`Stream::capture`],
/// or use [`Device::stream_from_raw`] and keep the memory. Do not begin a capture of the stream
/// while another thread queues work on it.
///
/// # Errors
///
/// `InvalidArgument` where `device` is not the GPU of the stream's context, or that context is not
/// the primary one; and what the driver failed with.
///
/// ```no_run
/// use cudarc::driver::CudaContext;
/// use warpstride::device::Device;
/// use warpstride::interop;
/// use warpstride::roofline::measure;
///
/// let context = CudaContext::new(0)?;
/// let stream = context.new_stream()?;
/// let bytes = 256 << 20; // a few times the L2
/// let (source, mut result) = (stream.alloc_zeros::<u8>(bytes)?, stream.alloc_zeros::<u8>(bytes)?);
///
/// let device = Device::from_cudarc(&context)?; // once
/// let ours = interop::cudarc::stream(&device, &stream)?;
/// // Here a copy; a launch of your kernel is queued in the same place.
/// let timing = measure::time(&device, &ours, 20, || Ok(stream.memcpy_dtod(&source, &mut result)?))?;
/// println!("{:.0} GB/s", timing.gbps(2 * bytes as u64)); // read and written
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn stream(device: &Device, stream: &Arc<CudaStream>) -> Result<Stream> {
    check_device(device, stream.context())?;
    let handle = StreamHandle(stream.cu_stream() as usize as u64);
    // SAFETY: the stream is of the device's context, as checked, and lives as long as this clone.
    unsafe { device.stream_of(handle, Box::new(Arc::clone(stream))) }
}

/// An error of cudarc becomes one of kind `Driver`, so that `?` works in closures that queue its
/// work.
impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        Self::new(ErrorKind::Driver, format!("cudarc failed: {error}; synchronize the stream and try again"))
    }
}

/// Queues a copy of `src`, seen by `src_layout`, to `dst`, seen by `dst_layout`, on `stream`.
/// Elements with equal indices go to one another, so that of a matrix `dst_layout.t()` makes it a
/// transpose. The layouts count from the first element of the slices.
///
/// # Errors
///
/// `Layout` where the shapes differ, a layout is of a larger storage than its slice, or
/// `dst_layout` may reach an element twice. `InvalidArgument` where `device` is not the GPU of the
/// stream's context, that context is not the primary one, or a slice is not of the same
/// `CudaContext` as the stream. And what the driver or cudarc failed with.
pub fn copy_into<T: Element>(
    device: &Device,
    src: CudaView<'_, T>,
    src_layout: &Layout,
    dst: CudaViewMut<'_, T>,
    dst_layout: &Layout,
    stream: &CudaStream,
) -> Result<()> {
    check_storage("source", src.len(), src_layout)?;
    check_storage("destination", dst.len(), dst_layout)?;
    check_device(device, stream.context())?;
    check_same("source", src.stream(), stream)?;
    check_same("destination", dst.stream(), stream)?;

    let queued = {
        // From here `stream` waits for former uses; when the guards are dropped, events behind the
        // launch are recorded.
        let (src, _read) = src.view_ptr(stream);
        let (dst, _written) = dst.view_ptr_mut(stream);
        check_events(stream.context(), "waiting for earlier uses of the buffers")?;
        let handle = StreamHandle(stream.cu_stream() as usize as u64);
        // SAFETY: the layouts lie within the slices, as checked; both are memory of the device's
        // context, and the stream is one of it, as checked. cudarc frees a slice behind the events
        // that the guards record, and orders other work by them. The two share no element: one is
        // borrowed exclusively.
        unsafe { ops::copy_into_raw(device, src, src_layout, dst, dst_layout, size_of::<T>(), handle) }
    };
    queued.and(check_events(stream.context(), "recording the use of the buffers"))
}

/// Queues the transpose of `src`, a matrix of `shape` `[rows, cols]`, into `dst`, of
/// `[cols, rows]`, on `stream`. Both are in C order.
///
/// # Errors
///
/// `Layout` where a slice has not `rows * cols` elements, else as [`copy_into`].
pub fn transpose_into<T: Element>(
    device: &Device,
    src: CudaView<'_, T>,
    shape: [usize; 2],
    dst: CudaViewMut<'_, T>,
    stream: &CudaStream,
) -> Result<()> {
    let [rows, cols] = shape;
    let src_layout = Layout::row_major(&[rows, cols])?;
    let dst_layout = Layout::row_major(&[cols, rows])?;
    check_len("source", src.len(), &src_layout)?;
    check_len("destination", dst.len(), &dst_layout)?;
    copy_into(device, src, &src_layout, dst, &dst_layout.t(), stream)
}

fn check_primary(context: &CudaContext) -> Result<()> {
    require!(
        context.is_primary(),
        InvalidArgument,
        "the CudaContext of device {} is not its primary context, which is the only one that warpstride uses; make it by \
         CudaContext::new",
        context.ordinal()
    );
    Ok(())
}

/// Checks that the device works in this context: the primary one of its ordinal.
fn check_device(device: &Device, context: &CudaContext) -> Result<()> {
    check_primary(context)?;
    let info = device.info();
    require!(
        info.kind == DriverKind::Cuda && u32::try_from(context.ordinal()) == Ok(info.ordinal),
        InvalidArgument,
        "the stream is of CUDA device {} and the device given is {}, number {}; open it by Device::from_cudarc with the \
         stream's context",
        context.ordinal(),
        info.name,
        info.ordinal
    );
    Ok(())
}

/// Checks that cudarc orders uses of the slice against the stream's work: it does within one
/// `CudaContext`, not between two of the same GPU.
fn check_same(which: &str, slice: &CudaStream, stream: &CudaStream) -> Result<()> {
    require!(
        Arc::ptr_eq(slice.context(), stream.context()),
        InvalidArgument,
        "the {which} and the stream are of two CudaContexts; make both from the same Arc<CudaContext>"
    );
    Ok(())
}

/// Returns the error that cudarc could not return when it failed: its waits and records keep their
/// error in the context.
fn check_events(context: &CudaContext, what: &str) -> Result<()> {
    context.check_err().map_err(|error| {
        let told = format!("cudarc failed when {what}, or before: {error}; synchronize the stream and try again");
        Error::new(ErrorKind::Driver, told)
    })
}

fn check_storage(which: &str, len: usize, layout: &Layout) -> Result<()> {
    // Every element that the layout reaches is in its storage.
    require!(
        layout.storage_len() <= len,
        Layout,
        "the {which}'s layout is of a storage of {} and its slice has {len}; make the layout for a storage of the \
         slice's length",
        counted(layout.storage_len(), "element")
    );
    Ok(())
}

fn check_len(which: &str, len: usize, layout: &Layout) -> Result<()> {
    require!(
        layout.len() == len,
        Layout,
        "the {which} of {len} cannot be seen as shape {:?}, which has {}; give a slice of as many elements",
        layout.shape(),
        layout.len(),
        len = counted(len, "element")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_held_to_their_slices() {
        let layout = Layout::new(&[2, 3], &[4, 1], 1, 8).unwrap();
        assert_eq!(check_storage("source", 8, &layout), Ok(()));
        let error = check_storage("source", 7, &layout).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Layout);
        assert!(error.to_string().starts_with("the source's layout is of a storage of 8 elements"), "{error}");
        assert_eq!(check_len("destination", 6, &layout), Ok(()));
        for len in [5, 7] {
            let error = check_len("destination", len, &layout).unwrap_err();
            assert!(error.to_string().starts_with(&format!("the destination of {len} elements")), "{error}");
        }
    }
}
