//! Tells from a task's layouts alone what it looks like.

use super::strategies::fields;
use crate::layout::walk::{Axis, Canonical};

/// The look of a task. The nearest axis of a side is the one with its smallest stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum Class {
    /// Elements that lie alike in memory on both sides, without gaps.
    Alike,
    /// Packed structs of few fields on one side, their planes on the other.
    Structs,
    /// Runs that are contiguous on both sides.
    Runs,
    /// The same runs, with opposite directions on the two sides.
    Turned,
    /// Elements that are contiguous along different axes on the two sides, as those of a
    /// transposed matrix.
    Crossed,
    /// Elements that lie apart in the source, in the destination's order.
    SteppedRuns,
    /// Elements that lie apart in the source, in another order than the destination's.
    Stepped,
    /// Elements that lie apart in the destination, or that are one element of the source.
    Scattered,
}

impl Class {
    /// Returns the class of elements in their widest form. Structs have at most `most` fields.
    pub(in crate::ops) fn of(canonical: &Canonical, most: usize) -> Self {
        let axes = canonical.axes();
        // Axes are sorted by the destination's stride.
        let Some(dst) = axes.first() else { return Self::Alike };
        let moving = axes.iter().filter(|axis| axis.src != 0);
        let Some(src) = moving.min_by_key(|axis| axis.src.unsigned_abs()) else { return Self::Scattered };
        let is_same = std::ptr::eq(src, dst);
        if canonical.together() == canonical.len() {
            return Self::Alike;
        }
        if fields::are_packed(canonical, most) {
            return Self::Structs;
        }
        match (dst, src) {
            (Axis { dst: 2.., .. }, _) => Self::Scattered,
            (_, Axis { src: 1, .. }) if is_same => Self::Runs,
            (_, Axis { src: -1, .. }) if is_same => Self::Turned,
            (_, Axis { src: -1 | 1, .. }) => Self::Crossed,
            _ if is_same => Self::SteppedRuns,
            _ => Self::Stepped,
        }
    }
}
