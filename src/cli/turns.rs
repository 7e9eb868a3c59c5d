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

/// Bytes that an array of so many takes in its allocation.
pub(super) fn placed(bytes: usize) -> usize {
    bytes.saturating_add(ALIGN - 1) / ALIGN * ALIGN
}

/// How many turns there are until the L2 cache has lost the first, where a run reads or writes arrays of so many bytes; none where
/// time means nothing.
pub(super) fn turns(device: &Device, arrays: &[usize]) -> usize {
    let bytes = arrays.iter().map(|&bytes| placed(bytes) as u64).sum();
    if !output::has_times(device) || bytes == 0 {
        return 0;
    }
    measure::cold_sets(bytes, device.info().l2_bytes)
}

/// Arrays that there is to be room for, where each turn takes so many: one more while those of several turns are made.
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
        let step = len.next_multiple_of(ALIGN / size_of::<T>());
        Ok(Self { all: device.zeros(step * turns.max(1))?, len, step })
    }

    /// Arrays that all hold `elements`, at least one.
    pub(super) fn of(device: &Device, elements: &[T], turns: usize) -> Result<Self> {
        if turns <= 1 {
            return Ok(Self { all: device.upload(elements)?, len: elements.len(), step: 0 });
        }
        let mut arrays = Self::zeros(device, elements.len(), turns)?;
        arrays.refill(elements)?;
        let (mut filled, step, all) = (1, arrays.step, arrays.all.len());
        while filled < turns {
            // As many again: small arrays have very many turns.
            let (from, rest) = arrays.all.view_mut(&[all])?.split_at(0, filled * step)?;
            let more = filled.min(turns - filled);
            let to = rest.slice(0, ..more * step, 1)?;
            ops::copy_into(from.view().slice(0, ..more * step, 1)?, to, device.default_stream())?;
            filled += more;
        }
        Ok(arrays)
    }

    pub(super) fn device(&self) -> &Device {
        self.all.device()
    }

    /// Elements of an array.
    pub(super) fn len(&self) -> usize {
        self.len
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

    /// What the first turn's array begins with; on the device that takes room for it once more.
    pub(super) fn first(&self, len: usize) -> Result<Vec<T>> {
        let mut one = self.device().alloc(len)?;
        ops::copy_into(self.get(0)?.slice(0, ..len, 1)?, one.view_mut(&[len])?, self.device().default_stream())?;
        Ok(one.download()?)
    }
}
