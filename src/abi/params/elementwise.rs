//! Element-wise arithmetic, and fills.

use crate::abi::{Span, params};

/// Threads in a block of the element-wise kernels.
pub const ELEMENTWISE_BLOCK: u32 = 1024;

params! {
    /// Parameters of `fill`: bytes of a pattern that repeats every 16 bytes of the address.
    pub struct FillParams {
        /// Device address of the first byte.
        pub dst: u64,
        /// Bytes; an element has one.
        pub span: Span,
        /// The bytes at multiples of 16 and the seven behind, as they lie in memory.
        pub low: u64,
        /// The eight bytes behind those.
        pub high: u64,
    }

    /// Parameters of the element-wise kernels: `dst[i] = f(dst[i], a[i], b[i], scalar)`. Each reads
    /// only what its formula names.
    pub struct ElementwiseParams {
        /// Device address of the first element to write.
        pub dst: u64,
        /// Device address of the first of the first operand; may be `dst`.
        pub a: u64,
        /// Device address of the first of the second operand; may be `dst`.
        pub b: u64,
        /// The elements.
        pub span: Span,
        /// The bits of the scalar as a double.
        pub scalar: u64,
    }
}
