//! Reduces two layouts to the fewest axes that move the same elements, one of which may be the
//! channels'.

#![forbid(unsafe_code)]

use crate::error::Result;
use crate::layout::{Layout, MAX_RANK};
use crate::ops::canonical::{Axis, Canonical, Reach, reach};

/// Like [`Canonical`], but the channels' axis is not fused with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axes {
    /// Where the walk starts in the source's storage, in elements.
    pub(super) src_start: usize,
    /// Where the walk starts in the destination's storage, in elements.
    pub(super) dst_start: usize,
    axes: [Axis; MAX_RANK],
    rank: usize,
    /// The position of the channels' axis, if it has more than one index.
    pub(super) channel: Option<usize>,
    /// Whether the last channel comes first.
    pub(super) reversed: bool,
}

impl Axes {
    /// Takes two layouts of one shape, which has elements. The destination must not overlap itself.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they have no such axis.
    pub(super) fn new(src: &Layout, dst: &Layout, channel: Option<usize>) -> Result<Self> {
        let Some(at) = channel else { return Ok(Self::of(&Canonical::new(src, dst, 1))) };
        let mut axes = Self::of(&Canonical::new(&src.index_axis(at, 0)?, &dst.index_axis(at, 0)?, 1));
        let axis = Axis { extent: src.shape()[at], src: src.strides()[at], dst: dst.strides()[at] };
        if axis.extent > 1 {
            axes.insert(axis);
        }
        Ok(axes)
    }

    fn of(canonical: &Canonical) -> Self {
        let none = Axis { extent: 1, src: 0, dst: 0 };
        let (src_start, dst_start, rank) = (canonical.src_start, canonical.dst_start, canonical.axes().len());
        let mut axes = [none; MAX_RANK];
        axes[..rank].copy_from_slice(canonical.axes());
        Self { src_start, dst_start, axes, rank, channel: None, reversed: false }
    }

    /// Inserts the channels' axis in the order of the destination's strides.
    fn insert(&mut self, mut axis: Axis) {
        if axis.dst < 0 {
            axis = self.turned(axis);
            self.reversed = true;
        }
        let at = self.as_slice().partition_point(|other| other.dst < axis.dst);
        self.axes.copy_within(at..self.rank, at + 1);
        self.axes[at] = axis;
        self.rank += 1;
        self.channel = Some(at);
    }

    /// Returns the axis walked from its other end, where both sides then start.
    fn turned(&mut self, axis: Axis) -> Axis {
        let last = (axis.extent - 1) as isize;
        self.src_start = self.src_start.wrapping_add_signed(last * axis.src);
        self.dst_start = self.dst_start.wrapping_add_signed(last * axis.dst);
        Axis { extent: axis.extent, src: -axis.src, dst: -axis.dst }
    }

    /// Returns the same work with this axis forwards in the source, perhaps backwards in the
    /// destination.
    pub(super) fn forwards_in_source(mut self, at: usize) -> Self {
        if self.axes[at].src < 0 {
            self.axes[at] = self.turned(self.axes[at]);
            self.reversed ^= self.channel == Some(at);
        }
        self
    }

    /// Returns the axes, the destination's innermost first.
    pub(super) fn as_slice(&self) -> &[Axis] {
        &self.axes[..self.rank]
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.as_slice().iter().map(|axis| axis.extent).product()
    }

    /// Returns the bytes that each side reaches in its storage, of elements of these widths.
    pub(super) fn reach(&self, widths: [usize; 2]) -> [Reach; 2] {
        reach(self.as_slice(), [(self.src_start, widths[0]), (self.dst_start, widths[1])])
    }

    /// Returns the greatest distance of two elements on a side, in elements.
    pub(super) fn farthest(&self) -> usize {
        let [src, dst] = self.reach([1; 2]).map(|side| side.end - side.first - 1);
        src.max(dst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c_order(shape: &[usize]) -> Layout {
        Layout::row_major(shape).unwrap()
    }

    #[test]
    fn the_channels_axis_stays_its_own() {
        let images = c_order(&[2, 3, 4, 5]);
        let fused = Axes::new(&images, &images, None).unwrap();
        assert_eq!(fused.as_slice(), [Axis { extent: 120, src: 1, dst: 1 }]);
        let axes = Axes::new(&images, &images, Some(1)).unwrap();
        let axis = |extent, stride| Axis { extent, src: stride, dst: stride };
        assert_eq!(axes.as_slice(), [axis(20, 1), axis(3, 20), axis(2, 60)]);
        assert_eq!((axes.channel, axes.reversed, axes.len(), axes.farthest()), (Some(1), false, 120, 119));
        // One channel makes no axis.
        assert_eq!(Axes::new(&c_order(&[1, 9]), &c_order(&[1, 9]), Some(0)).unwrap().channel, None);
    }

    #[test]
    fn channels_that_run_backwards_are_known() {
        let (src, dst) = (c_order(&[3, 4]), c_order(&[3, 4]).reverse(0).unwrap());
        let axes = Axes::new(&src, &dst, Some(0)).unwrap();
        assert_eq!((axes.channel, axes.reversed), (Some(1), true));
        assert_eq!((axes.src_start, axes.dst_start), (8, 0));
        assert_eq!(axes.as_slice()[1], Axis { extent: 3, src: -4, dst: 4 });
        let back = axes.forwards_in_source(1);
        assert_eq!((back.reversed, back.src_start, back.dst_start), (false, 0, 8));
        assert_eq!(back.as_slice()[1], Axis { extent: 3, src: 4, dst: -4 });
        // Both walks reach the same bytes.
        let all = [Reach { first: 0, end: 12 }, Reach { first: 0, end: 48 }];
        assert_eq!([axes.reach([1, 4]), back.reach([1, 4])], [all; 2]);
    }
}
