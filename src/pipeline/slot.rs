//! One slot of the ring: page-locked memory and device memory for one batch.

use super::timeline::Marks;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::transfer::{CopyError, InFlight, PinnedPart};

/// A slot. While a batch is on its way, its copies own the host's memory.
pub(super) struct Slot<I: Element, O: Element> {
    /// The place of the slot in the ring.
    pub(super) number: usize,
    pub(super) source: Host<I>,
    pub(super) sink: Host<O>,
    pub(super) input: DeviceBuffer<I>,
    pub(super) output: DeviceBuffer<O>,
    /// The points of the batch on the timeline.
    pub(super) marks: Marks,
}

/// Page-locked memory, or the copy that owns it; neither where a panic of the driver took it along.
pub(super) struct Host<T: Element> {
    memory: Option<PinnedBuffer<T>>,
    copy: Option<InFlight<PinnedPart<T>>>,
}

impl<T: Element> Host<T> {
    /// The memory of a slot that has no copy on its way.
    pub(super) fn memory(&mut self) -> &mut PinnedBuffer<T> {
        self.memory.as_mut().expect("no copy is on its way")
    }

    /// Has `copy` queue a copy of the first `elements`.
    pub(super) fn fly(
        &mut self,
        elements: usize,
        copy: impl FnOnce(PinnedPart<T>) -> Result<InFlight<PinnedPart<T>>, CopyError<PinnedPart<T>>>,
    ) -> Result<()> {
        let memory = self.memory.take().expect("no copy is on its way");
        match copy(PinnedPart::new(memory, elements)) {
            Ok(copy) => {
                self.copy = Some(copy);
                Ok(())
            }
            Err(failed) => Err(self.give_back(failed)),
        }
    }

    /// Waits for the copy, if there is one, and takes the memory back, whether it failed or not.
    /// Returns the number of copied elements.
    fn land(&mut self) -> Result<usize> {
        let Some(copy) = self.copy.take() else { return Ok(0) };
        let part = copy.wait().map_err(|failed| self.give_back(failed))?;
        let elements = part.len();
        self.memory = Some(part.into_buffer());
        Ok(elements)
    }

    /// Takes the memory back from a copy that failed.
    fn give_back(&mut self, failed: CopyError<PinnedPart<T>>) -> Error {
        let error = failed.error().clone();
        self.memory = Some(failed.into_host().into_buffer());
        error
    }

    fn is_done(&mut self) -> Result<bool> {
        self.copy.as_mut().map_or(Ok(true), InFlight::is_done)
    }
}

impl<I: Element, O: Element> Slot<I, O> {
    pub(super) fn new(device: &Device, number: usize, input: usize, output: usize) -> Result<Self> {
        Ok(Self {
            number,
            source: Host { memory: Some(device.pinned_zeros(input)?), copy: None },
            sink: Host { memory: Some(device.pinned_zeros(output)?), copy: None },
            input: device.zeros(input)?,
            output: device.zeros(output)?,
            marks: Marks::default(),
        })
    }

    /// Returns whether the batch has arrived. Nothing waits.
    pub(super) fn has_landed(&mut self) -> Result<bool> {
        // The download comes after the upload, and the last mark behind the download.
        Ok(self.sink.is_done()? && self.source.is_done()? && self.marks.have_passed()?)
    }

    /// Takes the host's memory back; waits where the batch has not arrived. Returns the number of
    /// elements that arrived, or the first failure of the copies.
    pub(super) fn land(&mut self) -> Result<usize> {
        let (upload, download) = (self.source.land(), self.sink.land());
        upload.and(download)
    }

    /// Tells if it has all of its memory.
    pub(super) fn is_whole(&self) -> bool {
        self.source.memory.is_some() && self.sink.memory.is_some()
    }
}
