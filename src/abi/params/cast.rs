//! Casts of numbers to another type.

use crate::abi::{Span, params};

/// Threads in a block of the casts. One side has fewer bytes than in a copy, and small blocks,
/// which end one by one, keep memory busier (on an H100 f32 to f16 3060 GB/s against 2965 with 1024
/// threads, and back 2944 against 2859).
pub const CAST_BLOCK: u32 = 256;

params! {
    /// Parameters of the casts: `dst[i] = src[i] as T`.
    pub struct CastParams {
        /// Device address of the first element to read.
        pub src: u64,
        /// Device address of the first element to write.
        pub dst: u64,
        /// The elements. A vector belongs to the side with the wider elements, and is aligned to 16
        /// bytes there. On the other side the same elements are aligned to their own bytes.
        pub span: Span,
    }
}
