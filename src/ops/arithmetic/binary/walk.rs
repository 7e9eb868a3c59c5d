//! Reduces three layouts of one shape to the fewest axes that compute the same elements, as
//! [`layout::walk`](crate::layout::walk) does for two.

use crate::layout::{Layout, MAX_RANK};

/// Sides of the walk: the destination and both operands, by their places in strides.
pub(super) const SIDES: usize = 3;

/// An axis along which all sides walk, with strides in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Axis {
    pub(super) extent: usize,
    pub(super) strides: [isize; SIDES],
}

/// The axes that all sides walk, the destination's shortest stride first, and where they start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Walk {
    /// The start of each side in its storage, in elements.
    pub(super) starts: [usize; SIDES],
    rank: usize,
    axes: [Axis; MAX_RANK],
}

impl Walk {
    /// Returns the walk of layouts of one shape, of which the destination, the first, reaches each
    /// of its elements once. A side without a layout has no memory, and so no strides.
    pub(super) fn new(layouts: [Option<&Layout>; SIDES]) -> Self {
        let mut walk = Self { starts: [0; SIDES], rank: 1, axes: [Axis::default(); MAX_RANK] };
        if layouts[0].is_some_and(Layout::is_empty) {
            // One axis has extent 0, so there are no elements.
            return walk;
        }
        (walk.starts, walk.rank) = (layouts.map(|layout| layout.map_or(0, Layout::offset)), 0);
        let shape = layouts[0].map_or(&[][..], Layout::shape);
        for (at, &extent) in shape.iter().enumerate().rev().filter(|&(_, &extent)| extent != 1) {
            walk.insert(Axis {
                extent,
                strides: layouts.map(|layout| layout.map_or(0, |layout| layout.strides()[at])),
            });
        }
        walk.fuse();
        walk
    }

    /// Inserts an axis in order, so that it runs forwards in the destination.
    fn insert(&mut self, mut axis: Axis) {
        if axis.strides[0] < 0 {
            let last = (axis.extent - 1) as isize;
            for (start, stride) in self.starts.iter_mut().zip(&mut axis.strides) {
                // The layouts' invariants keep both ends in their storages.
                *start = start.wrapping_add_signed(last * *stride);
                *stride = -*stride;
            }
        }
        let mut at = self.rank;
        while at > 0 && self.axes[at - 1].strides[0] > axis.strides[0] {
            self.axes[at] = self.axes[at - 1];
            at -= 1;
        }
        self.axes[at] = axis;
        self.rank += 1;
    }

    /// Fuses neighbours whose outer axis continues where the inner ends, on all sides.
    fn fuse(&mut self) {
        let mut fused = 0;
        for next in 1..self.rank {
            let (inner, outer) = (self.axes[fused], self.axes[next]);
            let goes_on =
                |side: usize| inner.strides[side].checked_mul(inner.extent as isize) == Some(outer.strides[side]);
            if (0..SIDES).all(goes_on) {
                // This cannot overflow: no product of some extents of a layout does.
                self.axes[fused].extent *= outer.extent;
            } else {
                fused += 1;
                self.axes[fused] = outer;
            }
        }
        let rank = (fused + 1).min(self.rank);
        // Equal work compares equal.
        self.axes[rank..].fill(Axis::default());
        self.rank = rank;
    }

    /// Returns the axes, the destination's innermost first.
    pub(super) fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank]
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> u64 {
        self.axes().iter().map(|axis| axis.extent as u64).product()
    }

    /// Returns the elements that a side has, each counted once however often it repeats.
    pub(super) fn distinct(&self, side: usize) -> u64 {
        let extent = |axis: &Axis| if axis.strides[side] == 0 { axis.extent.min(1) } else { axis.extent };
        self.axes().iter().map(|axis| extent(axis) as u64).product()
    }
}

#[cfg(test)]
mod tests;
