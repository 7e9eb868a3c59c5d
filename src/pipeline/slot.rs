//! One slot of the ring: page-locked memory and device memory for one batch.

use super::timeline::Marks;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::transfer::{InFlight, PinnedPart};

/// A slot whose memory nothing uses.
pub(super) struct Slot<I: Element, O: Element> {
    pub(super) source: PinnedBuffer<I>,
    pub(super) sink: PinnedBuffer<O>,
    pub(super) device: DeviceSide<I, O>,
}

/// The part of a slot that stays on the device while a batch is on its way.
pub(super) struct DeviceSide<I: Element, O: Element> {
    /// The place of the slot in the ring.
    pub(super) number: usize,
    pub(super) input: DeviceBuffer<I>,
    pub(super) output: DeviceBuffer<O>,
    /// The points of the batch on the timeline.
    pub(super) marks: Marks,
}

/// A slot whose batch is on its way.
pub(super) struct Flight<I: Element, O: Element> {
    pub(super) device: DeviceSide<I, O>,
    pub(super) upload: InFlight<PinnedPart<I>>,
    pub(super) download: InFlight<PinnedPart<O>>,
}

impl<I: Element, O: Element> Slot<I, O> {
    pub(super) fn new(device: &Device, number: usize, input: usize, output: usize) -> Result<Self> {
        Ok(Self {
            source: device.pinned_zeros(input)?,
            sink: device.pinned_zeros(output)?,
            device: DeviceSide {
                number,
                input: device.zeros(input)?,
                output: device.zeros(output)?,
                marks: Marks::default(),
            },
        })
    }
}

impl<I: Element, O: Element> Flight<I, O> {
    /// Whether the batch has arrived. Nothing waits.
    pub(super) fn has_landed(&mut self) -> Result<bool> {
        // The download comes after the upload, and the last mark behind the download.
        Ok(self.download.is_done()? && self.upload.is_done()? && self.device.marks.have_passed()?)
    }

    /// Takes the slot back; waits where the batch has not arrived. Also returns the number of
    /// elements that arrived, and the first failure of the copies.
    pub(super) fn land(self) -> (Slot<I, O>, usize, Option<Error>) {
        let (source, upload) = landed(self.upload);
        let (sink, download) = landed(self.download);
        let elements = sink.len();
        let slot = Slot { source: source.into_buffer(), sink: sink.into_buffer(), device: self.device };
        (slot, elements, upload.or(download))
    }
}

/// Waits for a copy, and takes its memory back whether it failed or not.
pub(super) fn landed<H: crate::transfer::Lend>(copy: InFlight<H>) -> (H, Option<Error>) {
    match copy.wait() {
        Ok(host) => (host, None),
        Err(failed) => {
            let error = failed.error().clone();
            (failed.into_host(), Some(error))
        }
    }
}
