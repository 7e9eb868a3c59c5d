//! How a side's runs are numbered, and where tiles lie.

use super::growth::{Order, Packing};
use super::room::Room;
use crate::abi::{Digit, Divisor, Index, PACKED_AXES, PackedTiles};
use crate::layout::MAX_RANK;
use crate::layout::walk::{Axis, Canonical};
use crate::ops::numbering::{axes, divisor};
use crate::ops::plan::{Decline, at_most};
use crate::ops::units::VECTOR;

/// The vectors of a side of a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lay {
    /// Most vectors that hold a part of a run.
    pub(super) words: usize,
    pub(super) runs: usize,
}

/// How the chunked axes cut the runs of a side; see [`QuadSide`](crate::abi::QuadSide).
pub(super) struct Runs {
    pub(super) len: u64,
    pub(super) unit: u64,
    pub(super) chunk: u64,
    pub(super) chunked: [u64; 2],
}

impl Packing {
    /// Returns the vectors that hold a side's runs.
    pub(super) fn lay(&self, order: &Order, aligned: bool) -> Lay {
        let (lanes, len) = (VECTOR / order.width, self.run(order));
        let words = if aligned { len.div_ceil(lanes) } else { (len + 2 * (lanes - 1)) / lanes };
        Lay { words, runs: self.runs(order) }
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
        let ([src_width, dst_width], divisor) = (self.widths(), divisor(index));
        let parts = chunks.map(|axis| self.parts(axis));
        let batch = || (0..self.rank).filter(|&axis| self.taken[axis] == 1).map(|axis| &self.axes[axis]);
        let [first, second] = axes(parts.iter().map(|(walk, ..)| walk), divisor);
        let span = canonical.src_span();
        let tiles = PackedTiles {
            src: (self.src_start * src_width) as u64,
            dst: self.dst_low().wrapping_mul(dst_width) as u64,
            src_start: (span.start * src_width) as u64,
            src_end: (span.end * src_width) as u64,
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
