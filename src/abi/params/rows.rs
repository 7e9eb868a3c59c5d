//! Runs of bytes that start anywhere.

use crate::abi::{Axis, Divisor, MAX_AXES, params};

/// Threads in a block of `rows`.
pub const ROWS_BLOCK: u32 = 256;
/// Quads that one thread of `rows` moves, so that as many loads are in flight.
pub const ROWS_PER_THREAD: u32 = 4;

params! {
    /// Parameters of `rows`: runs of bytes from one place to another. Run `i` starts at the digits
    /// of `i` in the mixed radix of the axes' extents, `axes[0]` the least; their strides are in
    /// bytes.
    ///
    /// The quads of a run are numbered from the last multiple of `grain` before its start in the
    /// destination. Block `b` (x first, then y) moves [`ROWS_PER_THREAD`] times [`ROWS_BLOCK`]
    /// quads, run after run, a lane one of each. No two runs share a byte of the destination; a
    /// quad of it two runs may share.
    pub struct RowsParams {
        /// Device address of the first byte of the source's run 0.
        pub src: u64,
        /// Device address of the first byte of the destination's run 0.
        pub dst: u64,
        /// Bytes of a run; at least 32, so that no quad holds both ends.
        pub run: u64,
        /// Where in the destination quads are numbered from: a power of two from 16 to 512.
        pub grain: u64,
        /// Quads of the run that has most, those from the grain's start on included: with fewer the
        /// ends of runs would be left out.
        pub quads: Divisor,
        /// Quads of all runs: the product of `quads` and the extents.
        pub len: u64,
        /// Axes in use, from the first.
        pub rank: u64,
        /// The axes that runs are numbered along.
        pub axes: [Axis; MAX_AXES],
    }
}
