//! The bench of permutes that scale, shift and convert what they move.

use anyhow::Result;
use half::{bf16, f16};
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::layout::Layout;
use warpstride::ops::{self, Affine, AffinePlan, Align, Target};

use super::conversion::{Bench, Small};
use super::report::{Outcome, Subject};
use crate::cli::output::Output;
use crate::cli::{args, array_bytes, permuted_layouts, reference};

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

impl Mapped<'_> {
    pub(super) fn bench(&self, backend: Backend, samples: &args::Samples, output: &Output) -> Result<()> {
        // What is wrong with the shape is said before any device is opened.
        permuted_layouts(self.shape, self.axes)?;
        let bench = Bench::open(self.bytes()?, samples, backend, output)?;
        let ([read, written], outcome) = self.outcome(&bench)?;
        let Self { to: dtype, shape, axes, .. } = *self;
        let subject = Subject { op: "affine", dtype, shape, axes: Some(axes), read, written, samples: bench.samples };
        subject.report(&bench.device, &outcome, output)
    }

    /// Bytes of the source and of the result.
    pub(super) fn bytes(&self) -> Result<[usize; 2]> {
        Ok([array_bytes(self.shape, self.from)?, array_bytes(self.shape, self.to)?])
    }

    /// The bytes that it reads and writes, and what was found.
    pub(super) fn outcome(&self, bench: &Bench<'_>) -> Result<([u64; 2], Outcome)> {
        let plan = self.plan(&bench.device)?;
        let outcome = match self.from {
            DType::U8 => self.of::<u8>(bench, &plan),
            DType::F16 => self.of::<f16>(bench, &plan),
            DType::Bf16 => self.of::<bf16>(bench, &plan),
            DType::F32 => self.of::<f32>(bench, &plan),
            _ => self.of::<f64>(bench, &plan),
        }?;
        Ok(([plan.read(), plan.written()], outcome))
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
        let bytes: Vec<u8> = reference::random::<u8>(len)?.into_iter().map(|byte| byte & 127).collect();
        let elements: Vec<S> = bytes.iter().map(|&byte| S::small(byte)).collect();
        let bytes = reference::permuted(&bytes, shape, axes)?;
        let extents: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        // Of the result: channels, and the elements of one that follow each other.
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
