//! Reduces two layouts of one shape to the fewest axes that move the same elements.
//!
//! The same work has many notations: with axes of one index, in any order of axes, with an axis cut
//! in two, backwards on both sides. All of them give the same axes here, so plans look at strides
//! only. The steps are those of HPTT (Springer, Su and Bientinesi 2017) and of NumPy's iterator.

#![forbid(unsafe_code)]

use std::ops::Range;

use crate::layout::{Layout, MAX_RANK};
use crate::ops::Align;

/// An axis along which both sides walk, with strides in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::ops) struct Axis {
    /// The number of indices, at least 2.
    pub(in crate::ops) extent: usize,
    /// The source's stride: negative if it runs backwards, 0 if it is broadcast.
    pub(in crate::ops) src: isize,
    /// The destination's stride, which is positive.
    pub(in crate::ops) dst: isize,
}

/// The work of a copy: element `src_start + sum(i * src)` of the source's storage goes to element
/// `dst_start + sum(i * dst)` of the destination's, for all indices `i` of the axes.
///
/// The axes are sorted by the destination's stride, the shortest first, and no two neighbours could
/// be fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::ops) struct Canonical {
    /// Bytes of an element. After [`Canonical::widened`] it may be several of the layouts'
    /// elements.
    pub(in crate::ops) width: usize,
    /// Where the walk starts in the source's storage, in elements.
    pub(in crate::ops) src_start: usize,
    /// Where the walk starts in the destination's storage, in elements.
    pub(in crate::ops) dst_start: usize,
    rank: usize,
    axes: [Axis; MAX_RANK],
}

/// An axis beyond the rank.
const UNUSED: Axis = Axis { extent: 0, src: 0, dst: 0 };

impl Canonical {
    /// Returns the work without elements.
    pub(in crate::ops) fn empty(width: usize) -> Self {
        // One unused axis has extent 0, so the work is empty.
        Self { width, src_start: 0, dst_start: 0, rank: 1, axes: [UNUSED; MAX_RANK] }
    }

    /// Whether there are no elements.
    pub(in crate::ops) fn is_empty(&self) -> bool {
        self.axes().first().is_some_and(|axis| axis.extent == 0)
    }

    /// Returns the work of two layouts of one shape. The destination must not overlap itself.
    pub(in crate::ops) fn new(src: &Layout, dst: &Layout, width: usize) -> Self {
        let mut canonical = Self::empty(width);
        canonical.fill(src, dst);
        canonical
    }

    /// Fills in the work of two layouts, as [`Canonical::new`] does, in place because it is large.
    /// `self` must be empty work.
    pub(in crate::ops) fn fill(&mut self, src: &Layout, dst: &Layout) {
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

    /// Inserts an axis in order, so that it runs forwards in the destination.
    fn insert(&mut self, mut axis: Axis) {
        if axis.dst < 0 {
            // The walk starts at the other end. The layouts' invariants keep both ends in their
            // storages.
            let last = (axis.extent - 1) as isize;
            self.src_start = self.src_start.wrapping_add_signed(last * axis.src);
            self.dst_start = self.dst_start.wrapping_add_signed(last * axis.dst);
            axis = Axis { extent: axis.extent, src: -axis.src, dst: -axis.dst };
        }
        // No two strides of the destination are equal, or it would overlap itself.
        let mut at = self.rank;
        while at > 0 && self.axes[at - 1].dst > axis.dst {
            self.axes[at] = self.axes[at - 1];
            at -= 1;
        }
        self.axes[at] = axis;
        self.rank += 1;
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
    /// both sides and that the alignments of the storages and of all strides allow.
    pub(in crate::ops) fn widened(mut self, src_align: Align, dst_align: Align) -> Self {
        let &[Axis { extent, src: 1, dst: 1 }, ref outer @ ..] = self.axes() else { return self };
        let strides = outer.iter().fold(0, |bits, axis| bits | axis.src | axis.dst) as usize;
        // A power of two divides all of these numbers if it divides their bitwise or.
        let elements = extent | strides | self.src_start | self.dst_start;
        let most = (16 / self.width).min(src_align.min(dst_align).bytes() as usize / self.width).max(1);
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
    pub(in crate::ops) fn in_bytes(mut self) -> Self {
        debug_assert!(self.together() > 1, "the bytes of one element are no axis of {self:?}");
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
    pub(in crate::ops) fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank]
    }

    /// Returns the number of elements.
    pub(in crate::ops) fn len(&self) -> usize {
        self.axes().iter().map(|axis| axis.extent).product()
    }

    /// Returns the length of the first run of elements that is contiguous on both sides, at least
    /// 1.
    pub(in crate::ops) fn together(&self) -> usize {
        match self.axes() {
            &[Axis { extent, src: 1, dst: 1 }, ..] => extent,
            _ => 1,
        }
    }

    /// Returns the range of the source's storage from its first element to its last if it holds
    /// each element once and nothing else; else an empty range.
    pub(in crate::ops) fn src_span(&self) -> Range<usize> {
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

    /// Returns the bytes that each side reaches in its storage.
    pub(in crate::ops) fn reach(&self) -> [Reach; 2] {
        reach(self.axes(), [(self.src_start, self.width), (self.dst_start, self.width)])
    }
}

/// Returns the bytes that the source and the destination of these axes, which have elements, reach
/// in their storages. Each side has the element at which it starts, and the bytes of one.
pub(in crate::ops) fn reach(axes: &[Axis], sides: [(usize, usize); 2]) -> [Reach; 2] {
    let mut ends = sides.map(|(start, _)| [start; 2]);
    for axis in axes {
        for ([first, last], stride) in ends.iter_mut().zip([axis.src, axis.dst]) {
            // The layouts' invariants keep both ends in their storages.
            let steps = stride.wrapping_mul(axis.extent as isize - 1);
            let end = if steps < 0 { first } else { last };
            *end = end.wrapping_add_signed(steps);
        }
    }
    // A storage has at most isize::MAX bytes, as every plan checks.
    let bytes = |[first, last]: [usize; 2], width| Reach { first: first * width, end: (last + 1) * width };
    [bytes(ends[0], sides[0].1), bytes(ends[1], sides[1].1)]
}

/// The bytes from the first to the last that one side reaches, from the start of its storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::ops) struct Reach {
    /// The first byte.
    pub(in crate::ops) first: usize,
    /// The byte after the last.
    pub(in crate::ops) end: usize,
}

impl Reach {
    /// Returns the same bytes of a storage at this address. Wide integers hold any raw address.
    #[inline]
    pub(in crate::ops) fn at(self, address: u64) -> Range<u128> {
        let at = |bytes: usize| u128::from(address) + bytes as u128;
        at(self.first)..at(self.end)
    }
}

#[cfg(test)]
mod tests;
