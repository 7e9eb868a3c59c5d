//! Element-wise arithmetic, and fills. A block may have any number of threads.

use crate::abi::{Span, params};

params! {
    /// Parameters of `fill`: bytes of a pattern that repeats at every multiple of 16 of the
    /// address.
    pub struct FillParams {
        /// Device address of the first byte.
        pub dst: u64,
        /// The bytes as elements of one byte.
        pub span: Span,
        /// The bytes at multiples of 16 and the seven after them, in memory order.
        pub low: u64,
        /// The eight bytes after those.
        pub high: u64,
    }

    /// Parameters of the element-wise kernels: `dst[i] = f(dst[i], a[i], b[i], scalar)`. Each reads
    /// only the operands of its formula.
    pub struct ElementwiseParams {
        /// Device address of the first element to write.
        pub dst: u64,
        /// Device address of the first operand; may be `dst`.
        pub a: u64,
        /// Device address of the second operand; may be `dst`.
        pub b: u64,
        /// The elements.
        pub span: Span,
        /// The bits of the scalar as a double.
        pub scalar: u64,
    }

    /// Parameters of `iterate`: `dst[i]` is `src[i]` after `steps` times `x = fma(factor, x,
    /// offset)`.
    pub struct IterateParams {
        /// Device address of the first element to write.
        pub dst: u64,
        /// Device address of the first element to read; may be `dst`.
        pub src: u64,
        /// The elements.
        pub span: Span,
        /// The number of steps.
        pub steps: u64,
        /// The bits of the factor.
        pub factor: u32,
        /// The bits of the offset.
        pub offset: u32,
    }
}
