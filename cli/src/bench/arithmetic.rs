//! Benches of operations that compute with elements.

use std::ops::DerefMut;

use anyhow::Result;
use half::{bf16, f16};
use rayon::prelude::*;
use warpstride::device::Device;
use warpstride::element::{DType, Float, Number};
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{
    DotPlan, Elementwise, ElementwisePlan, FillPlan, Operands as Starts, Phase, Plan, Reduction, ReductionPlan,
    Scratch, Target,
};
use warpstride::roofline::measure::{RotatingBuffer, Rotation};
use warpstride::roofline::record::{Group, Subject};

use super::measure::{Case, Work};
use crate::{array_bytes, ensure_room, reference};

/// What arrays are scaled by: no power of two, so that products are rounded.
const SCALAR: f64 = 0.3;

/// An operation on numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Arithmetic {
    Fill,
    Elementwise(Elementwise),
    Reduction(Reduction),
    Dot,
}

/// A number that the host makes and reads.
pub(super) trait HostNumber: Number {
    /// Floats from -2 to 2; integers of 16 bits at most, so that doubles hold their sums exactly.
    fn of_bits(bits: u16) -> Self;
    /// The value.
    fn value(self) -> f64;
    /// The value of a sum.
    fn sum_value(sum: Self::Sum) -> f64;
}

macro_rules! host_numbers {
    ($($type:ident: |$bits:ident| $number:expr;)*) => {$(
        impl HostNumber for $type {
            fn of_bits($bits: u16) -> Self {
                $number
            }

            fn value(self) -> f64 {
                self as f64
            }

            fn sum_value(sum: Self::Sum) -> f64 {
                sum as f64
            }
        }
    )*};
    ($($type:ident)*) => { host_numbers! { $($type: |bits| bits as $type;)* } };
}

host_numbers! { u8 i8 u16 i16 u32 i32 u64 i64 }
host_numbers! {
    f32: |bits| Self::nearest(f64::from(bits) / 16384.0 - 2.0);
    f64: |bits| Self::nearest(f64::from(bits) / 16384.0 - 2.0);
}

macro_rules! host_halves {
    ($($type:ident)*) => {$(
        impl HostNumber for $type {
            fn of_bits(bits: u16) -> Self {
                Self::nearest(f64::from(bits) / 16384.0 - 2.0)
            }

            fn value(self) -> f64 {
                self.to_f64()
            }

            fn sum_value(sum: f32) -> f64 {
                f64::from(sum)
            }
        }
    )*};
}

host_halves! { f16 bf16 }

/// A number that the host computes with as the kernels do.
pub(super) trait Computed: HostNumber + Float {
    /// The nearest to a value.
    fn nearest(value: f64) -> Self;
    /// What an operation makes of elements.
    fn compute(operation: Elementwise, old: Self, a: Self, b: Self) -> Self;
}

macro_rules! computed {
    ($($type:ty, $in:ty: |$value:ident| $nearest:expr;)*) => {$(
        impl Computed for $type {
            fn nearest(value: f64) -> Self {
                let $value = value as $in;
                $nearest
            }

            fn compute(operation: Elementwise, old: Self, a: Self, b: Self) -> Self {
                // The kernels take the scalar as this type has it.
                let scalar = Self::nearest(SCALAR).value() as $in;
                let [old, a, b] = [old, a, b].map(|number| number.value() as $in);
                let $value = match operation {
                    Elementwise::Mul => scalar * a,
                    Elementwise::Add => a + b,
                    Elementwise::Triad => a + scalar * b,
                    Elementwise::NStream => old + (a + scalar * b),
                    Elementwise::Axpy => old + scalar * a,
                };
                $nearest
            }
        }
    )*};
}

computed! {
    f16, f32: |value| f16::from_f32(value);
    bf16, f32: |value| bf16::from_f32(value);
    f32, f32: |value| value;
    f64, f64: |value| value;
}

impl Arithmetic {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Elementwise(operation) => operation.name(),
            Self::Reduction(reduction) => reduction.name(),
            Self::Dot => "dot",
        }
    }

    /// Describes the operation on arrays of `bytes` bytes each, counted as BabelStream counts them.
    pub(super) fn subject(self, shape: &[usize], dtype: DType, bytes: u64) -> Subject {
        let (reads, writes) = match self {
            Self::Fill => (0, 1),
            Self::Elementwise(operation) => (operation.reads(), 1),
            Self::Reduction(_) => (1, 0),
            Self::Dot => (2, 0),
        };
        Subject::new(Group::Stream, self.name(), dtype, shape, [reads * bytes, writes * bytes])
    }

    /// Plans the operation. Allocations start on a vector.
    fn plan<T: Number>(self, len: usize, target: Target) -> Result<Planned> {
        let (start, count) = (Phase::ALIGNED, len as u64);
        Ok(match self {
            Self::Fill => Planned::Fill(FillPlan::new(T::DTYPE, count, start, target)?),
            Self::Elementwise(operation) => {
                let starts = Starts { dst: start, a: start, b: start };
                Planned::Elementwise(ElementwisePlan::new(operation, T::DTYPE, count, starts, target)?)
            }
            Self::Reduction(reduction) => {
                Planned::Reduction(ReductionPlan::new(reduction, T::DTYPE, &[len], None, start, target)?)
            }
            Self::Dot => Planned::Dot(DotPlan::new(T::DTYPE, count, [start; 2])?),
        })
    }

    /// Returns the rotation of arrays of `bytes` bytes: those that the operation touches, and the
    /// copy beside it.
    fn rotation(self, device: &Device, bytes: usize) -> Rotation {
        match self {
            Self::Fill | Self::Reduction(_) => Rotation::new(device, &[bytes]),
            _ => Rotation::new(device, &[bytes; 2]),
        }
    }
}

/// The plan of an operation.
enum Planned {
    Fill(FillPlan),
    Elementwise(ElementwisePlan),
    Reduction(ReductionPlan),
    Dot(DotPlan),
}

/// An operation on arrays of one axis.
pub(super) struct OnArrays {
    pub(super) arithmetic: Arithmetic,
    pub(super) shape: [usize; 1],
    pub(super) dtype: DType,
}

impl Case for OnArrays {
    fn subject(&self) -> Result<Subject> {
        let Self { arithmetic, shape, dtype } = self;
        let bytes = array_bytes(shape, *dtype)? as u64;
        Ok(arithmetic.subject(shape, *dtype, bytes))
    }

    fn prepare<'a>(&'a self, device: &Device) -> Result<Box<dyn Work + 'a>> {
        let bytes = array_bytes(&self.shape, self.dtype)?;
        let rotation = self.arithmetic.rotation(device, bytes);
        ensure_operands(&rotation, bytes)?;
        match self.dtype {
            DType::F16 => self.work::<f16>(rotation),
            DType::Bf16 => self.work::<bf16>(rotation),
            DType::F32 => self.work::<f32>(rotation),
            _ => self.work::<f64>(rotation),
        }
    }
}

impl OnArrays {
    fn work<T: Computed>(&self, rotation: Rotation) -> Result<Box<dyn Work>> {
        let operands = Box::new(Operands::<T>::new(rotation, self.shape[0])?);
        Ok(Box::new(OnOperands::new(operands, self.arithmetic)?))
    }
}

/// Returns the element that comes before all others.
fn first<T: HostNumber>(elements: &[T], is_before: &(dyn Fn(f64, f64) -> bool + Sync)) -> T {
    elements[reference::first(elements.len(), &|x, y| is_before(elements[x].value(), elements[y].value()))]
}

/// Numbers of a fixed sequence, another for each array.
pub(super) fn numbers<T: HostNumber>(len: usize, array: usize) -> Result<Vec<T>> {
    let bits = reference::random::<u16>(len + array)?;
    Ok(bits[array..].par_iter().map(|&bits| T::of_bits(bits)).collect())
}

/// Fails if there is no room for arrays of `bytes` bytes: three and the result on the host, and on
/// the device four, or three a set if that is more.
pub(super) fn ensure_operands(rotation: &Rotation, bytes: usize) -> Result<()> {
    ensure_room(Rotation::padded(bytes), 4, &[(rotation.device(), rotation.arrays(3).max(4))])
}

/// Numbers on the host and on a device, for one operation or several in a row.
pub(super) struct Operands<T: Number> {
    /// The results before, and both operands.
    host: [Vec<T>; 3],
    rotation: Rotation,
    results: RotatingBuffer<T>,
    a: RotatingBuffer<T>,
    b: RotatingBuffer<T>,
    sum: DeviceBuffer<T::Sum>,
    extreme: DeviceBuffer<T>,
    scratch: Scratch,
}

impl<T: Computed> Operands<T> {
    pub(super) fn new(rotation: Rotation, len: usize) -> Result<Self> {
        let [old, a, b] = [0, 1, 2].map(|array| numbers::<T>(len, array));
        let host = [old?, a?, b?];
        let [results, a, b] = host.each_ref().map(|elements| rotation.upload(elements));
        let device = rotation.device();
        let (sum, extreme, scratch) = (device.alloc(1)?, device.alloc(1)?, Scratch::new(device)?);
        Ok(Self { host, results: results?, a: a?, b: b?, sum, extreme, scratch, rotation })
    }
}

/// A planned operation on operands, which it owns or borrows.
pub(super) struct OnOperands<O> {
    operands: O,
    arithmetic: Arithmetic,
    plan: Planned,
}

impl<T: Computed, O: DerefMut<Target = Operands<T>>> OnOperands<O> {
    /// Plans the operation, and gives the first set's results their old values.
    pub(super) fn new(mut operands: O, arithmetic: Arithmetic) -> Result<Self> {
        let Operands { host: [old, ..], rotation, results, .. } = &mut *operands;
        rotation.restart();
        results.upload_first(old)?;
        let plan = arithmetic.plan::<T>(old.len(), Target::of(rotation.device()))?;
        Ok(Self { operands, arithmetic, plan })
    }
}

impl<T: Computed, O: DerefMut<Target = Operands<T>>> Work for OnOperands<O> {
    fn rotation(&mut self) -> &mut Rotation {
        &mut self.operands.rotation
    }

    fn kernel(&self) -> Option<&'static str> {
        match &self.plan {
            Planned::Fill(plan) => plan.entry(),
            Planned::Elementwise(plan) => plan.entry(),
            Planned::Reduction(plan) => plan.entry(),
            Planned::Dot(plan) => plan.entry(),
        }
    }

    fn run(&mut self, set: usize, _: usize) -> Result<(), Error> {
        let Operands { rotation, results, a, b, sum, extreme, scratch, .. } = &mut *self.operands;
        let stream = rotation.device().default_stream();
        let (a, b, to, scalar) = (a.view(set)?, b.view(set)?, results.view_mut(set)?, T::nearest(SCALAR));
        match (&self.plan, self.arithmetic) {
            (Planned::Fill(plan), _) => plan.launch(scalar, to, stream),
            (Planned::Elementwise(plan), Arithmetic::Elementwise(operation)) => {
                plan.launch(scalar.value(), &[a, b][..operation.sources()], to, stream)
            }
            (Planned::Elementwise(plan), _) => plan.launch(scalar.value(), &[a, b], to, stream),
            (Planned::Reduction(plan), Arithmetic::Reduction(Reduction::Sum)) => {
                plan.launch(a, scratch, sum.view_mut(&[])?, stream)
            }
            (Planned::Reduction(plan), _) => plan.launch(a, scratch, extreme.view_mut(&[])?, stream),
            (Planned::Dot(plan), _) => plan.launch(a, b, scratch, sum.view_mut(&[])?, stream),
        }
    }

    fn is_right(&mut self) -> Result<bool> {
        let Operands { host: [old, a, b], results, sum, extreme, .. } = &*self.operands;
        let elements = |expected: &(dyn Fn(usize) -> T + Sync)| -> Result<bool> {
            let found = results.download_first(old.len())?;
            Ok(reference::all(old.len(), &|at| found[at] == expected(at)))
        };
        match self.arithmetic {
            Arithmetic::Fill => elements(&|_| T::nearest(SCALAR)),
            Arithmetic::Elementwise(operation) => elements(&|at| T::compute(operation, old[at], a[at], b[at])),
            Arithmetic::Reduction(Reduction::Min) => Ok(extreme.download()?[0] == first(a, &|x, y| x < y)),
            Arithmetic::Reduction(Reduction::Max) => Ok(extreme.download()?[0] == first(a, &|x, y| x > y)),
            Arithmetic::Reduction(_) | Arithmetic::Dot => {
                let term =
                    |at: usize| a[at].value() * if self.arithmetic == Arithmetic::Dot { b[at].value() } else { 1.0 };
                let expected = reference::sum(a.len(), &term);
                let size = reference::sum(a.len(), &|at| term(at).abs());
                let found = T::sum_value(sum.download()?[0]);
                // Some roundings of the terms' sum, each of 2^-24 or 2^-53.
                let rounding = if size_of::<T::Sum>() == 8 { f64::EPSILON } else { f64::from(f32::EPSILON) };
                Ok((found - expected).abs() <= 32.0 * rounding * size)
            }
        }
    }
}
