//! The part of a driver for device and host memory, and the copies between them.

use std::ptr::NonNull;

use super::StreamHandle;
use crate::error::Result;

/// The part of a [`Driver`](super::Driver) that allocates, frees, copies and fills. Copies and
/// fills of 0 bytes do nothing, whatever their addresses.
///
/// # Errors
///
/// The errors that [`Driver`](super::Driver) lists for all methods.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side of the contract:
///
/// - A copy or fill that ran, as a successful wait shows, has written all its bytes, and none
///   beyond.
/// - An allocation stays valid until it is freed, holds the requested number of bytes, and shares
///   none with another. Device memory is aligned to 256 bytes; host memory is initialised, and
///   aligned as its method says.
/// - A release lets queued work that uses the memory run first, as its method says.
pub unsafe trait Memory: Send + Sync {
    /// Returns the free and total bytes of device memory.
    fn memory(&self) -> Result<(u64, u64)>;

    /// Resets the persisting lines of the L2 cache for the whole context, other libraries'
    /// included. It acts at once, not in stream order: queued work that asks for such lines makes
    /// them again. Without a reset they outlast gigabytes of traffic. Does nothing on a device
    /// without such lines or without a way to reset them.
    fn reset_persisting_l2(&self) -> Result<()>;

    /// Allocates `bytes` of device memory, aligned to 256 bytes, with unspecified contents. `bytes`
    /// is at least 1.
    fn alloc(&self, bytes: u64) -> Result<u64>;

    /// Frees an allocation; work already queued that uses it runs first. On CUDA this waits for all
    /// work of the device's primary context, including other libraries', and must not happen while
    /// other code captures a stream of that context into a graph. While this driver captures one,
    /// the memory may be freed later, when the last capture ends.
    ///
    /// # Safety
    ///
    /// - [`Memory::alloc`] of this driver returned `address`, which has not been freed since.
    /// - No work queued from now on uses the allocation.
    unsafe fn free(&self, address: u64) -> Result<()>;

    /// Allocates `bytes` of zeroed, page-locked host memory, aligned to at least 64 bytes. `bytes`
    /// is at least 1.
    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Frees page-locked host memory; work already queued that uses it runs first. It waits as
    /// [`Memory::free`] does.
    ///
    /// # Safety
    ///
    /// - [`Memory::alloc_host`] of this driver returned `memory`, which has not been freed since.
    /// - Nothing uses the memory from now on.
    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()>;

    /// Queues a copy of `bytes` bytes from host to device.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads of `bytes` bytes, and no other code writes them, until `stream`
    ///   is synchronised past this copy.
    /// - `dst .. dst + bytes` lies within one live allocation.
    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()>;

    /// Queues a copy of `bytes` bytes from device to host.
    ///
    /// # Safety
    ///
    /// - `dst` is valid for writes of `bytes` bytes, and no other code reads or writes them, until
    ///   `stream` is synchronised past this copy.
    /// - `src .. src + bytes` lies within one live allocation.
    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()>;

    /// Queues a copy of `bytes` bytes within the device.
    ///
    /// # Safety
    ///
    /// - Both ranges lie within live allocations, and they do not overlap.
    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()>;

    /// Queues a fill of `bytes` bytes with `value`.
    ///
    /// # Safety
    ///
    /// - `dst .. dst + bytes` lies within one live allocation.
    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()>;
}
