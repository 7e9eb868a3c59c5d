//! How the tile kernels cut a matrix.

use super::{Tiles, Tuning};
use crate::abi::RAGGED_MARGIN;
use crate::device::Tuned;
use crate::ops::Target;

/// How the tile kernels cut a matrix, for elements of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileShape {
    /// Width of the elements, in bytes.
    pub(super) width: usize,
    /// Base-2 logarithm of the micro-tiles in a tile of whole rows: 128 threads times the number
    /// that each moves. The kernel was compiled for it.
    pub(super) micro_tiles_log2: u32,
    /// Base-2 logarithm of the micro-tiles along a row of the source, if the matrix is large
    /// enough.
    pub(super) across_log2: u32,
    /// Base-2 logarithm of the micro-tiles in a tile of ragged rows. The kernel was compiled for
    /// it. With more shared memory a block it was slower on an H100.
    pub(super) ragged_micro_tiles_log2: u32,
    /// Base-2 logarithm of the micro-tiles along a ragged row of the source, if the matrix is large
    /// enough.
    pub(super) ragged_across_log2: u32,
}

/// The alignment of both ends of the rows of a matrix that is cut into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum RowEnds {
    /// Every row is whole vectors.
    Whole,
    /// Every row is whole vectors, and the L2 cache holds what is written.
    WholeSmall,
    /// Rows start or end between vectors, or between the sectors that are written.
    Ragged,
}

/// The extent of a tile over a matrix, in micro-tiles.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Split {
    /// Base-2 logarithm of the micro-tiles along a row of the source.
    pub(in crate::ops) across_log2: u32,
    /// Base-2 logarithm of the micro-tiles of a tile.
    pub(in crate::ops) all_log2: u32,
    /// Micro-tiles of the tile that a matrix at its corner fills.
    pub(in crate::ops) used: usize,
}

impl Split {
    /// Returns the base-2 logarithm of the micro-tiles along a column of the source.
    pub(in crate::ops) fn down_log2(&self) -> u32 {
        self.all_log2 - self.across_log2
    }

    /// Returns the fewest filled micro-tiles that are worth a tile.
    pub(in crate::ops) fn fewest(&self, tiles: &Tiles) -> usize {
        (1 << self.all_log2) / tiles.filled_part
    }
}

impl TileShape {
    /// Returns the tiles of a target.
    pub fn of(target: Target) -> [Self; 5] {
        Tuning::of(target).tile_shapes
    }

    /// Returns the element width in bytes.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Returns the base-2 logarithm of the micro-tiles along a row of the source.
    pub fn across(&self) -> u32 {
        self.across_log2
    }

    /// Returns the base-2 logarithm of the micro-tiles along a ragged row of the source.
    pub fn ragged_across(&self) -> u32 {
        self.ragged_across_log2
    }

    /// Returns the base-2 logarithm of the most micro-tiles along a row of the source.
    pub fn most_across(&self, ragged: bool) -> u32 {
        Tuned::most_across(self.width, ragged)
    }

    /// Returns the same tile with other base-2 logarithms of the micro-tiles along a row of the
    /// source: for whole rows, and for ragged ones. Values above [`TileShape::most_across`] count
    /// as that.
    pub fn with_across(self, across_log2: u32, ragged_across_log2: u32) -> Self {
        Self { across_log2, ragged_across_log2, ..self }
    }

    /// Returns the micro-tiles of a tile: of whole rows, and of ragged ones.
    pub(super) const fn micro_tiles(&self) -> [u32; 2] {
        [1 << self.micro_tiles_log2, 1 << self.ragged_micro_tiles_log2]
    }

    /// Returns the base-2 logarithm of the micro-tiles of a tile.
    pub(in crate::ops) fn all_log2(&self, ends: RowEnds) -> u32 {
        if ends == RowEnds::Ragged { self.ragged_micro_tiles_log2 } else { self.micro_tiles_log2 }
    }

    /// Cuts a tile from a matrix of `cols` by `rows` micro-tiles. If a side is shorter than the
    /// tuned tile, the other side gets its micro-tiles.
    pub(in crate::ops) fn split(&self, ends: RowEnds, cols: usize, rows: usize, tiles: &Tiles) -> Split {
        let all_log2 = self.all_log2(ends);
        let most = self.most_across(ends == RowEnds::Ragged);
        let preferred = match ends {
            RowEnds::Whole => self.across_log2,
            RowEnds::WholeSmall => self.micro_tiles_log2 - tiles.small_down_log2,
            RowEnds::Ragged => self.ragged_across_log2.min(most),
        };
        let ceil_log2 = |count: usize| count.next_power_of_two().trailing_zeros();
        let across_log2 = preferred.max(all_log2.saturating_sub(ceil_log2(rows))).min(ceil_log2(cols)).min(most);
        let down_log2 = all_log2 - across_log2;
        debug_assert!(ends != RowEnds::Ragged || 1 << down_log2 > RAGGED_MARGIN, "{self:?} has no rows of its own");
        Split { across_log2, all_log2, used: cols.min(1 << across_log2) * rows.min(1 << down_log2) }
    }
}
