//! Host memory that the device's copy engines use directly: pinned and write-combined buffers.
//!
//! A copy between pageable memory (a `Vec`) and the device goes through page-locked memory of the
//! device or of the driver, and the host waits meanwhile. A copy of page-locked memory itself runs
//! at the speed of the link while the host and the device do other work. It is scarce, so it comes
//! from a pool of the device, with a limit ([`Device::set_pinned_limit`]) and figures
//! ([`Device::pinned_memory`]). A buffer that is dropped goes back to the pool, which keeps it
//! page-locked for the next one; [`Device::trim_pinned`] gives it back to the system.

mod pinned;
mod write_combined;

pub use pinned::PinnedBuffer;
pub use write_combined::WriteCombined;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::context::{Context, Device};
use crate::driver::HostKind;
use crate::element::Element;
use crate::error::{Error, Result, counted};
use crate::host::{HostBlock, Lent, PinnedMemory};

/// Elements in page-locked memory, which goes back to the pool of its device.
struct Elements<T> {
    /// `None` if there are no bytes.
    block: Option<HostBlock>,
    len: usize,
    context: Arc<Context>,
    of: PhantomData<T>,
}

impl<T: Element> Elements<T> {
    fn new(device: &Device, len: usize, kind: HostKind) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| {
            let (len, dtype) = (counted(len, "element"), T::DTYPE);
            Error::layout(format!("{len} of type {dtype} have more bytes than can be addressed"))
        })?;
        let context = device.context();
        // Memory that was dropped in flight may be enough for this.
        context.reap();
        let block = if bytes == 0 { None } else { Some(context.pinned().take(bytes, kind)?) };
        Ok(Self { block, len, context: Arc::clone(context), of: PhantomData })
    }

    /// Returns the first element: aligned, and valid for reads and writes of `len` initialised
    /// elements as long as `self` lives.
    fn first(&self) -> NonNull<T> {
        // Blocks are aligned to 64 bytes at least, and elements to 16 at most.
        self.block.as_ref().map_or(NonNull::dangling(), |block| block.memory().cast())
    }

    /// Takes out what must outlast a copy; `None` if there is nothing.
    fn into_lent(mut self) -> Option<Lent> {
        self.block.take().map(|block| Lent::Block(block, Arc::clone(self.context.pinned())))
    }
}

impl<T> Drop for Elements<T> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.context.pinned().put(block);
        }
    }
}

impl Device {
    /// Allocates `len` elements of pinned host memory from the device's pool, with unspecified
    /// values: zeros, or what a dropped buffer left. [`Device::pinned_zeros`] writes zeros.
    ///
    /// # Errors
    ///
    /// `Layout` if the bytes overflow; `OutOfMemory` beyond the limit of the pool
    /// ([`Device::set_pinned_limit`]), or if the system locks no more memory.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        Elements::new(self, len, HostKind::Cached).map(PinnedBuffer)
    }

    /// Allocates `len` zeros of pinned host memory.
    ///
    /// # Errors
    ///
    /// As [`Device::pinned`].
    pub fn pinned_zeros<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let mut buffer = self.pinned(len)?;
        buffer.zero();
        Ok(buffer)
    }

    /// Copies these elements into new pinned host memory.
    ///
    /// # Errors
    ///
    /// As [`Device::pinned`].
    pub fn pinned_from<T: Element>(&self, elements: &[T]) -> Result<PinnedBuffer<T>> {
        let mut buffer = self.pinned(elements.len())?;
        buffer.copy_from_slice(elements);
        Ok(buffer)
    }

    /// Allocates `len` elements of write-combined host memory from the device's pool, with
    /// unspecified values. The program can only write them.
    ///
    /// # Errors
    ///
    /// As [`Device::pinned`].
    pub fn write_combined<T: Element>(&self, len: usize) -> Result<WriteCombined<T>> {
        Elements::new(self, len, HostKind::WriteCombined).map(WriteCombined)
    }

    /// Returns what the pool of page-locked host memory holds.
    pub fn pinned_memory(&self) -> PinnedMemory {
        self.context().reap();
        self.context().pinned().figures()
    }

    /// Sets the most bytes of page-locked host memory that the pool may hold. The default is half
    /// of what the host can give without swapping, asked at the first use.
    ///
    /// With a limit of 0 no memory is page-locked: [`Device::pinned`] fails, and the driver copies
    /// ordinary memory. A limit below what is held takes effect with the next allocation, which
    /// gives cached memory back first; [`Device::trim_pinned`] does so at once.
    pub fn set_pinned_limit(&self, bytes: usize) {
        self.context().pinned().set_limit(bytes);
    }

    /// Gives cached page-locked memory back to the system until the pool holds at most `keep`
    /// bytes, and returns the freed bytes. Memory of live buffers stays. This waits for queued
    /// work.
    ///
    /// # Errors
    ///
    /// The driver's error; the memory is freed nevertheless.
    pub fn trim_pinned(&self, keep: usize) -> Result<usize> {
        self.context().reap();
        self.context().pinned().trim(keep)
    }
}
