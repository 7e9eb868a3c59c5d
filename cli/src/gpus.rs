//! Opens several GPUs for a command.

use anyhow::Result;
use warpstride::device::{Backend, Device, probe};
use warpstride::distributed::Gpus;
use warpstride::driver::DriverKind;
use warpstride::error::counted;

use super::require;

/// Opens further GPUs beside a device, in the order of their numbers; software GPUs of a host of
/// their own.
pub(super) fn open(device: &Device, count: usize) -> Result<Gpus> {
    require!(count > 0, InvalidArgument, "--gpus is 0; give 1 or more");
    if device.info().kind == DriverKind::Soft {
        return Ok(Gpus::soft(count)?);
    }
    let present = probe().iter().filter(|gpu| gpu.backend != Backend::Soft && gpu.info.is_ok()).count();
    require!(count <= present, Unavailable, "--gpus is {count}, and this host has {}", counted(present, "NVIDIA GPU"));
    let first = device.info().ordinal;
    let others = (0..).filter(|&ordinal| ordinal != first).take(count - 1);
    let others = others.map(|ordinal| Device::open(Backend::Cuda(ordinal)));
    let devices = std::iter::once(Ok(device.clone())).chain(others).collect::<Result<_, _>>()?;
    Ok(Gpus::over(devices)?)
}
