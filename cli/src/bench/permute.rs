//! Benches of what moves elements and leaves them as they are.

use anyhow::Result;
use bytemuck::Pod;
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::error::Error;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target};
use warpstride::roofline::measure::Rotation;
use warpstride::roofline::record::{Group, Subject};
use warpstride::view::{View, ViewMut};

use super::outcome::Outcome;
use super::{Measured, SMALL};
use crate::cold_runs::ColdRuns;
use crate::output::Output;
use crate::verify::{Launch, verify};
use crate::{array_bytes, by_width, ensure_room, permuted_layouts, reference};

/// Which array, and where its elements go.
pub(super) struct Moved<'a> {
    pub(super) op: &'static str,
    pub(super) dtype: DType,
    pub(super) shape: &'a [usize],
    /// The axes of a permute; a copy has none.
    pub(super) axes: Option<&'a [usize]>,
}

impl Measured for Moved<'_> {
    fn subject(&self) -> Result<Subject> {
        let Self { op, dtype, shape, axes } = *self;
        if let Some(axes) = axes {
            permuted_layouts(shape, axes)?;
        }
        let bytes = array_bytes(shape, dtype)? as u64;
        let group = if axes.is_some() { Group::Permute } else { Group::Stream };
        Ok(Subject { axes: axes.map(Into::into), ..Subject::new(group, op, dtype, shape, [bytes; 2]) })
    }

    fn outcome(&self, device: &Device, samples: usize, output: &Output) -> Result<Outcome> {
        let bytes = array_bytes(self.shape, self.dtype)?;
        let rotation = Rotation::new(device, &[bytes; 2]);
        // The array, the expected one and the one that came back; on the device a source and a
        // result, or those of the rotation.
        ensure_room(Rotation::padded(bytes), 3, &[(device, rotation.arrays(2))])?;
        by_width!(self.dtype, T => self.measure::<T>(rotation, samples, output))
    }
}

impl Moved<'_> {
    fn measure<T: Element + Pod>(&self, rotation: Rotation, samples: usize, output: &Output) -> Result<Outcome> {
        let device = &rotation.device().clone();
        let progress = output.progress(3);
        progress.doing("preparing");
        let elements = reference::random::<T>(self.shape.iter().product())?;
        let expected = match self.axes {
            Some(axes) => reference::permuted(&elements, self.shape, axes)?,
            None => elements.clone(),
        };
        progress.step();
        progress.doing("verifying");
        let source = device.upload(&elements)?;
        let (verified, counters) = verify(device, &source, &expected, self.launch())?;
        drop((source, expected));
        progress.step();
        progress.doing("timing");
        let (mut timing, mut launch_us) = (None, None);
        if verified && rotation.is_cold() {
            let bytes = size_of_val(&*elements);
            let mut runs = ColdRuns::new(rotation, &elements, elements.len())?;
            let copy = runs.time(samples, copy)?.gbps(2 * bytes as u64);
            timing = Some((runs.time(samples, self.launch())?, copy));
            if bytes <= SMALL {
                launch_us = Some(runs.launch_us(self.launch())?);
            }
        }
        Ok(Outcome { kernel: self.kernel(device)?, verified, counters, timing, launch_us })
    }

    /// The kernel that moves them.
    fn kernel(&self, device: &Device) -> Result<Option<&'static str>> {
        let [source, result] = match self.axes {
            Some(axes) => permuted_layouts(self.shape, axes)?,
            None => [Layout::row_major(self.shape)?; 2],
        };
        let align = Align::ALLOCATION;
        Ok(PermutePlan::new(&source, align, &result, align, self.dtype.width(), Target::of(device))?.entry())
    }

    fn launch<T: Element>(&self) -> impl Launch<T> {
        |source: View<'_, T>, result: ViewMut<'_, T>| {
            let Some(axes) = self.axes else { return copy(source, result) };
            let stream = source.device().default_stream();
            let source = source.split_axis(0, self.shape)?.permuted_axes(axes)?;
            let result = result.split_axis(0, source.shape())?;
            ops::copy_into(source, result, stream)
        }
    }
}

/// The yardstick.
pub(crate) fn copy<T: Element>(source: View<'_, T>, result: ViewMut<'_, T>) -> Result<(), Error> {
    ops::copy_into(source, result, source.device().default_stream())
}
