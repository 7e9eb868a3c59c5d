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
mod tests {
    use super::*;
    use crate::alloc::Caching;
    use crate::driver::StreamHandle;
    use crate::error::ErrorKind;

    #[test]
    fn a_limit_holds_to_the_byte_and_failures_count_nothing() {
        let limit = Limit::new(Caching::simulated(1 << 30), 1000);
        // SAFETY: a simulation has no streams.
        let lane = unsafe { limit.open(StreamHandle(1)) }.unwrap();
        // SAFETY: the lane is open, here and below.
        let alloc = |bytes| unsafe { limit.alloc(&Request::new(bytes, &lane)) };
        let first = alloc(600).unwrap();
        let error = alloc(401).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("401 bytes does not fit beside the 600 bytes in use"), "{error}");
        let second = alloc(400).unwrap();
        for block in [first, second] {
            // SAFETY: `limit` gave it out, and nothing uses it.
            unsafe { limit.free(block, &lane) }.unwrap();
        }
        assert!(alloc(0).is_err());
        assert!(alloc(1000).is_ok());
    }
}
