//! Transposes many small matrices, several of which fill a tile.
//!
//! The tile is that of `vector_tile`, with micro-tiles that are transposed in registers, but they
//! belong to several matrices.
//!
//! Worth, on an H100 (benches/record/2026-11-23-h100/strategies.md, before `packed_quads` was
//! there): bytes 32 x 32 take 1.14 times as long by `packed`, 32 x 16 of two bytes 1.07 times, and
//! five other shapes 0.99 to 1.02 times.
//! 8 x 8 of two bytes are at 0.85 of the copy, by `packed` at 0.87, so `packed` keeps those.

use std::fmt;

use super::{Considered, Launch, Step, Task, Widened, at_least, at_most, axes, divisor, found, grid, power_of_two};
use crate::abi::{Divisor, STACKED_TILE, StackedTileParams, VECTOR_TILE_THREADS, vector_tile_squares};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::layout::walk::Axis;
use crate::ops::units::{VECTOR, WORD};

/// Takes batches of small matrices of whole vectors.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let Widened { canonical, index, .. } = task.widened();
    let (width, walks, constants) = (canonical.width, canonical.axes(), &task.permutes().stacked);
    let lanes = VECTOR / width;
    let no_matrix = "the sides are not matrices and their transposes";
    let row = walks.iter().position(|axis| axis.dst == 1);
    let row = found(row, "axes along which the destination is contiguous", no_matrix)?;
    let col = walks.iter().position(|axis| axis.src == 1);
    let col = found(col, "axes along which the source is contiguous", no_matrix)?;
    let (rows, cols) = (walks[row].extent, walks[col].extent);
    let images = || walks.iter().enumerate().filter(move |&(axis, _)| axis != row && axis != col);
    // The axes are sorted, so this batch axis is the nearest in the destination.
    let (stacked, &Axis { extent, src, dst }) = found(images().next(), "axes of images", "there is one matrix")?;
    // A matrix without gaps continues where its row ends, on both sides.
    let gaps = walks[row].src.abs_diff(cols as isize).max(walks[col].dst.abs_diff(rows as isize));
    at_most(gaps, 0, "elements between the rows of a matrix", "the matrices have gaps")?;
    let starts = images().fold(canonical.src_start | canonical.dst_start, |bits, (_, axis)| {
        bits | axis.src as usize | axis.dst as usize
    });
    let whole = power_of_two((rows | cols | starts).wrapping_mul(width) | task.align());
    at_least(
        whole,
        VECTOR,
        "alignment of all rows' starts and ends in bytes",
        "rows start or end between 16-byte vectors",
    )?;
    let matrix = rows * cols * width;
    let most = if width < WORD { constants.packed_matrix } else { constants.cached_matrix };
    at_least(matrix, most + 1, "bytes of a matrix", "other kernels are faster for matrices this small")?;
    let ceil_log2 = |count: usize| count.next_power_of_two().trailing_zeros();
    let (across_log2, down_log2) = (ceil_log2(cols / lanes), ceil_log2(rows / lanes));
    let micro_tiles = (VECTOR_TILE_THREADS * vector_tile_squares(width as u32)) as usize;
    let stack = micro_tiles.checked_shr(across_log2 + down_log2).unwrap_or(0);
    at_least(stack, 2, "matrices that a tile has room for", "a matrix fills a tile")?;
    let used = (rows / lanes) * (cols / lanes) * extent.min(stack);
    let fewest = micro_tiles.div_ceil(constants.filled_part);
    at_least(used, fewest, "micro-tiles of a tile that matrices fill", "most of a tile would be empty")?;
    let stacks = extent.div_ceil(stack);
    let divisor: fn(u64) -> Divisor = divisor(*index);
    let batch = || images().filter(|&(axis, _)| axis != stacked).map(|(_, axis)| axis);
    let params = StackedTileParams {
        src: (canonical.src_start * width) as u64,
        dst: (canonical.dst_start * width) as u64,
        rows: rows as u64,
        cols: cols as u64,
        across_log2: u64::from(across_log2),
        down_log2: u64::from(down_log2),
        images: extent as u64,
        src_stride: src as i64,
        dst_stride: dst as i64,
        stacks: divisor(stacks as u64),
        rank: batch().count() as u64,
        axes: axes(batch(), divisor),
    };
    let blocks = stacks * batch().map(|axis| axis.extent).product::<usize>();
    let shape = LaunchShape { grid: grid(blocks as u64), block: [VECTOR_TILE_THREADS, 1, 1], dynamic_shared: 0 };
    let entry = task.kernel(STACKED_TILE, width, *index)?;
    let reason = "the sides hold many small matrices of whole 16-byte accesses, several of which fill a tile: transposed in registers";
    *launch = Some(Launch::Stacked(Step { entry, shape, params }));
    Ok(reason)
}

impl fmt::Display for Step<StackedTileParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: StackedTileParams { rows, cols, across_log2, down_log2, .. } } = self;
        let room = counted(1u64 << (across_log2 + down_log2), "square");
        write!(f, "{entry}: {rows} x {cols} elements, room for {room} each, {shape}")
    }
}
