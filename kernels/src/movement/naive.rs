//! Transposes without a tile: reads along rows, and writes along columns.

use crate::abi::TransposeParams;
use crate::block;
use crate::index::Index;
use crate::thread::Word;
use crate::thread::matrix::{Matrix, Strip};

/// Copies into the transposed view of the destination: neighbouring lanes write elements that are a
/// row apart.
///
/// # Safety
///
/// See [`TransposeParams`]: both matrices are allocated, aligned to the width, and no other work
/// writes them.
#[inline(always)]
pub unsafe fn naive<W: Word, I: Index>(params: TransposeParams) {
    let position = block::tile_position::<I>();
    let src = Strip::<W, I>::new(Matrix::src(&params), position);
    let dst = Strip::<W, I>::new(Matrix::dst(&params).t(), position);
    // SAFETY: as the caller promises.
    let held = unsafe { src.load() };
    // SAFETY: as the caller promises; no two threads have the same strip.
    unsafe { dst.store(|step| held[step as usize]) };
}
