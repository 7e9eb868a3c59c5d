//! A kernel on trial: its result is held against the CPU's, and on a GPU it is timed on arrays that it takes in turn.

use anyhow::Result;
use bytemuck::Pod;
use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::roofline::measure::{self, Timing};
use warpstride::view::{View, ViewMut};

use super::reference;
use super::turns::{InTurn, Turns};

/// Makes the elements of one array from those of another, which it is given as one axis: the shape is its own business.
pub(super) trait Launch<S, D = S>: FnMut(View<'_, S>, ViewMut<'_, D>) -> Result<(), Error> {}
impl<S, D, F: FnMut(View<'_, S>, ViewMut<'_, D>) -> Result<(), Error>> Launch<S, D> for F {}

/// Whether `launch` makes `expected` of `source`, and what it counted.
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

/// What a run counts, on a device that does.
pub(super) fn counted(device: &Device, run: impl FnOnce() -> Result<(), Error>) -> Result<Option<Counters>> {
    let before = device.counters()?;
    run()?;
    Ok(device.counters()?.zip(before).map(|(after, before)| after - before))
}

/// Sources and results that runs take in turn.
pub(super) struct Rotation<S: Element, D: Element = S> {
    sources: InTurn<S>,
    results: InTurn<D>,
    turns: Turns,
}

impl<S: Element, D: Element> Rotation<S, D> {
    /// At least one turn, whose sources are all `elements` and whose results have `len` elements.
    pub(super) fn new(device: &Device, elements: &[S], len: usize, turns: usize) -> Result<Self> {
        let (sources, results) = (InTurn::of(device, elements, turns)?, InTurn::zeros(device, len, turns)?);
        Ok(Self { sources, results, turns: Turns::new(turns) })
    }

    /// Device times of `launch`, each with a cold L2 cache.
    pub(super) fn time(&mut self, samples: usize, mut launch: impl Launch<S, D>) -> Result<Timing> {
        self.time_parts(samples, &[()], |(), source, result| launch(source, result))
    }

    /// The same for an operation in parts (at least one), of which each has fewer launches than a stream's queue holds.
    pub(super) fn time_parts<P>(
        &mut self,
        samples: usize,
        parts: &[P],
        mut launch: impl FnMut(&P, View<'_, S>, ViewMut<'_, D>) -> Result<(), Error>,
    ) -> Result<Timing> {
        let device = self.sources.device().clone();
        let mut turn = 0;
        Ok(measure::time_parts(&device, device.default_stream(), samples, parts.len(), |part| {
            if part == 0 {
                turn = self.turns.next();
            }
            launch(&parts[part], self.sources.get(turn)?, self.results.get_mut(turn)?)
        })?)
    }

    /// Microseconds of the host's clock from one launch to the next, where many follow each other.
    pub(super) fn launch_us(&mut self, mut launch: impl Launch<S, D>) -> Result<f64> {
        let device = self.sources.device().clone();
        Ok(measure::launch_us(device.default_stream(), || self.run(&mut launch))?)
    }

    /// One run.
    pub(super) fn run(&mut self, launch: &mut impl Launch<S, D>) -> Result<(), Error> {
        let turn = self.turns.next();
        launch(self.sources.get(turn)?, self.results.get_mut(turn)?)
    }

    /// What the first run has made.
    pub(super) fn first(&self) -> Result<Vec<D>> {
        self.results.first(self.results.len())
    }
}
