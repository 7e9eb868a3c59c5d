//! What a time is held against: arithmetic, which knows nothing of devices.

/// The best bandwidths that were measured on a device, in GB/s (10^9 bytes a second).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ceilings {
    /// Of bytes that are only read.
    pub read: f64,
    /// Of bytes that are only written.
    pub write: f64,
    /// Of bytes that are read, and as many written.
    pub copy: f64,
}

impl Ceilings {
    /// GB/s that the memory could reach for so many bytes read and written: as many of both as there are of either at the speed
    /// of a copy, and the rest at that of reading or of writing.
    pub fn of(&self, read: u64, written: u64) -> f64 {
        let both = read.min(written);
        let [pairs, reads, writes] = [2 * both, read - both, written - both].map(|bytes| bytes as f64);
        (pairs + reads + writes) / (pairs / self.copy + reads / self.read + writes / self.write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_lies_between_what_it_is_made_of() {
        let ceilings = Ceilings { read: 3200.0, write: 3300.0, copy: 3000.0 };
        assert_eq!(ceilings.of(10, 0), 3200.0);
        assert_eq!(ceilings.of(0, 10), 3300.0);
        assert_eq!(ceilings.of(10, 10), 3000.0);
        // Two arrays read, one written: 2 at the speed of a copy and one read.
        let triad = 3.0 / (2.0 / 3000.0 + 1.0 / 3200.0);
        assert!((ceilings.of(20, 10) - triad).abs() < 1e-9);
    }
}
