//! Benches that move elements and leave them as they are.

use anyhow::Result;
use bytemuck::Pod;
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target};
use warpstride::roofline::measure::Rotation;
use warpstride::roofline::record::{Group, Subject};
use warpstride::view::{View, ViewMut};

use super::measure::{Case, OneToOne, Work};
use crate::cold_runs::ColdRuns;
use crate::{array_bytes, by_width, ensure_room, permuted_layouts, reference};

/// A copy or a permute of an array.
pub(super) struct Moved<'a> {
    pub(super) op: &'static str,
    pub(super) dtype: DType,
    pub(super) shape: &'a [usize],
    /// The axes of a permute; a copy has none.
    pub(super) axes: Option<&'a [usize]>,
}

impl Case for Moved<'_> {
    fn subject(&self) -> Result<Subject> {
        let Self { op, dtype, shape, axes } = *self;
        if let Some(axes) = axes {
            permuted_layouts(shape, axes)?;
        }
        let bytes = array_bytes(shape, dtype)? as u64;
        let group = if axes.is_some() { Group::Permute } else { Group::Stream };
        Ok(Subject { axes: axes.map(Into::into), ..Subject::new(group, op, dtype, shape, [bytes; 2]) })
    }

    fn prepare<'a>(&'a self, device: &Device) -> Result<Box<dyn Work + 'a>> {
        let bytes = array_bytes(self.shape, self.dtype)?;
        let rotation = Rotation::new(device, &[bytes; 2]);
        // The array, the expected one and the one that came back; on the device a source and a
        // result, or those of the rotation.
        ensure_room(Rotation::padded(bytes), 3, &[(device, rotation.arrays(2))])?;
        by_width!(self.dtype, T => self.work::<T>(rotation))
    }
}

impl Moved<'_> {
    fn work<T: Element + Pod>(&self, rotation: Rotation) -> Result<Box<dyn Work + '_>> {
        let [from, to] = match self.axes {
            Some(axes) => permuted_layouts(self.shape, axes)?,
            None => [Layout::row_major(self.shape)?; 2],
        };
        let elements = reference::random::<T>(from.len())?;
        let expected = match self.axes {
            Some(axes) => reference::permuted(&elements, self.shape, axes)?,
            None => elements.clone(),
        };
        let (align, target) = (Align::ALLOCATION, Target::of(rotation.device()));
        // Sets begin at other places, and each has a plan of its own, with the same kernel.
        let kernel = PermutePlan::new(&from, align, &to, align, self.dtype.width(), target)?.entry();
        let mut arrays = ColdRuns::new(rotation, &elements, expected.len())?;
        arrays.begin(&expected)?;
        let launch = move |source: View<'_, T>, result: ViewMut<'_, T>| {
            let stream = source.device().default_stream();
            let source = source.split_axis(0, self.shape)?;
            let source = self.axes.map_or(Ok(source), |axes| source.permuted_axes(axes))?;
            ops::copy_into(source, result.split_axis(0, to.shape())?, stream)
        };
        let is_right = move |found: &[T]| reference::are_equal(found, &expected);
        Ok(Box::new(OneToOne { arrays: Box::new(arrays), kernel, launch, is_right }))
    }
}
