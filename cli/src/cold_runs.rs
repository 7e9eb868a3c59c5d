//! Runs of a kernel from a source to a result, each on the next set of a rotation.

use anyhow::Result;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation, Timing};
use warpstride::stream::Stream;
use warpstride::view::{View, ViewMut};

use super::verify::Launch;

/// The sources and the results of a rotation.
pub(super) struct ColdRuns<S: Element, D: Element = S> {
    rotation: Rotation,
    sources: RotatingBuffer<S>,
    results: RotatingBuffer<D>,
}

impl<S: Element, D: Element> ColdRuns<S, D> {
    /// Sources that all are `elements`, and results of `len` elements.
    pub(super) fn new(rotation: Rotation, elements: &[S], len: usize) -> Result<Self> {
        let (sources, results) = (rotation.upload(elements)?, rotation.zeros(len)?);
        Ok(Self { rotation, sources, results })
    }

    /// Device times of `launch`, each with a cold L2 cache.
    pub(super) fn time(&mut self, samples: usize, mut launch: impl Launch<S, D>) -> Result<Timing> {
        self.time_parts(samples, &[()], |(), source, result| launch(source, result))
    }

    /// The same for an operation in parts (at least one), each of fewer launches than a stream's
    /// queue holds.
    pub(super) fn time_parts<P>(
        &mut self,
        samples: usize,
        parts: &[P],
        mut launch: impl FnMut(&P, View<'_, S>, ViewMut<'_, D>) -> Result<(), Error>,
    ) -> Result<Timing> {
        let Self { rotation, sources, results } = self;
        let device = rotation.device().clone();
        let mut set = 0;
        Ok(measure::time_parts(&device, device.default_stream(), samples, parts.len(), |part| {
            if part == 0 {
                set = rotation.advance();
            }
            launch(&parts[part], sources.view(set)?, results.view_mut(set)?)
        })?)
    }

    /// Device times of a graph for each set, which captures what `queue` queues. `None` for more
    /// sets than `most_sets`.
    pub(super) fn time_graphs(
        &mut self,
        samples: usize,
        most_sets: usize,
        mut queue: impl FnMut(View<'_, S>, ViewMut<'_, D>, &Stream) -> Result<(), Error>,
    ) -> Result<Option<Timing>> {
        let Self { rotation, sources, results } = self;
        if rotation.sets() > most_sets {
            return Ok(None);
        }
        let device = rotation.device().clone();
        let stream = device.default_stream();
        let capture = |set| stream.capture(|s| queue(sources.view(set)?, results.view_mut(set)?, s));
        let graphs: Vec<_> = (0..rotation.sets()).map(capture).collect::<Result<_, Error>>()?;
        Ok(Some(measure::time(&device, stream, samples, || graphs[rotation.advance()].launch(stream))?))
    }

    /// Microseconds of the host's clock from one launch to the next, where many follow each other.
    pub(super) fn launch_us(&mut self, mut launch: impl Launch<S, D>) -> Result<f64> {
        let device = self.rotation.device().clone();
        Ok(measure::launch_us(device.default_stream(), || self.run(&mut launch))?)
    }

    /// One run.
    pub(super) fn run(&mut self, launch: &mut impl Launch<S, D>) -> Result<(), Error> {
        let set = self.rotation.advance();
        launch(self.sources.view(set)?, self.results.view_mut(set)?)
    }

    /// The result of the first run.
    pub(super) fn first(&self) -> Result<Vec<D>> {
        Ok(self.results.download_first(self.results.len())?)
    }
}
