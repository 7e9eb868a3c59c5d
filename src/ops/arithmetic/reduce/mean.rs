//! Means along axes: sums, and a division in place.

use super::{Along, Reduction, Scratch, count_along, in_new_result, queue};
use crate::array::DeviceArray;
use crate::element::{Element, Float};
use crate::error::Result;
use crate::ops::arithmetic::binary::{Binary, BinaryPlan};
use crate::ops::operand::Operand;
use crate::ops::{Align, Target};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Computes the means of the elements along axes, or of all, into a new array, on the default
/// stream. As [`sum`](super::sum): the sum, rounded as that one is, divided by the number of
/// elements. Means of halves are `f32`. Integers do not compile: [`cast`](crate::ops::cast()) them
/// to `f64` first, as the example does. NumPy does that by itself.
///
/// The mean of no elements is NaN, as in NumPy.
///
/// # Errors
///
/// As [`sum`](super::sum).
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::ops;
///
/// let device = Device::open(Backend::Soft)?;
/// let images = device.array(&[2, 2, 2], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
/// assert_eq!(ops::mean(&images, None)?.item()?, 4.5);
/// assert_eq!(ops::mean(&images, [0, 2])?.to_vec()?, [3.5, 5.5]);
/// assert_eq!(ops::mean(images.view().t(), 0)?.shape(), [2, 2]);
/// let bytes = device.array(&[3], &[1_u8, 2, 6])?;
/// assert_eq!(ops::mean(&ops::cast::<f64, _>(&bytes)?, None)?.item()?, 3.0);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn mean<'a, T: Float>(a: impl Into<View<'a, T>>, axes: impl Into<Along>) -> Result<DeviceArray<T::Sum>> {
    let (a, axes) = (a.into(), axes.into());
    in_new_result(&a, &axes, |scratch, dst, stream| mean_into(a, axes, scratch, dst, stream))
}

/// Queues the means of `a` along axes, or of all elements, on `stream`: see [`mean`] and
/// [`sum_into`](super::sum_into).
///
/// # Errors
///
/// As [`sum_into`](super::sum_into).
pub fn mean_into<'a, T: Float>(
    a: impl Into<View<'a, T>>,
    axes: impl Into<Along>,
    scratch: &mut Scratch,
    dst: impl Into<ViewMut<'a, T::Sum>>,
    stream: &Stream,
) -> Result<()> {
    let (a, axes, mut dst) = (a.into(), axes.into(), dst.into());
    let reduced = axes.reduced(a.shape())?;
    let count = count_along(a.shape(), &reduced);
    queue(Reduction::Sum, a, axes, scratch, dst.view_mut(), stream)?;
    let (layout, target) = (dst.layout(), Target::of(dst.device()));
    let (dtype, to) = (<T::Sum as Element>::DTYPE, (layout, Align::ALLOCATION));
    let plan = BinaryPlan::new(Binary::Div, dtype, [Some(layout), None], to, target)?;
    plan.in_place(Operand::written("destination", &dst), count as f64, stream)
}
