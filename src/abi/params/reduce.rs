//! Reductions over all elements.

use crate::abi::{Span, params};

/// Threads in a block of the reductions.
pub const REDUCE_BLOCK: u32 = 1024;
/// Most blocks of a reduction, and so most values that its second launch joins: 64 a multiprocessor
/// of an H100.
pub const REDUCE_BLOCKS: u32 = 8448;
/// Vectors that one thread of a reduction loads before it adds any of them, for loads in flight.
pub const REDUCE_STEPS: u32 = 2;

params! {
    /// Parameters of the reductions over all elements: block `i` of `n` writes the value of its
    /// part of the elements to `partials[i]`, in the type of the sum.
    ///
    /// Block `i` takes the runs `i`, `i + n`, `i + 2 n` and so on, of [`REDUCE_STEPS`] times
    /// [`REDUCE_BLOCK`] vectors each. The threads of all blocks share the vectors outside of whole
    /// runs and the elements outside of vectors. So a sum is the same on every run.
    pub struct ReduceParams {
        /// Device address of the first element of the first operand.
        pub a: u64,
        /// Device address of the first element of the second operand, if there is one.
        pub b: u64,
        /// Device address of one value for each block.
        pub partials: u64,
        /// The elements.
        pub span: Span,
    }
}
