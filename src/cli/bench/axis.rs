//! Benches of reductions along one axis, and of what needs a whole row.

use std::ops::Range;

use anyhow::{Context, Result};
use half::{bf16, f16};
use rayon::prelude::*;
use warpstride::abi::NumberType;
use warpstride::device::Device;
use warpstride::element::{DType, Number};
use warpstride::error::{Error, counted};
use warpstride::ops::{self, AxisPlan, AxisReduction, Scratch, rowwise};
use warpstride::roofline::measure::{self, RotatingBuffer, Rotation, Timing};

use super::arithmetic::{Computed, numbers};
use super::permute::copy;
use super::report::{Outcome, Subject};
use super::{Measured, SMALL};
use crate::cli::output::Output;
use crate::cli::verify;
use crate::cli::{array_bytes, ensure_room, require};

/// An operation along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Along {
    Reduction(AxisReduction),
    Softmax,
    MeanVariance,
}

/// What is done along which axis of which array.
pub(super) struct AlongAxis<'a> {
    pub(super) along: Along,
    pub(super) shape: &'a [usize],
    pub(super) axis: [usize; 1],
    pub(super) dtype: DType,
}

impl Measured for AlongAxis<'_> {
    fn subject(&self) -> Result<Subject<'_>> {
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
            axis[0] < rank,
            InvalidArgument,
            "shape {shape:?} has no axis {}; it has {}, counted from 0",
            axis[0],
            counted(rank, "axis")
        );
        let written =
            self.results().checked_mul(self.result_width()).context("the results are too many; use a smaller array")?;
        let axes = matches!(along, Along::Reduction(_)).then_some(&axis[..]);
        Ok(Subject { op: self.name(), dtype: *dtype, shape, axes, from: None, read, written: written as u64 })
    }

    fn outcome(&self, device: &Device, samples: usize, output: &Output) -> Result<Outcome> {
        let Subject { read, written, .. } = self.subject()?;
        let [read, written] = [read as usize, written as usize];
        // The host's array and its results; on the device an array, room for its copy and its results, each set.
        let rotation = Rotation::new(device, &[read, written]);
        ensure_room(Rotation::padded(read.max(written)), 2, &[(device, rotation.arrays(3).max(4))])?;
        match self.dtype {
            DType::F16 => self.measure::<f16>(rotation, samples, output),
            DType::Bf16 => self.measure::<bf16>(rotation, samples, output),
            DType::F32 => self.measure::<f32>(rotation, samples, output),
            _ => self.measure::<f64>(rotation, samples, output),
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
        let [axis] = self.axis;
        [product(&self.shape[..axis]), self.shape[axis], product(&self.shape[axis + 1..])]
    }

    /// Results, each of [`result_width`](Self::result_width) bytes.
    fn results(&self) -> usize {
        let [outer, n, inner] = self.extents();
        outer * inner * if self.along == Along::Softmax { n } else { 1 }
    }

    fn result_width(&self) -> usize {
        let sum = if self.dtype == DType::F64 { 8 } else { 4 };
        match self.along {
            Along::Reduction(AxisReduction::Sum) => sum,
            Along::Reduction(AxisReduction::ArgMax) => size_of::<u64>(),
            Along::Reduction(_) | Along::Softmax => self.dtype.width(),
            Along::MeanVariance => 2 * sum,
        }
    }

    /// The kernel that does it, or the first of two.
    fn kernel(&self, number: NumberType) -> Result<&'static str> {
        Ok(match self.along {
            // What is allocated starts on a quad.
            Along::Reduction(reduction) => {
                AxisPlan::new(reduction, number, self.extents().map(|extent| extent as u64), 0)?.entry_name()
            }
            Along::Softmax => rowwise::softmax_entry_name(number),
            Along::MeanVariance => rowwise::mean_variance_entry_name(number),
        })
    }

    fn measure<T: Computed>(&self, rotation: Rotation, samples: usize, output: &Output) -> Result<Outcome> {
        let progress = output.progress(3);
        progress.doing("preparing");
        let elements = numbers::<T>(self.shape.iter().product(), 0)?;
        let (device, is_cold) = (rotation.device().clone(), rotation.is_cold());
        let mut runs = Runs::new(rotation, self, &elements)?;
        progress.step();
        progress.doing("verifying");
        let counters = verify::counted(&device, || runs.run(self))?;
        let verified = self.is_right(&runs, &elements)?;
        progress.step();
        progress.doing("timing");
        let (mut timing, mut launch_us) = (None, None);
        if verified && is_cold {
            let copied = runs.time(samples, Runs::copy)?.gbps(2 * size_of_val(&*elements) as u64);
            timing = Some((runs.time(samples, |runs| runs.run(self))?, copied));
            if size_of_val(&*elements) <= SMALL {
                launch_us = Some(measure::launch_us(device.default_stream(), || runs.run(self))?);
            }
        }
        let kernel = if self.results() > 0 { Some(self.kernel(T::NUMBER)?) } else { None };
        Ok(Outcome { kernel, verified, counters, timing, launch_us })
    }

    /// Whether the first set's results are near the host's in double precision, or the same where they are elements or places.
    fn is_right<T: Computed>(&self, runs: &Runs<T>, elements: &[T]) -> Result<bool> {
        let [_, n, inner] = self.extents();
        let number =
            |result: usize, place: usize| elements[(result / inner * n + place) * inner + result % inner].to_f64();
        let total = |result: usize, of: &dyn Fn(f64) -> f64| sum(0..n, &|place| of(number(result, place)));
        let most = |result: usize| (0..n).map(|place| number(result, place)).fold(f64::NEG_INFINITY, f64::max);
        let columns = self.results() / if self.along == Along::Softmax { n.max(1) } else { 1 };
        let all = |is_right: &(dyn Fn(usize) -> bool + Sync)| Ok((0..columns).into_par_iter().all(is_right));
        // Some roundings of 2^-24 or 2^-53.
        let some: f64 = 32.0 * if size_of::<T::Sum>() == 8 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        match self.along {
            Along::Reduction(AxisReduction::Sum) => {
                let found = runs.sums.download_first(columns)?;
                all(&|result| {
                    let (expected, size) = (total(result, &|value| value), total(result, &f64::abs));
                    (found[result].to_f64() - expected).abs() <= some * size
                })
            }
            Along::Reduction(AxisReduction::Min) => {
                let found = runs.like.download_first(columns)?;
                let least = |result| (0..n).map(|place| number(result, place)).fold(f64::INFINITY, f64::min);
                all(&|result| found[result].to_f64() == least(result))
            }
            Along::Reduction(AxisReduction::Max) => {
                let found = runs.like.download_first(columns)?;
                all(&|result| found[result].to_f64() == most(result))
            }
            Along::Reduction(AxisReduction::ArgMax) => {
                let found = runs.places.download_first(columns)?;
                all(&|result| {
                    let most = most(result);
                    (0..n).position(|place| number(result, place) == most) == Some(found[result] as usize)
                })
            }
            Along::Softmax => {
                let (found, (relative, least)) = (runs.like.download_first(columns * n)?, rounding(T::NUMBER));
                all(&|result| {
                    let most = most(result);
                    let all = total(result, &|value| (value - most).exp());
                    (0..n).all(|place| {
                        let expected = (number(result, place) - most).exp() / all;
                        (found[result * n + place].to_f64() - expected).abs() <= relative * expected + least
                    })
                })
            }
            Along::MeanVariance => {
                let (means, variances) = (runs.sums.download_first(columns)?, runs.others.download_first(columns)?);
                all(&|result| {
                    let mean = total(result, &|value| value) / n as f64;
                    let variance = total(result, &|value| (value - mean).powi(2)) / n as f64;
                    (means[result].to_f64() - mean).abs() <= 2.0 * some
                        && (variances[result].to_f64() - variance).abs() <= 4.0 * some
                })
            }
        }
    }
}

/// A sum of double precision, pair by pair: one term after the other, the host would be further off than the device.
fn sum(places: Range<usize>, term: &dyn Fn(usize) -> f64) -> f64 {
    if places.len() <= 64 {
        return places.map(term).sum();
    }
    let middle = places.start.midpoint(places.end);
    sum(places.start..middle, term) + sum(middle..places.end, term)
}

/// How far a softmax of numbers from -2 to 2 may be off: of itself, and beside that where halves have fewer bits.
fn rounding(number: NumberType) -> (f64, f64) {
    match number {
        NumberType::F16 => (f64::powi(2.0, -11) * 1.01, f64::powi(2.0, -25) * 1.01),
        NumberType::Bf16 => (f64::powi(2.0, -8) * 1.01, 0.0),
        NumberType::F32 => (96.0 * f64::powi(2.0, -24), 0.0),
        NumberType::F64 => (96.0 * f64::powi(2.0, -53), 0.0),
    }
}

/// The arrays of a rotation, and their results.
struct Runs<T: Computed> {
    rotation: Rotation,
    a: RotatingBuffer<T>,
    /// Room for as many elements: of a softmax, of a copy, of least and greatest elements.
    like: RotatingBuffer<T>,
    sums: RotatingBuffer<T::Sum>,
    others: RotatingBuffer<T::Sum>,
    places: RotatingBuffer<u64>,
    scratch: Scratch,
}

impl<T: Computed> Runs<T> {
    fn new(rotation: Rotation, along_axis: &AlongAxis<'_>, elements: &[T]) -> Result<Self> {
        let results = along_axis.results();
        let is = |along: &[Along]| if along.contains(&along_axis.along) { results } else { 0 };
        Ok(Self {
            a: rotation.upload(elements)?,
            // An axis without elements has results all the same.
            like: rotation.zeros(elements.len().max(results))?,
            sums: rotation.zeros(is(&[Along::Reduction(AxisReduction::Sum), Along::MeanVariance]))?,
            others: rotation.zeros(is(&[Along::MeanVariance]))?,
            places: rotation.zeros(is(&[Along::Reduction(AxisReduction::ArgMax)]))?,
            scratch: Scratch::new(rotation.device())?,
            rotation,
        })
    }

    fn run(&mut self, along_axis: &AlongAxis<'_>) -> Result<(), Error> {
        let Self { rotation, a, like, sums, others, places, scratch } = self;
        let (set, [axis], stream) = (rotation.advance(), along_axis.axis, rotation.device().default_stream());
        let (from, like) = (a.view(set)?.split_axis(0, along_axis.shape)?, like.view_mut(set)?);
        let shape = [&along_axis.shape[..axis], &along_axis.shape[axis + 1..]].concat();
        let results: usize = shape.iter().product();
        match along_axis.along {
            Along::Reduction(AxisReduction::Sum) => {
                ops::sum_axis_into(from, axis, sums.view_mut(set)?.split_axis(0, &shape)?, scratch, stream)
            }
            Along::Reduction(AxisReduction::ArgMax) => {
                ops::argmax_axis_into(from, axis, places.view_mut(set)?.split_axis(0, &shape)?, scratch, stream)
            }
            Along::Reduction(reduction) => {
                let to = like.slice(0, ..results, 1)?.split_axis(0, &shape)?;
                let reduce = if reduction == AxisReduction::Min { ops::min_axis_into } else { ops::max_axis_into };
                reduce(from, axis, to, scratch, stream)
            }
            Along::Softmax => ops::softmax_into(from, like.split_axis(0, along_axis.shape)?, stream),
            Along::MeanVariance => ops::mean_variance_into(
                from,
                sums.view_mut(set)?.split_axis(0, &shape)?,
                others.view_mut(set)?.split_axis(0, &shape)?,
                stream,
            ),
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
