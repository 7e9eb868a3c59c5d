//! Copies of runs of bytes that start anywhere.

use crate::abi::{Axis, Divisor, MAX_AXES, params};

/// Threads in a block of `rows`.
pub const ROWS_BLOCK: u32 = 256;
/// Vectors that one thread of `rows` moves, for loads in flight.
pub const ROWS_PER_THREAD: u32 = 4;

params! {
    /// Parameters of `rows`, which copies runs of bytes. The digits of `i` in the mixed radix of
    /// the axes' extents, `axes[0]` the least, are the indices at which run `i` starts; strides are
    /// in bytes.
    ///
    /// The vectors of a run are numbered from the last multiple of `grain` before its start in the
    /// destination. Block `b` (x first, then y) moves [`ROWS_PER_THREAD`] times [`ROWS_BLOCK`]
    /// vectors, run after run, one of each per lane. No two runs share a byte of the destination,
    /// but two runs may share a vector.
    pub struct RowsParams {
        /// Device address of the first byte of the source's run 0.
        pub src: u64,
        /// Device address of the first byte of the destination's run 0.
        pub dst: u64,
        /// Bytes of a run; at least 32, so that no vector holds both ends.
        pub run: u64,
        /// The alignment in the destination from which vectors are numbered: a power of two from 16
        /// to 512.
        pub grain: u64,
        /// Most vectors of a run, including those from the last multiple of `grain` on. With fewer,
        /// the ends of runs would be left out.
        pub quads: Divisor,
        /// Vectors of all runs: the product of `quads` and the extents.
        pub len: u64,
        /// Axes in use, from the first.
        pub rank: u64,
        /// The axes that number the runs.
        pub axes: [Axis; MAX_AXES],
    }
}
