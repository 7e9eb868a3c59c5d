//! Several GPUs of a command, and the plan of an array over them.

use anyhow::Result;
use warpstride::device::{Backend, Device, probe};
use warpstride::distributed::{Gpus, Redistribution, Split};
use warpstride::driver::DriverKind;
use warpstride::element::DType;
use warpstride::error::counted;

use super::args::Axes;
use super::{array_bytes, require};

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

/// Plans the redistribution of an array from some cuts to others. Its axes stay in their order if
/// no other one is given.
pub(super) fn plan(
    shape: &[usize],
    axes: Option<&Axes>,
    [from, to]: [&str; 2],
    dtype: DType,
) -> Result<Redistribution> {
    array_bytes(shape, dtype)?;
    let order = match axes {
        Some(axes) => axes.of(shape)?,
        None => (0..shape.len()).collect(),
    };
    let result: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let (from, to) = (Split::parse(shape, from)?, Split::parse(&result, to)?);
    Ok(Redistribution::new(&from, order, &to, dtype.width())?)
}
