//! Transposes by 16-byte accesses, which `ragged_tile` shares.

use crate::abi::{Axis, Divisor, Fold, MAX_AXES, TILE_AXES, params};

/// Threads in a block of `vector_tile` and `ragged_tile`.
pub const VECTOR_TILE_THREADS: u32 = 128;
/// Micro-tiles that one thread of `vector_tile` moves, by the elements' width in bytes: the most
/// that registers allow.
pub const fn vector_tile_squares(width: u32) -> u32 {
    match width {
        1 => 1,
        2 | 4 => 2,
        8 => 4,
        _ => 8,
    }
}
/// Returns the vectors of a tile, by the elements' width in bytes and the micro-tiles of a thread:
/// a micro-tile has one vector for each element of a vector.
pub const fn tile_quads(width: u32, squares: u32) -> usize {
    (16 / width * squares * VECTOR_TILE_THREADS) as usize
}

params! {
    /// Parameters of `vector_tile` and `ragged_tile`: a batch of transposes
    /// `dst[c, r] = src[r, c]`, contiguous along `c` in the source and along `r` in the
    /// destination.
    ///
    /// For `vector_tile`, both addresses and the strides of rows and batch on both sides are
    /// multiples of 16 bytes, a vector, and so are `rows` and `cols` elements. For `ragged_tile`,
    /// they are multiples of an element, and where it does not fold (`ragged_tile_folds`), dynamic
    /// shared memory has an index for each row and each column of a tile.
    pub struct VectorTileParams {
        /// Device address of the first source element.
        pub src: u64,
        /// Device address of the first destination element.
        pub dst: u64,
        /// Rows of `src`.
        pub rows: u64,
        /// Columns of `src`.
        pub cols: u64,
        /// Device address of the first byte of the source, if all bytes from it to `src_end` are
        /// elements: a thread may read any of them, also those of other rows.
        pub src_start: u64,
        /// Device address after the last byte, or 0 if there are gaps, so that each row is read
        /// separately.
        pub src_end: u64,
        /// The rows of the source. The rows of a micro-tile are an inner stride apart: if the outer
        /// axis has more than one index, `inner` is a multiple of a vector's elements or, for
        /// `ragged_tile` with `ragged_tile_folds`, at least a vector's elements.
        pub src_rows: Fold,
        /// The columns of the source, in the destination.
        pub dst_rows: Fold,
        /// For `ragged_tile` without folds: the axes that number rows and columns.
        pub line_ranks: [u64; 2],
        /// The rows of the source.
        pub row_axes: [Axis; TILE_AXES],
        /// The columns of the source, in the destination.
        pub col_axes: [Axis; TILE_AXES],
        /// The rows that begin and end the source, if it has no gaps.
        pub end_rows: [u64; 2],
        /// For `ragged_tile`: the rows of micro-tiles of the halo, which a tile shares with the one
        /// above: `RAGGED_MARGIN`, or 0 if every row of the destination starts on a sector of 32
        /// bytes.
        pub margin: u64,
        /// Base-2 logarithm of the micro-tiles along a row of a tile; a micro-tile has a vector of
        /// elements in each direction. A tile has the number of micro-tiles that the entry was
        /// compiled for, a power of two, and the others lie along a column: for `ragged_tile` more
        /// than `margin`, or the tile would write no row itself.
        pub across_log2: u64,
        /// Tiles along a row of the source.
        pub tiles_across: Divisor,
        /// Tiles along a column of the source.
        pub tiles_down: Divisor,
        /// 1 if tiles are numbered down the columns first, 0 if along the rows first.
        pub down_first: u64,
        /// Axes of the batch.
        pub rank: u64,
        /// The batch, the first axis numbered fastest.
        pub axes: [Axis; MAX_AXES],
    }
}
