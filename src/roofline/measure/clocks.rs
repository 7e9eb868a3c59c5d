//! The clocks of an NVIDIA GPU, as a program reads them.

use std::sync::OnceLock;

use super::throttle;
use crate::device::Device;

static READER: OnceLock<fn(&str) -> Option<Clocks>> = OnceLock::new();

/// Sets the function that reads the clocks of the GPU at a PCI bus id, or returns `None` if it
/// cannot, for every measurement of this process. Without one,
/// measurements know no clocks, and retake no samples of a throttled device. The first call counts.
///
/// The crate reads no clocks itself: NVIDIA's management library (NVML) has them, which a program
/// binds with a crate such as `nvml-wrapper`, as the command line does.
pub fn read_clocks_by(reader: fn(&str) -> Option<Clocks>) {
    let _ = READER.set(reader);
}

/// A multiprocessor is throttled below this part of its highest clock: nvbench's rule.
const THROTTLED_BELOW: f64 = 0.75;

/// Clocks of a device at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Clocks {
    /// Clock of the multiprocessors in MHz.
    pub sm_mhz: u32,
    /// Their highest clock in MHz.
    pub sm_max_mhz: u32,
    /// Clock of the memory in MHz.
    pub memory_mhz: u32,
    /// True if the driver reports that heat or the power supply holds the clocks down.
    pub slowed: bool,
    /// True if the clocks are set low. A measurement finds that out: they stayed low all the time
    /// that it waited, and neither heat nor power was the reason.
    #[cfg_attr(feature = "serde", serde(default))]
    pub held: bool,
}

impl Clocks {
    /// Returns the device's clocks now; `None` if nothing reads them ([`read_clocks_by`]), or the
    /// device reports none.
    pub fn of(device: &Device) -> Option<Self> {
        let gpu = device.info().pci_bus_id.as_deref()?;
        Some(Self { held: throttle::are_held(gpu), ..READER.get()?(gpu)? })
    }

    /// Returns whether heat or power holds the clocks down, or the multiprocessors' clock is below
    /// three quarters of its highest for any reason.
    pub(crate) fn are_low(&self) -> bool {
        self.slowed || f64::from(self.sm_mhz) < THROTTLED_BELOW * f64::from(self.sm_max_mhz)
    }

    /// Returns whether times taken at these clocks say little: the clocks are low, and they were
    /// not set so.
    pub fn are_throttled(&self) -> bool {
        self.slowed || (self.are_low() && !self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_of_the_highest_clock_are_enough() {
        let clocks = Clocks { sm_mhz: 1485, sm_max_mhz: 1980, memory_mhz: 2619, slowed: false, held: false };
        assert!(!clocks.are_throttled());
        assert!(Clocks { sm_mhz: 1484, ..clocks }.are_throttled());
        assert!(Clocks { slowed: true, ..clocks }.are_throttled());
        // If they are set lower, only heat and power throttle.
        let set = Clocks { sm_mhz: 1200, held: true, ..clocks };
        assert!(set.are_low() && !set.are_throttled());
        assert!(Clocks { slowed: true, ..set }.are_throttled());
    }
}
