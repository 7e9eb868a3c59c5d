//! Transposes through a tile in shared memory: reads and writes along rows.

use crate::abi::{TILE_ROWS, TransposeParams};
use crate::block::{self, Arrangement, Tile};
use crate::index::Index;
use crate::thread::matrix::{Matrix, Strip};
use crate::thread::{self, Word};

/// Writes rows of the tile, and reads columns.
///
/// # Safety
///
/// See [`TransposeParams`]: both matrices are allocated, aligned to the width, and no other work
/// writes them.
#[inline(always)]
pub unsafe fn tile<W: Word, I: Index, A: Arrangement<W>>(params: TransposeParams) {
    // SAFETY: as the caller promises.
    unsafe { tile_at::<W, I, A>(params, block::tile_position()) }
}

/// As [`tile`], for the tile at this row and column, both in tiles.
///
/// # Safety
///
/// As [`tile`].
#[inline(always)]
pub unsafe fn tile_at<W: Word, I: Index, A: Arrangement<W>>(params: TransposeParams, (row, col): (I, I)) {
    let tile = Tile::<W, A>::reserve();
    let (x, y) = (thread::thread_x(), thread::thread_y());
    let src = Strip::<W, I>::new(Matrix::src(&params), (row, col));
    let dst = Strip::<W, I>::new(Matrix::dst(&params), (col, row));

    // SAFETY: as the caller promises.
    let held = unsafe { src.load() };
    for (step, value) in (0..).zip(held) {
        // SAFETY: inside the tile, which is 32 wide and 4 x 8 high, and each thread has its own
        // elements.
        unsafe { tile.write(y + step * TILE_ROWS, x, value) };
    }
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    // SAFETY: inside the tile, which no thread writes any more.
    let turned = |step| unsafe { tile.read(x, y + step * TILE_ROWS) };
    // SAFETY: as the caller promises; no two threads have the same strip.
    unsafe { dst.store(turned) };
}
