//! Scales, shifts and converts elements while it moves them to another layout: `dst = factor * src
//! + offset`, in one pass.
//!
//! A permute reads and writes every element, so a factor and an offset cost no more bytes. A scaled
//! transpose, a cast into another order of axes, or the normalisation of images by channel is one
//! launch; a permute, a cast and arithmetic in sequence move the array three times. cuTENSOR's
//! `cutensorPermute`, `B = alpha * op(perm(A))`, is similar, with one scalar for all elements;
//! factors and offsets by channel are those of cuDNN's and PyTorch's affine layers.

mod axes;
mod choose;
mod launch;
mod normalization;
mod plan;
mod strategies;
mod task;

pub use normalization::Normalization;
pub use plan::AffinePlan;

use crate::array::DeviceArray;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::operand::in_new_array;
use crate::ops::{Align, Target};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A map of each element `x`: `x * factor + offset`, one fused multiply-add, rounded once.
///
/// It is computed in single precision, and rounded once more if the result is a half; doubles are
/// computed in double precision. So a CPU that does the same (`f32::mul_add`) gets the same bits,
/// except for NaN, whose bits may differ.
///
/// `A` is the form of the channels' values: views, or device addresses for the raw functions.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::ops::{Affine, affine};
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let bytes = device.array(&[2, 2], &[0_u8, 64, 128, 255])?;
/// let map = Affine::Uniform { factor: 0.5, offset: -32.0 };
/// let halved = affine::<f32, _>(bytes.view().t(), map)?;
/// assert_eq!(halved.to_vec()?, [-32.0, 32.0, 0.0, 95.5]);
///
/// let (factors, offsets) = (device.array(&[2], &[1.0, 2.0])?, device.array(&[2], &[0.0, 1.0])?);
/// let map = Affine::PerChannel { axis: 1, factors: factors.view(), offsets: offsets.view() };
/// assert_eq!(affine::<f32, _>(&bytes, map)?.to_vec()?, [0.0, 129.0, 128.0, 511.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Affine<A> {
    /// One factor and one offset for all elements, rounded to single precision unless elements are
    /// doubles.
    Uniform {
        /// The factor of each element.
        factor: f64,
        /// The addend of each product.
        offset: f64,
    },
    /// A factor and an offset for each index of an axis, its channels, in device memory: contiguous
    /// `f32`.
    PerChannel {
        /// The axis of the operands, from 0.
        axis: usize,
        /// The factors of the channels.
        factors: A,
        /// The offsets of the channels.
        offsets: A,
    },
    /// A factor and an offset for each index of an axis of 1 to 4 channels, as launch parameters.
    /// This is for images of bytes without gaps, whose channel axis moves before their pixels (see
    /// [`normalize`](crate::ops::normalize())).
    Normalized {
        /// The axis of the operands, from 0.
        axis: usize,
        /// The factors and the offsets.
        by: Normalization,
    },
}

/// The place of a map's factors and offsets, on which a plan depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channels {
    /// All elements share one of each.
    Uniform,
    /// Each index of this axis has its own in device memory.
    InMemory(usize),
    /// Each index of this axis has its own, which are launch parameters.
    WithLaunch(usize),
}

impl From<Option<usize>> for Channels {
    /// Values in device memory for the indices of an axis, or one of each for all elements.
    fn from(axis: Option<usize>) -> Self {
        axis.map_or(Self::Uniform, Self::InMemory)
    }
}

impl Channels {
    /// Returns the axis of channels, if there is one.
    pub(crate) fn axis(self) -> Option<usize> {
        match self {
            Self::Uniform => None,
            Self::InMemory(axis) | Self::WithLaunch(axis) => Some(axis),
        }
    }
}

impl<A> Affine<A> {
    /// Changes only the type: a cast. The offset is -0, which keeps the sign of a zero.
    pub const IDENTITY: Self = Self::scale(1.0);

    /// Scales only. The offset is -0, which keeps the sign of a zero.
    pub const fn scale(factor: f64) -> Self {
        Self::Uniform { factor, offset: -0.0 }
    }

    /// Returns the place of the factors and offsets.
    #[doc(hidden)]
    pub fn channels(&self) -> Channels {
        match self {
            Self::Uniform { .. } => Channels::Uniform,
            Self::PerChannel { axis, .. } => Channels::InMemory(*axis),
            Self::Normalized { axis, .. } => Channels::WithLaunch(*axis),
        }
    }
}

/// Maps every element of a view into a new buffer of its shape in C order, on the default stream.
/// See [`affine_into`].
///
/// # Errors
///
/// As [`affine_into`]; `OutOfMemory` if the result does not fit.
#[track_caller]
pub fn affine<'a, D: Element, S: Element>(
    src: impl Into<View<'a, S>>,
    affine: Affine<View<'_, f32>>,
) -> Result<DeviceArray<D>> {
    let src = src.into();
    in_new_array(src.device(), src.shape(), |dst, stream| affine_into(src, affine, dst, stream))
}

/// Queues `dst[i] = src[i] * factor + offset` for every index `i` of two views of one shape, in any
/// layouts, on `stream`.
///
/// The types are `u8`, `f16`, `bf16` or `f32` to `f16`, `bf16` or `f32`, and `f64` to `f64`. The
/// layouts choose the kernel; see [`AffinePlan`].
///
/// # Errors
///
/// `Layout` if the shapes differ, or factors or offsets are not contiguous; `InvalidArgument` if
/// there is no kernel for the types, the numbers of factors, offsets and channels differ, the shape
/// has no such axis, or the operands and the stream are not on one device; else the driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::ops::{Affine, affine_into};
///
/// let device = Device::open(Backend::Soft)?;
/// // Two pixels of three colours become three planes, scaled to 0 to 1.
/// // Then each plane gets its own values.
/// let pixels = device.upload(&[0_u8, 51, 102, 153, 204, 255])?;
/// let mut planes = device.alloc::<f32>(6)?;
/// let by_colour = pixels.view(&[2, 3])?.permuted_axes(&[1, 0])?;
/// affine_into(by_colour, Affine::scale(1.0 / 51.0), planes.view_mut(&[3, 2])?, device.default_stream())?;
/// assert_eq!(planes.download()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
///
/// let (factors, offsets) = (device.upload(&[1.0_f32, 10.0, 100.0])?, device.upload(&[0.5_f32, 0.0, -1.0])?);
/// let values = Affine::PerChannel { axis: 0, factors: factors.view(&[3])?, offsets: offsets.view(&[3])? };
/// affine_into(by_colour, values, planes.view_mut(&[3, 2])?, device.default_stream())?;
/// assert_eq!(planes.download()?, [0.5, 153.5, 510.0, 2040.0, 10199.0, 25499.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn affine_into<'a, S: Element, D: Element>(
    src: impl Into<View<'a, S>>,
    affine: Affine<View<'_, f32>>,
    dst: impl Into<ViewMut<'a, D>>,
    stream: &Stream,
) -> Result<()> {
    let (src, dst) = (src.into(), dst.into());
    let (align, target) = (Align::ALLOCATION, Target::of(dst.device()));
    let sides = ((src.layout(), align, S::DTYPE), (dst.layout(), align, D::DTYPE));
    AffinePlan::new(sides.0, sides.1, affine.channels(), target)?.run(src, affine, dst, stream)
}

/// Queues [`affine_into`] on addresses: each side is an address, a layout from there, and a type.
///
/// # Errors
///
/// As [`affine_into`]; `InvalidArgument` also if an address is not a multiple of an element, or the
/// destination overlaps the source or the channels' values; `Layout` also if the destination may
/// reach an element twice, or the bytes of a side overflow.
///
/// # Safety
///
/// The raw contract of [`ops`](crate::ops#the-raw-contract), also for one `f32` a channel at the
/// addresses of factors and offsets.
pub unsafe fn affine_into_raw(
    device: &Device,
    (src, src_layout, from): (u64, &Layout, DType),
    (dst, dst_layout, to): (u64, &Layout, DType),
    affine: Affine<u64>,
    stream: StreamHandle,
) -> Result<()> {
    let (source, destination) = ((src_layout, Align::of(src), from), (dst_layout, Align::of(dst), to));
    let plan = AffinePlan::new(source, destination, affine.channels(), Target::of(device))?;
    // SAFETY: as the caller promises.
    unsafe { plan.launch_raw(device, src, affine, dst, stream) }
}
