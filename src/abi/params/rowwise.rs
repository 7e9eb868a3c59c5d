//! Kernels that need a whole row at once: softmax, mean and variance.

use crate::abi::params;

/// Most threads of a row in softmax and mean and variance, and so of a block.
pub const ROWWISE_THREADS: u32 = 512;
/// Vectors of a row that one thread holds, by the elements' width in bytes: 32 elements in single
/// precision, so that two blocks of 512 threads have registers for them. Halves are widened.
pub const fn held_quads(width: u32) -> u32 {
    if width < 4 { 4 } else { 8 }
}

params! {
    /// Parameters of `softmax` and `mean_variance`: `rows` contiguous rows of `n` elements.
    ///
    /// A group of threads, a power of two, takes a row. It holds the row if there are at most
    /// [`held_quads`] vectors a thread, and at most one element a thread outside of them.
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
        /// Threads of a group.
        pub group: u64,
        /// 1 if groups hold their rows, else 0.
        pub held: u64,
    }
}
