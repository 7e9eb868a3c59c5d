//! Takes and puts rows by their indices.

use crate::abi::{Divisor, params};

/// Threads in a block of `gather` and `scatter`.
pub const INDEXED_BLOCK: u32 = 256;
/// Words that one thread of `gather` or `scatter` moves, for loads in flight.
pub const INDEXED_PER_THREAD: u32 = 4;

params! {
    /// Parameters of `gather`, `dst[k] = src[indices[k]]`, and of `scatter`, `dst[indices[k]] =
    /// src[k]`: rows of words without gaps. A row whose index is out of range is skipped.
    ///
    /// Block `b` (x first, then y) moves [`INDEXED_PER_THREAD`] runs of [`INDEXED_BLOCK`] words,
    /// one of each per lane.
    pub struct IndexedRowsParams {
        /// Device address of the first row of the source, a multiple of a word.
        pub src: u64,
        /// Device address of the first row of the destination, a multiple of a word.
        pub dst: u64,
        /// Device address of the first index.
        pub indices: u64,
        /// 1 if indices have 8 bytes, 0 if they have 4.
        pub long: u64,
        /// The number of rows on the side that indices number.
        pub rows: u64,
        /// Words of a row, for `Index::Wide`.
        pub words: Divisor,
        /// Words to move: those of a row times the indices.
        pub len: u64,
    }
}
