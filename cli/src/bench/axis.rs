//! Benches of reductions along one axis, and of operations that need a whole row.

use std::ops::Range;

use anyhow::{Context, Result};
use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::{DType, Element};
use warpstride::error::counted;
use warpstride::ops::{MeanVariancePlan, Phase, Plan, Reduction, ReductionPlan, Scratch, SoftmaxPlan, Target};
use warpstride::roofline::measure::Rotation;
use warpstride::stream::Stream;
use warpstride::view::{View, ViewMut};

use super::arithmetic::{Computed, HostNumber, Value, numbers, some_roundings};
use super::case::Case;
use super::measure::{ColdRuns, Work, one_to_one};
use crate::{by_type, ensure_room, reference, require};

/// An operation along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Along {
    Reduction(Reduction),
    Softmax,
    MeanVariance,
}

impl Along {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reduction(reduction) => reduction.name(),
            Self::Softmax => "softmax",
            Self::MeanVariance => "mean-variance",
        }
    }
}

/// An operation along an axis of an array.
#[derive(Clone, Copy)]
pub(super) struct AlongAxis<'a> {
    pub(super) along: Along,
    pub(super) axis: usize,
    pub(super) case: Case<'a>,
}

impl<'a> AlongAxis<'a> {
    /// Returns the bytes of the results. It fails where there is no such axis.
    pub(super) fn result_bytes(&self) -> Result<usize> {
        let Self { along, axis, case: Case { dtype, shape, .. } } = *self;
        let rank = shape.len();
        require!(
            rank > 0,
            InvalidArgument,
            "shape [] has no axes, and {} goes along one; give a shape such as 4,10",
            along.name()
        );
        require!(
            axis < rank,
            InvalidArgument,
            "shape {shape:?} has no axis {axis}; it has {}, counted from 0",
            counted(rank, "axis")
        );
        let [outer, n, inner] = self.extents();
        let (each, width) = match along {
            Along::Reduction(reduction) => (1, reduction.result(dtype).width()),
            Along::Softmax => (n, dtype.width()),
            Along::MeanVariance => (1, 2 * Reduction::Sum.result(dtype).width()),
        };
        (outer * inner * each).checked_mul(width).context("the results are too many; use a smaller array")
    }

    /// Plans the operation, and puts an array of these bytes on the device, with results.
    pub(super) fn work(self, device: &Device, [read, written]: [usize; 2]) -> Result<Box<dyn Work + 'a>> {
        // The host's array and its results; on the device an array, room for its results, and the
        // sums, each set.
        let rotation = Rotation::new(device, &[read, written]);
        ensure_room(Rotation::padded(read.max(written)), 2, &[(device, rotation.arrays(3).max(4))])?;
        let dtype = self.case.dtype;
        match self.along {
            Along::Reduction(reduction) => by_type!(dtype, T in [u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64] => {
                self.reduced::<T>(reduction, rotation)
            }),
            Along::Softmax => by_type!(dtype, T in [f16 bf16 f32 f64] => self.softmax::<T>(rotation)),
            Along::MeanVariance => by_type!(dtype, T in [f16 bf16 f32 f64] => self.mean_variance::<T>(rotation)),
        }
    }

    /// Elements before the axis, along it and behind it.
    fn extents(&self) -> [usize; 3] {
        let product = |extents: &[usize]| extents.iter().product();
        let (shape, axis) = (self.case.shape, self.axis);
        [product(&shape[..axis]), shape[axis], product(&shape[axis + 1..])]
    }

    /// The shape without the axis.
    fn other_axes(&self) -> Vec<usize> {
        [&self.case.shape[..self.axis], &self.case.shape[self.axis + 1..]].concat()
    }

    fn reduced<T: HostNumber>(self, reduction: Reduction, rotation: Rotation) -> Result<Box<dyn Work + 'a>> {
        let (target, Case { dtype, shape, .. }) = (Target::of(rotation.device()), self.case);
        // Allocations start on a vector.
        let plan = ReductionPlan::new(reduction, dtype, shape, Some(self.axis), Phase::ALIGNED, target)?;
        match reduction {
            Reduction::Sum => self.of_rows::<T, T::Sum>(rotation, plan, |row, found| {
                let (expected, size) = (row.sum(&|value| value), row.sum(&f64::abs));
                (found.value() - expected).abs() <= some_roundings::<T>() * size
            }),
            Reduction::Min => self.of_rows::<T, T>(rotation, plan, |row, found| {
                found.value() == row.values().fold(f64::INFINITY, f64::min)
            }),
            Reduction::Max => self.of_rows::<T, T>(rotation, plan, |row, found| found.value() == row.most()),
            Reduction::ArgMax => self.of_rows::<T, u64>(rotation, plan, |row, found| {
                let most = row.most();
                row.values().position(|value| value == most) == Some(found as usize)
            }),
        }
    }

    /// A planned reduction, which gives one result a row.
    fn of_rows<T: HostNumber, R: Element>(
        self,
        rotation: Rotation,
        plan: ReductionPlan,
        is_right: impl Fn(&Row<'_, T>, R) -> bool + Sync + 'a,
    ) -> Result<Box<dyn Work + 'a>> {
        let (mut scratch, shape) = (Scratch::new(rotation.device())?, self.other_axes());
        let launch = move |from: View<'_, T>, to: ViewMut<'_, R>, stream: &Stream| {
            plan.launch(from.split_axis(0, self.case.shape)?, &mut scratch, to.split_axis(0, &shape)?, stream)
        };
        let [outer, _, inner] = self.extents();
        let elements = numbers::<T>(self.case.shape.iter().product(), 0)?;
        let arrays = Box::new(ColdRuns::new(rotation, &elements, outer * inner)?);
        Ok(one_to_one(arrays, plan.entry(), launch, move |found| {
            self.all_rows(&elements, &|at, row| is_right(row, found[at]))
        }))
    }

    fn softmax<T: Computed>(self, rotation: Rotation) -> Result<Box<dyn Work + 'a>> {
        let Case { dtype, shape, .. } = self.case;
        let [outer, n, _] = self.extents();
        let (extents, target) = ([outer as u64, n as u64], Target::of(rotation.device()));
        let plan = SoftmaxPlan::new(dtype, extents, [Phase::ALIGNED; 2], target)?;
        let kernel = plan.entry();
        let launch = move |from: View<'_, T>, to: ViewMut<'_, T>, stream: &Stream| {
            plan.launch(from.split_axis(0, shape)?, to.split_axis(0, shape)?, stream)
        };
        let elements = numbers::<T>(outer * n, 0)?;
        let arrays = Box::new(ColdRuns::new(rotation, &elements, outer * n)?);
        let (relative, least) = rounding(dtype);
        Ok(one_to_one(arrays, kernel, launch, move |found| {
            self.all_rows(&elements, &|at, row| {
                let most = row.most();
                let all = row.sum(&|value| (value - most).exp());
                row.values().zip(&found[at * n..]).all(|(value, found)| {
                    let expected = (value - most).exp() / all;
                    (found.value() - expected).abs() <= relative * expected + least
                })
            })
        }))
    }

    /// The means lie before the variances, and both begin as an allocation does.
    fn mean_variance<T: Computed>(self, rotation: Rotation) -> Result<Box<dyn Work + 'a>> {
        let Case { dtype, shape, .. } = self.case;
        let [rows, n, _] = self.extents();
        let (extents, target) = ([rows as u64, n as u64], Target::of(rotation.device()));
        let plan = MeanVariancePlan::new(dtype, extents, Phase::ALIGNED, target)?;
        let (kernel, others) = (plan.entry(), self.other_axes());
        let variances = Rotation::padded(rows * size_of::<T::Sum>()) / size_of::<T::Sum>();
        let launch = move |from: View<'_, T>, to: ViewMut<'_, T::Sum>, stream: &Stream| {
            let (mean, variance) = to.split_at(0, variances)?;
            let mean = mean.slice(0, ..rows, 1)?.split_axis(0, &others)?;
            plan.launch(from.split_axis(0, shape)?, mean, variance.split_axis(0, &others)?, stream)
        };
        let elements = numbers::<T>(rows * n, 0)?;
        let arrays = Box::new(ColdRuns::new(rotation, &elements, variances + rows)?);
        Ok(one_to_one(arrays, kernel, launch, move |found| {
            self.all_rows(&elements, &|at, row| {
                let mean = row.sum(&|value| value) / n as f64;
                let variance = row.sum(&|value| (value - mean).powi(2)) / n as f64;
                (found[at].value() - mean).abs() <= 2.0 * some_roundings::<T>()
                    && (found[variances + at].value() - variance).abs() <= 4.0 * some_roundings::<T>()
            })
        }))
    }

    /// Says whether something holds for each row, by its number.
    fn all_rows<T: HostNumber>(&self, elements: &[T], is_right: &(dyn Fn(usize, &Row<'_, T>) -> bool + Sync)) -> bool {
        let [outer, n, inner] = self.extents();
        reference::all(outer * inner, &|at| {
            is_right(at, &Row { elements, first: at / inner * n * inner + at % inner, step: inner, n })
        })
    }
}

/// The elements of an array along an axis.
struct Row<'e, T> {
    elements: &'e [T],
    first: usize,
    step: usize,
    n: usize,
}

impl<T: HostNumber> Row<'_, T> {
    fn value(&self, place: usize) -> f64 {
        self.elements[self.first + place * self.step].value()
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        (0..self.n).map(|place| self.value(place))
    }

    fn most(&self) -> f64 {
        self.values().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The sum of what `of` makes of each value.
    fn sum(&self, of: &dyn Fn(f64) -> f64) -> f64 {
        sum(0..self.n, &|place| of(self.value(place)))
    }
}

/// A sum of double precision, pair by pair: one term after the other, the host would be further off
/// than the device.
fn sum(places: Range<usize>, term: &dyn Fn(usize) -> f64) -> f64 {
    if places.len() <= 64 {
        return places.map(term).sum();
    }
    let middle = places.start.midpoint(places.end);
    sum(places.start..middle, term) + sum(middle..places.end, term)
}

/// How far a softmax of numbers from -2 to 2 may be off: of itself, and beside that where halves
/// have fewer bits.
fn rounding(number: DType) -> (f64, f64) {
    match number {
        DType::F16 => (f64::powi(2.0, -11) * 1.01, f64::powi(2.0, -25) * 1.01),
        DType::Bf16 => (f64::powi(2.0, -8) * 1.01, 0.0),
        DType::F32 => (96.0 * f64::powi(2.0, -24), 0.0),
        _ => (96.0 * f64::powi(2.0, -53), 0.0),
    }
}
