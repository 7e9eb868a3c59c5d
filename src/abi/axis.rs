//! Parameters of the kernels that reduce along one axis, and of those that need a whole row at once.

use super::Divisor;

/// Threads in a block of the reductions down columns.
pub const REDUCE_COLUMNS_BLOCK: u32 = 256;
/// Most threads that a row has in a normalisation, and so in a block.
pub const ROWWISE_THREADS: u32 = 512;

/// Quads of a row that one thread holds, of elements of so many bytes: 32 in single precision, so that two
/// blocks of 512 threads have registers for them, and halves are widened.
pub const fn held_quads(width: u32) -> u32 {
    if width < 4 { 4 } else { 8 }
}

/// Parameters of the reductions along the last axis of `rows` rows of `n` elements, one row behind the other.
///
/// A group of threads, a power of two, takes a part of a row: block `(x, y)` part `y` of as many rows as it has groups, from group
/// number `x` times that on. What part `p` of row `r` comes to is result `p * rows + r`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReduceRowsParams {
    /// Device address of the first element.
    pub a: u64,
    /// Device address of the first result.
    pub result: u64,
    /// Of places: device address for the elements that lie there; 0 for none.
    pub values: u64,
    /// Rows.
    pub rows: u64,
    /// Elements of a row.
    pub n: u64,
    /// Elements of a part; the last may have fewer.
    pub part: u64,
    /// Threads of a group.
    pub group: u64,
}

/// Parameters of the reductions along the middle axis of an array of `[outer, n, inner]` elements.
///
/// A column is a quad of the inner axis, or an element, and numbered along inner and outer axis. Block `(x, y)` takes part `y` of
/// `across` columns from `x * across` on, with a row of threads each below the other as far as they go. What part `p` of column
/// `c` comes to is the result, or the quad of results, `p * columns + c`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReduceColumnsParams {
    /// Device address of the first element.
    pub a: u64,
    /// Of places: device address of a place for each element, instead of its own; 0 for none.
    pub places: u64,
    /// Device address of the first result.
    pub result: u64,
    /// Of places: device address for the elements that lie there; 0 for none.
    pub values: u64,
    /// Columns of the whole array.
    pub columns: u64,
    /// Columns of the inner axis, for 64-bit arithmetic.
    pub lanes: Divisor,
    /// Elements of the axis.
    pub n: u64,
    /// Elements of a part; the last may have fewer.
    pub part: u64,
    /// Columns of a block, for 32-bit arithmetic.
    pub across: Divisor,
    /// 1 where columns are quads, else 0.
    pub quads: u64,
}

/// Parameters of `softmax` and `mean_variance`: `rows` rows of `n` elements, one behind the other.
///
/// A group of threads, a power of two, takes a row, and holds it where it has no more than [`held_quads`] quads a thread, and no
/// more than one element a thread outside of them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowwiseParams {
    /// Device address of the first element.
    pub src: u64,
    /// Device address of the first result: an element each, or the mean of each row.
    pub dst: u64,
    /// Device address of the variance of each row.
    pub variances: u64,
    /// Rows.
    pub rows: u64,
    /// Elements of a row.
    pub n: u64,
    /// Threads of a group.
    pub group: u64,
    /// 1 where groups hold their rows, else 0.
    pub held: u64,
}

const _: () = assert!(size_of::<ReduceRowsParams>() == 56 && size_of::<ReduceColumnsParams>() == 112);
const _: () = assert!(size_of::<RowwiseParams>() == 56);
