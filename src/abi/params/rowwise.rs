//! Kernels that need a whole row at once, with a group of threads a row: softmax, and mean and
//! variance.

use crate::abi::params;

/// Most threads of a row in softmax and mean and variance, and so of a block.
pub const ROWWISE_THREADS: u32 = 512;
/// Most registers of a thread of softmax, so that 1024 run at once on a multiprocessor of every
/// GPU.
pub const SOFTMAX_REGISTERS: u32 = 64;
/// Vectors of a row that one thread of `softmax` holds, by the elements' width in bytes: as many as
/// there are registers for. The exponentials of halves are wider, and arithmetic in double
/// precision needs more registers beside them.
pub const fn softmax_quads(width: u32) -> u32 {
    match width {
        2 => 4,
        4 => 8,
        _ => 5,
    }
}
/// Vectors of a row that one thread of `mean_variance` holds.
pub const MOMENTS_QUADS: u32 = 8;
/// Most threads of a row in `mean_variance`, by the elements' width in bytes. In double precision
/// they need more registers than two blocks of 512 have on a multiprocessor.
pub const fn moments_threads(width: u32) -> u32 {
    if width == 8 { ROWWISE_THREADS / 2 } else { ROWWISE_THREADS }
}

params! {
    /// Parameters of `softmax` and `mean_variance`: `rows` contiguous rows of `n` elements.
    ///
    /// A group of threads, a power of two, holds a row: a thread has at most [`softmax_quads`] or
    /// [`MOMENTS_QUADS`] vectors of the source, and one element outside of them.
    pub struct RowwiseParams {
        /// Device address of the first element.
        pub src: u64,
        /// Device address of the first result: one per element, or the mean of each row.
        pub dst: u64,
        /// Device address of the variance of each row.
        pub variances: u64,
        /// Rows.
        pub rows: u64,
        /// Elements of a row.
        pub n: u64,
        /// Rows that run at once. A group has the L2 cache fetch the one that is so many ahead.
        pub ahead: u64,
        /// Threads of a group.
        pub group: u64,
        /// 1 if source and destination start equally far from a vector, else 0.
        pub aligned: u64,
    }
}
