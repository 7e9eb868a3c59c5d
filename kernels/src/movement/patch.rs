//! Moves small arrays: one element a thread, which waits only for its load.
//!
//! A few kilobytes take latency, not bandwidth: the launch, parameters that come from memory as
//! well, one trip to memory and back. So there are few parameters, no shared memory, no barrier,
//! and enough threads for every multiprocessor. A block is a patch rather than a run, so that both
//! sides use the sectors that it touches.

use crate::abi::{PATCH_BLOCK, PatchParams};
use crate::index::axes;
use crate::index::{Index, Narrow};
use crate::thread::{self, Global, Word};

/// Numbers lanes along the columns first, of which a patch has few.
///
/// # Safety
///
/// See [`PatchParams`]: all elements are allocated, aligned to the width, and no other work writes
/// them.
#[inline(always)]
pub unsafe fn patch<W: Word>(params: PatchParams) {
    // SAFETY: as the caller promises.
    unsafe { patch_of::<W>(params, Narrow::new(thread::block_z())) }
}

/// As [`patch`], for a patch of this image.
///
/// # Safety
///
/// As [`patch`].
#[inline(always)]
pub unsafe fn patch_of<W: Word>(params: PatchParams, image: Narrow) {
    let across_log2 = params.across_log2 as u32 & 31;
    let thread = thread::thread_x();
    let col = Narrow::new((thread::block_x() << across_log2) + (thread & ((1 << across_log2) - 1)));
    let row = Narrow::new(thread::block_y() * (PATCH_BLOCK >> across_log2) + (thread >> across_log2));
    if row < Narrow::truncate(params.rows) && col < Narrow::truncate(params.cols) {
        let stride = |stride: i64| Narrow::truncate(stride as u64);
        let mut src = row * stride(params.src_row_stride) + col * stride(params.src_col_stride);
        let mut dst = row * stride(params.dst_row_stride) + col * stride(params.dst_col_stride);
        // The first image, most often the only one, needs no further parameters.
        if image != Narrow::new(0) {
            src = src + axes::fold(image, &params.src_images);
            dst = dst + axes::fold(image, &params.dst_images);
        }
        let at = |start: u64, offset: Narrow| Global::new(start).offset(offset.bytes::<W>());
        // SAFETY: an element of the source.
        let held = unsafe { W::load_global(at(params.src, src)) };
        // SAFETY: its address in the destination, which no other thread writes.
        unsafe { held.store_global(at(params.dst, dst)) };
    }
}
