//! Reductions along one axis.

use crate::abi::{Divisor, params};

/// Returns the threads in a block of the reductions down columns, by the elements' width in bytes:
/// fewer if a thread has 16 columns, so that shared memory has room for an element and its index in
/// each.
pub const fn reduce_columns_block(width: u32) -> u32 {
    if width == 1 { 128 } else { 256 }
}

params! {
    /// Parameters of the reductions along the last axis of `rows` contiguous rows of `n` elements.
    ///
    /// A group of threads, a power of two, takes a part of a row. Block `(x, y)` takes part `y` of
    /// one row for each of its groups, from row `x` times the groups on. The value of part `p` of
    /// row `r` is result `p * rows + r`.
    pub struct ReduceRowsParams {
        /// Device address of the first element.
        pub a: u64,
        /// Device address of the first result.
        pub result: u64,
        /// For argmax: device address for the elements at the indices; 0 for none.
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

    /// Parameters of the reductions along the middle axis of an array of shape `[outer, n, inner]`.
    ///
    /// A column is a vector of the inner axis, or an element; the inner and the outer axis number
    /// the columns. Block `(x, y)` takes part `y` of `across` columns from `x * across` on; its
    /// threads form rows of `across`. The value of part `p` of column `c` is the result, or the
    /// vector of results, `p * columns + c`.
    pub struct ReduceColumnsParams {
        /// Device address of the first element.
        pub a: u64,
        /// For argmax: device address of an index for each element, instead of its own; 0 for
        /// none, and unread where columns are vectors.
        pub places: u64,
        /// Device address of the first result.
        pub result: u64,
        /// For argmax: device address for the elements at the indices; 0 for none.
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
        /// 1 if columns are vectors, else 0.
        pub quads: u64,
    }
}
