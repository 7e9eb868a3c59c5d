//! Loads, stores, and both.

use crate::abi::params;

/// Quads that one thread of a probe moves, by the place of its entry in its family.
pub const PROBE_STEPS: [u32; 4] = [1, 2, 4, 8];

params! {
    /// Parameters of the probes, which read from `src`, or write to `dst`, or both: of quads as
    /// many as the grid has threads, times the entry's [`PROBE_STEPS`].
    pub struct ProbeParams {
        /// Device address to read, a multiple of 16.
        pub src: u64,
        /// Device address to write, a multiple of 16; of `probe_read` of one quad, which is written
        /// only where all that a thread has read, exclusive-ored, is `never`.
        pub dst: u64,
        /// A word that the data is not expected to give: so that the compiler cannot leave the
        /// loads out.
        pub never: u64,
    }
}
