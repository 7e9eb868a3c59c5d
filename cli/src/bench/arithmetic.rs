//! Benches of operations that compute with elements.

use std::ops::DerefMut;

use anyhow::Result;
use half::{bf16, f16};
use rayon::prelude::*;
use warpstride::device::Device;
use warpstride::element::{Float, Number};
use warpstride::layout::Layout;
use warpstride::memory::DeviceBuffer;
use warpstride::ops::{
    Align, Binary, BinaryPlan, DotPlan, Elementwise, ElementwisePlan, FillPlan, Phase, Plan, Reduction, ReductionPlan,
    Scratch, Target,
};
use warpstride::roofline::measure::{RotatingBuffer, Rotation};

use super::measure::{Work, on_arrays};
use crate::{ensure_room, reference};

/// The factor that scales arrays. It is not a power of two, so that products are rounded.
const SCALAR: f64 = 0.3;

/// An operation on numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Arithmetic {
    Fill,
    Elementwise(Elementwise),
    /// An operation of two arrays.
    Binary(Binary),
    /// The sum of a matrix and a row, or a column of another.
    Added(Repeated),
    Reduction(Reduction),
    Dot,
}

/// The part of a matrix that is added to each of another's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Repeated {
    Row,
    Column,
}

impl Repeated {
    /// Returns the shapes of the matrix and of the part: a row has the greatest power of two that
    /// divides the elements, and 4096 at most.
    fn shapes(self, len: usize) -> [[usize; 2]; 2] {
        let columns = 1 << len.trailing_zeros().min(12);
        let rows = len / columns;
        [[rows, columns], if self == Self::Row { [1, columns] } else { [rows, 1] }]
    }
}

/// A number that the host reads.
pub(super) trait Value {
    /// The value.
    fn value(self) -> f64;
}

/// A number that the host makes and reads.
pub(super) trait HostNumber: Value + Number<Sum: Value> {
    /// Floats from -2 to 2; integers of 16 bits at most, so that doubles hold their sums exactly.
    fn of_bits(bits: u16) -> Self;
}

macro_rules! host_numbers {
    ($($type:ident)*: |$bits:ident| $made:expr, |$number:ident| $value:expr) => {$(
        impl HostNumber for $type {
            fn of_bits($bits: u16) -> Self {
                $made
            }
        }

        impl Value for $type {
            fn value(self) -> f64 {
                let $number = self;
                $value
            }
        }
    )*};
}

host_numbers! { u8 i8 u16 i16 u32 i32 u64 i64: |bits| bits as Self, |number| number as f64 }
host_numbers! {
    f16 bf16 f32 f64: |bits| Self::nearest(f64::from(bits) / 16384.0 - 2.0), |number| number.to_f64()
}

/// A number that the host computes with as the kernels do.
pub(super) trait Computed: HostNumber + Float {
    /// The nearest to a value.
    fn nearest(value: f64) -> Self;
    /// Returns what an operation makes of elements.
    fn compute(operation: Elementwise, old: Self, a: Self, b: Self) -> Self;
    /// Returns what an operation makes of two elements.
    fn of_two(operation: Binary, a: Self, b: Self) -> Self;
    /// Returns what an affine map makes of a byte's number.
    fn mapped(byte: u8, factor: f32, offset: f32) -> Self;
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
                    Elementwise::Triad => a + scalar * b,
                    Elementwise::NStream => old + (a + scalar * b),
                    Elementwise::Axpy => old + scalar * a,
                };
                $nearest
            }

            fn of_two(operation: Binary, a: Self, b: Self) -> Self {
                let [a, b] = [a, b].map(|number| number.value() as $in);
                let $value = match operation {
                    Binary::Add => a + b,
                    Binary::Sub => a - b,
                    Binary::Mul => a * b,
                    Binary::Div => a / b,
                };
                $nearest
            }

            fn mapped(byte: u8, factor: f32, offset: f32) -> Self {
                let $value = <$in>::from(byte).mul_add(factor.into(), offset.into());
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
            Self::Binary(operation) => operation.name(),
            Self::Added(Repeated::Row) => "add_row",
            Self::Added(Repeated::Column) => "add_column",
            Self::Reduction(reduction) => reduction.name(),
            Self::Dot => "dot",
        }
    }

    /// Counts the arrays that it reads and those that it writes, as BabelStream does. Rows
    /// and columns do not count.
    pub(super) fn arrays(self) -> [u64; 2] {
        match self {
            Self::Fill => [0, 1],
            Self::Elementwise(operation) => [operation.reads(), 1],
            Self::Binary(_) => [2, 1],
            Self::Added(_) => [1, 1],
            Self::Reduction(_) => [1, 0],
            Self::Dot => [2, 0],
        }
    }

    /// Returns the rotation of arrays of `bytes` bytes: those that the operation touches, and the
    /// copy beside it.
    pub(super) fn rotation(self, device: &Device, bytes: usize) -> Rotation {
        match self {
            Self::Fill | Self::Reduction(_) => Rotation::new(device, &[bytes]),
            _ => Rotation::new(device, &[bytes; 2]),
        }
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

impl<T: Number> AsMut<Rotation> for Operands<T> {
    fn as_mut(&mut self) -> &mut Rotation {
        &mut self.rotation
    }
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

    /// Says whether the first set's results are the expected ones.
    fn are(&self, expected: &(dyn Fn(usize) -> T + Sync)) -> Result<bool> {
        let found = self.results.download_first(self.results.len())?;
        Ok(reference::all(found.len(), &|at| found[at] == expected(at)))
    }

    /// Says whether the sum is that of these terms, but for some roundings of each, of 2^-24 or
    /// 2^-53.
    fn is_sum_of(&self, term: &(dyn Fn(usize) -> f64 + Sync)) -> Result<bool> {
        let len = self.results.len();
        let (expected, size) = (reference::sum(len, term), reference::sum(len, &|at| term(at).abs()));
        Ok((self.sum.download()?[0].value() - expected).abs() <= some_roundings::<T>() * size)
    }
}

/// Some roundings of sums of elements: of 2^-24 or 2^-53 each.
pub(super) fn some_roundings<T: Number>() -> f64 {
    32.0 * if size_of::<T::Sum>() == 8 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// Plans an operation on operands, and gives the first set's results their old values. Allocations
/// start on a vector.
pub(super) fn planned<'w, T: Computed>(
    mut operands: impl DerefMut<Target = Operands<T>> + 'w,
    arithmetic: Arithmetic,
) -> Result<Box<dyn Work + 'w>> {
    let Operands { host: [old, ..], rotation, results, .. } = &mut *operands;
    rotation.restart();
    results.upload_first(old)?;
    let (len, start, target, scalar) = (old.len(), Phase::ALIGNED, Target::of(rotation.device()), T::nearest(SCALAR));
    let count = len as u64;
    Ok(match arithmetic {
        Arithmetic::Fill => {
            let plan = FillPlan::new(T::DTYPE, count, start, target)?;
            let launch = move |on: &mut Operands<T>, set| {
                plan.launch(scalar, on.results.view_mut(set)?, on.rotation.device().default_stream())
            };
            on_arrays(operands, plan.entry(), launch, move |on| on.are(&|_| scalar))
        }
        Arithmetic::Elementwise(operation) => {
            let plan = ElementwisePlan::new(operation, T::DTYPE, count, [start; 2], start, target)?;
            let launch = move |on: &mut Operands<T>, set| {
                let sources = &[on.a.view(set)?, on.b.view(set)?][..operation.sources()];
                let stream = on.rotation.device().default_stream();
                plan.launch(scalar.value(), sources, on.results.view_mut(set)?, stream)
            };
            on_arrays(operands, plan.entry(), launch, move |on| {
                let [old, a, b] = &on.host;
                on.are(&|at| T::compute(operation, old[at], a[at], b[at]))
            })
        }
        Arithmetic::Binary(operation) => binary(operands, operation, [[1, len]; 2])?,
        Arithmetic::Added(repeated) => binary(operands, Binary::Add, repeated.shapes(len))?,
        Arithmetic::Reduction(reduction) => {
            let plan = ReductionPlan::new(reduction, T::DTYPE, &[len], None, start, target)?;
            let launch = move |on: &mut Operands<T>, set| {
                let (a, stream) = (on.a.view(set)?, on.rotation.device().default_stream());
                match reduction {
                    Reduction::Sum => plan.launch(a, &mut on.scratch, on.sum.view_mut(&[])?, stream),
                    _ => plan.launch(a, &mut on.scratch, on.extreme.view_mut(&[])?, stream),
                }
            };
            on_arrays(operands, plan.entry(), launch, move |on| {
                let a = &on.host[1];
                match reduction {
                    Reduction::Sum => on.is_sum_of(&|at| a[at].value()),
                    Reduction::Min => Ok(on.extreme.download()?[0] == first(a, &|x, y| x < y)),
                    _ => Ok(on.extreme.download()?[0] == first(a, &|x, y| x > y)),
                }
            })
        }
        Arithmetic::Dot => {
            let plan = DotPlan::new(T::DTYPE, count, [start; 2])?;
            let launch = move |on: &mut Operands<T>, set| {
                let (a, b, stream) = (on.a.view(set)?, on.b.view(set)?, on.rotation.device().default_stream());
                plan.launch(a, b, &mut on.scratch, on.sum.view_mut(&[])?, stream)
            };
            on_arrays(operands, plan.entry(), launch, move |on| {
                let [_, a, b] = &on.host;
                on.is_sum_of(&|at| a[at].value() * b[at].value())
            })
        }
    })
}

/// Plans an operation on a matrix, or a whole array as one row, and the first elements of the other
/// operand as a matrix that is broadcast to it.
fn binary<'w, T: Computed>(
    operands: impl DerefMut<Target = Operands<T>> + 'w,
    operation: Binary,
    [shape, other]: [[usize; 2]; 2],
) -> Result<Box<dyn Work + 'w>> {
    let target = Target::of(operands.rotation.device());
    let ([matrix, part], align) = ([Layout::row_major(&shape)?, Layout::row_major(&other)?], Align::ALLOCATION);
    let plan = BinaryPlan::new(operation, T::DTYPE, [Some(&matrix), Some(&part)], (&matrix, align), target)?;
    let launch = move |on: &mut Operands<T>, set| {
        let (a, b) = (on.a.view(set)?.split_axis(0, &shape)?, on.b.view(set)?);
        let b = b.slice(0, ..other[0] * other[1], 1)?.split_axis(0, &other)?;
        plan.launch(a, b, on.results.view_mut(set)?.split_axis(0, &shape)?, on.rotation.device().default_stream())
    };
    Ok(on_arrays(operands, plan.entry(), launch, move |on| {
        let [_, a, b] = &on.host;
        let second = |at: usize| (at / shape[1] % other[0]) * other[1] + at % shape[1] % other[1];
        on.are(&|at| T::of_two(operation, a[at], b[second(at)]))
    }))
}
