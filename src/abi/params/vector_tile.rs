//! Transposes by 16-byte accesses, which `ragged_tile` shares.

use crate::abi::{Axis, Divisor, Fold, MAX_AXES, params};

/// Threads in a block of `vector_tile` and `ragged_tile`.
pub const VECTOR_TILE_THREADS: u32 = 128;
/// Squares that one thread of `vector_tile` moves, by the elements' width in bytes: as many as
/// registers allow.
pub const fn vector_tile_squares(width: u32) -> u32 {
    match width {
        1 => 1,
        2 | 4 => 2,
        8 => 4,
        _ => 8,
    }
}
/// Quads of a tile, by the elements' width in bytes and the squares of a thread: a square has one
/// for each element of a quad.
pub const fn tile_quads(width: u32, squares: u32) -> usize {
    (16 / width * squares * VECTOR_TILE_THREADS) as usize
}

params! {
    /// Parameters of `vector_tile` and `ragged_tile`: a batch of transposes
    /// `dst[c, r] = src[r, c]`, contiguous along `c` in the source and along `r` in the
    /// destination.
    ///
    /// Of `vector_tile`, both addresses and the strides of rows and batch on both sides are
    /// multiples of 16 bytes, `rows` and `cols` of the elements of 16 bytes, a quad. Of
    /// `ragged_tile`, they are multiples of an element.
    pub struct VectorTileParams {
        /// Device address of the first source element.
        pub src: u64,
        /// Device address of the first destination element.
        pub dst: u64,
        /// Rows of `src`.
        pub rows: u64,
        /// Columns of `src`.
        pub cols: u64,
        /// Device address of the first byte of the source, where all bytes from it to `src_end` are
        /// elements of it: a thread may read any of them, those of other rows too.
        pub src_start: u64,
        /// Device address behind the last byte; 0 where there are gaps, so that each row is read
        /// for itself.
        pub src_end: u64,
        /// Where the rows of the source lie. The rows of a square are an inner stride apart: where
        /// the outer axis has more than one index, `inner` is a multiple of a quad's elements, or,
        /// of `ragged_tile` where `ragged_tile_folds`, at least those.
        pub src_rows: Fold,
        /// Where the columns of the source lie in the destination.
        pub dst_rows: Fold,
        /// Of `ragged_tile`: rows of squares that a tile shares with the one above,
        /// `RAGGED_MARGIN`, or 0 where every row of the destination starts on a sector of 32 bytes.
        pub margin: u64,
        /// Base-2 logarithm of the squares along a row of a tile; a square has a quad of elements
        /// in each direction. A tile has as many squares as the entry was compiled with, a power of
        /// two, and the others lie along a column: of `ragged_tile` more than `margin`, or no row
        /// would be its own.
        pub across_log2: u64,
        /// Tiles along a row of the source.
        pub tiles_across: Divisor,
        /// Tiles along a column of the source.
        pub tiles_down: Divisor,
        /// 1 where those along a column are numbered first, 0 where those along a row are.
        pub down_first: u64,
        /// Axes of the batch.
        pub rank: u64,
        /// The batch, the first axis numbered fastest.
        pub axes: [Axis; MAX_AXES],
    }
}
