//! Moves one small matrix by tiles in shared memory, with threads for every multiprocessor.
//!
//! If rows are whole vectors, `small_tile` transposes micro-tiles in registers, one a thread; else
//! `staggered` moves tiles of 32 x 32 elements. Both have the few parameters of a single matrix.
//!
//! Worth, on an H100 (benches/record/2026-11-23-h100/strategies.md): eleven matrices of 1 to 8 MiB
//! take 1.08 to 1.32 times as long by tiles for large arrays.

use std::fmt;

use super::{is_small_allowed, shape};
use crate::abi::{Index, SMALL_TILE, SMALL_TILE_ACROSS, SMALL_TILE_DOWN, STAGGERED, TILE, TILE_ROWS, TransposeParams};
use crate::ops::movement::permute::strategies::{Decline, Launch, Step, Task, Widened, at_least, at_most};
use crate::ops::units::VECTOR;

/// Takes single matrices of a few MiB at most that fill the kernel's tiles.
pub(super) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Result<&'static str, Decline> {
    let widened @ Widened { canonical, len, .. } = task.widened();
    let (width, constants) = (canonical.width, &task.permutes().small);
    is_small_allowed(task, widened)?;
    let many = "the array is not a single matrix";
    let axes = canonical.axes();
    at_least(axes.len(), 2, "axes", many)?;
    at_most(axes.len(), 2, "axes", many)?;
    let (rows, cols) = (axes[0], axes[1]);
    let bytes = len * width;
    at_most(bytes, constants.matrix_bytes, "bytes of a side", "the matrix is large")?;
    let apart = "a side is not contiguous along an axis of its own";
    at_most(rows.dst as usize, 1, "elements from one to the next along the destination's nearest axis", apart)?;
    at_most(cols.src.unsigned_abs(), 1, "elements from one to the next along the source's nearest axis", apart)?;
    at_least(cols.src.unsigned_abs(), 1, "elements from one to the next along the source's nearest axis", apart)?;
    let lanes = VECTOR / width;
    let starts = canonical.src_start | canonical.dst_start | rows.src as usize | cols.dst as usize;
    let is_whole =
        task.align() >= VECTOR && cols.src == 1 && (rows.extent | cols.extent | starts).is_multiple_of(lanes);
    let is_worth = width >= constants.micro_tiles_width || bytes >= constants.micro_tiles_bytes;
    let fills = |[across, down]: [usize; 2]| {
        constants.filled_part * cols.extent >= across && constants.filled_part * rows.extent >= down
    };
    let micro_tiles = [SMALL_TILE_ACROSS, SMALL_TILE_DOWN].map(|micro_tiles| micro_tiles as usize * lanes);
    let (family, tile, block) = if is_whole && is_worth && fills(micro_tiles) {
        (SMALL_TILE, micro_tiles, [SMALL_TILE_ACROSS * SMALL_TILE_DOWN, 1, 1])
    } else {
        (STAGGERED, [TILE as usize; 2], [TILE, TILE_ROWS, 1])
    };
    let fewest = tile.map(|side| side.div_ceil(constants.filled_part));
    let empty = "most of each tile would be empty";
    at_least(cols.extent, fewest[0], "columns", empty)?;
    at_least(rows.extent, fewest[1], "rows", empty)?;
    let params = TransposeParams {
        src: (canonical.src_start * width) as u64,
        dst: (canonical.dst_start * width) as u64,
        rows: rows.extent as u64,
        cols: cols.extent as u64,
        src_row_stride: rows.src as i64,
        src_col_stride: cols.src as i64,
        dst_row_stride: cols.dst as i64,
        dst_col_stride: rows.dst as i64,
    };
    let shape = shape([cols.extent.div_ceil(tile[0]), rows.extent.div_ceil(tile[1]), 1], block)?;
    let step = Step { entry: task.kernel(family, width, Index::Narrow)?, shape, params };
    let reason = "there is one small matrix, which few parameters describe: tiles in shared memory, with threads for every \
                  multiprocessor";
    *launch = Some(Launch::Matrix(step));
    Ok(reason)
}

impl fmt::Display for Step<TransposeParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: TransposeParams { rows, cols, .. } } = self;
        write!(f, "{entry}: 1 of {rows} x {cols} elements, {shape}")
    }
}
