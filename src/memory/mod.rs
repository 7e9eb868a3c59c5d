//! Typed buffers in device memory.
//!
//! All uses of one buffer are totally ordered, whatever their streams: a buffer remembers the
//! stream of its last use, and a use on another stream makes that stream wait first. So safe code
//! cannot forget a wait or race, and needs events only to measure time. Copies by the methods here
//! return when they are done, and several threads of the host do large ones; [`crate::transfer`]
//! has those that do not wait. Dropping a buffer is safe at any time, also while a stream is
//! captured ([`Stream::capture`]): its memory goes to the device's allocator, in the order of
//! streams, and nothing waits.

mod fresh;
mod host;

pub use crate::host::PinnedMemory;
#[doc(hidden)]
pub use crate::host::Route;
pub use host::{PinnedBuffer, WriteCombined};

use std::fmt;
use std::marker::PhantomData;

use self::fresh::room_for;
#[cfg(feature = "distributed")]
pub(crate) use self::fresh::zeroed;
#[cfg(feature = "pipeline")]
use crate::context::queue_in_order;
use crate::context::{Allocation, Device, Shared, Stream};
use crate::element::{DType, Element};
use crate::error::{Error, Result, counted};

/// A buffer of elements in device memory. An empty buffer makes no driver call.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut buffer = device.upload(&[1, 2, 3, 4, 5, 6])?;
/// assert_eq!(buffer.view(&[2, 3])?.t().strides(), [1, 3]); // no element moved
/// buffer.upload_from(&[6, 5, 4, 3, 2, 1])?;
/// assert_eq!(buffer.download()?, [6, 5, 4, 3, 2, 1]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct DeviceBuffer<T> {
    memory: Shared<Allocation>,
    len: usize,
    of: PhantomData<T>,
}

impl Device {
    /// Allocates a buffer of `len` elements with unspecified values, for use on the default stream
    /// first. See [`Device::alloc_on`].
    ///
    /// # Errors
    ///
    /// As [`Device::alloc_on`].
    #[track_caller]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        self.alloc_on(len, self.default_stream())
    }

    /// Allocates a buffer of `len` elements with unspecified values, for use on `stream` first.
    ///
    /// Any stream may use the buffer. Its memory may have belonged to another buffer, whose work is
    /// queued on `stream`; another stream first waits for that.
    ///
    /// # Errors
    ///
    /// `Layout` if the bytes overflow; `InvalidArgument` if the stream is of another device, or of
    /// another owner that captures it; `OutOfMemory` if the device has too few bytes.
    #[track_caller]
    pub fn alloc_on<T: Element>(&self, len: usize, stream: &Stream) -> Result<DeviceBuffer<T>> {
        self.context().check_same(stream.context(), "the device and the stream")?;
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
        let memory = self.memory(bytes.ok_or_else(|| too_long(len, T::DTYPE))?, stream)?;
        Ok(DeviceBuffer { memory, len, of: PhantomData })
    }

    /// `stream` is of the device.
    #[track_caller]
    fn memory(&self, bytes: usize, stream: &Stream) -> Result<Shared<Allocation>> {
        Ok(Shared::new(Allocation::new(self, stream, bytes)?))
    }

    /// Allocates a buffer of `len` zeros, which are queued on the default stream.
    ///
    /// # Errors
    ///
    /// As [`Device::alloc`].
    #[track_caller]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        let buffer = self.alloc(len)?;
        buffer.memory.fill_zero()?;
        Ok(buffer)
    }

    /// Copies these elements into a new buffer. Returns when they are copied.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if the device has too few bytes; else the error of the copy.
    #[track_caller]
    pub fn upload<T: Element>(&self, elements: &[T]) -> Result<DeviceBuffer<T>> {
        let mut buffer = self.alloc(elements.len())?;
        buffer.upload_from(elements)?;
        Ok(buffer)
    }

    /// Sets how this device copies pageable memory from now on, for tests and measurements.
    #[doc(hidden)]
    pub fn set_route(&self, route: Route) {
        self.context().staging().set_route(route);
    }
}

#[cold]
fn too_long(len: usize, dtype: DType) -> Error {
    let len = counted(len, "element");
    let context = format!("a buffer of {len} of type {dtype} has more bytes than can be addressed");
    Error::layout(context)
}

impl<T: Element> DeviceBuffer<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device address of the first element, aligned to 256 bytes, or 0 for an empty
    /// buffer. It is valid as long as the buffer lives. The buffer does not see work that is queued
    /// by this address alone: the caller must order it after the work that is queued on the stream
    /// of the allocation, and before the drop. An operation on a view may read the bytes between
    /// the view's elements, so work on these needs the order too.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Returns the device of the memory.
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// Returns the elements once all work queued on the buffer has run.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if the host has too few bytes; else the error of the copy or of the work
    /// before it.
    pub fn download(&self) -> Result<Vec<T>> {
        let mut elements: Vec<T> = room_for(self.len)?;
        // SAFETY: the vector has room for `len` elements of `size_of::<T>()` bytes, the buffer's
        // number.
        unsafe { self.memory.download(elements.as_mut_ptr().cast()) }?;
        // SAFETY: the copy has written all of them, and every pattern of bytes is an element.
        unsafe { elements.set_len(self.len) };
        Ok(elements)
    }

    /// Copies the elements into a slice once all work queued on the buffer has run.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the lengths differ; else the error of the copy or of the work before
    /// it.
    pub fn download_into(&self, elements: &mut [T]) -> Result<()> {
        self.check_len(elements.len())?;
        // SAFETY: the slice has the buffer's number of bytes, is borrowed exclusively, and takes
        // any pattern of bytes.
        unsafe { self.memory.download(elements.as_mut_ptr().cast()) }
    }

    /// Overwrites the elements once all work queued on the buffer has run. Returns when they are
    /// copied.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the lengths differ; else the error of the copy or of the work before
    /// it.
    pub fn upload_from(&mut self, elements: &[T]) -> Result<()> {
        self.check_len(elements.len())?;
        // SAFETY: the slice has the buffer's number of bytes, none of them padding, and is
        // borrowed.
        unsafe { self.memory.upload(elements.as_ptr().cast()) }
    }

    /// Makes `stream` the last to use the buffer, after all its former uses.
    #[cfg(feature = "pipeline")]
    pub(crate) fn follow(&self, stream: &Stream) -> Result<()> {
        self.device().context().check_same(stream.context(), "the buffer and the stream")?;
        queue_in_order(stream, [&self.memory], || Ok(()))
    }

    /// Queues an event behind the last use of the buffer. The next use on another stream waits for
    /// that alone, and not for other work that is queued on the former stream by then.
    #[cfg(feature = "pipeline")]
    pub(crate) fn fence(&self) -> Result<()> {
        self.memory.last_use().fence(|| self.device().event())
    }

    fn check_len(&self, len: usize) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        Err(Error::argument(format!(
            "the slice has {len} and the buffer {}; they must have the same number",
            self.len,
            len = counted(len, "element")
        )))
    }

    pub(crate) fn memory(&self) -> &Shared<Allocation> {
        &self.memory
    }
}

impl<T: Element> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("dtype", &T::DTYPE)
            .field("len", &self.len)
            .field("address", &format_args!("{:#x}", self.address()))
            .finish()
    }
}
