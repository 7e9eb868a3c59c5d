//! Contiguous copies.

use crate::abi::params;

/// Threads in a block of `copy`. With one 16-byte access a thread, the best copy found on an H100
/// uses full blocks.
pub const COPY_BLOCK: u32 = 1024;

params! {
    /// Parameters of `copy`: `bytes` bytes from `src` to `dst`, which do not overlap.
    ///
    /// Lane `i` of the grid moves 16 bytes from byte `16 * i`, and the first `bytes % 16` lanes one
    /// byte each of the tail. Both addresses are multiples of 16.
    pub struct CopyParams {
        /// Device address to read.
        pub src: u64,
        /// Device address to write.
        pub dst: u64,
        /// Bytes to move.
        pub bytes: u64,
    }
}
