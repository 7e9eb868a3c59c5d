//! The program's part of a batch on the device.

use super::timeline::{Marks, Recorder, Track};
use crate::driver::nvtx;
use crate::element::Element;
use crate::error::Result;
use crate::memory::DeviceBuffer;
use crate::stream::Stream;
use crate::view::ViewMut;

/// One batch on the device, whose work is to be queued.
pub struct Work<'a, I: Element, O: Element> {
    /// The number of the batch, from 0.
    pub batch: u64,
    /// The number of the slot, from 0. Memory of the program's own that lasts for a batch can be
    /// kept once for each slot.
    pub slot: usize,
    /// The number of elements from the start of `input` that the batch has. The rest is left from
    /// earlier batches, at first zeros.
    pub filled: usize,
    /// The batch.
    pub input: &'a DeviceBuffer<I>,
    /// Takes the results. This is all of the slot's output, as one axis; the slot keeps the
    /// buffer.
    pub output: ViewMut<'a, O>,
    pub(super) stream: &'a Stream,
    pub(super) marks: &'a mut Marks,
    pub(super) recorder: Option<&'a Recorder>,
    pub(super) kept: usize,
}

impl<I: Element, O: Element> Work<'_, I, O> {
    /// Returns the stream to queue on.
    pub fn stream(&self) -> &Stream {
        self.stream
    }

    /// Has only the first `elements` of the output copied to the host; without this call, all.
    pub fn keep(&mut self, elements: usize) {
        self.kept = elements;
    }

    /// Queues a named part of the work, which the timeline and NVIDIA's profilers show. In
    /// [`Mode::Graph`](super::Mode::Graph) the timeline shows the graph as one.
    ///
    /// # Errors
    ///
    /// The error of `part`; else the driver's.
    pub fn range<R>(&mut self, name: &'static str, part: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let _range = nvtx::Range::new(name);
        let start = self.marks.start(self.recorder, self.stream)?;
        let done = part(self)?;
        self.marks.end(self.recorder, self.stream, (name, Track::Work), start)?;
        Ok(done)
    }
}
