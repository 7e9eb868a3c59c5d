//! Arrays that runs take in turn, so that none finds its own in the L2 cache.

use anyhow::Result;
use warpstride::device::Device;
use warpstride::element::Element;
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::ops;
use warpstride::roofline::measure;
use warpstride::view::{View, ViewMut};

use super::output;

/// Bytes that each array is aligned to, as the driver aligns allocations.
const ALIGN: usize = 256;

/// How many turns there are for an operation that reads and writes so many bytes until the L2 cache has lost the first; none where
/// time means nothing.
pub(super) fn turns(device: &Device, bytes: u64) -> usize {
    if !output::has_times(device) || bytes == 0 {
        return 0;
    }
    measure::cold_sets(bytes, device.info().l2_bytes)
}

/// Arrays that there is room to be for, where each turn takes so many: one more while those of several turns are made.
pub(super) fn arrays(each: usize, turns: usize) -> usize {
    if turns > 1 { each * turns + 1 } else { each }
}

/// Whose turn it is.
pub(super) struct Turns {
    count: usize,
    runs: usize,
}

impl Turns {
    /// At least one.
    pub(super) fn new(count: usize) -> Self {
        Self { count: count.max(1), runs: 0 }
    }

    /// The next one's number. On from run to run, warm-ups included: what was used last is still in the cache.
    pub(super) fn next(&mut self) -> usize {
        self.runs += 1;
        (self.runs - 1) % self.count
    }

    /// Back to the first.
    pub(super) fn restart(&mut self) {
        self.runs = 0;
    }
}

/// Arrays of one length, one a turn, each in a place of its own of one allocation.
pub(super) struct InTurn<T: Element> {
    all: DeviceBuffer<T>,
    len: usize,
    /// From one to the next.
    step: usize,
}

impl<T: Element> InTurn<T> {
    /// Arrays of zeros, at least one.
    pub(super) fn zeros(device: &Device, len: usize, turns: usize) -> Result<Self> {
        // Widths above that of the alignment, there are none.
        let step = len.next_multiple_of(ALIGN / size_of::<T>());
        Ok(Self { all: device.zeros(step * turns.max(1))?, len, step })
    }

    /// Arrays that all hold `elements`, at least one.
    pub(super) fn of(device: &Device, elements: &[T], turns: usize) -> Result<Self> {
        if turns <= 1 {
            return Ok(Self { all: device.upload(elements)?, len: elements.len(), step: 0 });
        }
        let mut arrays = Self::zeros(device, elements.len(), turns)?;
        let one = device.upload(elements)?;
        for turn in 0..turns {
            ops::copy_into(one.view(&[one.len()])?, arrays.get_mut(turn)?, device.default_stream())?;
        }
        Ok(arrays)
    }

    pub(super) fn device(&self) -> &Device {
        self.all.device()
    }

    /// The array of a turn, as one axis.
    pub(super) fn get(&self, turn: usize) -> Result<View<'_, T>, Error> {
        let start = turn * self.step;
        self.all.view(&[self.all.len()])?.slice(0, start..start + self.len, 1)
    }

    /// See [`get`](Self::get).
    pub(super) fn get_mut(&mut self, turn: usize) -> Result<ViewMut<'_, T>, Error> {
        let (start, room) = (turn * self.step, self.all.len());
        self.all.view_mut(&[room])?.slice(0, start..start + self.len, 1)
    }

    /// Gives the first turn's array other elements.
    pub(super) fn refill(&mut self, elements: &[T]) -> Result<()> {
        let one = self.device().upload(elements)?;
        let stream = one.device().default_stream();
        Ok(ops::copy_into(one.view(&[one.len()])?, self.get_mut(0)?, stream)?)
    }

    /// What the first turn's array holds; on the device that takes room for one more.
    pub(super) fn first(&self) -> Result<Vec<T>> {
        let mut one = self.device().alloc(self.len)?;
        ops::copy_into(self.get(0)?, one.view_mut(&[self.len])?, self.device().default_stream())?;
        Ok(one.download()?)
    }
}
