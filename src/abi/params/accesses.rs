//! Loads, stores, and both.

use crate::abi::params;

/// Vectors that one thread of a probe moves, by the position of its entry in its family.
pub const PROBE_STEPS: [u32; 4] = [1, 2, 4, 8];

params! {
    /// Parameters of the probes, which read `src`, or write `dst`, or both. The number of vectors
    /// is that of the grid's threads times the entry's [`PROBE_STEPS`].
    pub struct ProbeParams {
        /// Device address to read, a multiple of 16.
        pub src: u64,
        /// Device address to write, a multiple of 16. `probe_read` writes one vector only if the
        /// exclusive or of all that a thread has read is `never`.
        pub dst: u64,
        /// A word that the data should not give, so that the compiler cannot remove the loads.
        pub never: u64,
    }
}
