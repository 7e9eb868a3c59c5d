//! Queries the driver and its devices, before one is opened.

use std::ffi::{CStr, c_char, c_int};
use std::{fmt, ptr};

use super::api::{self, Api, Attribute, CUdevice};
use super::error::{self, code};
use crate::driver::{DeviceInfo, DriverKind};
use crate::error::{Result, require};

/// Returns the driver's functions, after `cuInit`.
pub(super) fn initialized() -> Result<&'static Api> {
    let api = api::api()?;
    // SAFETY: it may be called any number of times; flags must be 0.
    let code = unsafe { (api.cuInit)(0) };
    check(api, code, format_args!("cuInit"))?;
    Ok(api)
}

/// Checks as [`super::Cuda::check`] does, before there is a context that could be lost.
pub(super) fn check(api: &Api, code: u32, call: fmt::Arguments<'_>) -> Result<()> {
    if code == code::SUCCESS { Ok(()) } else { Err(error::error(code, call, text(api, code))) }
}

/// Returns name and description of a result code: `CUDA_ERROR_NO_DEVICE (no CUDA-capable device is
/// detected)`.
pub(super) fn text(api: &Api, code: u32) -> String {
    let (mut name, mut description) = (ptr::null(), ptr::null());
    // SAFETY: it takes any code; an unknown one leaves or makes `name` null.
    let _ = unsafe { (api.cuGetErrorName)(code, &mut name) };
    // SAFETY: as above.
    let _ = unsafe { (api.cuGetErrorString)(code, &mut description) };
    match (static_text(name), static_text(description)) {
        (Some(name), Some(description)) => format!("{name} ({description})"),
        (Some(name), None) => name.into_owned(),
        (None, _) => format!("CUDA error {code}"),
    }
}

fn static_text(text: *const c_char) -> Option<std::borrow::Cow<'static, str>> {
    // SAFETY: the pointer is null, or one of the driver's own strings, which end in NUL and are
    // never freed.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

pub(super) fn device_count(api: &Api) -> Result<u32> {
    let mut count = 0;
    // SAFETY: `count` takes the result.
    let code = unsafe { (api.cuDeviceGetCount)(&mut count) };
    check(api, code, format_args!("cuDeviceGetCount"))?;
    Ok(count.max(0) as u32)
}

pub(super) fn device(api: &Api, ordinal: u32) -> Result<CUdevice> {
    let count = device_count(api)?;
    require!(
        ordinal < count,
        Unavailable,
        "there is no CUDA device {ordinal}: the driver has {count}, numbered from 0; `warpstride devices` lists them"
    );
    let mut device = 0;
    // SAFETY: `device` takes the result.
    let code = unsafe { (api.cuDeviceGet)(&mut device, ordinal as c_int) };
    check(api, code, format_args!("cuDeviceGet({ordinal})"))?;
    Ok(device)
}

pub(super) fn device_info(api: &Api, device: CUdevice, ordinal: u32) -> Result<DeviceInfo> {
    use Attribute::*;

    let attribute = |attribute: Attribute| -> Result<u32> {
        let mut value = 0;
        // SAFETY: `device` is one of the driver's, and `value` takes the result.
        let code = unsafe { (api.cuDeviceGetAttribute)(&mut value, attribute, device) };
        check(api, code, format_args!("cuDeviceGetAttribute({attribute:?}, device {ordinal})"))?;
        Ok(value.max(0) as u32)
    };
    let mut name = [0_u8; 256];
    // SAFETY: `name` has the given length.
    let code = unsafe { (api.cuDeviceGetName)(name.as_mut_ptr().cast(), name.len() as c_int, device) };
    check(api, code, format_args!("cuDeviceGetName(device {ordinal})"))?;
    let mut memory_bytes = 0;
    // SAFETY: `device` is one of the driver's, and `memory_bytes` takes the result.
    let code = unsafe { (api.cuDeviceTotalMem_v2)(&mut memory_bytes, device) };
    check(api, code, format_args!("cuDeviceTotalMem(device {ordinal})"))?;
    let mut version = 0;
    // SAFETY: `version` takes the result.
    let code = unsafe { (api.cuDriverGetVersion)(&mut version) };
    check(api, code, format_args!("cuDriverGetVersion"))?;

    // If a future driver lacks an attribute, this loses the bandwidth, not the device.
    let clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0);
    let bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).unwrap_or(0);
    Ok(DeviceInfo {
        name: until_nul(&name),
        kind: DriverKind::Cuda,
        ordinal,
        compute_capability: (
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: format!("{}.{}", version / 1000, version % 1000 / 10),
        multiprocessors: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes: memory_bytes as u64,
        l2_bytes: u64::from(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        nominal_bandwidth: nominal_bandwidth(clock_khz, bus_bits),
        max_block_threads: attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_grid: [
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        shared_bytes_per_block: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        pci_bus_id: Some(format!(
            "{:08X}:{:02X}:{:02X}.0",
            attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?
        )),
    })
}

/// Returns whether the device has pools of memory, as all but a few virtual ones.
pub(super) fn has_pools(api: &Api, device: CUdevice) -> Result<bool> {
    let mut value = 0;
    let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    // SAFETY: `device` is one of the driver's, and `value` takes the result.
    let code = unsafe { (api.cuDeviceGetAttribute)(&mut value, attribute, device) };
    check(api, code, format_args!("cuDeviceGetAttribute({attribute:?})"))?;
    Ok(value != 0)
}

/// Returns bytes a second: two transfers a clock, each as wide as the bus.
fn nominal_bandwidth(clock_khz: u32, bus_bits: u32) -> Option<u64> {
    (clock_khz > 0 && bus_bits > 0).then(|| u64::from(clock_khz) * 1000 * 2 * u64::from(bus_bits) / 8)
}

pub(super) fn until_nul(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_h100_has_3_35_terabytes_a_second_by_its_attributes() {
        assert_eq!(nominal_bandwidth(2_619_000, 5120), Some(3_352_320_000_000));
        assert_eq!(nominal_bandwidth(0, 5120), None);
    }
}
