//! Benches of reductions along one axis, and of operations that need a whole row.

use std::ops::Range;

use anyhow::{Context, Result};
use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::DType;
use warpstride::error::{Error, counted};
use warpstride::ops::{MeanVariancePlan, Phase, Plan, Reduction, ReductionPlan, Scratch, SoftmaxPlan, Target};
use warpstride::roofline::measure::{RotatingBuffer, Rotation};
use warpstride::roofline::record::{Group, Subject};

use super::arithmetic::{Computed, HostNumber, numbers};
use super::measure::{Case, Work};
use crate::{array_bytes, ensure_room, reference, require};

/// An operation along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Along {
    Reduction(Reduction),
    Softmax,
    MeanVariance,
}

/// An operation along an axis of an array.
pub(super) struct AlongAxis<'a> {
    pub(super) along: Along,
    pub(super) shape: &'a [usize],
    pub(super) axis: usize,
    pub(super) dtype: DType,
}

impl Case for AlongAxis<'_> {
    fn subject(&self) -> Result<Subject> {
        let Self { along, shape, axis, dtype } = self;
        let read = array_bytes(shape, *dtype)? as u64;
        let rank = shape.len();
        require!(
            rank > 0,
            InvalidArgument,
            "shape [] has no axes, and {} goes along one; give a shape such as 4,10",
            self.name()
        );
        require!(
            *axis < rank,
            InvalidArgument,
            "shape {shape:?} has no axis {}; it has {}, counted from 0",
            axis,
            counted(rank, "axis")
        );
        let written =
            self.results().checked_mul(self.result_width()).context("the results are too many; use a smaller array")?;
        let axes = matches!(along, Along::Reduction(_)).then(|| vec![*axis]);
        Ok(Subject { axes, ..Subject::new(Group::Axis, self.name(), *dtype, shape, [read, written as u64]) })
    }

    fn prepare<'a>(&'a self, device: &Device) -> Result<Box<dyn Work + 'a>> {
        let Subject { read, written, .. } = self.subject()?;
        let [read, written] = [read as usize, written as usize];
        // The host's array and its results; on the device an array, room for its results, and the
        // sums, each set.
        let rotation = Rotation::new(device, &[read, written]);
        ensure_room(Rotation::padded(read.max(written)), 2, &[(device, rotation.arrays(3).max(4))])?;
        let Along::Reduction(reduction) = self.along else {
            return match self.dtype {
                DType::F16 => self.rowwise::<f16>(rotation),
                DType::Bf16 => self.rowwise::<bf16>(rotation),
                DType::F32 => self.rowwise::<f32>(rotation),
                _ => self.rowwise::<f64>(rotation),
            };
        };
        match self.dtype {
            DType::U8 => self.reduced::<u8>(reduction, rotation),
            DType::I8 => self.reduced::<i8>(reduction, rotation),
            DType::U16 => self.reduced::<u16>(reduction, rotation),
            DType::I16 => self.reduced::<i16>(reduction, rotation),
            DType::F16 => self.reduced::<f16>(reduction, rotation),
            DType::Bf16 => self.reduced::<bf16>(reduction, rotation),
            DType::U32 => self.reduced::<u32>(reduction, rotation),
            DType::I32 => self.reduced::<i32>(reduction, rotation),
            DType::F32 => self.reduced::<f32>(reduction, rotation),
            DType::U64 => self.reduced::<u64>(reduction, rotation),
            DType::I64 => self.reduced::<i64>(reduction, rotation),
            _ => self.reduced::<f64>(reduction, rotation),
        }
    }
}

impl AlongAxis<'_> {
    fn name(&self) -> &'static str {
        match self.along {
            Along::Reduction(reduction) => reduction.name(),
            Along::Softmax => "softmax",
            Along::MeanVariance => "mean-variance",
        }
    }

    fn extents(&self) -> [usize; 3] {
        let product = |extents: &[usize]| extents.iter().product();
        let axis = self.axis;
        [product(&self.shape[..axis]), self.shape[axis], product(&self.shape[axis + 1..])]
    }

    /// The shape without the axis.
    fn other_axes(&self) -> Vec<usize> {
        [&self.shape[..self.axis], &self.shape[self.axis + 1..]].concat()
    }

    /// Results, each of [`result_width`](Self::result_width) bytes.
    fn results(&self) -> usize {
        let [outer, n, inner] = self.extents();
        outer * inner * if self.along == Along::Softmax { n } else { 1 }
    }

    fn result_width(&self) -> usize {
        match self.along {
            Along::Reduction(reduction) => reduction.result(self.dtype).width(),
            Along::Softmax => self.dtype.width(),
            Along::MeanVariance => 2 * Reduction::Sum.result(self.dtype).width(),
        }
    }

    /// Plans a reduction. Allocations start on a vector.
    fn reduced<T: HostNumber>(&self, reduction: Reduction, rotation: Rotation) -> Result<Box<dyn Work + '_>> {
        let (target, axis) = (Target::of(rotation.device()), self.axis);
        let plan = ReductionPlan::new(reduction, self.dtype, self.shape, Some(axis), Phase::ALIGNED, target)?;
        let shape = self.other_axes();
        self.work::<T, _>(rotation, plan.entry(), move |arrays, set| {
            let Arrays { rotation, a, like, sums, places, scratch, .. } = arrays;
            let stream = rotation.device().default_stream();
            let from = a.view(set)?.split_axis(0, self.shape)?;
            match reduction {
                Reduction::Sum => plan.launch(from, scratch, sums.view_mut(set)?.split_axis(0, &shape)?, stream),
                Reduction::ArgMax => plan.launch(from, scratch, places.view_mut(set)?.split_axis(0, &shape)?, stream),
                Reduction::Min | Reduction::Max => {
                    plan.launch(from, scratch, like.view_mut(set)?.split_axis(0, &shape)?, stream)
                }
            }
        })
    }

    /// Plans softmax, or mean and variance.
    fn rowwise<T: Computed>(&self, rotation: Rotation) -> Result<Box<dyn Work + '_>> {
        let ([outer, n, _], start) = (self.extents().map(|extent| extent as u64), Phase::ALIGNED);
        if self.along == Along::Softmax {
            let plan = SoftmaxPlan::new(self.dtype, [outer, n], [start; 2], Target::of(rotation.device()))?;
            return self.work::<T, _>(rotation, plan.entry(), move |arrays, set| {
                let from = arrays.a.view(set)?.split_axis(0, self.shape)?;
                let to = arrays.like.view_mut(set)?.split_axis(0, self.shape)?;
                plan.launch(from, to, arrays.rotation.device().default_stream())
            });
        }
        let plan = MeanVariancePlan::new(self.dtype, [outer, n], start, Target::of(rotation.device()))?;
        let shape = self.other_axes();
        self.work::<T, _>(rotation, plan.entry(), move |arrays, set| {
            let Arrays { rotation, a, sums, others, .. } = arrays;
            let from = a.view(set)?.split_axis(0, self.shape)?;
            let [means, variances] = [sums, others].map(|array| array.view_mut(set)?.split_axis(0, &shape));
            plan.launch(from, means?, variances?, rotation.device().default_stream())
        })
    }

    fn work<'a, T, L>(
        &'a self,
        rotation: Rotation,
        kernel: Option<&'static str>,
        launch: L,
    ) -> Result<Box<dyn Work + 'a>>
    where
        T: HostNumber,
        L: FnMut(&mut Arrays<T>, usize) -> Result<(), Error> + 'a,
    {
        let elements = numbers::<T>(self.shape.iter().product(), 0)?;
        let arrays = Arrays::new(rotation, self, &elements)?;
        Ok(Box::new(OnArrays { along_axis: self, elements, arrays, kernel, launch }))
    }

    /// Says whether the first set's results are near the host's in double precision, or the same
    /// where they are elements or places.
    fn is_right<T: HostNumber>(&self, arrays: &Arrays<T>, elements: &[T]) -> Result<bool> {
        let [_, n, inner] = self.extents();
        let number =
            |result: usize, place: usize| elements[(result / inner * n + place) * inner + result % inner].value();
        let total = |result: usize, of: &dyn Fn(f64) -> f64| sum(0..n, &|place| of(number(result, place)));
        let most = |result: usize| (0..n).map(|place| number(result, place)).fold(f64::NEG_INFINITY, f64::max);
        let columns = self.results() / if self.along == Along::Softmax { n.max(1) } else { 1 };
        let all = |is_right: &(dyn Fn(usize) -> bool + Sync)| Ok(reference::all(columns, is_right));
        // Some roundings of 2^-24 or 2^-53.
        let some: f64 = 32.0 * if size_of::<T::Sum>() == 8 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        match self.along {
            Along::Reduction(Reduction::Sum) => {
                let found = arrays.sums.download_first(columns)?;
                all(&|result| {
                    let (expected, size) = (total(result, &|value| value), total(result, &f64::abs));
                    (T::sum_value(found[result]) - expected).abs() <= some * size
                })
            }
            Along::Reduction(Reduction::Min) => {
                let found = arrays.like.download_first(columns)?;
                let least = |result| (0..n).map(|place| number(result, place)).fold(f64::INFINITY, f64::min);
                all(&|result| found[result].value() == least(result))
            }
            Along::Reduction(Reduction::Max) => {
                let found = arrays.like.download_first(columns)?;
                all(&|result| found[result].value() == most(result))
            }
            Along::Reduction(Reduction::ArgMax) => {
                let found = arrays.places.download_first(columns)?;
                all(&|result| {
                    let most = most(result);
                    (0..n).position(|place| number(result, place) == most) == Some(found[result] as usize)
                })
            }
            Along::Softmax => {
                let (found, (relative, least)) = (arrays.like.download_first(columns * n)?, rounding(T::DTYPE));
                all(&|result| {
                    let most = most(result);
                    let all = total(result, &|value| (value - most).exp());
                    (0..n).all(|place| {
                        let expected = (number(result, place) - most).exp() / all;
                        (found[result * n + place].value() - expected).abs() <= relative * expected + least
                    })
                })
            }
            Along::MeanVariance => {
                let (means, variances) = (arrays.sums.download_first(columns)?, arrays.others.download_first(columns)?);
                all(&|result| {
                    let mean = total(result, &|value| value) / n as f64;
                    let variance = total(result, &|value| (value - mean).powi(2)) / n as f64;
                    (T::sum_value(means[result]) - mean).abs() <= 2.0 * some
                        && (T::sum_value(variances[result]) - variance).abs() <= 4.0 * some
                })
            }
        }
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

/// The arrays of a rotation, and their results.
struct Arrays<T: HostNumber> {
    rotation: Rotation,
    a: RotatingBuffer<T>,
    /// Results of the elements' type: of a softmax, least and greatest elements.
    like: RotatingBuffer<T>,
    sums: RotatingBuffer<T::Sum>,
    others: RotatingBuffer<T::Sum>,
    places: RotatingBuffer<u64>,
    scratch: Scratch,
}

impl<T: HostNumber> Arrays<T> {
    fn new(rotation: Rotation, along_axis: &AlongAxis<'_>, elements: &[T]) -> Result<Self> {
        use Reduction::{ArgMax, Max, Min, Sum};

        let results = along_axis.results();
        let is = |along: &[Along]| if along.contains(&along_axis.along) { results } else { 0 };
        Ok(Self {
            a: rotation.upload(elements)?,
            like: rotation.zeros(is(&[Along::Reduction(Min), Along::Reduction(Max), Along::Softmax]))?,
            sums: rotation.zeros(is(&[Along::Reduction(Sum), Along::MeanVariance]))?,
            others: rotation.zeros(is(&[Along::MeanVariance]))?,
            places: rotation.zeros(is(&[Along::Reduction(ArgMax)]))?,
            scratch: Scratch::new(rotation.device())?,
            rotation,
        })
    }
}

/// A planned operation along an axis of arrays.
struct OnArrays<'a, T: HostNumber, L> {
    along_axis: &'a AlongAxis<'a>,
    elements: Vec<T>,
    arrays: Arrays<T>,
    kernel: Option<&'static str>,
    /// Queues the launch on the arrays of a set.
    launch: L,
}

impl<T: HostNumber, L: FnMut(&mut Arrays<T>, usize) -> Result<(), Error>> Work for OnArrays<'_, T, L> {
    fn rotation(&mut self) -> &mut Rotation {
        &mut self.arrays.rotation
    }

    fn kernel(&self) -> Option<&'static str> {
        self.kernel
    }

    fn run(&mut self, set: usize, _: usize) -> Result<(), Error> {
        (self.launch)(&mut self.arrays, set)
    }

    fn is_right(&mut self) -> Result<bool> {
        self.along_axis.is_right(&self.arrays, &self.elements)
    }
}
