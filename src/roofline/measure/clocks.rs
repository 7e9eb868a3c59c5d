//! Reads the clocks of an NVIDIA GPU, which GPU it is, and its link, through NVML: its library
//! comes with the driver and is loaded at run time. Where the library is missing, or without the
//! feature `nvml`, nothing is known and nothing fails.

use super::throttle;
use crate::device::Device;
use crate::roofline::transfers::Link;

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
    /// Whether the driver reports that heat or the power supply holds the clocks down.
    pub slowed: bool,
    /// Whether somebody set the clocks low. A measurement finds that out: they stayed low all the
    /// time that it waited, and neither heat nor power was the reason.
    #[cfg_attr(feature = "serde", serde(default))]
    pub held: bool,
}

impl Clocks {
    /// The device's clocks now; `None` where the device reports none.
    pub fn of(device: &Device) -> Option<Self> {
        let gpu = device.info().pci_bus_id.as_deref()?;
        Some(Self { held: throttle::are_held(gpu), ..read(gpu)? })
    }

    /// Whether heat or power hold the clocks down, or the multiprocessors' clock is below three
    /// quarters of its highest for any reason.
    pub fn are_low(&self) -> bool {
        self.slowed || f64::from(self.sm_mhz) < THROTTLED_BELOW * f64::from(self.sm_max_mhz)
    }

    /// Whether times taken at these clocks say little: the clocks are low, and nobody set them so.
    pub fn are_throttled(&self) -> bool {
        self.slowed || (self.are_low() && !self.held)
    }
}

/// Tells a GPU from others of its kind, wherever it is plugged in, and one release of its driver
/// from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The GPU's UUID, as NVIDIA's tools name it: `GPU-` and 32 digits. A slice has the UUID of its
    /// GPU.
    pub uuid: String,
    /// The driver's release, `580.159.04`; [`DeviceInfo`](crate::driver::DeviceInfo) has the
    /// version of CUDA.
    pub release: String,
}

impl Identity {
    /// The device's identity; `None` where the device reports none.
    pub fn of(device: &Device) -> Option<Self> {
        identity(device.info().pci_bus_id.as_deref()?)
    }
}

impl Link {
    /// The device's link, as fast as device and system can make it: an idle device may report less.
    /// `None` where the device reports none.
    pub fn of(device: &Device) -> Option<Self> {
        link(device.info().pci_bus_id.as_deref()?)
    }
}

#[cfg(feature = "nvml")]
fn link(pci_bus_id: &str) -> Option<Link> {
    let device = nvml()?.device_by_pci_bus_id(pci_bus_id).ok()?;
    Link::new(device.max_pcie_link_gen().ok()?, device.max_pcie_link_width().ok()?)
}

#[cfg(not(feature = "nvml"))]
fn link(_pci_bus_id: &str) -> Option<Link> {
    None
}

#[cfg(feature = "nvml")]
fn nvml() -> Option<&'static nvml_wrapper::Nvml> {
    use std::sync::OnceLock;

    use nvml_wrapper::Nvml;

    // Loading takes milliseconds, and a library that was not there will not come.
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    NVML.get_or_init(|| Nvml::init().ok()).as_ref()
}

#[cfg(feature = "nvml")]
fn identity(pci_bus_id: &str) -> Option<Identity> {
    let nvml = nvml()?;
    let uuid = nvml.device_by_pci_bus_id(pci_bus_id).ok()?.uuid().ok()?;
    Some(Identity { uuid, release: nvml.sys_driver_version().ok()? })
}

#[cfg(not(feature = "nvml"))]
fn identity(_pci_bus_id: &str) -> Option<Identity> {
    None
}

#[cfg(feature = "nvml")]
fn read(pci_bus_id: &str) -> Option<Clocks> {
    use nvml_wrapper::bitmasks::device::ThrottleReasons;
    use nvml_wrapper::enum_wrappers::device::Clock;

    let device = nvml()?.device_by_pci_bus_id(pci_bus_id).ok()?;
    let slowdowns = ThrottleReasons::HW_SLOWDOWN
        | ThrottleReasons::HW_THERMAL_SLOWDOWN
        | ThrottleReasons::SW_THERMAL_SLOWDOWN
        | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
    Some(Clocks {
        sm_mhz: device.clock_info(Clock::SM).ok()?,
        sm_max_mhz: device.max_clock_info(Clock::SM).ok()?,
        memory_mhz: device.clock_info(Clock::Memory).ok()?,
        slowed: device.current_throttle_reasons().is_ok_and(|reasons| reasons.intersects(slowdowns)),
        held: false,
    })
}

#[cfg(not(feature = "nvml"))]
fn read(_pci_bus_id: &str) -> Option<Clocks> {
    None
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
        // Where they are set lower, only heat and power throttle.
        let set = Clocks { sm_mhz: 1200, held: true, ..clocks };
        assert!(set.are_low() && !set.are_throttled());
        assert!(Clocks { slowed: true, ..set }.are_throttled());
    }
}
