//! Transposes of batches of small matrices.

use crate::abi::{Axis, Divisor, MAX_AXES, params};

/// An image of `stacked_tile` with elements of 4 bytes and more has more vectors than this: with
/// fewer, two could share an address in shared memory.
pub const STACKED_QUADS: usize = 64;

params! {
    /// Parameters of `stacked_tile`: a batch of transposes `dst[c, r] = src[r, c]` of matrices so
    /// small that a tile holds several, each without gaps on both sides.
    ///
    /// Addresses and strides on both sides are multiples of 16 bytes, and so are `rows` and `cols`
    /// elements. A tile has the number of micro-tiles of `vector_tile` for the same width, and room
    /// for `1 << across_log2` by `1 << down_log2` of each image; for elements of 4 bytes and more,
    /// that is room for more vectors than [`STACKED_QUADS`]. Block `b` has tile `b % stacks` along
    /// the stacked axis, at index `b / stacks` of the batch.
    pub struct StackedTileParams {
        /// Device address of the first source element.
        pub src: u64,
        /// Device address of the first destination element.
        pub dst: u64,
        /// Rows of an image of `src`.
        pub rows: u64,
        /// Columns of an image of `src`.
        pub cols: u64,
        /// Base-2 logarithm of the micro-tiles that a tile has along a row of an image.
        pub across_log2: u64,
        /// Base-2 logarithm of the micro-tiles that a tile has along a column of an image.
        pub down_log2: u64,
        /// Images along the stacked axis.
        pub images: u64,
        /// Elements from one image to the next in the source; signed.
        pub src_stride: i64,
        /// Elements from one image to the next in the destination; signed.
        pub dst_stride: i64,
        /// Tiles along the stacked axis.
        pub stacks: Divisor,
        /// Axes of the batch without the stacked one.
        pub rank: u64,
        /// The batch, the first axis numbered fastest.
        pub axes: [Axis; MAX_AXES],
    }
}
