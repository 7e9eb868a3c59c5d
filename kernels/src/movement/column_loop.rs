//! Copies one column of a matrix into one row of its transpose.

use crate::abi::{COLUMN_BLOCK, ColumnParams};
use crate::block;
use crate::index::Index;
use crate::thread::{self, Global, Word};

/// Moves one element a thread.
///
/// # Safety
///
/// See [`ColumnParams`]: all elements are allocated and aligned to the width, and no other work
/// writes them.
#[inline(always)]
pub unsafe fn column_loop<W: Word, I: Index>(params: ColumnParams) {
    let i = block::linear::<I>() * I::new(COLUMN_BLOCK) + I::new(thread::thread_x());
    let at = |start: u64, stride: i64| Global::new(start).offset((i * I::truncate(stride as u64)).bytes::<W>());
    if i < I::truncate(params.len) {
        // SAFETY: element `i` of `len`.
        let held = unsafe { W::load_global(at(params.src, params.src_stride)) };
        // SAFETY: the same on the other side.
        unsafe { held.store_global(at(params.dst, params.dst_stride)) };
    }
}
