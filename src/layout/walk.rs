//! Reduces two layouts of one shape to the fewest axes that move the same elements, and grows tiles
//! along such axes.
//!
//! The same work has many notations: with axes of one index, in any order of axes, with an axis cut
//! in two, backwards on both sides. All of them give the same axes here, so plans look at strides
//! only. The steps are those of HPTT (Springer, Su and Bientinesi 2017) and of NumPy's iterator.
//!
//! Permutes, maps, copies of boxes and tiles out of core all start from here.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::{Layout, MAX_RANK};

/// An axis along which both sides walk, with strides in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    /// The number of indices, at least 2 in a [`Canonical`] that is not empty.
    pub(crate) extent: usize,
    /// The source's stride: negative if it runs backwards, 0 if it is broadcast.
    pub(crate) src: isize,
    /// The destination's stride, which [`Canonical::new`] makes positive.
    pub(crate) dst: isize,
}

impl Axis {
    /// The axis of one index.
    pub(crate) const ONE: Self = Self { extent: 1, src: 0, dst: 0 };

    /// Returns the axis walked from its other end, to which the starts of both sides move.
    pub(crate) fn turned(self, src_start: &mut usize, dst_start: &mut usize) -> Self {
        // The layouts' invariants keep both ends in their storages.
        let last = (self.extent - 1) as isize;
        *src_start = src_start.wrapping_add_signed(last * self.src);
        *dst_start = dst_start.wrapping_add_signed(last * self.dst);
        Self { extent: self.extent, src: -self.src, dst: -self.dst }
    }
}

/// The work of a copy: element `src_start + sum(i * src)` of the source's storage goes to element
/// `dst_start + sum(i * dst)` of the destination's, for all indices `i` of the axes.
///
/// [`Canonical::new`] sorts the axes by the destination's stride, the shortest first, and leaves no
/// two neighbours that could be fused. The methods that change single axes say what they leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Canonical {
    /// Bytes of an element. After [`Canonical::widened`] it may be several of the layouts'
    /// elements.
    pub(crate) width: usize,
    /// The start of the walk in the source's storage, in elements.
    pub(crate) src_start: usize,
    /// The start of the walk in the destination's storage, in elements.
    pub(crate) dst_start: usize,
    rank: usize,
    axes: [Axis; MAX_RANK],
}

/// An axis beyond the rank.
const UNUSED: Axis = Axis { extent: 0, src: 0, dst: 0 };

impl Canonical {
    /// Returns the work without elements.
    pub(crate) fn empty(width: usize) -> Self {
        // One unused axis has extent 0, so the work is empty.
        Self { width, src_start: 0, dst_start: 0, rank: 1, axes: [UNUSED; MAX_RANK] }
    }

    /// Returns whether there are no elements.
    pub(crate) fn is_empty(&self) -> bool {
        self.axes().first().is_some_and(|axis| axis.extent == 0)
    }

    /// Returns the work of two layouts of one shape. The destination must not overlap itself.
    pub(crate) fn new(src: &Layout, dst: &Layout, width: usize) -> Self {
        let mut canonical = Self::empty(width);
        canonical.fill(src, dst);
        canonical
    }

    /// Fills in the work of two layouts, as [`Canonical::new`] does, in place because it is large.
    /// `self` must be empty work.
    pub(crate) fn fill(&mut self, src: &Layout, dst: &Layout) {
        if src.is_empty() {
            return;
        }
        (self.src_start, self.dst_start, self.rank) = (src.offset(), dst.offset(), 0);
        // Backwards, because the last axis of most destinations has the shortest stride.
        for ((&extent, &src), &dst) in src.shape().iter().zip(src.strides()).zip(dst.strides()).rev() {
            if extent > 1 {
                self.insert(Axis { extent, src, dst });
            }
        }
        self.fuse();
    }

    /// Inserts an axis in order, so that it runs forwards in the destination, and returns its
    /// place. Neighbours stay unfused.
    pub(crate) fn insert(&mut self, mut axis: Axis) -> usize {
        if axis.dst < 0 {
            axis = axis.turned(&mut self.src_start, &mut self.dst_start);
        }
        // No two strides of the destination are equal, or it would overlap itself.
        let mut at = self.rank;
        while at > 0 && self.axes[at - 1].dst > axis.dst {
            self.axes[at] = self.axes[at - 1];
            at -= 1;
        }
        self.axes[at] = axis;
        self.rank += 1;
        at
    }

    /// Turns an axis forwards in the source, perhaps backwards in the destination. Returns whether
    /// it ran backwards in the source.
    pub(crate) fn turn_forwards_in_source(&mut self, at: usize) -> bool {
        let is_backwards = self.axes[at].src < 0;
        if is_backwards {
            self.axes[at] = self.axes[at].turned(&mut self.src_start, &mut self.dst_start);
        }
        is_backwards
    }

    /// Returns the walk along the other axes than those at these places, without fusing them. A
    /// place beyond the rank stands for no axis. Work without elements stays as it is.
    pub(crate) fn without(mut self, places: [usize; 2]) -> Self {
        if self.is_empty() {
            return self;
        }
        let mut kept = 0;
        for at in (0..self.rank).filter(|at| !places.contains(at)) {
            self.axes[kept] = self.axes[at];
            kept += 1;
        }
        self.truncate(kept);
        self
    }

    /// Fuses neighbours whose outer axis continues where the inner ends, on both sides.
    fn fuse(&mut self) {
        let mut fused = 0;
        for next in 1..self.rank {
            let (inner, outer) = (self.axes[fused], self.axes[next]);
            let goes_on = |inner_stride: isize, outer_stride: isize| {
                inner_stride.checked_mul(inner.extent as isize) == Some(outer_stride)
            };
            if goes_on(inner.src, outer.src) && goes_on(inner.dst, outer.dst) {
                // This cannot overflow: no product of some extents of a layout does.
                self.axes[fused].extent *= outer.extent;
            } else {
                fused += 1;
                self.axes[fused] = outer;
            }
        }
        self.truncate((fused + 1).min(self.rank));
    }

    /// Resets the axes beyond `rank`, so that equal work compares equal.
    fn truncate(&mut self, rank: usize) {
        self.axes[rank..self.rank].fill(UNUSED);
        self.rank = rank;
    }

    /// Returns the same work in the widest elements, of at most 16 bytes, that are contiguous on
    /// both sides and that all strides and the alignment of both storages, in bytes, allow.
    pub(crate) fn widened(mut self, align: u64) -> Self {
        let &[Axis { extent, src: 1, dst: 1 }, ref outer @ ..] = self.axes() else { return self };
        let strides = outer.iter().fold(0, |bits, axis| bits | axis.src | axis.dst) as usize;
        // A power of two divides all of these numbers if it divides their bitwise or.
        let elements = extent | strides | self.src_start | self.dst_start;
        let most = (16 / self.width).min(align as usize / self.width).max(1);
        let factor = 1 << elements.trailing_zeros().min(most.trailing_zeros());
        self.width *= factor;
        self.src_start /= factor;
        self.dst_start /= factor;
        self.axes[0].extent /= factor;
        for axis in &mut self.axes[1..self.rank] {
            axis.src /= factor as isize;
            axis.dst /= factor as isize;
        }
        if self.axes[0].extent == 1 {
            self.axes.copy_within(1.., 0);
            self.truncate(self.rank - 1);
        }
        self
    }

    /// Returns the same work in bytes, for elements that are contiguous on both sides.
    pub(crate) fn in_bytes(mut self) -> Self {
        debug_assert!(self.together() > 1, "the bytes of one element are not an axis of {self:?}");
        self.src_start *= self.width;
        self.dst_start *= self.width;
        self.axes[0].extent *= self.width;
        for axis in &mut self.axes[1..self.rank] {
            axis.src *= self.width as isize;
            axis.dst *= self.width as isize;
        }
        self.width = 1;
        self
    }

    /// Returns the axes, the destination's innermost first.
    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank]
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.axes().iter().map(|axis| axis.extent).product()
    }

    /// Returns the length of the first run of elements that is contiguous on both sides, at least
    /// 1.
    pub(crate) fn together(&self) -> usize {
        match self.axes() {
            &[Axis { extent, src: 1, dst: 1 }, ..] => extent,
            _ => 1,
        }
    }

    /// Returns the range of the source's storage from its first element to its last if it holds
    /// each element once and nothing else; else an empty range.
    pub(crate) fn src_span(&self) -> Range<usize> {
        // Without gaps, every stride is the product of the extents of the shorter ones.
        let (mut len, mut below) = (1, 0);
        while let Some(axis) = self.axes().iter().find(|axis| axis.src.unsigned_abs() == len) {
            if axis.src < 0 {
                below += len * (axis.extent - 1);
            }
            len *= axis.extent;
        }
        if len == self.len() { self.src_start - below..self.src_start - below + len } else { 0..0 }
    }

    /// Returns the places of the first axis along which only the destination is contiguous, and of
    /// the first along which the source is, perhaps backwards.
    pub(crate) fn rows_and_columns(&self) -> [Option<usize>; 2] {
        let place = |is: fn(&Axis) -> bool| self.axes().iter().position(is);
        [place(|axis| axis.dst == 1 && axis.src.unsigned_abs() != 1), place(|axis| axis.src.unsigned_abs() == 1)]
    }

    /// Returns the bytes that each side, with elements of its width, reaches in its storage.
    pub(crate) fn reach(&self, widths: [usize; 2]) -> [Reach; 2] {
        let mut ends = [[self.src_start; 2], [self.dst_start; 2]];
        for axis in self.axes() {
            for ([first, last], stride) in ends.iter_mut().zip([axis.src, axis.dst]) {
                // The layouts' invariants keep both ends in their storages.
                let steps = stride.wrapping_mul(axis.extent as isize - 1);
                let end = if steps < 0 { first } else { last };
                *end = end.wrapping_add_signed(steps);
            }
        }
        // A storage has at most isize::MAX bytes, as every plan checks.
        let bytes = |[first, last]: [usize; 2], width| Reach { first: first * width, end: (last + 1) * width };
        [bytes(ends[0], widths[0]), bytes(ends[1], widths[1])]
    }
}

/// Returns the elements of a tile's run on a side whose axes have this order, and the axis that
/// would extend it; `None` if the tile has all of the axes.
pub(crate) fn frontier(
    order: impl IntoIterator<Item = usize>,
    taken: &[usize],
    extent: impl Fn(usize) -> usize,
) -> Option<(usize, usize)> {
    let mut run = 1;
    order.into_iter().find_map(|axis| {
        run *= taken[axis];
        (taken[axis] < extent(axis)).then_some((run, axis))
    })
}

/// Returns the frontiers of a source and a destination along which a tile is to grow: first the one
/// whose run is shorter in multiples of its weight.
pub(crate) fn shorter_first(
    [src, dst]: [Option<(usize, usize)>; 2],
    [src_weight, dst_weight]: [usize; 2],
) -> impl Iterator<Item = (usize, usize)> {
    let dst_first = match (src, dst) {
        (Some(src), Some(dst)) => dst.0.saturating_mul(src_weight) < src.0.saturating_mul(dst_weight),
        _ => false,
    };
    (if dst_first { [dst, src] } else { [src, dst] }).into_iter().flatten()
}

/// Returns the indices of the parts of an axis if as few of them as have `taken` are about equal.
pub(crate) fn even_part(extent: usize, taken: usize) -> usize {
    extent.div_ceil(extent.div_ceil(taken).max(1)).max(1)
}

/// The bytes from the first to the last that one side reaches, from the start of its storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reach {
    /// The first byte.
    pub(crate) first: usize,
    /// The byte after the last.
    pub(crate) end: usize,
}

impl Reach {
    /// Returns the same bytes of a storage at this address. Wide integers hold any raw address.
    #[inline]
    pub(crate) fn at(self, address: u64) -> Range<u128> {
        let at = |bytes: usize| u128::from(address) + bytes as u128;
        at(self.first)..at(self.end)
    }
}

#[cfg(test)]
mod tests;
