//! Holds a kernel's result against the CPU's, and counts.

use anyhow::Result;
use bytemuck::Pod;
use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::view::{View, ViewMut};

use super::reference;

/// Makes the elements of one array from those of another. Both come as one axis, which the launch
/// splits into its own shape.
pub(super) trait Launch<S, D = S>: FnMut(View<'_, S>, ViewMut<'_, D>) -> Result<(), Error> {}
impl<S, D, F: FnMut(View<'_, S>, ViewMut<'_, D>) -> Result<(), Error>> Launch<S, D> for F {}

/// Whether `launch` makes `expected` of `source`, and its counters.
pub(super) fn verify<T: Element + Pod>(
    device: &Device,
    source: &DeviceBuffer<T>,
    expected: &[T],
    mut launch: impl Launch<T>,
) -> Result<(bool, Option<Counters>)> {
    let mut elements = reference::complement(expected)?;
    let mut result = device.upload(&elements)?;
    let counters = counted(device, || launch(source.view(&[source.len()])?, result.view_mut(&[expected.len()])?))?;
    result.download_into(&mut elements)?;
    // As bytes: a NaN equals itself here.
    Ok((bytemuck::cast_slice::<T, u8>(&elements) == bytemuck::cast_slice::<T, u8>(expected), counters))
}

/// The counters of a run, on a device that counts.
pub(super) fn counted(device: &Device, run: impl FnOnce() -> Result<(), Error>) -> Result<Option<Counters>> {
    let before = device.counters()?;
    run()?;
    Ok(device.counters()?.zip(before).map(|(after, before)| after - before))
}
