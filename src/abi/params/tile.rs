//! The classic transposes, including `naive`: one square tile per block.

use crate::abi::params;

/// Rows and columns of the tile that one block moves in every transpose kernel, in elements.
pub const TILE: u32 = 32;
/// Rows of threads in a block; each thread moves `TILE / TILE_ROWS` elements.
pub const TILE_ROWS: u32 = 8;

params! {
    /// Parameters of the transposes: `dst[c, r] = src[r, c]` for `r < rows`, `c < cols`.
    ///
    /// Strides are in elements and signed; `src` and `dst` are the addresses of element `[0, 0]`.
    /// The tile of a block is `(blockIdx.z * gridDim.y + blockIdx.y, blockIdx.x)` in rows and
    /// columns of `src`, because only x may exceed 65,535.
    pub struct TransposeParams {
        /// Device address of `src[0, 0]`.
        pub src: u64,
        /// Device address of `dst[0, 0]`.
        pub dst: u64,
        /// Rows of `src`, columns of `dst`.
        pub rows: u64,
        /// Columns of `src`, rows of `dst`.
        pub cols: u64,
        /// Elements from `src[r, c]` to `src[r + 1, c]`.
        pub src_row_stride: i64,
        /// Elements from `src[r, c]` to `src[r, c + 1]`.
        pub src_col_stride: i64,
        /// Elements from `dst[c, r]` to `dst[c + 1, r]`.
        pub dst_row_stride: i64,
        /// Elements from `dst[c, r]` to `dst[c, r + 1]`.
        pub dst_col_stride: i64,
    }
}
