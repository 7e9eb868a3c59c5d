//! A limit on the bytes in use.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::pass_on;
use crate::alloc::{Allocate, Block, Lane, Request};
use crate::error::{Result, counted, refuse};

/// An allocator that refuses requests beyond a number of bytes in use.
#[derive(Debug)]
pub struct Limit<A> {
    inner: A,
    bytes: u64,
    used: AtomicU64,
}

impl<A: Allocate> Limit<A> {
    /// Wraps `inner`; at most `bytes` bytes are in use at a time.
    pub fn new(inner: A, bytes: u64) -> Self {
        Self { inner, bytes, used: AtomicU64::new(0) }
    }
}

// SAFETY: the blocks are the inner allocator's, whose promises hold.
unsafe impl<A: Allocate> Allocate for Limit<A> {
    pass_on!(lanes rest figures);

    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block> {
        let within = |used: u64| used.checked_add(request.bytes).filter(|&sum| sum <= self.bytes);
        if let Err(used) = self.used.fetch_update(Relaxed, Relaxed, within) {
            let [bytes, used, limit] = [request.bytes, used, self.bytes].map(|bytes| counted(bytes, "byte"));
            refuse!(
                OutOfMemory,
                "a block of {bytes} does not fit beside the {used} in use within the limit of {limit}; drop some buffers, \
                 or raise the limit"
            );
        }
        // SAFETY: as the caller promises.
        unsafe { self.inner.alloc(request) }.inspect_err(|_| {
            self.used.fetch_sub(request.bytes, Relaxed);
        })
    }

    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()> {
        self.used.fetch_sub(block.bytes, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.inner.free(block, lane) }
    }
}

#[cfg(test)]
mod tests;
