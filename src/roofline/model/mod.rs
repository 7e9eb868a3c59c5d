//! Predicts the time of a launch on a device by the work that the software GPU counts.
//!
//! The model is arithmetic: five limits have a time each, and the prediction is their norm with the
//! exponent 3, so the longest decides and others near it add a little. `docs/model.md` in the
//! repository says how well it predicts measured times.

mod devices;
#[cfg(feature = "interp")]
mod estimate;
#[cfg(feature = "interp")]
mod work;

pub use devices::DeviceModel;
#[cfg(feature = "interp")]
#[doc(hidden)]
pub use estimate::{Estimate, Resident};
#[cfg(feature = "interp")]
pub use work::Work;

use crate::names::named;

/// The best bandwidths that were measured on a device, in GB/s (10^9 bytes a second).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ceilings {
    /// GB/s of an operation that only reads.
    pub read: f64,
    /// GB/s of an operation that only writes.
    pub write: f64,
    /// GB/s of a copy, which writes the number of bytes that it reads.
    pub copy: f64,
}

impl Ceilings {
    /// Returns the GB/s that the memory could reach for these bytes read and written. The lesser of
    /// the two numbers is copied, and the rest is only read or only written. Without bytes, it is
    /// the speed of a copy.
    pub fn of(&self, read: u64, written: u64) -> f64 {
        let both = read.min(written);
        if read == 0 && written == 0 {
            return self.copy;
        }
        let [pairs, reads, writes] = [2.0 * both as f64, (read - both) as f64, (written - both) as f64];
        (pairs + reads + writes) / (pairs / self.copy + reads / self.read + writes / self.write)
    }
}

named! {
    /// Returns the name in tables.
    #[doc(hidden)]
    name;

    /// The limit of a kernel's speed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
    pub enum Bound {
        /// Bytes from and to memory.
        Memory = "memory",
        /// Sectors from and to the L2 cache, and the lines that requests store there.
        L2 = "L2",
        /// Lines that requests look up in the L1 cache, and passes through shared memory beside it.
        Shared = "shared",
        /// Instructions.
        Instructions = "instructions",
        /// The time that blocks wait for memory: too few bytes are in flight.
        Latency = "latency",
        /// Launches.
        Launches = "launches",
    }
}

/// A predicted time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Prediction {
    /// Milliseconds.
    pub ms: f64,
    /// The limit that takes longest.
    pub bound: Bound,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_lies_between_what_it_is_made_of() {
        let ceilings = Ceilings { read: 3200.0, write: 3300.0, copy: 3000.0 };
        assert_eq!(ceilings.of(0, 0), 3000.0);
        assert_eq!(ceilings.of(10, 0), 3200.0);
        assert_eq!(ceilings.of(0, 10), 3300.0);
        assert_eq!(ceilings.of(10, 10), 3000.0);
        // Two arrays read, one written: 2 at the speed of a copy and one read.
        let triad = 3.0 / (2.0 / 3000.0 + 1.0 / 3200.0);
        assert!((ceilings.of(20, 10) - triad).abs() < 1e-9);
    }
}
