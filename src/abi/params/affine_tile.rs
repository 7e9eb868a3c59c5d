//! Scaled, shifted and converted transposes.

use crate::abi::{AffineValues, Axis, Divisor, MAX_AXES, params};

params! {
    /// Parameters of `affine_tile`: a batch of transposes,
    /// `dst[c, r] = fma(src[r, c], factor, offset)`, contiguous along `c` in the source and along
    /// `r` in the destination. All divisors are for wide arithmetic.
    ///
    /// Both addresses and the pitches and batch strides on both sides are multiples of 16 bytes,
    /// and so are `cols` elements of the source and `rows` of the destination.
    pub struct AffineTileParams {
        /// Device address of the first source element.
        pub src: u64,
        /// Device address of the first destination element.
        pub dst: u64,
        /// Rows of `src`.
        pub rows: u64,
        /// Columns of `src`.
        pub cols: u64,
        /// Elements from one row of the source to the next; signed.
        pub src_pitch: i64,
        /// Elements from one row of the destination to the next, which is a column of the source;
        /// signed.
        pub dst_pitch: i64,
        /// Base-2 logarithm of the micro-tiles along a row of a tile, which has the number of
        /// micro-tiles of `vector_tile` for the source's width. A micro-tile has a vector of the
        /// source's elements along a row, and one of the destination's along a column.
        pub across_log2: u64,
        /// Tiles along a row of the source, along which they are numbered first.
        pub tiles_across: Divisor,
        /// Tiles along a column of the source.
        pub tiles_down: Divisor,
        /// The values, by the images' numbers.
        pub values: AffineValues,
        /// 1 if rows are channels, so that a row's number is added to its image's channel.
        pub along_rows: u64,
        /// 1 if columns are channels.
        pub along_cols: u64,
        /// Axes of the batch.
        pub rank: u64,
        /// The batch, the first axis numbered fastest.
        pub axes: [Axis; MAX_AXES],
    }
}
