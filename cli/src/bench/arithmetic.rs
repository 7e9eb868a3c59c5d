//! Benches of what computes with elements.

use anyhow::Result;
use half::{bf16, f16};
use rayon::prelude::*;
use warpstride::device::Device;
use warpstride::element::{DType, Float, Number};
use warpstride::error::Error;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{
    self, DotPlan, Elementwise, ElementwisePlan, FillPlan, Operands as Starts, Phase, Plan, Reduction, ReductionPlan,
    Scratch, Target,
};
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation, Timing};
use warpstride::roofline::record::{Group, Subject};

use super::outcome::Outcome;
use super::permute::copy;
use super::{Measured, SMALL};
use crate::output::Output;
use crate::verify::counted;
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

    /// The kernel that does it, or the first of two. Allocations start on a vector.
    fn kernel<T: Number>(self, len: usize, target: Target) -> Result<Option<&'static str>> {
        let (start, count) = (Phase::ALIGNED, len as u64);
        Ok(match self {
            Self::Fill => FillPlan::new(T::DTYPE, count, start, target)?.entry(),
            Self::Elementwise(operation) => {
                let starts = Starts { dst: start, a: start, b: start };
                ElementwisePlan::new(operation, T::DTYPE, count, starts, target)?.entry()
            }
            Self::Reduction(reduction) => ReductionPlan::new(reduction, T::DTYPE, &[len], None, start, target)?.entry(),
            Self::Dot => DotPlan::new(T::DTYPE, count, [start; 2])?.entry(),
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

    /// Whether the first set's arrays, or the value, are what the host computes.
    fn is_right<T: Computed>(self, arrays: &Arrays<T>, old: &[T], a: &[T], b: &[T]) -> Result<bool> {
        let elements = |expected: &(dyn Fn(usize) -> T + Sync)| -> Result<bool> {
            let got = arrays.results.download_first(old.len())?;
            Ok(reference::all(old.len(), &|at| got[at] == expected(at)))
        };
        match self {
            Self::Fill => elements(&|_| T::nearest(SCALAR)),
            Self::Elementwise(operation) => elements(&|at| T::compute(operation, old[at], a[at], b[at])),
            Self::Reduction(Reduction::Min) => Ok(arrays.extreme.download()?[0] == extreme(a, &|x, y| x < y)),
            Self::Reduction(Reduction::Max) => Ok(arrays.extreme.download()?[0] == extreme(a, &|x, y| x > y)),
            Self::Reduction(_) | Self::Dot => {
                let term = |at: usize| a[at].value() * if self == Self::Dot { b[at].value() } else { 1.0 };
                let expected = reference::sum(a.len(), &term);
                let size = reference::sum(a.len(), &|at| term(at).abs());
                let got = T::sum_value(arrays.sum.download()?[0]);
                // Some roundings of the terms' sum, each of 2^-24 or 2^-53.
                let rounding = if size_of::<T::Sum>() == 8 { f64::EPSILON } else { f64::from(f32::EPSILON) };
                Ok((got - expected).abs() <= 32.0 * rounding * size)
            }
        }
    }
}

/// An operation on arrays of one axis.
pub(super) struct OnArrays {
    pub(super) arithmetic: Arithmetic,
    pub(super) shape: [usize; 1],
    pub(super) dtype: DType,
}

impl Measured for OnArrays {
    fn subject(&self) -> Result<Subject> {
        let Self { arithmetic, shape, dtype } = self;
        let bytes = array_bytes(shape, *dtype)? as u64;
        Ok(arithmetic.subject(shape, *dtype, bytes))
    }

    fn outcome(&self, device: &Device, samples: usize, output: &Output) -> Result<Outcome> {
        let bytes = array_bytes(&self.shape, self.dtype)?;
        let rotation = self.arithmetic.rotation(device, bytes);
        ensure_operands(&rotation, bytes)?;
        match self.dtype {
            DType::F16 => self.measure::<f16>(rotation, samples, output),
            DType::Bf16 => self.measure::<bf16>(rotation, samples, output),
            DType::F32 => self.measure::<f32>(rotation, samples, output),
            _ => self.measure::<f64>(rotation, samples, output),
        }
    }
}

impl OnArrays {
    fn measure<T: Computed>(&self, rotation: Rotation, samples: usize, output: &Output) -> Result<Outcome> {
        let progress = output.progress(2);
        progress.doing("preparing");
        let mut operands = Operands::<T>::new(rotation, self.shape[0])?;
        progress.step();
        progress.doing("measuring");
        operands.measure(self.arithmetic, samples)
    }
}

/// The element that comes before all others.
fn extreme<T: HostNumber>(elements: &[T], is_before: &(dyn Fn(f64, f64) -> bool + Sync)) -> T {
    elements[reference::first(elements.len(), &|x, y| is_before(elements[x].value(), elements[y].value()))]
}

/// Numbers of a fixed sequence, another for each array.
pub(super) fn numbers<T: HostNumber>(len: usize, array: usize) -> Result<Vec<T>> {
    let bits = reference::random::<u16>(len + array)?;
    Ok(bits[array..].par_iter().map(|&bits| T::of_bits(bits)).collect())
}

/// Numbers on the host and on a device, for one operation or several in a row.
pub(super) struct Operands<T: Number> {
    /// The results before, and both operands.
    host: [Vec<T>; 3],
    arrays: Arrays<T>,
}

impl<T: Computed> Operands<T> {
    pub(super) fn new(rotation: Rotation, len: usize) -> Result<Self> {
        let [old, a, b] = [0, 1, 2].map(|array| numbers::<T>(len, array));
        let host = [old?, a?, b?];
        let arrays = Arrays::new(rotation, host.each_ref().map(Vec::as_slice))?;
        Ok(Self { host, arrays })
    }

    /// Verifies an operation, and where it is right and time means anything, times it.
    pub(super) fn measure(&mut self, arithmetic: Arithmetic, samples: usize) -> Result<Outcome> {
        let Self { host: [old, a, b], arrays } = self;
        let device = arrays.rotation.device().clone();
        arrays.restart(old)?;
        let counters = counted(&device, || arrays.run(arithmetic))?;
        let verified = arithmetic.is_right(arrays, old, a, b)?;
        let (mut timing, mut launch_us) = (None, None);
        if verified && arrays.rotation.is_cold() {
            let copied = arrays.time(samples, |arrays| arrays.copy())?.gbps(2 * size_of_val(&**a) as u64);
            timing = Some((arrays.time(samples, |arrays| arrays.run(arithmetic))?, copied));
            if size_of_val(&**a) <= SMALL {
                launch_us = Some(measure::launch_us(device.default_stream(), || arrays.run(arithmetic))?);
            }
        }
        let kernel = arithmetic.kernel::<T>(a.len(), Target::of(&device))?;
        Ok(Outcome { kernel, verified, counters, timing, launch_us })
    }
}

/// Fails if there is no room for arrays of `bytes` bytes: three and the result on the host, and on
/// the device four, or three a set if that is more.
pub(super) fn ensure_operands(rotation: &Rotation, bytes: usize) -> Result<()> {
    ensure_room(Rotation::padded(bytes), 4, &[(rotation.device(), rotation.arrays(3).max(4))])
}

/// Operands and results of a rotation.
struct Arrays<T: Number> {
    rotation: Rotation,
    results: RotatingBuffer<T>,
    a: RotatingBuffer<T>,
    b: RotatingBuffer<T>,
    sum: DeviceBuffer<T::Sum>,
    extreme: DeviceBuffer<T>,
    scratch: Scratch,
}

impl<T: Computed> Arrays<T> {
    fn new(rotation: Rotation, host: [&[T]; 3]) -> Result<Self> {
        let [results, a, b] = host.map(|elements| rotation.upload(elements));
        let device = rotation.device();
        let (sum, extreme, scratch) = (device.alloc(1)?, device.alloc(1)?, Scratch::new(device)?);
        Ok(Self { results: results?, a: a?, b: b?, sum, extreme, scratch, rotation })
    }

    /// Makes the first set the next, and its results `old` again.
    fn restart(&mut self, old: &[T]) -> Result<()> {
        self.rotation.restart();
        Ok(self.results.upload_first(old)?)
    }

    fn run(&mut self, arithmetic: Arithmetic) -> Result<(), Error> {
        let Self { rotation, results, a, b, sum, extreme, scratch } = self;
        let (set, stream) = (rotation.advance(), rotation.device().default_stream());
        let (a, b, to) = (a.view(set)?, b.view(set)?, results.view_mut(set)?);
        let scalar = T::nearest(SCALAR);
        match arithmetic {
            Arithmetic::Fill => ops::fill_into(scalar, to, stream),
            Arithmetic::Elementwise(Elementwise::Mul) => ops::mul_into(scalar, a, to, stream),
            Arithmetic::Elementwise(Elementwise::Add) => ops::add_into(a, b, to, stream),
            Arithmetic::Elementwise(Elementwise::Triad) => ops::triad_into(a, scalar, b, to, stream),
            Arithmetic::Elementwise(Elementwise::NStream) => ops::nstream_into(a, scalar, b, to, stream),
            Arithmetic::Elementwise(Elementwise::Axpy) => ops::axpy_into(scalar, a, to, stream),
            Arithmetic::Reduction(Reduction::Sum) => ops::sum_into(a, None, scratch, sum.view_mut(&[1])?, stream),
            Arithmetic::Reduction(Reduction::Min) => ops::min_into(a, None, scratch, extreme.view_mut(&[1])?, stream),
            Arithmetic::Reduction(_) => ops::max_into(a, None, scratch, extreme.view_mut(&[1])?, stream),
            Arithmetic::Dot => ops::dot_into(a, b, scratch, sum.view_mut(&[1])?, stream),
        }
    }

    /// The yardstick, on the same arrays.
    fn copy(&mut self) -> Result<(), Error> {
        let set = self.rotation.advance();
        copy(self.a.view(set)?, self.results.view_mut(set)?)
    }

    fn time(&mut self, samples: usize, mut run: impl FnMut(&mut Self) -> Result<(), Error>) -> Result<Timing> {
        let device = self.rotation.device().clone();
        Ok(measure::time(&device, device.default_stream(), samples, || run(self))?)
    }
}
