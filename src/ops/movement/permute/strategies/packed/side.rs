//! How the threads of a block share the runs of a side, and the tables that they follow.

use super::growth::{Order, Packing};
use super::room::Room;
use crate::abi::{Digit, Divisor, Index, PACKED_AXES, PACKED_STEPS, PACKED_STORES, PackedSide, PackedTiles};
use crate::layout::MAX_RANK;
use crate::layout::walk::{Axis, Canonical};
use crate::ops::movement::permute::strategies::{Decline, at_most, axes, divisor};
use crate::ops::tuning;

/// How the threads of a block share the runs of a side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lay {
    /// Most words of a run.
    pub(super) words: usize,
    pub(super) runs: usize,
}

/// How the chunked axes cut the runs of a side; see [`PackedSide`].
pub(super) struct Runs {
    pub(super) len: u64,
    pub(super) unit: u64,
    pub(super) chunk: u64,
    pub(super) chunked: [u64; 2],
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
    /// Returns how threads share a side that moves in words of this number of bytes.
    pub(super) fn lay(&self, order: &Order, word: usize, aligned: bool) -> Lay {
        let (lanes, len) = (word / self.width, self.run(order));
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
        stride: fn(&Axis) -> isize,
    ) -> Result<PackedSide, Decline> {
        let lay = self.lay(order, self.word, aligned);
        let (across, Lay { words, runs }) = (lay.across(threads), lay);
        let down = threads / across;
        let (inner_rank, inner) = self.digits(order.axes[..order.inner].iter().copied(), room, stride)?;
        let (outer_rank, outer) = self.outer_digits(order, room, stride)?;
        let Runs { len, unit, chunk, chunked } = self.split(order, chunks);
        Ok(PackedSide {
            words: words as u64,
            across: Divisor::narrow(across as u64),
            down: down as u64,
            len,
            unit,
            chunk,
            runs: runs as u64,
            entries: runs.next_multiple_of(PACKED_STEPS as usize * down) as u64,
            chunked,
            run_table: 0,
            table: 0,
            aligned: u64::from(aligned),
            inner_rank,
            inner,
            outer_rank,
            outer,
        })
    }

    /// Returns how the chunked axes cut the runs of a side.
    pub(super) fn split(&self, order: &Order, chunks: [usize; 2]) -> Runs {
        let (len, last) = (self.run(order), order.axes[order.inner - 1]);
        Runs {
            len: len as u64,
            unit: (len / self.taken[last]) as u64,
            chunk: chunks.iter().position(|&axis| axis == last).unwrap_or(2) as u64,
            chunked: chunks.map(|chunk| self.outer(order).position(|axis| axis == chunk).unwrap_or(MAX_RANK) as u64),
        }
    }

    /// Returns the axes that number the runs of a side, which must not lie too far apart.
    pub(super) fn outer_digits(
        &self,
        order: &Order,
        room: &Room,
        stride: fn(&Axis) -> isize,
    ) -> Result<(u64, [Digit; PACKED_AXES]), Decline> {
        let reach = self.outer(order).map(|axis| stride(&self.axes[axis]).unsigned_abs() * (self.taken[axis] - 1));
        let far = "the runs of a tile lie too far apart";
        at_most(reach.sum(), i32::MAX as usize, "elements from the first run of a tile to the last", far)?;
        self.digits(self.outer(order), room, stride)
    }

    /// Returns axes of the tile in the form that kernels walk, and their number.
    pub(super) fn digits<const AXES: usize>(
        &self,
        axes: impl Iterator<Item = usize>,
        room: &Room,
        stride: fn(&Axis) -> isize,
    ) -> Result<(u64, [Digit; AXES]), Decline> {
        let mut digits = [Digit { extent: 1, multiplier: 0, shift: 0, room: 0, stride: 0 }; AXES];
        let mut rank = 0;
        for axis in axes {
            at_most(rank + 1, AXES, "axes of a tile along one side", "a table has no room for more axes")?;
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

    /// Returns where the tiles lie whose parts of axes are `chunks`, and the number of blocks.
    pub(super) fn tiles(&self, canonical: &Canonical, chunks: [usize; 2], index: Index) -> (PackedTiles, u64) {
        let (width, divisor) = (self.width, divisor(index));
        let parts = chunks.map(|axis| self.parts(axis));
        let batch = || (0..self.rank).filter(|&axis| self.taken[axis] == 1).map(|axis| &self.axes[axis]);
        let [first, second] = axes(parts.iter().map(|(walk, ..)| walk), divisor);
        let span = canonical.src_span();
        let tiles = PackedTiles {
            src: (self.src_start * width) as u64,
            dst: self.dst_low().wrapping_mul(width) as u64,
            src_start: (span.start * width) as u64,
            src_end: (span.end * width) as u64,
            chunks: [first, second],
            chunk: parts.map(|(_, taken, _)| taken as u64),
            extents: parts.map(|(.., extent)| extent as u64),
            below: self.reach(|stride| stride < 0) as u64,
            above: self.reach(|stride| stride > 0) as u64,
            rank: batch().count() as u64,
            axes: axes(batch(), divisor),
        };
        let walks = parts.iter().map(|(walk, ..)| walk).chain(batch());
        (tiles, walks.map(|walk| walk.extent as u64).product())
    }

    /// Returns the axis of the parts of `axis`, the length of a part, and the whole length.
    pub(super) fn parts(&self, axis: usize) -> (Axis, usize, usize) {
        let Axis { extent, src, dst } = *self.axes.get(axis).unwrap_or(&Axis::ONE);
        let taken = self.taken.get(axis).copied().unwrap_or(1);
        (Axis { extent: extent.div_ceil(taken), src: src * taken as isize, dst: dst * taken as isize }, taken, extent)
    }

    /// Returns the axes that tiles take in parts: the source's, the destination's. An index past
    /// all axes stands for none.
    pub(super) fn chunks(&self) -> [usize; 2] {
        let end = |order: &Order| self.frontier(order).map(|(_, axis)| axis).filter(|&axis| self.taken[axis] > 1);
        let (src, dst) = (end(&self.src), end(&self.dst));
        [src.unwrap_or(MAX_RANK), dst.filter(|_| src != dst).unwrap_or(MAX_RANK)]
    }
}
