//! Numbers to another type.

use crate::abi::{Span, params};

/// Threads in a block of the casts: one side of them has fewer bytes than a copy has, and small
/// blocks, which end one by one, keep memory busier (on an H100 f32 to f16 3060 GB/s against 2965
/// of 1024 threads, and back 2944 against 2859).
pub const CAST_BLOCK: u32 = 256;

params! {
    /// Parameters of the casts: `dst[i] = src[i] as T`.
    pub struct CastParams {
        /// Device address of the first element to read.
        pub src: u64,
        /// Device address of the first element to write.
        pub dst: u64,
        /// The elements; a quad is one of the side with the wider elements, and starts on 16 bytes
        /// there. On the other side as many elements start on as many bytes as they have.
        pub span: Span,
    }
}
