//! Transposes of many small matrices, of which a tile has several.

use std::fmt;

use crate::abi::{
    Divisor, EntryId, STACKED_QUADS, STACKED_TILE, StackedTileParams, VECTOR_TILE_THREADS, vector_tile_squares,
};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::Align;
use crate::ops::canonical::{Axis as Walk, Canonical};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::tuning::{CACHED_MATRIX, PACKED_MATRIX};
use crate::ops::units::VECTOR;

// Smaller matrices of wide elements are not taken, and must not be.
const _: () = assert!(CACHED_MATRIX >= STACKED_QUADS * VECTOR);

/// A launch of `stacked_tile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stacked {
    pub(super) entry: EntryId,
    pub(super) shape: LaunchShape,
    /// Addresses from the starts of the storages.
    pub(super) params: StackedTileParams,
}

impl Stacked {
    /// The plan, where matrices without gaps on either side hold whole quads, and a tile is filled by several of them.
    pub(super) fn of(canonical: &Canonical, src_align: Align, dst_align: Align) -> Option<Self> {
        let (width, walks) = (canonical.width, canonical.axes());
        let lanes = VECTOR / width;
        let row = walks.iter().position(|axis| axis.dst == 1)?;
        let col = walks.iter().position(|axis| axis.src == 1)?;
        let (rows, cols) = (walks[row].extent, walks[col].extent);
        let images = || walks.iter().enumerate().filter(move |&(axis, _)| axis != row && axis != col);
        // The axes are sorted: these images are the nearest in the destination.
        let (stacked, &Walk { extent, src, dst }) = images().next()?;
        let starts = images().fold(canonical.src_start | canonical.dst_start, |bits, (_, axis)| {
            bits | axis.src as usize | axis.dst as usize
        });
        let is_whole = (rows | cols | starts).is_multiple_of(lanes)
            && src_align.bytes().min(dst_align.bytes()) >= VECTOR as u64
            && walks[row].src == cols as isize
            && walks[col].dst == rows as isize;
        let most = if width < 4 { PACKED_MATRIX } else { CACHED_MATRIX };
        if !is_whole || rows * cols * width <= most {
            return None;
        }
        let ceil_log2 = |count: usize| count.next_power_of_two().trailing_zeros();
        let (across_log2, down_log2) = (ceil_log2(cols / lanes), ceil_log2(rows / lanes));
        let squares = (VECTOR_TILE_THREADS * vector_tile_squares(width as u32)) as usize;
        let stack = squares.checked_shr(across_log2 + down_log2).filter(|&stack| stack > 1)?;
        // Where most of a tile would be empty, others are faster.
        if 4 * (rows / lanes) * (cols / lanes) * extent.min(stack) < squares {
            return None;
        }
        let (index, stacks) = (index(canonical), extent.div_ceil(stack));
        let divisor: fn(u64) -> Divisor = divisor(index);
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
        Some(Self { entry: STACKED_TILE.entry(width, index)?, shape, params })
    }

    pub(super) fn reason(&self) -> &'static str {
        "the sides hold many small matrices of whole 16-byte accesses, several of which fill a tile: turned in registers"
    }
}

impl fmt::Display for Stacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StackedTileParams { rows, cols, across_log2, down_log2, .. } = self.params;
        let room = 1u64 << (across_log2 + down_log2);
        write!(
            f,
            "{}: {rows} x {cols} elements, room for {room} each, {}",
            self.entry,
            self.shape,
            room = counted(room, "square")
        )
    }
}
