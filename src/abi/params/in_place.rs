//! Transposes in place: squares swapped across the diagonal, rows and columns permuted.

use crate::abi::{Divisor, params};

/// Rows and columns of the tiles that `swap_tiles` exchanges, for elements of `width` bytes: as
/// many as give runs of 256 bytes and two elements a lane at most, and tiles of which two fit in
/// shared memory.
pub const fn square_side(width: u32) -> u32 {
    if width <= 4 { 64 } else { 32 }
}
/// Threads in a block of `permute_lines` and `spill_lines`.
pub const LINES_BLOCK: u32 = 512;
/// Bytes of the largest panel that `permute_lines` takes.
pub const LINES_SHARED: u32 = 48 << 10;

params! {
    /// Parameters of `swap_tiles`: `m[b, i, j]` and `m[b, j, i]` change places for `b < batches`,
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

    /// Parameters of `permute_lines` and `spill_lines`: in a batch of contiguous `rows` x `cols`
    /// matrices, the elements of each row, or of each column, change places among themselves.
    ///
    /// With `k = j / section`, element `(i, j)` is paired with `(i, j')` where the lines are rows
    /// and with `(i', j)` where they are columns:
    ///
    /// ```text
    /// i' = (i * factor - i / period + k) % rows
    /// j' = (i' + j * rows) % cols
    /// ```
    ///
    /// Divisors are for the entry's index arithmetic; no number that is divided exceeds
    /// `rows * cols` or a panel's number.
    ///
    /// With `scatter`, `(i, j)` goes to its partner's place, else it is taken from there. The lines
    /// are cut into panels: whole rows, `height` at a time, or whole columns, `width` at a time. A
    /// panel is written to other memory, shared or scratch, and from there back; so nothing is
    /// overwritten before it is read.
    ///
    /// The other memory is filled whole, and no place of it twice, only if partners are one to one,
    /// which rests on `factor`, `period` and `section` together: see the plan. A panel of
    /// `permute_lines` has at most [`LINES_SHARED`] bytes.
    pub struct LinesParams {
        /// Device address of the first element.
        pub matrix: u64,
        /// Device address of room for the panels of a launch of `spill_lines`, `width * height`
        /// elements each.
        pub scratch: u64,
        /// Rows of a matrix.
        pub rows: Divisor,
        /// Columns of a matrix.
        pub cols: Divisor,
        /// 1 where lines are columns, 0 where they are rows.
        pub columns: u64,
        /// 1 where elements go to their partners' places, 0 where they come from there.
        pub scatter: u64,
        /// Rows of a panel; the last of a matrix may have fewer.
        pub height: u64,
        /// Columns of a panel; the last of a matrix may have fewer.
        pub width: Divisor,
        /// Panels of one matrix.
        pub panels: Divisor,
        /// The first panel of the launch, counted through all matrices.
        pub first: u64,
        /// The panel behind the last of the launch.
        pub end: u64,
        /// What a row's number is multiplied by; below `rows`, or 1.
        pub factor: u64,
        /// Rows to a step backwards; at most `rows`.
        pub period: Divisor,
        /// Columns to a step forwards.
        pub section: Divisor,
        /// Of `spill_lines`: 0 to write panels to the scratch, 1 to write them back.
        pub back: u64,
    }
}
