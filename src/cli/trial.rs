//! A kernel on trial: its result is held against the CPU's, and on a GPU it is timed on buffers that it takes in turn.

use anyhow::Result;
use bytemuck::Pod;
use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::roofline::measure::{self, Timing};
use warpstride::view::{View, ViewMut};

use super::{output, reference, zeroed};

/// Bytes that each turn's arrays are aligned to, as the driver aligns allocations.
const ALIGN: usize = 256;

/// Moves elements between arrays, which it is given as one axis: the shape is its own business.
pub(super) trait Launch<T>: FnMut(View<'_, T>, ViewMut<'_, T>) -> Result<(), Error> {}
impl<T, F: FnMut(View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>> Launch<T> for F {}

/// Whether `launch` makes `expected` of `source`, and what it counted.
pub(super) fn verify<T: Element + Pod>(
    device: &Device,
    source: &DeviceBuffer<T>,
    expected: &[T],
    mut launch: impl Launch<T>,
) -> Result<(bool, Option<Counters>)> {
    let mut elements = reference::complement(expected)?;
    let mut result = device.upload(&elements)?;
    let before = device.counters()?;
    launch(source.view(&[source.len()])?, result.view_mut(&[expected.len()])?)?;
    let counters = device.counters()?.zip(before).map(|(after, before)| after - before);
    result.download_into(&mut elements)?;
    // As bytes: a NaN equals itself here.
    Ok((bytemuck::cast_slice::<T, u8>(&elements) == bytemuck::cast_slice::<T, u8>(expected), counters))
}

/// How many turns there are for an operation that reads and writes so many bytes until the L2 cache has lost the first; none where
/// time means nothing.
pub(super) fn turns(device: &Device, bytes: u64) -> usize {
    if !output::has_times(device) || bytes == 0 {
        return 0;
    }
    measure::cold_sets(bytes, device.info().l2_bytes)
}

/// Sources and results that timed runs take in turn, each side in one allocation.
pub(super) struct Rotation<T> {
    sources: DeviceBuffer<T>,
    results: DeviceBuffer<T>,
    /// Elements of an array, and from one to the next.
    len: usize,
    step: usize,
    turns: usize,
    /// Timed runs so far.
    turn: usize,
}

impl<T: Element + Pod> Rotation<T> {
    /// At least one turn, whose sources are all `elements`.
    pub(super) fn new(device: &Device, elements: &[T], turns: usize) -> Result<Self> {
        let len = elements.len();
        let step = len.next_multiple_of(ALIGN / size_of::<T>());
        let sources = if turns == 1 {
            device.upload(elements)?
        } else {
            let mut sources = zeroed::<T>(step * turns)?;
            sources.chunks_exact_mut(step).for_each(|source| source[..len].copy_from_slice(elements));
            device.upload(&sources)?
        };
        let results = device.alloc(sources.len())?;
        Ok(Self { sources, results, len, step, turns, turn: 0 })
    }

    /// Device times of `launch`, each with a cold L2 cache.
    pub(super) fn time(&mut self, samples: usize, mut launch: impl Launch<T>) -> Result<Timing> {
        let device = self.sources.device().clone();
        Ok(measure::time(&device, device.default_stream(), samples, || self.run(&mut launch))?)
    }

    /// Microseconds of the host's clock from one launch to the next, where many follow each other.
    pub(super) fn launch_us(&mut self, mut launch: impl Launch<T>) -> Result<f64> {
        let device = self.sources.device().clone();
        Ok(measure::launch_us(device.default_stream(), || self.run(&mut launch))?)
    }

    /// One run. On from launch to launch, warm-ups included: what was used last is still in the cache.
    fn run(&mut self, launch: &mut impl Launch<T>) -> Result<(), Error> {
        let start = self.turn % self.turns * self.step;
        self.turn += 1;
        let array = start..start + self.len;
        let (sources, results) = (self.sources.len(), self.results.len());
        launch(
            self.sources.view(&[sources])?.slice(0, array.clone(), 1)?,
            self.results.view_mut(&[results])?.slice(0, array, 1)?,
        )
    }
}
