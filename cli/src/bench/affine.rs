//! The bench of permutes that scale, shift and convert what they move.

use anyhow::Result;
use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::layout::Layout;
use warpstride::ops::{self, Affine, AffinePlan, Align, Plan, Target};
use warpstride::roofline::record::{Group, Subject};

use super::Measured;
use super::conversion::{Bench, Small, small_elements};
use super::outcome::Outcome;
use crate::output::Output;
use crate::{array_bytes, ensure_room, permuted_layouts, reference};

/// Which array, and what becomes of it.
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
    /// What becomes of a byte's number.
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

impl Measured for Mapped<'_> {
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

    fn outcome(&self, device: &Device, samples: usize, output: &Output) -> Result<Outcome> {
        let sides = [array_bytes(self.shape, self.from)?, array_bytes(self.shape, self.to)?];
        ensure_room(self.vector()?, 2, &[(device, 2)])?;
        let (bench, plan) = (Bench::new(device, sides, samples, output)?, self.plan(device)?);
        match self.from {
            DType::U8 => self.of::<u8>(&bench, &plan),
            DType::F16 => self.of::<f16>(&bench, &plan),
            DType::Bf16 => self.of::<bf16>(&bench, &plan),
            DType::F32 => self.of::<f32>(&bench, &plan),
            _ => self.of::<f64>(&bench, &plan),
        }
    }
}

impl Mapped<'_> {
    /// Bytes of the channels' factors, and of their offsets.
    fn vector(&self) -> Result<usize> {
        let count = self.channels.map_or(0, |axis| self.shape[self.axes[axis]]);
        array_bytes(&[count, 2], DType::F32).map(|bytes| bytes / 2)
    }

    fn of<S: Small>(&self, bench: &Bench<'_>, plan: &AffinePlan) -> Result<Outcome> {
        match self.to {
            DType::F16 => self.mapped::<S, f16>(bench, plan),
            DType::Bf16 => self.mapped::<S, bf16>(bench, plan),
            DType::F32 => self.mapped::<S, f32>(bench, plan),
            _ => self.mapped::<S, f64>(bench, plan),
        }
    }

    fn plan(&self, device: &Device) -> Result<AffinePlan> {
        let [source, result]: [Layout; 2] = permuted_layouts(self.shape, self.axes)?;
        let (align, target) = (Align::ALLOCATION, Target::of(device));
        Ok(AffinePlan::new((&source, align, self.from), (&result, align, self.to), self.channels, target)?)
    }

    fn mapped<S: Small, D: Made>(&self, bench: &Bench<'_>, plan: &AffinePlan) -> Result<Outcome> {
        let Self { shape, axes, channels, .. } = *self;
        let len = shape.iter().product();
        let mut bytes = reference::random::<u8>(len)?;
        bytes.iter_mut().for_each(|byte| *byte &= 127);
        let elements = small_elements::<S>(&bytes);
        let bytes = reference::permuted(&bytes, shape, axes)?;
        let extents: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        // The result's channels, and the elements of one channel that follow each other.
        let (count, inner) =
            channels.map_or((1, 1), |axis| (extents[axis], extents[axis + 1..].iter().product::<usize>()));
        let is_right = |at: usize, found: D| {
            let (factor, offset) = values(at / inner.max(1) % count.max(1));
            found == D::made(bytes[at], factor, offset)
        };
        let all = (0..count).map(values);
        let factors = bench.device.upload(&all.clone().map(|(factor, _)| factor).collect::<Vec<_>>())?;
        let offsets = bench.device.upload(&all.map(|(_, offset)| offset).collect::<Vec<_>>())?;
        let (factor, offset) = values(0);
        let kernel = plan.entry().unwrap_or("nothing");
        bench.outcome(kernel, &elements, len, is_right, |source, result| {
            let stream = source.device().default_stream();
            let source = source.split_axis(0, shape)?.permuted_axes(axes)?;
            let result = result.split_axis(0, source.shape())?;
            let affine = match channels {
                None => Affine::Uniform { factor: factor.into(), offset: offset.into() },
                Some(axis) => {
                    Affine::PerChannel { axis, factors: factors.view(&[count])?, offsets: offsets.view(&[count])? }
                }
            };
            ops::affine_into(source, affine, result, stream)
        })
    }
}
