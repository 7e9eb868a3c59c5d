//! What needs a whole row at once: softmax, mean and variance.

use crate::abi::params;

/// Most threads that a row has in a normalisation, and so in a block.
pub const ROWWISE_THREADS: u32 = 512;
/// Quads of a row that one thread holds, of elements of so many bytes: 32 in single precision, so
/// that two blocks of 512 threads have registers for them, and halves are widened.
pub const fn held_quads(width: u32) -> u32 {
    if width < 4 { 4 } else { 8 }
}

params! {
    /// Parameters of `softmax` and `mean_variance`: `rows` rows of `n` elements, one behind the
    /// other.
    ///
    /// A group of threads, a power of two, takes a row, and holds it where it has no more than
    /// [`held_quads`] quads a thread, and no more than one element a thread outside of them.
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
}
