//! Benches of casts, normalised images, strided copies, and rows that move by their indices.

use anyhow::{Context, Result};
use bytemuck::Pod;
use half::{bf16, f16};
use rayon::prelude::*;
use warpstride::device::Device;
use warpstride::element::{DType, Element, Float};
use warpstride::error::counted;
use warpstride::layout::Layout;
use warpstride::ops::{
    self, AffinePlan, Align, CastPlan, Channels, Indexed, IndexedPlan, Normalization, PermutePlan, Phase, Plan, Target,
};
use warpstride::roofline::measure::Rotation;
use warpstride::roofline::record::{Group, Subject};
use warpstride::view::{View, ViewMut};

use super::measure::{Case, OneToOne, Work};
use crate::cold_runs::{ColdRuns, copy};
use crate::{array_bytes, by_width, ensure_room, reference, require};

/// Mean and deviation of the channels of ImageNet's pictures, by which networks are mostly fed, and
/// one more of each.
const MEAN: [f64; 4] = [0.485, 0.456, 0.406, 0.5];
const DEVIATION: [f64; 4] = [0.229, 0.224, 0.225, 0.25];

/// A number that casts are timed with.
pub(super) trait Small: Element {
    /// A number below 128, which all types have.
    fn small(byte: u8) -> Self;
}

macro_rules! small {
    ($($type:ty: |$byte:ident| $number:expr;)*) => {$(
        impl Small for $type {
            fn small($byte: u8) -> Self {
                $number
            }
        }
    )*};
}

small! {
    u8: |byte| byte;
    i32: |byte| byte.into();
    f16: |byte| byte.into();
    bf16: |byte| byte.into();
    f32: |byte| byte.into();
    f64: |byte| byte.into();
}

/// Evaluates an expression with a type by its name, one of those that casts are timed with.
macro_rules! by_small {
    ($dtype:expr, $type:ident => $body:expr) => {
        match $dtype {
            DType::U8 => by_small!(@ u8, $type, $body),
            DType::I32 => by_small!(@ i32, $type, $body),
            DType::F16 => by_small!(@ f16, $type, $body),
            DType::Bf16 => by_small!(@ bf16, $type, $body),
            DType::F32 => by_small!(@ f32, $type, $body),
            _ => by_small!(@ f64, $type, $body),
        }
    };
    (@ $small:ty, $type:ident, $body:expr) => {{
        type $type = $small;
        $body
    }};
}

/// A cast, a normalisation, a gather or scatter of rows, or a strided copy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Conversion {
    /// Images, rows, columns and channels, to normalised planes.
    Normalize { shape: [usize; 4], to: DType },
    /// Elements to another type.
    Cast { shape: [usize; 1], from: DType, to: DType },
    /// Rows by their indices, which are all rows in another order: taken, or put.
    Rows { shape: [usize; 2], dtype: DType, is_put: bool },
    /// Elements that lie `step` apart.
    Strided { shape: [usize; 1], dtype: DType, step: usize },
}

impl Conversion {
    fn shape(&self) -> &[usize] {
        match self {
            Self::Normalize { shape, .. } => shape,
            Self::Cast { shape, .. } => shape,
            Self::Rows { shape, .. } => shape,
            Self::Strided { shape, .. } => shape,
        }
    }

    pub(super) fn shape_mut(&mut self) -> &mut [usize] {
        match self {
            Self::Normalize { shape, .. } => shape,
            Self::Cast { shape, .. } => shape,
            Self::Rows { shape, .. } => shape,
            Self::Strided { shape, .. } => shape,
        }
    }

    /// The types of the source's elements and of the result's.
    fn dtypes(&self) -> [DType; 2] {
        match *self {
            Self::Normalize { to, .. } => [DType::U8, to],
            Self::Cast { from, to, .. } => [from, to],
            Self::Rows { dtype, .. } | Self::Strided { dtype, .. } => [dtype; 2],
        }
    }

    /// Bytes of the source and of the result.
    fn sides(&self) -> Result<[usize; 2]> {
        let [from, to] = self.dtypes().map(|dtype| array_bytes(self.shape(), dtype));
        let step = if let Self::Strided { step, .. } = *self { step } else { 1 };
        let from = from?.checked_mul(step).filter(|&bytes| bytes <= isize::MAX as usize);
        Ok([from.context("the elements lie too far apart for an address; use fewer, or a smaller step")?, to?])
    }
}

impl Case for Conversion {
    fn subject(&self) -> Result<Subject> {
        let [read, written] = self.sides()?.map(|bytes| bytes as u64);
        let [from, dtype] = self.dtypes();
        let subject = |op, from, read| Subject {
            from,
            ..Subject::new(Group::Conversion, op, dtype, self.shape(), [read, written])
        };
        match *self {
            Self::Normalize { shape: [.., channels], .. } => {
                require!(
                    (1..=MEAN.len()).contains(&channels),
                    InvalidArgument,
                    "images have 1 to 4 channels, and not {channels}; give --shape N,H,W,C"
                );
                Ok(subject("normalize", Some(from), read))
            }
            Self::Cast { .. } => Ok(subject("cast", Some(from), read)),
            // The elements between are not asked for.
            Self::Strided { step, .. } => Ok(Subject { step: Some(step), ..subject("strided-copy", None, written) }),
            Self::Rows { shape: [count, _], is_put, .. } => {
                require!(
                    u32::try_from(count).is_ok(),
                    InvalidArgument,
                    "{count} are more than indices of u32 number; give fewer",
                    count = counted(count, "row")
                );
                // The indices are read too.
                Ok(subject(if is_put { "scatter" } else { "gather" }, None, read + 4 * count as u64))
            }
        }
    }

    fn prepare<'a>(&'a self, device: &Device) -> Result<Box<dyn Work + 'a>> {
        let rotation = rotation(device, self.sides()?)?;
        if let Self::Rows { shape: [count, _], .. } = *self {
            // Indices of both directions, and what they are drawn from.
            ensure_room(count, 16, &[(device, 4)])?;
        }
        match *self {
            Self::Normalize { shape, to: DType::F16 } => normalized(rotation, shape, f16::from_f32),
            Self::Normalize { shape, to: DType::Bf16 } => normalized(rotation, shape, bf16::from_f32),
            Self::Normalize { shape, .. } => normalized(rotation, shape, |value: f32| value),
            Self::Cast { shape: [len], from, to } => {
                by_small!(from, S => by_small!(to, D => casted::<S, D>(rotation, len)))
            }
            Self::Rows { shape, dtype, is_put } => by_width!(dtype, T => moved::<T>(rotation, shape, is_put)),
            Self::Strided { shape: [len], dtype, step } => by_width!(dtype, T => strided::<T>(rotation, len, step)),
        }
    }
}

/// Returns the rotation of a source and a result of these bytes, for which there is room.
pub(super) fn rotation(device: &Device, bytes: [usize; 2]) -> Result<Rotation> {
    let rotation = Rotation::new(device, &bytes);
    let most = Rotation::padded(bytes[0].max(bytes[1]));
    // On the host the source, the result and the expected one; on the device both sides of each
    // set.
    ensure_room(most, 3, &[(device, rotation.arrays(2))])?;
    Ok(rotation)
}

/// Normalises images to planes.
fn normalized<'a, T: Float>(
    rotation: Rotation,
    shape: [usize; 4],
    nearest: impl Fn(f32) -> T,
) -> Result<Box<dyn Work + 'a>> {
    let [n, h, w, c] = shape;
    let normalization = Normalization::new(1.0 / 255.0, &MEAN[..c], &DEVIATION[..c])?;
    let bytes = reference::random::<u8>(n * h * w * c)?;
    let pixels = h * w;
    // What becomes of a byte, of each channel.
    let table: Vec<T> = (0..c)
        .flat_map(|channel| {
            let normalization = &normalization;
            (0..=255).filter_map(move |byte| normalization.apply(channel, byte))
        })
        .map(nearest)
        .collect();
    let images = Layout::row_major(&shape)?.permuted_axes(&[0, 3, 1, 2])?;
    let planes = Layout::row_major(&[n, c, h, w])?;
    let align = Align::ALLOCATION;
    let (from, to) = ((&images, align, DType::U8), (&planes, align, T::DTYPE));
    let kernel = AffinePlan::new(from, to, Channels::WithLaunch(1), Target::of(rotation.device()))?.entry();
    let arrays = ColdRuns::new(rotation, &bytes, bytes.len())?;
    let launch = move |source: View<'_, u8>, result: ViewMut<'_, T>| {
        let stream = source.device().default_stream();
        ops::normalize_into(source.split_axis(0, &shape)?, &normalization, result.split_axis(0, &[n, c, h, w])?, stream)
    };
    let is_right = move |found: &[T]| {
        reference::all(found.len(), &|at| {
            let (image, channel, pixel) = (at / pixels / c, at / pixels % c, at % pixels);
            found[at] == table[256 * channel + usize::from(bytes[(image * pixels + pixel) * c + channel])]
        })
    };
    Ok(Box::new(OneToOne { arrays: Box::new(arrays), kernel, launch, is_right }))
}

fn casted<'a, S: Small, D: Small>(rotation: Rotation, len: usize) -> Result<Box<dyn Work + 'a>> {
    let bytes = reference::random::<u8>(len)?;
    let (from, to) = ((Phase::ALIGNED, S::DTYPE), (Phase::ALIGNED, D::DTYPE));
    let plan = CastPlan::new(from, to, len as u64, Target::of(rotation.device()))?;
    let arrays = ColdRuns::new(rotation, &small_elements::<S>(&bytes), len)?;
    let launch = move |source: View<'_, S>, result: ViewMut<'_, D>| {
        let stream = source.device().default_stream();
        plan.launch(source, result, stream)
    };
    let is_right = move |found: &[D]| reference::all(len, &|at| found[at] == D::small(bytes[at] & 127));
    Ok(Box::new(OneToOne { arrays: Box::new(arrays), kernel: plan.entry(), launch, is_right }))
}

fn strided<'a, T: Element + Pod>(rotation: Rotation, len: usize, step: usize) -> Result<Box<dyn Work + 'a>> {
    let elements = reference::random::<T>(len * step)?;
    let (source, result) = (Layout::row_major(&[len * step])?.slice(0, .., step as isize)?, Layout::row_major(&[len])?);
    let (align, target) = (Align::ALLOCATION, Target::of(rotation.device()));
    let kernel = PermutePlan::new(&source, align, &result, align, size_of::<T>(), target)?.entry();
    let arrays = ColdRuns::new(rotation, &elements, len)?;
    let launch = move |source: View<'_, T>, result: ViewMut<'_, T>| copy(source.slice(0, .., step as isize)?, result);
    let is_right = move |found: &[T]| {
        reference::all(len, &|at| bytemuck::bytes_of(&found[at]) == bytemuck::bytes_of(&elements[at * step]))
    };
    Ok(Box::new(OneToOne { arrays: Box::new(arrays), kernel, launch, is_right }))
}

fn moved<'a, T: Element + Pod>(
    rotation: Rotation,
    [count, row]: [usize; 2],
    is_put: bool,
) -> Result<Box<dyn Work + 'a>> {
    let elements = reference::random::<T>(count * row)?;
    let mut indices: Vec<u32> = (0..count as u32).collect();
    // Fisher and Yates.
    for (at, bits) in reference::random::<u64>(count)?.into_iter().enumerate() {
        indices.swap(at, (bits % (at as u64 + 1)) as usize);
    }
    let on_device = rotation.device().upload(&indices)?;
    // The row of the source that each row of the result comes from.
    let mut from = indices;
    if is_put {
        for (at, to) in from.clone().into_iter().enumerate() {
            from[to as usize] = at as u32;
        }
    }
    let (way, row_bytes) = (if is_put { Indexed::Scatter } else { Indexed::Gather }, (row * size_of::<T>()) as u64);
    let plan = IndexedPlan::new(way, count as u64, count as u64, row_bytes, DType::U32, Align::ALLOCATION)?;
    let kernel = plan.entry();
    let arrays = ColdRuns::new(rotation, &elements, elements.len())?;
    let launch = move |source: View<'_, T>, result: ViewMut<'_, T>| {
        let stream = source.device().default_stream();
        let (source, result) = (source.split_axis(0, &[count, row])?, result.split_axis(0, &[count, row])?);
        plan.launch(source, on_device.view(&[count])?, result, stream)
    };
    let is_right = move |found: &[T]| {
        reference::all(found.len(), &|at| {
            let expected = elements[from[at / row] as usize * row + at % row];
            bytemuck::bytes_of(&found[at]) == bytemuck::bytes_of(&expected)
        })
    };
    Ok(Box::new(OneToOne { arrays: Box::new(arrays), kernel, launch, is_right }))
}

/// Returns an element of each byte's lower seven bits.
pub(super) fn small_elements<S: Small>(bytes: &[u8]) -> Vec<S> {
    bytes.par_iter().map(|byte| S::small(byte & 127)).collect()
}
