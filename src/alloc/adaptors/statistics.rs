//! Exact sums, with the peak that a cache does not follow.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::pass_on;
use crate::alloc::{Allocate, Block, Figures, Lane, Request};
use crate::error::Result;

/// An allocator that counts every call, so that its [`Figures`] have the exact peak of the bytes in
/// use. Threads share the counts, which costs tens of nanoseconds a call where several allocate.
#[derive(Debug)]
pub struct Statistics<A> {
    inner: A,
    active: AtomicU64,
    peak: AtomicU64,
    allocations: AtomicU64,
    frees: AtomicU64,
}

impl<A: Allocate> Statistics<A> {
    /// Wraps `inner`.
    pub fn new(inner: A) -> Self {
        let [active, peak, allocations, frees] = [const { AtomicU64::new(0) }; 4];
        Self { inner, active, peak, allocations, frees }
    }
}

// SAFETY: the blocks are the inner allocator's, whose promises hold.
unsafe impl<A: Allocate> Allocate for Statistics<A> {
    pass_on!(lanes rest);

    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block> {
        // SAFETY: as the caller promises.
        let block = unsafe { self.inner.alloc(request) }?;
        let active = self.active.fetch_add(block.bytes, Relaxed) + block.bytes;
        self.peak.fetch_max(active, Relaxed);
        self.allocations.fetch_add(1, Relaxed);
        Ok(block)
    }

    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()> {
        self.active.fetch_sub(block.bytes, Relaxed);
        self.frees.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.inner.free(block, lane) }
    }

    fn figures(&self) -> Figures {
        // Another thread may free between the reads.
        let [active, peak_active, allocations, frees] =
            [&self.active, &self.peak, &self.allocations, &self.frees].map(|sum| sum.load(Relaxed));
        let blocks = allocations.saturating_sub(frees);
        Figures { active, peak_active, allocations, blocks, ..self.inner.figures() }
    }
}
