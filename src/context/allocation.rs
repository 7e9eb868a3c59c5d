//! Blocks of device memory, and the copies to and from them.

use std::panic::Location;

use super::home::Home;
use super::last_use::{LastUse, queue_in_order};
use super::{Device, Shared, Stream, copies};
use crate::alloc::{Block, Request};
use crate::error::{Result, counted};

/// A block of device memory. Its uses are ordered between streams, and its drop frees it.
pub(crate) struct Allocation {
    last_use: LastUse,
    /// `None` if there are no bytes.
    block: Option<Block>,
}

impl Allocation {
    /// Allocates `bytes` for use on `stream` first, which is of the same device. Zero bytes have
    /// address 0 and make no driver call.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the stream's owner captures it; else the allocator's error.
    #[inline]
    #[track_caller]
    pub(crate) fn new(device: &Device, stream: &Stream, bytes: usize) -> Result<Self> {
        // A graph's launches come later, and on any stream.
        let stream = if stream.is_capturing() { device.default_stream() } else { stream };
        let block = match bytes {
            0 => None,
            _ => {
                stream.check_owner_runs_it()?;
                let request = Request { bytes: bytes as u64, lane: stream.lane(), site: Location::caller() };
                // SAFETY: the stream is of this device, whose allocator opened its lane, and closes
                // it after the last handle of the stream is gone.
                Some(unsafe { device.context().allocator().alloc(&request) }?)
            }
        };
        let fresh = block.as_ref().is_none_or(|block| block.fresh);
        Ok(Self { last_use: LastUse::new(Home::new(device, stream), fresh), block })
    }

    #[inline]
    pub(crate) fn device(&self) -> &Device {
        self.last_use.home().device()
    }

    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.address)
    }

    /// Returns the number of bytes that were requested.
    fn bytes(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.bytes as usize)
    }

    #[inline]
    pub(crate) fn last_use(&self) -> &LastUse {
        &self.last_use
    }
}

impl Shared<Allocation> {
    /// Returns a stream on which a copy needs no other wait: that of the last use, or the one that
    /// the memory was allocated on.
    fn stream(&self) -> Stream {
        self.last_use.stream()
    }

    /// Queues a fill of all bytes with 0.
    pub(crate) fn fill_zero(&self) -> Result<()> {
        if self.block.is_none() {
            return Ok(());
        }
        let stream = self.stream();
        // SAFETY: the fill covers a whole live allocation.
        queue_in_order(&stream, [self], || unsafe {
            self.device().driver().fill(self.address(), 0, self.bytes() as u64, stream.handle())
        })
    }

    /// Overwrites all bytes; returns when they are copied.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads of the allocation's number of bytes.
    /// - No other code writes them, or reads or writes the allocation, during the call.
    pub(crate) unsafe fn upload(&self, src: *const u8) -> Result<()> {
        // SAFETY: the copy covers a whole live allocation, ordered by `copied`; `src` is valid, as
        // the caller promises, until the wait of `copied` is over.
        self.copied("device", |stream, address, bytes| unsafe { copies::upload(stream, address, src, bytes) })
    }

    /// Reads all bytes; returns when they are copied.
    ///
    /// # Safety
    ///
    /// - `dst` is valid for writes of the allocation's number of bytes.
    /// - No other code reads or writes them, or writes the allocation, during the call.
    pub(crate) unsafe fn download(&self, dst: *mut u8) -> Result<()> {
        // SAFETY: the copy covers a whole live allocation, ordered by `copied`; `dst` is valid, as
        // the caller promises, until the wait of `copied` is over.
        self.copied("host", |stream, address, bytes| unsafe { copies::download(stream, dst, address, bytes) })
    }

    /// Queues a copy of all bytes, if there are any, after all former uses, and waits for it.
    fn copied(&self, to: &str, copy: impl FnOnce(&Stream, u64, usize) -> Result<()>) -> Result<()> {
        if self.block.is_none() {
            return Ok(());
        }
        let (stream, bytes) = (self.stream(), self.bytes());
        let queued = queue_in_order(&stream, [self], || copy(&stream, self.address(), bytes));
        // Also after a failure: a copy that failed in part may still use the caller's memory.
        let done = stream.synchronize();
        queued
            .and(done)
            .map_err(|error| error.while_doing(format_args!("copying {} to the {to}", counted(bytes, "byte"))))
    }
}

impl Drop for Allocation {
    #[inline]
    fn drop(&mut self) {
        let Some(block) = self.block.take() else { return };
        let (address, bytes) = (block.address, block.bytes);
        let (home, last) = self.last_use.last();
        let context = home.device().context();
        // SAFETY: the device's allocator gave out the block in `new`. `last_use` is ordered after
        // all uses that the buffer has seen; callers that used its address alone have promised to
        // order that work before the drop. Views borrow the buffer, so no work is queued on it from
        // now on.
        let freed = unsafe { context.allocator().free(block, last.lane()) };
        context.note_drop(freed, || format!("freeing the buffer of {} at {address:#x}", counted(bytes, "byte")));
    }
}
