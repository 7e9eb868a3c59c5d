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
mod tests;
