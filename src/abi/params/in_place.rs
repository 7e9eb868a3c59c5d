//! Transposes in place: tiles exchanged across the diagonal, rows and columns permuted.

use crate::abi::{Divisor, params};

/// Rows and columns of the tiles that `swap_tiles` exchanges, for elements of `width` bytes. They
/// give runs of 256 bytes, at most two elements a lane, and tiles of which two fit in shared
/// memory.
pub const fn square_side(width: u32) -> u32 {
    if width <= 4 { 64 } else { 32 }
}
/// Threads in a block of `permute_lines` and `spill_lines`.
pub const LINES_BLOCK: u32 = 512;
/// Bytes of the largest panel in shared memory.
pub const LINES_SHARED: u32 = 48 << 10;

params! {
    /// Parameters of `swap_tiles`, which exchanges `m[b, i, j]` and `m[b, j, i]` for `b < batches`,
    /// `i < j < n`.
    ///
    /// Strides are in elements and signed. With `t` tiles of [`square_side`] along a row there are
    /// `t * (t + 1) / 2` pairs of tiles on or above the diagonal, of which block `blockIdx.x` takes
    /// one; the batch is `blockIdx.z * gridDim.y + blockIdx.y`. Threads are `TILE` x `TILE_ROWS`.
    pub struct SquareParams {
        /// Device address of `m[0, 0, 0]`.
        pub matrix: u64,
        /// Rows and columns.
        pub n: u64,
        /// Elements from `m[b, i, j]` to `m[b, i + 1, j]`.
        pub row_stride: i64,
        /// Elements from `m[b, i, j]` to `m[b, i, j + 1]`.
        pub col_stride: i64,
        /// Matrices.
        pub batches: u64,
        /// Elements from `m[b, i, j]` to `m[b + 1, i, j]`.
        pub batch_stride: i64,
    }

    /// Parameters of `permute_lines` and `spill_lines`, which permute the elements within each row,
    /// or within each column, of a batch of contiguous `rows` x `cols` matrices.
    ///
    /// With `k = j / section`, element `(i, j)` is paired with `(i, j')` if rows are permuted and
    /// with `(i', j)` if columns are:
    ///
    /// ```text
    /// i' = (i * factor - i / period + k) % rows
    /// j' = (i' + j * rows) % cols
    /// ```
    ///
    /// Divisors are for the entry's index arithmetic; no dividend exceeds `rows * cols` or a
    /// panel's number.
    ///
    /// With `scatter`, `(i, j)` moves to its partner's index, else it is taken from there. The
    /// matrix is cut into panels: whole rows, `height` at a time, or whole columns, `width` at a
    /// time. A panel is written to other memory, shared or scratch, and then back, so no element is
    /// overwritten before it is read.
    ///
    /// The other memory is filled whole, with no index written twice, only if partners are one to
    /// one. This depends on `factor`, `period` and `section` together: see the plan. A panel of
    /// `permute_lines` has at most [`LINES_SHARED`] bytes.
    pub struct LinesParams {
        /// Device address of the first element.
        pub matrix: u64,
        /// Device address of memory for the panels of a launch of `spill_lines`, `width * height`
        /// elements each.
        pub scratch: u64,
        /// Rows of a matrix.
        pub rows: Divisor,
        /// Columns of a matrix.
        pub cols: Divisor,
        /// 1 if columns are permuted, 0 if rows are.
        pub columns: u64,
        /// 1 if elements go to their partners' indices, 0 if they come from there.
        pub scatter: u64,
        /// Rows of a panel; the last of a matrix may have fewer.
        pub height: u64,
        /// Columns of a panel; the last of a matrix may have fewer.
        pub width: Divisor,
        /// Panels of one matrix.
        pub panels: Divisor,
        /// The first panel of the launch, counted through all matrices.
        pub first: u64,
        /// The panel after the last of the launch.
        pub end: u64,
        /// The factor of a row's number; below `rows`, or 1.
        pub factor: u64,
        /// Rows to a step backwards; at most `rows`.
        pub period: Divisor,
        /// Columns to a step forwards.
        pub section: Divisor,
        /// For `spill_lines`: 0 to write panels to the scratch, 1 to write them back.
        pub back: u64,
    }
}
