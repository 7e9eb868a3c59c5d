//! The task that every strategy looks at: the axes of the work, its types, and where its values
//! are.

use super::Channels;
use super::axes::Axes;
use super::strategies::{Images, WITH_LAUNCH};
use crate::abi::affine_type;
use crate::element::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::movement::permute::Class;
use crate::ops::plan::{Decline, at_most};
use crate::ops::sectors::sectors;
use crate::ops::tuning::Tuning;
use crate::ops::units::SECTOR;
use crate::ops::{Align, Target};

/// The work of a plan that has elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) axes: Axes,
    /// The types of source and destination.
    pub(super) types: [DType; 2],
    /// The alignments of both storages.
    pub(super) aligns: [Align; 2],
    /// The images, if values are launch parameters and the layouts describe images.
    pub(super) images: Option<Images>,
    /// The number of channels whose values are launch parameters.
    pub(super) with_launch: usize,
    pub(super) target: Target,
    /// True if small arrays may go by the kernels that suit them.
    pub(super) may_be_small: bool,
}

impl Task {
    pub(super) fn new(
        [src, dst]: [&Layout; 2],
        aligns: [Align; 2],
        types: [DType; 2],
        channels: Channels,
        target: Target,
    ) -> Result<Self> {
        let axes = Axes::new(src, dst, channels.axis())?;
        let (images, with_launch) = match channels {
            Channels::WithLaunch(axis) => (Images::of([src, dst], aligns, types, axis), src.shape()[axis]),
            _ => (None, 0),
        };
        Ok(Self { axes, types, aligns, images, with_launch, target, may_be_small: true })
    }

    /// Declines values that are launch parameters, for the kernels of any layout.
    pub(super) fn check_in_memory(&self) -> Result<(), Decline> {
        let reason = "its kernels read factors and offsets from device memory, and these are launch parameters";
        at_most(self.with_launch, 0, WITH_LAUNCH, reason)
    }

    /// Returns what the work looks like; the types do not matter for this.
    pub(super) fn class(&self) -> Class {
        Class::of(&self.axes.walk, Tuning::of(self.target).permutes.fields.most)
    }

    /// Returns the bytes of the sectors that hold the elements of both sides, relative to those of
    /// the elements: at least 1. No kernel moves less.
    pub(super) fn traffic(&self) -> f64 {
        let (axes, [from, to]) = (self.axes.walk.axes().iter(), self.widths());
        let read = sectors(axes.clone().map(|axis| (axis.extent, axis.src)), from);
        let written = sectors(axes.map(|axis| (axis.extent, axis.dst)), to);
        let elements = self.axes.walk.len() as f64 * (from + to) as f64;
        ((read as f64 + written as f64) * SECTOR as f64 / elements).max(1.0)
    }

    /// Returns true if every element lies at the same place on both sides, counted in elements.
    pub(super) fn keeps_places(&self) -> bool {
        self.axes.walk.axes().iter().all(|axis| axis.src == axis.dst)
    }

    /// Returns true if a launch takes most of the task's time.
    pub(super) fn is_small(&self) -> bool {
        let [from, to] = self.widths();
        let smallest = Tuning::of(self.target).permutes.quads.smallest;
        self.may_be_small && self.axes.walk.len().saturating_mul(from.max(to)) < smallest
    }

    pub(super) fn widths(&self) -> [usize; 2] {
        self.types.map(DType::width)
    }

    /// Returns the kernels' numbers for the types, which the plan has checked.
    pub(super) fn codes(&self) -> [u64; 2] {
        self.types.map(|dtype| affine_type(dtype).unwrap_or_default())
    }
}
