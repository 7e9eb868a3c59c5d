//! Copies contiguous bytes.

use crate::abi::CopyParams;
use crate::block;
use crate::thread::cache::Cache;
use crate::thread::{self, B8, B128, Global, Word};

/// Moves one access of 16 bytes a thread, and one byte of the tail in the first threads.
///
/// # Safety
///
/// See [`CopyParams`]: both ranges are allocated, aligned to 16 bytes, do not overlap, and no other
/// work writes them.
#[inline(always)]
pub unsafe fn copy<C: Cache<B128>>(params: CopyParams) {
    let width = u64::from(B128::BYTES);
    let (src, dst) = (Global::new(params.src), Global::new(params.dst));
    let lane = block::lane();
    let cache = C::new();
    if lane < params.bytes / width {
        // SAFETY: access `lane` of the whole ones.
        let held = unsafe { cache.load(src.offset(lane * width)) };
        // SAFETY: the same on the other side.
        unsafe { cache.store(dst.offset(lane * width), held) };
    }
    if lane < params.bytes % width {
        let byte = params.bytes / width * width + lane;
        // SAFETY: `byte` is below `bytes`, and after all whole accesses.
        let held = unsafe { B8::load_global(src.offset(byte)) };
        // SAFETY: the same on the other side.
        unsafe { held.store_global(dst.offset(byte)) };
    }
}
