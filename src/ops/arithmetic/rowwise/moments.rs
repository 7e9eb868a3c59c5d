//! Computes mean and variance along axes.

use super::{Launch, Sides, check_rows, counted_rows, elements};
use crate::abi::{JOIN_MOMENTS, MEAN_VARIANCE, MOMENTS_OF_PARTS, MOMENTS_QUADS, moments_threads};
use crate::array::DeviceArray;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Float, Number};
use crate::error::{Error, Result};
use crate::ops::Target;
use crate::ops::arithmetic::reduce::{
    self, Along, Groups, check_shape, count_along, flat, kept, no_elements, numbers, with_groups,
};
use crate::ops::arithmetic::{kernel, sum_type};
use crate::ops::operand::{Operand, bytes_from, check_aligned, check_written_apart, queue};
use crate::ops::plan::plan_of;
use crate::ops::span::{Contiguous, Phase, phase};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// The name of the operation in errors.
const NAME: &str = "mean and variance";

/// Results of the type of the sums.
type Sums<T> = DeviceArray<<T as Number>::Sum>;

/// Computes mean and variance along axes, or of all elements (`None`), into new arrays, on the
/// default stream. See [`mean_variance_into`]. Integers do not compile: cast them first
/// (`ops::mean_variance(&ops::cast::<f64, _>(&bytes)?, 1)`).
///
/// # Errors
///
/// As [`mean_variance_into`]; `OutOfMemory` if the results do not fit.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::ops;
///
/// let device = Device::open(Backend::Soft)?;
/// let matrix = device.array(&[2, 2], &[1.0_f32, 3.0, 5.0, 5.0])?;
/// let (mean, variance) = ops::mean_variance(&matrix, 1)?;
/// assert_eq!((mean.to_vec()?, variance.to_vec()?), (vec![2.0, 5.0], vec![1.0, 0.0]));
/// assert_eq!(ops::mean_variance(&matrix, 0)?.1.to_vec()?, [4.0, 1.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn mean_variance<'a, T: Float>(a: impl Into<View<'a, T>>, axes: impl Into<Along>) -> Result<(Sums<T>, Sums<T>)> {
    let (a, axes) = (a.into(), axes.into());
    let shape: Vec<usize> = kept(a.shape(), &axes.reduced(a.shape())?).collect();
    let device = a.device();
    let (mut mean, mut variance) = (device.alloc_array(&shape)?, device.alloc_array(&shape)?);
    mean_variance_into(a, axes, &mut mean, &mut variance, device.default_stream())?;
    Ok((mean, variance))
}

/// Queues mean and variance of `a` along axes, or of all elements (`None`), on `stream`. The
/// variance is the sum of the squared differences from the mean, divided by the number of elements,
/// as in NumPy.
///
/// Both results have the shape of `a` without these axes; over all elements each has one element.
/// Those of halves are `f32`.
///
/// This waits for nothing. Where the axes are the last ones in memory, without gaps, it allocates
/// nothing unless a row has more than 64 KiB (32 of `f64`): then it takes 32 bytes for each part of
/// at most 64 KiB, in the order of the stream. Else it takes an extra pass and memory for the
/// elements, which are first copied into such an order.
///
/// The mean is computed first, and then the differences from it, so nothing cancels, however large
/// the mean. The sum of the differences gives the rounding error of the mean (Chan, Golub and
/// LeVeque 1983). The moments of a longer row's parts are joined as these authors join samples.
/// A row with infinity, or a partial sum of which exceeds the greatest number, has a mean that is
/// infinite or NaN, and NaN as its variance; a row with NaN has NaN for both.
///
/// # Errors
///
/// `Layout` if there is no such axis, a result has another shape, or its elements do not lie in C
/// order without gaps; `InvalidArgument` if there are results and no elements along the axes, or
/// the operands and the stream are not on one device; `OutOfMemory` if a copy does not fit; else
/// the driver's error.
pub fn mean_variance_into<'a, T: Float>(
    a: impl Into<View<'a, T>>,
    axes: impl Into<Along>,
    mean: impl Into<ViewMut<'a, T::Sum>>,
    variance: impl Into<ViewMut<'a, T::Sum>>,
    stream: &Stream,
) -> Result<()> {
    let (a, mean, variance) = (a.into(), mean.into(), variance.into());
    let axes = axes.into();
    let reduced = axes.reduced(a.shape())?;
    let results = [Operand::written("mean", &mean), Operand::written("variance", &variance)];
    for result in &results {
        check_shape(result.name, kept(a.shape(), &reduced), axes.is_all(), result.layout)?;
    }
    reduce::check_results(&a, results, stream)?;
    if !mean.is_empty() && count_along(a.shape(), &reduced) == 0 {
        return Err(no_elements("mean and variance", a.shape(), &numbers(a.shape().len(), &reduced)));
    }
    let groups = Groups::new(a.layout(), &reduced, false).filter(Groups::are_rows);
    with_groups(a, &reduced, groups, stream, |from, groups| {
        let [rows, n, _] = groups.extents();
        let layout = flat(from.layout, &[rows, n])?;
        let (from, target) = (from.with(T::DTYPE, &layout), Target::of(from.device()));
        MeanVariancePlan::new(T::DTYPE, [rows, n].map(|of| of as u64), phase(&from)?, target)?
            .run(from, results, stream)
    })
}

/// A plan of mean and variance. The rows, the type and the start decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeanVariancePlan {
    rows: [u64; 2],
    src: Contiguous,
    launch: Launch,
}

impl MeanVariancePlan {
    /// Plans mean and variance of rows: `shape` is the number of rows, and of the elements of each.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are rows and they have no elements, the rows have more bytes than
    /// can be addressed, no kernel computes with the type, or the start is not a multiple of an
    /// element.
    pub fn new(dtype: DType, shape: [u64; 2], start: Phase, target: Target) -> Result<Self> {
        let len = elements(shape, dtype)?;
        let src = Contiguous::new("source", dtype, len, start)?;
        if shape[0] > 0 && shape[1] == 0 {
            return Err(Error::argument("rows without elements have no mean; give rows of at least one element"));
        }
        // The results have no elements a row, so where they start does not matter.
        let [of_groups, of_parts] = [MEAN_VARIANCE, MOMENTS_OF_PARTS].map(|family| kernel(family, NAME, dtype));
        let kernels = (of_groups?, of_parts?, Some(kernel(JOIN_MOMENTS, NAME, sum_type(dtype))?));
        let held = [MOMENTS_QUADS, moments_threads(dtype.width() as u32)];
        let launch = Launch::new(kernels, dtype, shape, held, true, target);
        Ok(Self { rows: shape, src, launch })
    }

    /// Queues mean and variance of `a` on `stream`.
    ///
    /// # Errors
    ///
    /// As [`mean_variance_into`]; `Layout` also if `a` does not match the plan.
    pub fn launch<'a, T: Float>(
        &self,
        a: impl Into<View<'a, T>>,
        mean: impl Into<ViewMut<'a, T::Sum>>,
        variance: impl Into<ViewMut<'a, T::Sum>>,
        stream: &Stream,
    ) -> Result<()> {
        let (a, mean, variance) = (a.into(), mean.into(), variance.into());
        let results = [Operand::written("mean", &mean), Operand::written("variance", &variance)];
        let (_, outer) = a.shape().split_last().unwrap_or((&1, &[]));
        for result in &results {
            check_shape(result.name, outer.iter().copied(), false, result.layout)?;
        }
        check_rows(self.rows, a.shape())?;
        self.run(Operand::read("source", &a), results, stream)
    }

    /// Queues mean and variance of the planned rows, with results that are known to have one of
    /// each a row.
    fn run(&self, from: Operand<'_>, [means, variances]: [Operand<'_>; 2], stream: &Stream) -> Result<()> {
        let starts = [self.src.in_view(&from)?, means.first_byte()?, variances.first_byte()?];
        self.launch.with_scratch(from.device(), stream, |room| {
            queue([from, means, variances, room], stream, &|device, [src, mean, variance, scratch], stream| {
                let [src, dst, variances] = [src + starts[0], mean + starts[1], variance + starts[2]];
                // SAFETY: blocks are whole groups, which hold their rows if the plan says so. The
                // operands have the planned number of contiguous elements and two results a row,
                // within live buffers; written memory is borrowed exclusively; `queue` orders other
                // work, and nothing else knows the scratch.
                unsafe { self.launch.launch(device, Sides { src, dst, variances, scratch }, stream) }
            })
        })
    }

    /// Returns the bytes of the scratch memory of [`launch_raw`](Self::launch_raw), which are
    /// aligned to 32: 0 if no row is long.
    pub fn scratch_bytes(&self) -> u64 {
        self.launch.scratch_bytes()
    }

    /// Queues mean and variance of rows at an address.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the rows do not start as planned, or a result or the scratch is not
    /// aligned or overlaps another operand; else the driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract), for a mean and a variance a row,
    /// with a scratch of [`scratch_bytes`](Self::scratch_bytes).
    ///
    /// The scratch belongs to one launch at a time. This call may queue two kernels, and another
    /// thread could queue a launch between them, also on the same stream. So from this call until
    /// its work has run, no other launch uses the scratch, unless that one is called after this
    /// call has returned, and is queued behind it on the stream.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        src: u64,
        results: [u64; 2],
        scratch: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        self.src.check_address("source", src)?;
        let width = sum_type(self.src.dtype).width() as u64;
        check_aligned(&[("mean", results[0], width), ("variance", results[1], width)])?;
        let bytes = u128::from(self.rows[0]) * u128::from(width);
        let [mean, variance] = results.map(|address| bytes_from(address, bytes));
        let written = [("mean", mean), ("variance", variance), self.launch.scratch_at(scratch)?];
        check_written_apart(&[("source", self.src.range(src))], &written)?;
        // SAFETY: blocks are whole groups, which hold their rows if the plan says so. The rows
        // start as planned, the results are aligned, and they share no byte, as checked above; the
        // caller promises the rest of the raw contract.
        unsafe { self.launch.launch(device, Sides { src, dst: results[0], variances: results[1], scratch }, stream) }
    }
}

plan_of!(
    MeanVariancePlan by launch,
    |plan| counted_rows(plan.rows),
    plan.launch.reason(),
    [plan.src.bytes(), plan.rows[0].saturating_mul(2 * sum_type(plan.src.dtype).width() as u64)],
    "nothing to compute"
);
