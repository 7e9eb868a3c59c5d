//! Locates the rows and columns of tiles of narrow elements, for `ragged_tile`.
//!
//! A row of the matrix may be a run of several axes, and so may a column. Each row may lie anywhere
//! in the source, and each column anywhere in the destination, so the block writes a table of both.

use crate::abi::VECTOR_TILE_THREADS;
use crate::index::{Index, axes};
use crate::movement::vector_tile::Tile;
use crate::thread::quad::Lanes;
use crate::thread::{self, Global, Shared, Word};

/// The places of a tile's rows in the source, and of its columns in the destination: in tables, if
/// each may lie anywhere.
pub struct Lines<'a, I> {
    pub tile: &'a Tile<'a, I>,
    pub tables: Shared,
}

impl<I: Index> Lines<'_, I> {
    /// Writes the tables: the rows, then the columns.
    ///
    /// # Safety
    ///
    /// No thread reads them before the next barrier.
    #[inline(always)]
    pub unsafe fn write<W: Lanes>(&self) {
        let (tile, params, lanes) = (self.tile, self.tile.params, W::COUNT as u32);
        let mut down = thread::thread_x();
        while down < lanes << tile.down_log2 {
            let row = tile.row + I::new(down);
            // Rows above and below the matrix are loaded as another one, and never stored.
            let row = if row < tile.rows() { row } else { self.first_row() };
            let [row] = axes::offsets([row], &params.row_axes, params.line_ranks[0]);
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { row.src.word().store_shared(self.row_entry::<W>(down / lanes, down % lanes)) };
            down += VECTOR_TILE_THREADS;
        }
        let mut across = thread::thread_x();
        while across < lanes << tile.across_log2 {
            let [col] = axes::offsets([tile.col + I::new(across)], &params.col_axes, params.line_ranks[1]);
            // SAFETY: as above.
            unsafe { col.dst.word().store_shared(self.col_entry::<W>(across)) };
            across += VECTOR_TILE_THREADS;
        }
    }

    /// Returns the first row of the tile that the matrix has: the number of one above wraps to more
    /// than all rows.
    #[inline(always)]
    fn first_row(&self) -> I {
        if self.tile.row < self.tile.rows() { self.tile.row } else { I::new(0) }
    }

    /// Returns whether the matrix has all rows of the tile.
    #[inline(always)]
    pub fn has_all_rows<W: Lanes>(&self) -> bool {
        let (tile, height) = (self.tile, I::new((W::COUNT as u32) << self.tile.down_log2));
        tile.row < tile.rows() && !(tile.rows() - tile.row < height)
    }

    /// Returns whether all vectors that partly hold rows of the tile may be read whole.
    #[inline(always)]
    pub fn is_clear<W: Lanes>(&self) -> bool {
        let (tile, params) = (self.tile, self.tile.params);
        let [before, after] = goes_on::<W, I>(tile);
        if params.src_end == 0 {
            return before && after;
        }
        // In a source without gaps, one row has no bytes before it and one has none after it, and
        // other rows have at least theirs: two vectors.
        let (first, height) = (self.first_row(), I::new((W::COUNT as u32) << tile.down_log2));
        let has = |row: u64| !(I::truncate(row) < first) && I::truncate(row) - first < height;
        let [lowest, highest] = params.end_rows;
        !(tile.cols() < I::new(2 * W::COUNT as u32)) && (before || !has(lowest)) && (after || !has(highest))
    }

    /// Returns where the table has row `row` of a row `y` of micro-tiles. An unused entry behind
    /// each 32 keeps lanes of other rows of micro-tiles off each other's banks.
    #[inline(always)]
    fn row_entry<W: Lanes>(&self, y: u32, row: u32) -> Shared {
        let first = y * W::COUNT as u32;
        self.tables.offset((first + first / 32 + row) * I::Word::BYTES)
    }

    #[inline(always)]
    fn col_entry<W: Lanes>(&self, across: u32) -> Shared {
        self.row_entry::<W>(1 << self.tile.down_log2, across)
    }

    /// Returns the offset in the source of row `row` of a row `y` of micro-tiles.
    ///
    /// # Safety
    ///
    /// The tables have been written.
    #[inline(always)]
    pub unsafe fn row<W: Lanes>(&self, y: u32, row: u32) -> I {
        // SAFETY: within the table.
        I::of(unsafe { I::Word::load_shared(self.row_entry::<W>(y, row)) })
    }

    /// Returns the offset in the destination of a column of the tile.
    ///
    /// # Safety
    ///
    /// As [`row`](Self::row).
    #[inline(always)]
    pub unsafe fn col<W: Lanes>(&self, across: u32) -> I {
        // SAFETY: within the table.
        I::of(unsafe { I::Word::load_shared(self.col_entry::<W>(across)) })
    }

    /// Returns the address in the source from which rows lie at their offsets.
    #[inline(always)]
    pub fn src_start<W: Word>(&self, col: I) -> Global {
        Global::new(self.tile.params.src).offset((self.tile.src_start + col).bytes::<W>())
    }

    /// Returns the address in the destination from which columns lie at their offsets.
    #[inline(always)]
    pub fn dst_start<W: Word>(&self, row: I) -> Global {
        Global::new(self.tile.params.dst).offset((self.tile.dst_start + row).bytes::<W>())
    }
}

/// Returns whether the rows have a vector before the tile, and whether they have one after it.
#[inline(always)]
pub fn goes_on<W: Lanes, I: Index>(tile: &Tile<I>) -> [bool; 2] {
    let lanes = W::COUNT as u32;
    let width = I::new(lanes << tile.across_log2);
    [!(tile.col < I::new(lanes)), tile.col < tile.cols() && !(tile.cols() - tile.col < width + I::new(lanes))]
}
