//! Bytes of device memory, and the copies to and from them.

use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::{Result, counted};
use crate::stream::{LastUse, Stream, queue_in_order};

/// An allocation of a device: freed when dropped, and ordered between streams while it lives.
pub(crate) struct Allocation {
    device: Device,
    address: u64,
    bytes: usize,
    last_use: LastUse,
}

impl Allocation {
    /// Allocates; no bytes are address 0 and no call.
    pub(super) fn new(device: &Device, bytes: usize) -> Result<Self> {
        let address = match bytes {
            0 => 0,
            _ => device.driver().alloc(bytes as u64)?,
        };
        Ok(Self { device: device.clone(), address, bytes, last_use: LastUse::default() })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn last_use(&self) -> &LastUse {
        &self.last_use
    }

    /// The stream of the last use, where a copy needs to wait for no other.
    fn stream(&self) -> Stream {
        self.last_use.stream().unwrap_or_else(|| self.device.default_stream().clone())
    }

    /// Queues work on the memory behind all its former uses.
    fn queue(&self, stream: &Stream, work: impl FnOnce(StreamHandle) -> Result<()>) -> Result<()> {
        queue_in_order(stream, [&self.last_use], || work(stream.handle()))
    }

    /// Queues setting all bytes to 0.
    pub(super) fn fill_zero(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the whole of a live allocation.
        self.queue(&self.stream(), |stream| unsafe {
            self.device.driver().fill(self.address, 0, self.bytes as u64, stream)
        })
    }

    /// Overwrites all bytes; returns when they are copied.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads of as many bytes as the allocation has.
    /// - Nobody writes them, nor reads or writes the allocation, during the call.
    pub(super) unsafe fn upload(&self, src: *const u8) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let stream = self.stream();
        // SAFETY: the whole of a live allocation; `src` is valid, as the caller promises, until the wait below is over.
        let queued = self
            .queue(&stream, |handle| unsafe { self.device.driver().copy_h2d(self.address, src, self.bytes, handle) });
        // Also after a failure: a copy that failed in part may still read the caller's memory.
        let done = stream.synchronize();
        queued
            .and(done)
            .map_err(|error| error.while_doing(format_args!("copying {} to the device", counted(self.bytes, "byte"))))
    }

    /// Reads all bytes; returns when they are copied.
    ///
    /// # Safety
    ///
    /// - `dst` is valid for writes of as many bytes as the allocation has.
    /// - Nobody reads or writes them, nor writes the allocation, during the call.
    pub(super) unsafe fn download(&self, dst: *mut u8) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let stream = self.stream();
        // SAFETY: the whole of a live allocation; `dst` is valid, as the caller promises, until the wait below is over.
        let queued = self
            .queue(&stream, |handle| unsafe { self.device.driver().copy_d2h(dst, self.address, self.bytes, handle) });
        // Also after a failure: a copy that failed in part may still write the caller's memory.
        let done = stream.synchronize();
        queued
            .and(done)
            .map_err(|error| error.while_doing(format_args!("copying {} to the host", counted(self.bytes, "byte"))))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        // SAFETY: allocated in `new` by this driver and freed only here; views borrow the buffer, so nothing is queued on it
        // from now on.
        let freed = unsafe { self.device.driver().free(self.address) };
        self.device.context().note_drop(freed, || {
            format!("freeing the buffer of {} at {:#x}", counted(self.bytes, "byte"), self.address)
        });
    }
}
