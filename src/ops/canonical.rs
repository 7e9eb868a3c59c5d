//! Two layouts of one shape as the fewest axes that move the same elements.
//!
//! Whoever plans looks at strides, and the same work can be written down in many ways: with axes of one index, in any order
//! of axes, with an axis cut in two, backwards on both sides. All of them come to the same axes here. The steps are those of
//! HPTT (Springer, Su and Bientinesi 2017) and of NumPy's iterator.

#![forbid(unsafe_code)]

use crate::layout::{Layout, MAX_RANK};
use crate::ops::Align;

/// Positions along which both sides walk; strides in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::ops) struct Axis {
    /// At least 2.
    pub(in crate::ops) extent: usize,
    /// Of the source: negative where it runs backwards, 0 where it is broadcast.
    pub(in crate::ops) src: isize,
    /// Of the destination: positive.
    pub(in crate::ops) dst: isize,
}

/// What is to be moved: element `src_start + sum(i * src)` of the source's storage to element `dst_start + sum(i * dst)` of
/// the destination's, for all indices `i` of the axes.
///
/// The axes are sorted by the destination's stride, the shortest first, and no two neighbours could be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::ops) struct Canonical {
    /// Bytes of an element. After [`Canonical::widened`] an element is several of the layouts'.
    pub(in crate::ops) width: usize,
    /// Where the walk starts in the source's storage, in elements.
    pub(in crate::ops) src_start: usize,
    /// Where it starts in the destination's.
    pub(in crate::ops) dst_start: usize,
    rank: usize,
    axes: [Axis; MAX_RANK],
}

impl Canonical {
    /// Of two layouts of one shape, which has elements; the destination does not overlap itself.
    pub(in crate::ops) fn new(src: &Layout, dst: &Layout, width: usize) -> Self {
        let none = Axis { extent: 1, src: 0, dst: 0 };
        let (src_start, dst_start) = (src.offset(), dst.offset());
        let mut canonical = Self { width, src_start, dst_start, rank: 0, axes: [none; MAX_RANK] };
        for ((&extent, &src), &dst) in src.shape().iter().zip(src.strides()).zip(dst.strides()) {
            if extent > 1 {
                canonical.push(Axis { extent, src, dst });
            }
        }
        // No two strides of the destination are equal, or it would overlap itself.
        canonical.axes[..canonical.rank].sort_unstable_by_key(|axis| axis.dst);
        canonical.fuse();
        canonical
    }

    /// Adds an axis, forwards in the destination.
    fn push(&mut self, mut axis: Axis) {
        if axis.dst < 0 {
            // The walk starts at the other end. The layouts' invariants keep both ends in their storages.
            let last = (axis.extent - 1) as isize;
            self.src_start = self.src_start.wrapping_add_signed(last * axis.src);
            self.dst_start = self.dst_start.wrapping_add_signed(last * axis.dst);
            axis = Axis { extent: axis.extent, src: -axis.src, dst: -axis.dst };
        }
        self.axes[self.rank] = axis;
        self.rank += 1;
    }

    /// Makes one axis of neighbours where, on both sides, the outer goes on where the inner ends.
    fn fuse(&mut self) {
        let mut fused = 0;
        for next in 1..self.rank {
            let (inner, outer) = (self.axes[fused], self.axes[next]);
            let goes_on = |inner_stride: isize, outer_stride: isize| {
                inner_stride.checked_mul(inner.extent as isize) == Some(outer_stride)
            };
            if goes_on(inner.src, outer.src) && goes_on(inner.dst, outer.dst) {
                // No overflow: the product of some extents of a layout never does.
                self.axes[fused].extent *= outer.extent;
            } else {
                fused += 1;
                self.axes[fused] = outer;
            }
        }
        self.truncate((fused + 1).min(self.rank));
    }

    /// Leaves the axes from `rank` on as they are in a new value, so that equal work compares equal.
    fn truncate(&mut self, rank: usize) {
        self.axes[rank..].fill(Axis { extent: 1, src: 0, dst: 0 });
        self.rank = rank;
    }

    /// The same work in the widest elements, of at most 16 bytes, that are contiguous on both sides and that the alignment of
    /// the storages and of every stride allows.
    pub(in crate::ops) fn widened(mut self, src_align: Align, dst_align: Align) -> Self {
        let &[Axis { extent, src: 1, dst: 1 }, ref outer @ ..] = self.axes() else { return self };
        let strides = outer.iter().fold(0, |bits, axis| bits | axis.src | axis.dst) as usize;
        // Two to any power divides all of these numbers where it divides their bitwise or.
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

    /// The same work in bytes, where elements lie side by side on both sides; `None` where not even two do.
    pub(in crate::ops) fn in_bytes(mut self) -> Option<Self> {
        let &[Axis { src: 1, dst: 1, .. }, ..] = self.axes() else { return None };
        self.src_start *= self.width;
        self.dst_start *= self.width;
        self.axes[0].extent *= self.width;
        for axis in &mut self.axes[1..self.rank] {
            axis.src *= self.width as isize;
            axis.dst *= self.width as isize;
        }
        self.width = 1;
        Some(self)
    }

    /// The axes, innermost of the destination first.
    pub(in crate::ops) fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank]
    }

    /// Number of elements.
    pub(in crate::ops) fn len(&self) -> usize {
        self.axes().iter().map(|axis| axis.extent).product()
    }

    /// Whether all elements lie one beside the other, and alike, on both sides.
    pub(in crate::ops) fn is_contiguous(&self) -> bool {
        matches!(self.axes(), [] | [Axis { src: 1, dst: 1, .. }])
    }
}

#[cfg(test)]
mod tests;
