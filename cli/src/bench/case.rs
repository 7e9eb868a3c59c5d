//! Cases that bench times: an operation on arrays of a type and a shape, its bytes and its work.

use anyhow::{Context, Result};
use bytemuck::Pod;
use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::error::counted;
use warpstride::layout::Layout;
use warpstride::roofline::measure::Rotation;
use warpstride::roofline::record::{Group, Subject};

use super::arithmetic::{self, Arithmetic, Operands};
use super::axis::{Along, AlongAxis};
use super::conversion::{self, CHANNELS, in_c_order};
use super::measure::Work;
use crate::{array_bytes, by_type, by_width, ensure_room, permuted_layouts, reference, require};

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op<'a> {
    Copy,
    /// The axes of the array in the order of the result.
    Permute(&'a [usize]),
    /// A permute that scales, shifts and converts. Each index of the axis `channels` of the result
    /// has a factor and an offset of its own.
    Affine {
        axes: &'a [usize],
        from: DType,
        channels: Option<usize>,
    },
    Arithmetic(Arithmetic),
    /// An operation along this axis.
    Along(Along, usize),
    /// Images, rows, columns and channels, to normalised planes.
    Normalize,
    Cast {
        from: DType,
    },
    /// Rows by their indices, which are all rows in another order: taken, or put.
    Rows {
        is_put: bool,
    },
    /// A copy of elements that lie `step` apart.
    Strided {
        step: usize,
    },
}

/// An operation on an array of a shape, whose result has elements of a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) op: Op<'a>,
    pub(super) dtype: DType,
    pub(super) shape: &'a [usize],
}

impl<'a> Case<'a> {
    /// Describes the operation and its bytes. It fails before any device is opened.
    ///
    /// # Errors
    ///
    /// It fails if there is no such operation or no such array.
    pub(super) fn subject(&self) -> Result<Subject> {
        let Self { op, dtype, shape } = *self;
        if let Op::Permute(axes) | Op::Affine { axes, .. } = op {
            permuted_layouts(shape, axes)?;
        }
        let sides @ [read, written] = self.sides()?.map(|bytes| bytes as u64);
        let of = |group, name, bytes| Subject::new(group, name, dtype, shape, bytes);
        Ok(match op {
            Op::Copy => of(Group::Stream, "copy", sides),
            Op::Permute(axes) => Subject { axes: Some(axes.into()), ..of(Group::Permute, "permute", sides) },
            Op::Affine { axes, from, channels } => {
                // The channels' factors and offsets are read too, where there is anything to read
                // them for.
                let vectors = if written > 0 { 2 * self.vector()? } else { 0 };
                let subject = of(Group::Permute, "affine", [read + vectors as u64, written]);
                Subject { axes: Some(axes.into()), from: Some(from), channels, ..subject }
            }
            Op::Arithmetic(arithmetic) => {
                of(Group::Stream, arithmetic.name(), arithmetic.arrays().map(|arrays| arrays * read))
            }
            Op::Along(along, axis) => {
                let axes = matches!(along, Along::Reduction(_)).then(|| vec![axis]);
                Subject { axes, ..of(Group::Axis, along.name(), sides) }
            }
            Op::Normalize => {
                let channels = shape.last().copied().unwrap_or(0);
                require!(
                    (1..=CHANNELS).contains(&channels),
                    InvalidArgument,
                    "images have 1 to 4 channels, and not {channels}; give --shape N,H,W,C"
                );
                Subject { from: Some(DType::U8), ..of(Group::Conversion, "normalize", sides) }
            }
            Op::Cast { from } => Subject { from: Some(from), ..of(Group::Conversion, "cast", sides) },
            Op::Rows { is_put } => {
                require!(
                    u32::try_from(shape[0]).is_ok(),
                    InvalidArgument,
                    "{count} are more than indices of u32 number; give fewer",
                    count = counted(shape[0], "row")
                );
                // The indices are read too.
                let name = if is_put { "scatter" } else { "gather" };
                of(Group::Conversion, name, [read + 4 * shape[0] as u64, written])
            }
            // The work reads none of the elements between.
            Op::Strided { step } => Subject { step: Some(step), ..of(Group::Conversion, "strided-copy", [written; 2]) },
        })
    }

    /// Returns the bytes of the array and of the result. All arrays of arithmetic have the same.
    fn sides(&self) -> Result<[usize; 2]> {
        let from = match self.op {
            Op::Affine { from, .. } | Op::Cast { from } => from,
            Op::Normalize => DType::U8,
            _ => self.dtype,
        };
        let from = array_bytes(self.shape, from)?;
        let to = match self.op {
            Op::Along(along, axis) => AlongAxis { along, axis, case: *self }.result_bytes()?,
            _ => array_bytes(self.shape, self.dtype)?,
        };
        let step = if let Op::Strided { step } = self.op { step } else { 1 };
        let from = from.checked_mul(step).filter(|&bytes| bytes <= isize::MAX as usize);
        Ok([from.context("the elements lie too far apart for an address; use fewer, or a smaller step")?, to])
    }

    /// Returns the bytes of the channels' factors, which are those of their offsets.
    fn vector(&self) -> Result<usize> {
        let Op::Affine { axes, channels: Some(axis), .. } = self.op else { return Ok(0) };
        array_bytes(&[self.shape[axes[axis]], 2], DType::F32).map(|bytes| bytes / 2)
    }

    /// Plans the operation and puts its operands on the device.
    ///
    /// # Errors
    ///
    /// It fails if there is no room, or the device fails.
    pub(super) fn prepare(&self, device: &Device) -> Result<Box<dyn Work + 'a>> {
        let Self { op, dtype, shape } = *self;
        let sides = self.sides()?;
        match op {
            Op::Arithmetic(arithmetic) => {
                let rotation = arithmetic.rotation(device, sides[0]);
                arithmetic::ensure_operands(&rotation, sides[0])?;
                return by_type!(dtype, T in [f16 bf16 f32 f64] => {
                    arithmetic::planned(Box::new(Operands::<T>::new(rotation, shape[0])?), arithmetic)
                });
            }
            Op::Along(along, axis) => return AlongAxis { along, axis, case: *self }.work(device, sides),
            Op::Affine { .. } => ensure_room(self.vector()?, 2, &[(device, 2)])?,
            _ => {}
        }
        let rotation = Rotation::new(device, &sides);
        // On the host the source, the result and the expected one; on the device both sides of each
        // set.
        ensure_room(Rotation::padded(sides[0].max(sides[1])), 3, &[(device, rotation.arrays(2))])?;
        match op {
            Op::Affine { axes, from, channels } => by_type!(from, S in [u8 f16 bf16 f32 f64] => {
                by_type!(dtype, D in [f16 bf16 f32 f64] => conversion::mapped::<S, D>(rotation, shape, axes, channels))
            }),
            Op::Normalize => {
                by_type!(dtype, T in [f16 bf16 f32] => conversion::normalized::<T>(rotation, shape))
            }
            Op::Cast { from } => by_type!(from, S in [u8 i32 f16 bf16 f32 f64] => {
                by_type!(dtype, D in [u8 i32 f16 bf16 f32 f64] => conversion::casted::<S, D>(rotation, shape[0]))
            }),
            Op::Rows { is_put } => {
                // Indices of both directions, and what they are drawn from.
                ensure_room(shape[0], 16, &[(device, 4)])?;
                by_width!(dtype, T => conversion::moved::<T>(rotation, [shape[0], shape[1]], is_put))
            }
            _ => by_width!(dtype, T => self.copied::<T>(rotation)),
        }
    }

    /// Makes a copy, a permute or a strided copy.
    fn copied<T: Element + Pod>(&self, rotation: Rotation) -> Result<Box<dyn Work + 'a>> {
        let Self { op, shape, .. } = *self;
        let (len, view) = match op {
            Op::Permute(axes) => (shape.iter().product(), Layout::row_major(shape)?.permuted_axes(axes)?),
            Op::Strided { step } => {
                let len = shape[0] * step;
                (len, Layout::row_major(&[len])?.slice(0, .., step as isize)?)
            }
            _ => (shape.iter().product(), Layout::row_major(shape)?),
        };
        in_c_order(rotation, &reference::random::<T>(len)?, &view, move |array| match op {
            Op::Permute(axes) => array.split_axis(0, shape)?.permuted_axes(axes),
            Op::Strided { step } => array.slice(0, .., step as isize),
            _ => array.split_axis(0, shape),
        })
    }
}
