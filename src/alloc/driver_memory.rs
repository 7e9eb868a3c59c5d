//! The driver's own memory: every block is an allocation of the driver, plain or of its pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::allocate::{Allocate, Block, Counts, Figures, Lane, Request, Snapshot};
use crate::driver::{Driver, StreamHandle};
use crate::error::{Result, require};

/// An allocator that keeps nothing: every block is an allocation of the driver. On CUDA the free of
/// a plain allocation waits for all work of the device.
#[derive(Debug)]
pub struct DriverMemory {
    driver: Arc<dyn Driver>,
    pool: bool,
    lanes: AtomicU32,
    counts: Counts,
}

impl DriverMemory {
    /// An allocator of plain allocations.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self::of(driver, false)
    }

    /// An allocator of allocations from the driver's pool, if it has one.
    pub fn pool(driver: Arc<dyn Driver>) -> Self {
        Self::of(driver, true)
    }

    fn of(driver: Arc<dyn Driver>, pool: bool) -> Self {
        Self { driver, pool, lanes: AtomicU32::new(0), counts: Counts::default() }
    }
}

// SAFETY: the driver promises for its allocations what the trait asks of blocks. It frees plain
// ones after all queued work, so they have no former uses, on any stream; its pool orders uses by
// streams. Ids of lanes are not used again.
unsafe impl Allocate for DriverMemory {
    fn is_over(&self, driver: &Arc<dyn Driver>) -> bool {
        Arc::ptr_eq(&self.driver, driver)
    }

    unsafe fn open(&self, stream: StreamHandle) -> Result<Lane> {
        Ok(Lane { id: self.lanes.fetch_add(1, Relaxed), stream })
    }

    unsafe fn close(&self, _: &Lane) -> Result<()> {
        Ok(())
    }

    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block> {
        let bytes = request.bytes;
        require!(bytes > 0, InvalidArgument, "a block of 0 bytes was requested; request at least 1");
        let address = match self.pool {
            // SAFETY: the lane is open, as the caller promises, so its stream is live.
            true => unsafe { self.driver.pool_alloc(bytes, request.lane.stream) }?,
            false => self.driver.alloc(bytes)?,
        };
        self.counts.allocated(bytes);
        Ok(Block { address, bytes, fresh: !self.pool, token: 0 })
    }

    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()> {
        self.counts.freed(block.bytes);
        if self.pool {
            // SAFETY: `alloc` got the address from the pool. The lane's stream has all work that
            // uses it, or waits for it, as the caller promises, and a block is freed once.
            return unsafe { self.driver.pool_free(block.address, lane.stream) };
        }
        // SAFETY: `alloc` got the address from this driver; the caller promises that no work queued
        // from now on uses it, and a block is freed once.
        unsafe { self.driver.free(block.address) }
    }

    fn trim(&self, _: u64) -> Result<u64> {
        Ok(0)
    }

    fn figures(&self) -> Figures {
        let counted = self.counts.figures(Figures::default());
        let Figures { active: reserved, peak_active: peak_reserved, allocations, .. } = counted;
        let given_back = self.counts.frees();
        Figures { reserved, peak_reserved, misses: allocations, taken: allocations, given_back, ..counted }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { figures: self.figures(), segments: Vec::new() }
    }
}
