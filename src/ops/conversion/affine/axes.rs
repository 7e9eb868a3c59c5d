//! Reduces two layouts to the fewest axes that move the same elements, one of which may be the
//! channels'.

#![forbid(unsafe_code)]

use crate::error::Result;
use crate::layout::Layout;
use crate::layout::walk::{Axis, Canonical};

/// A walk whose channels' axis is not fused with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axes {
    /// The walk, as if elements had one byte on both sides.
    pub(super) walk: Canonical,
    /// The position of the channels' axis, if it has more than one index.
    pub(super) channel: Option<usize>,
    /// True if the last channel comes first.
    pub(super) reversed: bool,
}

impl Axes {
    /// Takes two layouts of one shape, which has elements. The destination must not overlap itself.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they have no such axis.
    pub(super) fn new(src: &Layout, dst: &Layout, channel: Option<usize>) -> Result<Self> {
        let Some(at) = channel else {
            return Ok(Self { walk: Canonical::new(src, dst, 1), channel: None, reversed: false });
        };
        let mut walk = Canonical::new(&src.index_axis(at, 0)?, &dst.index_axis(at, 0)?, 1);
        let axis = Axis { extent: src.shape()[at], src: src.strides()[at], dst: dst.strides()[at] };
        let channel = (axis.extent > 1).then(|| walk.insert(axis));
        Ok(Self { walk, channel, reversed: channel.is_some() && axis.dst < 0 })
    }

    /// Returns the same work with this axis forwards in the source, perhaps backwards in the
    /// destination.
    pub(super) fn forwards_in_source(mut self, at: usize) -> Self {
        let is_turned = self.walk.turn_forwards_in_source(at);
        self.reversed ^= is_turned && self.channel == Some(at);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::walk::Reach;

    fn c_order(shape: &[usize]) -> Layout {
        Layout::row_major(shape).unwrap()
    }

    #[test]
    fn the_channels_axis_stays_its_own() {
        let images = c_order(&[2, 3, 4, 5]);
        let fused = Axes::new(&images, &images, None).unwrap();
        assert_eq!(fused.walk.axes(), [Axis { extent: 120, src: 1, dst: 1 }]);
        let axes = Axes::new(&images, &images, Some(1)).unwrap();
        let axis = |extent, stride| Axis { extent, src: stride, dst: stride };
        assert_eq!(axes.walk.axes(), [axis(20, 1), axis(3, 20), axis(2, 60)]);
        assert_eq!((axes.channel, axes.reversed, axes.walk.len()), (Some(1), false, 120));
        // One channel makes no axis.
        assert_eq!(Axes::new(&c_order(&[1, 9]), &c_order(&[1, 9]), Some(0)).unwrap().channel, None);
    }

    #[test]
    fn channels_that_run_backwards_are_known() {
        let (src, dst) = (c_order(&[3, 4]), c_order(&[3, 4]).reverse(0).unwrap());
        let axes = Axes::new(&src, &dst, Some(0)).unwrap();
        assert_eq!((axes.channel, axes.reversed), (Some(1), true));
        assert_eq!((axes.walk.src_start, axes.walk.dst_start), (8, 0));
        assert_eq!(axes.walk.axes()[1], Axis { extent: 3, src: -4, dst: 4 });
        let back = axes.forwards_in_source(1);
        assert_eq!((back.reversed, back.walk.src_start, back.walk.dst_start), (false, 0, 8));
        assert_eq!(back.walk.axes()[1], Axis { extent: 3, src: 4, dst: -4 });
        // Both walks reach the same bytes.
        let all = [Reach { first: 0, end: 12 }, Reach { first: 0, end: 48 }];
        assert_eq!([axes.walk.reach([1, 4]), back.walk.reach([1, 4])], [all; 2]);
    }
}
