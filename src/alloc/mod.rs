//! Allocators of device memory for buffers: one trait, with the device's own memory as its base.
//!
//! Allocators that reuse freed memory can implement the trait, and so can those that wrap another
//! one to limit, count or log.

pub mod allocate;
pub mod caching;
pub mod replay;
mod upstream;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::{Driver, StreamHandle};
use crate::error::Result;

/// A block of device memory from an allocator. It is not `Clone`, so it is freed once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The first byte, at a multiple of 256.
    pub(crate) address: u64,
    /// At least 1.
    pub(crate) bytes: u64,
}

/// Allocates and frees device memory in the order of streams, so an implementation need not wait
/// for queued work.
///
/// # Errors
///
/// Both methods may also report an earlier asynchronous failure on the device, as [`Driver`]'s do.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side:
///
/// - A block stays valid until it is freed, and shares no byte with another live block. Its address
///   is a multiple of 256, and its `bytes` are exactly the requested number.
/// - Work on the stream that a block was requested for, or on any stream if none was named, may use
///   it at once: it runs after all work that used the same memory before.
pub(crate) unsafe trait Allocate: Send + Sync + fmt::Debug {
    /// Allocates `bytes` bytes, at least 1, with unspecified contents.
    ///
    /// `stream` is the stream whose work uses the block first, a live stream of the driver whose
    /// memory this is; work on others must first wait for it. With `None`, any stream may use the
    /// block first.
    fn alloc(&self, bytes: u64, stream: Option<StreamHandle>) -> Result<Block>;

    /// Frees a block, even if it returns an error. Work already queued that uses it still runs.
    ///
    /// # Safety
    ///
    /// - [`Allocate::alloc`] of this allocator returned `block`.
    /// - All work that uses the block has run, or is queued on `last_use`, or `last_use` waits for
    ///   it. `None` means that no queued work uses it. The stream is live.
    /// - No work queued from now on uses the block.
    unsafe fn free(&self, block: Block, last_use: Option<StreamHandle>) -> Result<()>;
}

/// Locks; a panic elsewhere left the state whole, because no critical section unwinds in between.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver's own memory: every block is an allocation of the driver.
#[derive(Debug)]
pub(crate) struct DriverMemory(Arc<dyn Driver>);

impl DriverMemory {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self(driver)
    }
}

// SAFETY: the driver promises for its allocations what the trait asks of blocks; it frees after all
// queued work, so new allocations have no former uses, on any stream.
unsafe impl Allocate for DriverMemory {
    fn alloc(&self, bytes: u64, _stream: Option<StreamHandle>) -> Result<Block> {
        Ok(Block { address: self.0.alloc(bytes)?, bytes })
    }

    unsafe fn free(&self, block: Block, _last_use: Option<StreamHandle>) -> Result<()> {
        // SAFETY: `alloc` got the address from this driver; the caller promises that no work queued
        // from now on uses it, and a block is freed once.
        unsafe { self.0.free(block.address) }
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::driver::Memory;
    use crate::driver::soft::{Config, Soft};

    #[test]
    fn blocks_of_the_driver_go_back_to_it() {
        let driver = Arc::new(Soft::with_config(Config { memory_bytes: 1 << 20, ..Config::default() }));
        let memory = DriverMemory::new(Arc::clone(&driver) as Arc<dyn Driver>);
        let block = memory.alloc(1000, None).unwrap();
        assert_eq!((block.bytes, block.address % 256), (1000, 0));
        assert_eq!(Memory::memory(&*driver).unwrap().0, (1 << 20) - 1000);
        // SAFETY: nothing uses the block.
        unsafe { memory.free(block, None) }.unwrap();
        assert_eq!(Memory::memory(&*driver).unwrap().0, 1 << 20);
        assert!(memory.alloc(1 << 30, None).is_err());
    }
}
