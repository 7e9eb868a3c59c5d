//! How the threads of a block share the runs of a side, and the tables that they follow.

use super::growth::{Order, Packing};
use super::room::Room;
use crate::abi::{Digit, Divisor, PACKED_AXES, PACKED_STEPS, PACKED_STORES, PackedSide};
use crate::layout::MAX_RANK;
use crate::ops::canonical::Axis as Walk;
use crate::ops::movement::permute::strategy::{Decline, at_most};
use crate::ops::tuning;

/// How the threads of a block share the runs of a side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lay {
    /// Most words of a run.
    words: usize,
    runs: usize,
}

impl Lay {
    /// Returns the threads along a run: the whole run, or equal parts that end on sectors.
    fn across(self, threads: usize) -> usize {
        if self.words <= threads {
            self.words
        } else {
            self.words.div_ceil(self.words.div_ceil(threads)).next_multiple_of(8)
        }
    }

    /// Returns the words that a thread moves, in rounds of `at_once` runs, of which the last may be
    /// partly empty.
    fn steps(self, threads: usize, at_once: u32) -> usize {
        let across = self.across(threads);
        self.words.div_ceil(across) * self.runs.div_ceil(threads / across).next_multiple_of(at_once as usize)
    }
}

/// Returns the fewest total steps and the number of threads that takes them. The time before a
/// thread's first words counts as a few steps.
pub(super) fn threads([src, dst]: [Lay; 2], constants: &tuning::Packed) -> (usize, usize) {
    let steps = |threads: usize| {
        threads * (src.steps(threads, PACKED_STEPS) + dst.steps(threads, PACKED_STORES) + constants.start_steps)
    };
    constants.threads.into_iter().map(|threads| (steps(threads), threads)).min().unwrap_or_default()
}

impl Packing {
    /// Returns how threads share a side.
    pub(super) fn lay(&self, order: &Order, aligned: bool) -> Lay {
        let (lanes, len) = (self.word / self.width, self.run(order));
        let words = if aligned { len.div_ceil(lanes) } else { (len + 2 * (lanes - 1)) / lanes };
        Lay { words, runs: self.runs(order) }
    }

    /// Returns the kernel's parameters of a side.
    pub(super) fn side(
        &self,
        order: &Order,
        room: &Room,
        chunks: [usize; 2],
        aligned: bool,
        threads: usize,
        stride: fn(&Walk) -> isize,
    ) -> Result<PackedSide, Decline> {
        let len = self.run(order);
        let lay = self.lay(order, aligned);
        let (across, Lay { words, runs }) = (lay.across(threads), lay);
        let down = threads / across;
        let (inner_rank, inner) = self.digits(order.axes[..order.inner].iter().copied(), room, stride)?;
        let (outer_rank, outer) = self.outer_digits(order, room, stride)?;
        let last = order.axes[order.inner - 1];
        let chunk = chunks.iter().position(|&axis| axis == last).unwrap_or(2);
        Ok(PackedSide {
            words: words as u64,
            across: Divisor::narrow(across as u64),
            down: down as u64,
            len: len as u64,
            unit: (len / self.taken[last]) as u64,
            chunk: chunk as u64,
            runs: runs as u64,
            entries: runs.next_multiple_of(PACKED_STEPS as usize * down) as u64,
            chunked: chunks.map(|chunk| self.outer(order).position(|axis| axis == chunk).unwrap_or(MAX_RANK) as u64),
            run_table: 0,
            table: 0,
            aligned: u64::from(aligned),
            inner_rank,
            inner,
            outer_rank,
            outer,
        })
    }

    /// Returns the axes that number the runs of a side, which must not lie too far apart.
    pub(super) fn outer_digits(
        &self,
        order: &Order,
        room: &Room,
        stride: fn(&Walk) -> isize,
    ) -> Result<(u64, [Digit; PACKED_AXES]), Decline> {
        let reach = self.outer(order).map(|axis| stride(&self.axes[axis]).unsigned_abs() * (self.taken[axis] - 1));
        let far = "the runs of a tile lie too far apart";
        at_most(reach.sum(), i32::MAX as usize, "elements from the first run of a tile to the last", far)?;
        self.digits(self.outer(order), room, stride)
    }

    /// Returns axes of the tile in the form that kernels walk, and their number.
    pub(super) fn digits(
        &self,
        axes: impl Iterator<Item = usize>,
        room: &Room,
        stride: fn(&Walk) -> isize,
    ) -> Result<(u64, [Digit; PACKED_AXES]), Decline> {
        let mut digits = [Digit { extent: 1, multiplier: 0, shift: 0, room: 0, stride: 0 }; PACKED_AXES];
        let mut rank = 0;
        for axis in axes {
            at_most(rank + 1, PACKED_AXES, "axes of a tile along one side", "a table has no room for more axes")?;
            let Divisor { value, multiplier, shift } = Divisor::narrow(self.taken[axis] as u64);
            digits[rank] = Digit {
                extent: value as u32,
                multiplier: multiplier as u32,
                shift: shift as u32,
                room: room.strides[axis] as u32,
                stride: stride(&self.axes[axis]) as i64,
            };
            rank += 1;
        }
        Ok((rank as u64, digits))
    }

    /// Returns the axis of the parts of `axis`, the length of a part, and the whole length.
    pub(super) fn parts(&self, axis: usize) -> (Walk, usize, usize) {
        let Walk { extent, src, dst } = *self.axes.get(axis).unwrap_or(&Walk { extent: 1, src: 0, dst: 0 });
        let taken = self.taken.get(axis).copied().unwrap_or(1);
        (Walk { extent: extent.div_ceil(taken), src: src * taken as isize, dst: dst * taken as isize }, taken, extent)
    }

    /// Returns the axes that tiles take in parts: the source's, the destination's. An index past
    /// all axes stands for none.
    pub(super) fn chunks(&self) -> [usize; 2] {
        let end = |order: &Order| self.frontier(order).map(|(_, axis)| axis).filter(|&axis| self.taken[axis] > 1);
        let (src, dst) = (end(&self.src), end(&self.dst));
        [src.unwrap_or(MAX_RANK), dst.filter(|_| src != dst).unwrap_or(MAX_RANK)]
    }
}
