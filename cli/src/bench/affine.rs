//! The bench of permutes that scale, shift and convert what they move.

use anyhow::Result;
use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::layout::Layout;
use warpstride::ops::{self, Affine, AffinePlan, Align, Plan, Target};
use warpstride::roofline::measure::Rotation;
use warpstride::roofline::record::{Group, Subject};
use warpstride::view::{View, ViewMut};

use super::conversion::{Small, rotation, small_elements};
use super::measure::{Case, OneToOne, Work};
use crate::cold_runs::ColdRuns;
use crate::{array_bytes, ensure_room, permuted_layouts, reference};

/// A permute of an array that converts its elements.
pub(super) struct Mapped<'a> {
    pub(super) from: DType,
    pub(super) to: DType,
    pub(super) shape: &'a [usize],
    pub(super) axes: &'a [usize],
    /// The axis of the result whose indices have factors and offsets of their own.
    pub(super) channels: Option<usize>,
}

/// A number that is written.
trait Made: Element {
    /// Makes a number of a byte's.
    fn made(byte: u8, factor: f32, offset: f32) -> Self;
}

macro_rules! made {
    ($($type:ty: |$byte:ident, $factor:ident, $offset:ident| $made:expr;)*) => {$(
        impl Made for $type {
            fn made($byte: u8, $factor: f32, $offset: f32) -> Self {
                $made
            }
        }
    )*};
}

made! {
    f16: |byte, factor, offset| Self::from_f32(f32::made(byte, factor, offset));
    bf16: |byte, factor, offset| Self::from_f32(f32::made(byte, factor, offset));
    f32: |byte, factor, offset| Self::from(byte).mul_add(factor, offset);
    f64: |byte, factor, offset| Self::from(byte).mul_add(factor.into(), offset.into());
}

/// The factor and the offset of a channel.
fn values(channel: usize) -> (f32, f32) {
    (1.0 / (3.0 + (channel % 61) as f32), (channel % 13) as f32 / -7.0)
}

impl Case for Mapped<'_> {
    fn subject(&self) -> Result<Subject> {
        let Self { from, to: dtype, shape, axes, channels } = *self;
        permuted_layouts(shape, axes)?;
        let (read, written) = (array_bytes(shape, from)?, array_bytes(shape, dtype)?);
        // The channels' factors and offsets are read too, where there is anything to read them for.
        let vectors = if written > 0 { 2 * self.vector()? } else { 0 };
        let bytes = [(read + vectors) as u64, written as u64];
        let subject = Subject::new(Group::Permute, "affine", dtype, shape, bytes);
        Ok(Subject { axes: Some(axes.into()), from: Some(from), channels, ..subject })
    }

    fn prepare<'a>(&'a self, device: &Device) -> Result<Box<dyn Work + 'a>> {
        let sides = [array_bytes(self.shape, self.from)?, array_bytes(self.shape, self.to)?];
        ensure_room(self.vector()?, 2, &[(device, 2)])?;
        let rotation = rotation(device, sides)?;
        match self.from {
            DType::U8 => self.of::<u8>(rotation),
            DType::F16 => self.of::<f16>(rotation),
            DType::Bf16 => self.of::<bf16>(rotation),
            DType::F32 => self.of::<f32>(rotation),
            _ => self.of::<f64>(rotation),
        }
    }
}

impl Mapped<'_> {
    /// Bytes of the channels' factors, and of their offsets.
    fn vector(&self) -> Result<usize> {
        let count = self.channels.map_or(0, |axis| self.shape[self.axes[axis]]);
        array_bytes(&[count, 2], DType::F32).map(|bytes| bytes / 2)
    }

    fn of<S: Small>(&self, rotation: Rotation) -> Result<Box<dyn Work + '_>> {
        match self.to {
            DType::F16 => self.mapped::<S, f16>(rotation),
            DType::Bf16 => self.mapped::<S, bf16>(rotation),
            DType::F32 => self.mapped::<S, f32>(rotation),
            _ => self.mapped::<S, f64>(rotation),
        }
    }

    fn mapped<S: Small, D: Made>(&self, rotation: Rotation) -> Result<Box<dyn Work + '_>> {
        let Self { shape, axes, channels, .. } = *self;
        let device = rotation.device().clone();
        let [from, to]: [Layout; 2] = permuted_layouts(shape, axes)?;
        let align = Align::ALLOCATION;
        let sides = ((&from, align, S::DTYPE), (&to, align, D::DTYPE));
        let kernel = AffinePlan::new(sides.0, sides.1, channels, Target::of(&device))?.entry();
        let mut bytes = reference::random::<u8>(from.len())?;
        bytes.iter_mut().for_each(|byte| *byte &= 127);
        let arrays = ColdRuns::new(rotation, &small_elements::<S>(&bytes), to.len())?;
        let bytes = reference::permuted(&bytes, shape, axes)?;
        // The result's channels, and the elements of one channel that follow each other.
        let (count, inner) =
            channels.map_or((1, 1), |axis| (to.shape()[axis], to.shape()[axis + 1..].iter().product::<usize>()));
        let is_right = move |found: &[D]| {
            reference::all(found.len(), &|at| {
                let (factor, offset) = values(at / inner.max(1) % count.max(1));
                found[at] == D::made(bytes[at], factor, offset)
            })
        };
        let (factors, offsets): (Vec<f32>, Vec<f32>) = (0..count).map(values).unzip();
        let (factors, offsets) = (device.upload(&factors)?, device.upload(&offsets)?);
        let launch = move |source: View<'_, S>, result: ViewMut<'_, D>| {
            let source = source.split_axis(0, shape)?.permuted_axes(axes)?;
            let result = result.split_axis(0, source.shape())?;
            let affine = match channels {
                None => {
                    let (factor, offset) = values(0);
                    Affine::Uniform { factor: factor.into(), offset: offset.into() }
                }
                Some(axis) => {
                    Affine::PerChannel { axis, factors: factors.view(&[count])?, offsets: offsets.view(&[count])? }
                }
            };
            ops::affine_into(source, affine, result, device.default_stream())
        };
        Ok(Box::new(OneToOne { arrays: Box::new(arrays), kernel, launch, is_right }))
    }
}
