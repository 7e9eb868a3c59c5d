//! Contiguous copies.

use crate::abi::params;

params! {
    /// Parameters of `copy`: `bytes` bytes from `src` to `dst`, which do not overlap.
    ///
    /// Lane `i` of the grid moves 16 bytes from byte `16 * i`, and the first `bytes % 16` lanes one
    /// byte each of the tail. A block may have any number of threads. Both addresses are multiples
    /// of 16.
    pub struct CopyParams {
        /// Device address to read.
        pub src: u64,
        /// Device address to write.
        pub dst: u64,
        /// Bytes to move.
        pub bytes: u64,
    }
}
