//! Runs of a kernel from a source to a result, each on the next set of a rotation.

use anyhow::Result;
use bytemuck::Pod;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::ops;
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation, Timing};
use warpstride::view::{View, ViewMut};

use super::reference;

/// Makes the elements of one array from those of another. Both come as one axis, which the launch
/// splits into its own shape.
pub(super) trait Launch<S, D = S>: FnMut(View<'_, S>, ViewMut<'_, D>) -> Result<(), Error> {}
impl<S, D, F: FnMut(View<'_, S>, ViewMut<'_, D>) -> Result<(), Error>> Launch<S, D> for F {}

/// The sources and the results of a rotation.
pub(super) struct ColdRuns<S: Element, D: Element = S> {
    pub(super) rotation: Rotation,
    pub(super) sources: RotatingBuffer<S>,
    pub(super) results: RotatingBuffer<D>,
}

impl<S: Element, D: Element> ColdRuns<S, D> {
    /// Makes sources that all are `elements`, and results of `len` elements.
    pub(super) fn new(rotation: Rotation, elements: &[S], len: usize) -> Result<Self> {
        let (sources, results) = (rotation.upload(elements)?, rotation.zeros(len)?);
        Ok(Self { rotation, sources, results })
    }

    /// Makes the first set the next, and its result wrong everywhere: what a kernel leaves out of
    /// the `expected` elements is seen. Those may be fewer than the result has.
    pub(super) fn begin(&mut self, expected: &[D]) -> Result<()>
    where
        D: Pod,
    {
        let mut wrong = reference::complement(expected)?;
        wrong.resize(self.results.len(), D::zeroed());
        self.rotation.restart();
        Ok(self.results.upload_first(&wrong)?)
    }

    /// Times `launch` on the device, each time with a cold L2 cache.
    pub(super) fn time(&mut self, samples: usize, mut launch: impl Launch<S, D>) -> Result<Timing> {
        let Self { rotation, sources, results } = self;
        let device = rotation.device().clone();
        Ok(measure::time(&device, device.default_stream(), samples, || {
            let set = rotation.advance();
            launch(sources.view(set)?, results.view_mut(set)?)
        })?)
    }
}

/// Queues the copy that all other kernels are held against.
pub(super) fn copy<T: Element>(source: View<'_, T>, result: ViewMut<'_, T>) -> Result<(), Error> {
    ops::copy_into(source, result, source.device().default_stream())
}
