//! Benches of reductions along one axis, and of what needs a whole row.

use std::ops::Range;

use anyhow::{Context, Result};
use half::{bf16, f16};
use warpstride::device::Device;
use warpstride::element::DType;
use warpstride::error::{Error, counted};
use warpstride::ops::{self, MeanVariancePlan, Phase, Plan, Reduction, ReductionPlan, Scratch, SoftmaxPlan, Target};
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation, Timing};
use warpstride::roofline::record::{Group, Subject};

use super::arithmetic::{Computed, HostNumber, numbers};
use super::outcome::Outcome;
use super::permute::copy;
use super::{Measured, SMALL};
use crate::output::Output;
use crate::verify;
use crate::{array_bytes, ensure_room, reference, require};

/// An operation along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Along {
    Reduction(Reduction),
    Softmax,
    MeanVariance,
}

/// What is done along which axis of which array.
pub(super) struct AlongAxis<'a> {
    pub(super) along: Along,
    pub(super) shape: &'a [usize],
    pub(super) axis: usize,
    pub(super) dtype: DType,
}

impl Measured for AlongAxis<'_> {
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

    fn outcome(&self, device: &Device, samples: usize, output: &Output) -> Result<Outcome> {
        let Subject { read, written, .. } = self.subject()?;
        let [read, written] = [read as usize, written as usize];
        // The host's array and its results; on the device an array, room for its copy and its
        // results, each set.
        let rotation = Rotation::new(device, &[read, written]);
        ensure_room(Rotation::padded(read.max(written)), 2, &[(device, rotation.arrays(3).max(4))])?;
        let Along::Reduction(reduction) = self.along else {
            return match self.dtype {
                DType::F16 => self.rowwise::<f16>(rotation, samples, output),
                DType::Bf16 => self.rowwise::<bf16>(rotation, samples, output),
                DType::F32 => self.rowwise::<f32>(rotation, samples, output),
                _ => self.rowwise::<f64>(rotation, samples, output),
            };
        };
        match self.dtype {
            DType::U8 => self.reduced::<u8>(reduction, rotation, samples, output),
            DType::I8 => self.reduced::<i8>(reduction, rotation, samples, output),
            DType::U16 => self.reduced::<u16>(reduction, rotation, samples, output),
            DType::I16 => self.reduced::<i16>(reduction, rotation, samples, output),
            DType::F16 => self.reduced::<f16>(reduction, rotation, samples, output),
            DType::Bf16 => self.reduced::<bf16>(reduction, rotation, samples, output),
            DType::U32 => self.reduced::<u32>(reduction, rotation, samples, output),
            DType::I32 => self.reduced::<i32>(reduction, rotation, samples, output),
            DType::F32 => self.reduced::<f32>(reduction, rotation, samples, output),
            DType::U64 => self.reduced::<u64>(reduction, rotation, samples, output),
            DType::I64 => self.reduced::<i64>(reduction, rotation, samples, output),
            _ => self.reduced::<f64>(reduction, rotation, samples, output),
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

    /// The kernel that does it, or the first of two. Allocations start on a vector.
    fn kernel(&self, target: Target) -> Result<Option<&'static str>> {
        let (dtype, start, [outer, n, _]) = (self.dtype, Phase::ALIGNED, self.extents().map(|extent| extent as u64));
        Ok(match self.along {
            Along::Reduction(reduction) => {
                ReductionPlan::new(reduction, dtype, self.shape, Some(self.axis), start, target)?.entry()
            }
            Along::Softmax => SoftmaxPlan::new(dtype, [outer, n], [start; 2], target)?.entry(),
            Along::MeanVariance => MeanVariancePlan::new(dtype, [outer, n], start, target)?.entry(),
        })
    }

    fn reduced<T: HostNumber>(
        &self,
        reduction: Reduction,
        rotation: Rotation,
        samples: usize,
        output: &Output,
    ) -> Result<Outcome> {
        self.measure::<T>(rotation, samples, output, |runs| runs.reduce(self, reduction))
    }

    fn rowwise<T: Computed>(&self, rotation: Rotation, samples: usize, output: &Output) -> Result<Outcome> {
        self.measure::<T>(rotation, samples, output, |runs| runs.rowwise(self))
    }

    fn measure<T: HostNumber>(
        &self,
        rotation: Rotation,
        samples: usize,
        output: &Output,
        run: impl Fn(&mut Runs<T>) -> Result<(), Error>,
    ) -> Result<Outcome> {
        let progress = output.progress(3);
        progress.doing("preparing");
        let elements = numbers::<T>(self.shape.iter().product(), 0)?;
        let (device, is_cold) = (rotation.device().clone(), rotation.is_cold());
        let mut runs = Runs::new(rotation, self, &elements)?;
        progress.step();
        progress.doing("verifying");
        let counters = verify::counted(&device, || run(&mut runs))?;
        let verified = self.is_right(&runs, &elements)?;
        progress.step();
        progress.doing("timing");
        let (mut timing, mut launch_us) = (None, None);
        if verified && is_cold {
            let copied = runs.time(samples, Runs::copy)?.gbps(2 * size_of_val(&*elements) as u64);
            timing = Some((runs.time(samples, &run)?, copied));
            if size_of_val(&*elements) <= SMALL {
                launch_us = Some(measure::launch_us(device.default_stream(), || run(&mut runs))?);
            }
        }
        let kernel = self.kernel(Target::of(&device))?;
        Ok(Outcome { kernel, verified, counters, timing, launch_us })
    }

    /// Whether the first set's results are near the host's in double precision, or the same where
    /// they are elements or places.
    fn is_right<T: HostNumber>(&self, runs: &Runs<T>, elements: &[T]) -> Result<bool> {
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
                let found = runs.sums.download_first(columns)?;
                all(&|result| {
                    let (expected, size) = (total(result, &|value| value), total(result, &f64::abs));
                    (T::sum_value(found[result]) - expected).abs() <= some * size
                })
            }
            Along::Reduction(Reduction::Min) => {
                let found = runs.like.download_first(columns)?;
                let least = |result| (0..n).map(|place| number(result, place)).fold(f64::INFINITY, f64::min);
                all(&|result| found[result].value() == least(result))
            }
            Along::Reduction(Reduction::Max) => {
                let found = runs.like.download_first(columns)?;
                all(&|result| found[result].value() == most(result))
            }
            Along::Reduction(Reduction::ArgMax) => {
                let found = runs.places.download_first(columns)?;
                all(&|result| {
                    let most = most(result);
                    (0..n).position(|place| number(result, place) == most) == Some(found[result] as usize)
                })
            }
            Along::Softmax => {
                let (found, (relative, least)) = (runs.like.download_first(columns * n)?, rounding(T::DTYPE));
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
                let (means, variances) = (runs.sums.download_first(columns)?, runs.others.download_first(columns)?);
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
struct Runs<T: HostNumber> {
    rotation: Rotation,
    a: RotatingBuffer<T>,
    /// Room for as many elements: of a softmax, of a copy, of least and greatest elements.
    like: RotatingBuffer<T>,
    sums: RotatingBuffer<T::Sum>,
    others: RotatingBuffer<T::Sum>,
    places: RotatingBuffer<u64>,
    scratch: Scratch,
}

impl<T: HostNumber> Runs<T> {
    fn new(rotation: Rotation, along_axis: &AlongAxis<'_>, elements: &[T]) -> Result<Self> {
        let results = along_axis.results();
        let is = |along: &[Along]| if along.contains(&along_axis.along) { results } else { 0 };
        Ok(Self {
            a: rotation.upload(elements)?,
            // An axis without elements has results all the same.
            like: rotation.zeros(elements.len().max(results))?,
            sums: rotation.zeros(is(&[Along::Reduction(Reduction::Sum), Along::MeanVariance]))?,
            others: rotation.zeros(is(&[Along::MeanVariance]))?,
            places: rotation.zeros(is(&[Along::Reduction(Reduction::ArgMax)]))?,
            scratch: Scratch::new(rotation.device())?,
            rotation,
        })
    }

    fn reduce(&mut self, along_axis: &AlongAxis<'_>, reduction: Reduction) -> Result<(), Error> {
        let Self { rotation, a, like, sums, places, scratch, .. } = self;
        let (set, axis, stream) = (rotation.advance(), along_axis.axis, rotation.device().default_stream());
        let from = a.view(set)?.split_axis(0, along_axis.shape)?;
        let shape = along_axis.other_axes();
        let extremes = like.view_mut(set)?.slice(0, ..along_axis.results(), 1)?.split_axis(0, &shape)?;
        match reduction {
            Reduction::Sum => ops::sum_into(from, axis, scratch, sums.view_mut(set)?.split_axis(0, &shape)?, stream),
            Reduction::Min => ops::min_into(from, axis, scratch, extremes, stream),
            Reduction::Max => ops::max_into(from, axis, scratch, extremes, stream),
            Reduction::ArgMax => {
                ops::argmax_into(from, axis, scratch, places.view_mut(set)?.split_axis(0, &shape)?, stream)
            }
        }
    }

    /// The yardstick, on the same arrays.
    fn copy(&mut self) -> Result<(), Error> {
        let set = self.rotation.advance();
        let from = self.a.view(set)?;
        let len = from.len();
        copy(from, self.like.view_mut(set)?.slice(0, ..len, 1)?)
    }

    fn time(&mut self, samples: usize, mut run: impl FnMut(&mut Self) -> Result<(), Error>) -> Result<Timing> {
        let device = self.rotation.device().clone();
        Ok(measure::time(&device, device.default_stream(), samples, || run(self))?)
    }
}

impl<T: Computed> Runs<T> {
    /// Softmax, or mean and variance.
    fn rowwise(&mut self, along_axis: &AlongAxis<'_>) -> Result<(), Error> {
        let Self { rotation, a, like, sums, others, .. } = self;
        let (set, stream) = (rotation.advance(), rotation.device().default_stream());
        let from = a.view(set)?.split_axis(0, along_axis.shape)?;
        if along_axis.along == Along::Softmax {
            return ops::softmax_into(from, like.view_mut(set)?.split_axis(0, along_axis.shape)?, stream);
        }
        let shape = along_axis.other_axes();
        let [means, variances] = [sums, others];
        ops::mean_variance_into(
            from,
            means.view_mut(set)?.split_axis(0, &shape)?,
            variances.view_mut(set)?.split_axis(0, &shape)?,
            stream,
        )
    }
}
