//! Asks NVIDIA's management library about a GPU: its clocks, which GPU it is, and its link.
//!
//! The library comes with the driver and is loaded at run time. Without it nothing is known, and
//! nothing fails.

use std::sync::OnceLock;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::{Device, Nvml};
use warpstride::roofline::measure::Clocks;

/// Tells a GPU from others of its kind, wherever it is plugged in, and one release of its driver
/// from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The GPU's UUID, as NVIDIA's tools name it: `GPU-` and 32 digits. A slice has the UUID of its
    /// GPU.
    pub(crate) uuid: String,
    /// The driver's release, `580.159.04`; [`DeviceInfo`](warpstride::driver::DeviceInfo) has the
    /// version of CUDA.
    pub(crate) release: String,
}

/// Returns the identity of a device; `None` if the device reports none.
pub(crate) fn identity(device: &warpstride::Device) -> Option<Identity> {
    let uuid = at(device.info().pci_bus_id.as_deref()?)?.uuid().ok()?;
    Some(Identity { uuid, release: nvml()?.sys_driver_version().ok()? })
}

/// Returns the generation and the lanes of a device's PCI Express link, as fast as device and
/// system can make it: an idle device may report less. `None` if the device reports none.
pub(crate) fn link(device: &warpstride::Device) -> Option<[u32; 2]> {
    let device = at(device.info().pci_bus_id.as_deref()?)?;
    Some([device.max_pcie_link_gen().ok()?, device.max_pcie_link_width().ok()?])
}

/// Returns the clocks of the GPU at a PCI bus id, for `measure::read_clocks_by`.
pub(crate) fn clocks(pci_bus_id: &str) -> Option<Clocks> {
    let device = at(pci_bus_id)?;
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

fn at(pci_bus_id: &str) -> Option<Device<'static>> {
    nvml()?.device_by_pci_bus_id(pci_bus_id).ok()
}

fn nvml() -> Option<&'static Nvml> {
    // Loading takes milliseconds, and a library that was not there will not come.
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    NVML.get_or_init(|| Nvml::init().ok()).as_ref()
}
