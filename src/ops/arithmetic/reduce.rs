//! Reduces arrays along axes or over all elements: sums, means, least and greatest elements, and
//! indices of the greatest.
//!
//! Axes are `None` for all elements, as in NumPy and PyTorch, the number of an axis, or several
//! numbers: `sum(a, None)`, `sum(a, 1)`, `sum(a, [0, 2])`. The bare verbs return their result in a
//! new buffer, `_into` writes into a destination.
//!
//! An array in C order is read as it lies, and so is one whose axes have another order in memory,
//! such as `view.t()`, if its results have the order of memory. A view with steps, gaps or reversed
//! axes takes an extra pass and memory for its elements: they are copied into C order first. Axes
//! that are not neighbours in memory are reduced one after the other, the last first, with memory
//! for the results between.
//!
//! Every result is the same on every run and every device: the shape, the axes, the order in memory
//! and the start modulo 16 bytes decide which elements are joined, and in which order.

mod along;
mod along_axis;
mod dot;
mod mean;
mod over_all;
mod pass;
mod plan;

pub use along::Along;
pub(super) use along::{Groups, check_shape, count_along, kept, no_elements, numbers};
pub use dot::{DotPlan, dot, dot_into};
pub use mean::{mean, mean_into};
pub use plan::ReductionPlan;

use crate::abi::{
    ARGMAX_COLUMNS, ARGMAX_ROWS, Family, MAX, MAX_COLUMNS, MAX_ROWS, MIN, MIN_COLUMNS, MIN_ROWS, SUM, SUM_COLUMNS,
    SUM_ROWS,
};
use crate::array::DeviceArray;
use crate::device::Device;
use crate::element::{DType, Element, Number};
use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_RANK};
use crate::memory::DeviceBuffer;
use crate::names::written_by_name;
use crate::ops::Target;
use crate::ops::arithmetic::{entry, sum_type};
use crate::ops::movement::permute::copy_into;
use crate::ops::operand::{Operand, check_device};
use crate::ops::span::phase;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A reduction of the elements along an axis, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum; 0 without elements. Halves are summed in single precision, integers in 64 bits.
    Sum,
    /// The least; NaN if there is one.
    Min,
    /// The greatest; NaN if there is one.
    Max,
    /// The index of the greatest, the first of several, as `u64`. NaN is greater than any number,
    /// as in NumPy.
    ArgMax,
}

impl Reduction {
    /// Every reduction.
    #[doc(hidden)]
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::ArgMax];

    /// Returns the name, and the kernels over all elements, along the last axis, and along another
    /// axis or for parts. Indices are found along a single axis.
    const fn row(self) -> (&'static str, Option<Family>, Family, Family) {
        match self {
            Self::Sum => ("sum", Some(SUM), SUM_ROWS, SUM_COLUMNS),
            Self::Min => ("min", Some(MIN), MIN_ROWS, MIN_COLUMNS),
            Self::Max => ("max", Some(MAX), MAX_ROWS, MAX_COLUMNS),
            Self::ArgMax => ("argmax", None, ARGMAX_ROWS, ARGMAX_COLUMNS),
        }
    }

    /// Returns the name on the command line and in reports.
    #[doc(hidden)]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the type of the results for elements of a type.
    pub fn result(self, dtype: DType) -> DType {
        match self {
            Self::Sum => sum_type(dtype),
            Self::Min | Self::Max => dtype,
            Self::ArgMax => DType::U64,
        }
    }

    /// Returns the bytes of a part's result: for an index, with its element.
    fn partial_width(self, dtype: DType) -> u64 {
        (self.result(dtype).width() + if self == Self::ArgMax { dtype.width() } else { 0 }) as u64
    }

    /// Returns the type of the elements in parts' results, which a second launch joins.
    fn partial_type(self, dtype: DType) -> DType {
        if self == Self::Sum { sum_type(dtype) } else { dtype }
    }

    /// Returns the kernels over all elements; `None` for indices and integers, which are reduced
    /// along a single axis.
    fn over_all(self, dtype: DType) -> Option<Family> {
        self.row().1.filter(|family| entry(*family, dtype).is_some())
    }

    /// Returns the kernels along the last axis.
    fn rows(self) -> Family {
        self.row().2
    }

    /// Returns the kernels along another axis, or for parts.
    fn columns(self) -> Family {
        self.row().3
    }
}

written_by_name!(Reduction);

/// Device memory of 2 MiB for the results of an array's parts. Consecutive reductions may share it.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::ops::{Scratch, max_into, sum_into};
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut scratch = Scratch::new(&device)?;
/// let numbers = device.array(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
/// let (mut sum, mut greatest) = (device.alloc_array(&[1])?, device.alloc_array(&[2])?);
/// sum_into(&numbers, None, &mut scratch, &mut sum, device.default_stream())?;
/// max_into(&numbers, 0, &mut scratch, &mut greatest, device.default_stream())?;
/// assert_eq!((sum.item()?, greatest.to_vec()?), (10.0, vec![3.0, 4.0]));
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug)]
pub struct Scratch(DeviceBuffer<u8>);

impl Scratch {
    /// Its bytes.
    pub const BYTES: usize = 2 << 20;

    /// Allocates scratch memory on a device.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if the device has no room.
    #[track_caller]
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self(device.alloc(Self::BYTES)?))
    }

    /// Borrows all of it.
    fn view_mut(&mut self) -> Result<ViewMut<'_, u8>> {
        self.0.view_mut(&[Self::BYTES])
    }
}

/// Sums the elements along axes, or all, into a new buffer, on the default stream. Halves are
/// summed in `f32`; the sum of no elements is 0.
///
/// Integers are summed in `u64`, or `i64` if they have a sign. A larger sum wraps around (modulo
/// 2^64), as NumPy's does.
///
/// The result has the shape of `a` without these axes, in C order; over all elements it is one
/// value.
///
/// An array in C order is read once, and so is a view of one with its axes in another order, such
/// as `view.t()`, if the axes that stay have the order of memory. Other views are copied first: an
/// extra pass over the elements. Several axes that are not neighbours in memory take a reduction
/// each, the later ones of what is left.
///
/// # Errors
///
/// `Layout` if there is no such axis, or one is named twice; `OutOfMemory` if the result or a copy
/// does not fit; else the driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::ops;
///
/// let device = Device::open(Backend::Soft)?;
/// let buffer = device.upload(&[1.0_f32, 5.0, 2.0, 4.0, 0.0, 9.0])?;
/// let matrix = buffer.view(&[2, 3])?;
/// assert_eq!(ops::sum(matrix, None)?.to_vec()?, [21.0]);
/// assert_eq!(ops::sum(matrix, 1)?.to_vec()?, [8.0, 13.0]);
/// assert_eq!(ops::sum(matrix.t(), 1)?.to_vec()?, [5.0, 5.0, 11.0]);
/// assert_eq!(ops::max(matrix, 0)?.to_vec()?, [4.0, 5.0, 9.0]);
/// assert_eq!(ops::argmax(matrix, 1)?.to_vec()?, [1, 2]);
/// let bytes = device.array(&[3], &[200_u8; 3])?;
/// assert_eq!(ops::sum(&bytes, None)?.item()?, 600_u64);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn sum<'a, T: Number>(a: impl Into<View<'a, T>>, axes: impl Into<Along>) -> Result<DeviceArray<T::Sum>> {
    result(Reduction::Sum, a.into(), axes.into())
}

/// Finds the least elements along axes, or of all; NaN if there is one. As [`sum`].
///
/// # Errors
///
/// As [`sum`]; `InvalidArgument` if there are no elements to reduce, also where there are no
/// results either, as in NumPy.
#[track_caller]
pub fn min<'a, T: Number>(a: impl Into<View<'a, T>>, axes: impl Into<Along>) -> Result<DeviceArray<T>> {
    result(Reduction::Min, a.into(), axes.into())
}

/// Finds the greatest elements along axes, or of all; NaN if there is one. As [`sum`].
///
/// # Errors
///
/// As [`min`].
#[track_caller]
pub fn max<'a, T: Number>(a: impl Into<View<'a, T>>, axes: impl Into<Along>) -> Result<DeviceArray<T>> {
    result(Reduction::Max, a.into(), axes.into())
}

/// Finds the indices of the greatest elements along an axis, or the index in C order of the
/// greatest of all: the first of several. NaN is greater than any number. As [`sum`].
///
/// # Errors
///
/// As [`min`].
#[track_caller]
pub fn argmax<'a, T: Number>(a: impl Into<View<'a, T>>, axis: impl Into<Option<usize>>) -> Result<DeviceArray<u64>> {
    result(Reduction::ArgMax, a.into(), axis.into().into())
}

/// Reduces into a new buffer, with new scratch memory.
#[track_caller]
fn result<T: Number, R: Element>(reduction: Reduction, a: View<'_, T>, axes: Along) -> Result<DeviceArray<R>> {
    in_new_result(&a, &axes, |scratch, dst, stream| queue(reduction, a, axes, scratch, dst, stream))
}

/// Returns a new array of the shape of the axes that stay, which `compute` fills on the default
/// stream, with new scratch memory.
#[track_caller]
fn in_new_result<T: Number, R: Element>(
    a: &View<'_, T>,
    axes: &Along,
    compute: impl FnOnce(&mut Scratch, ViewMut<'_, R>, &Stream) -> Result<()>,
) -> Result<DeviceArray<R>> {
    let device = a.device();
    let shape: Vec<usize> = kept(a.shape(), &axes.reduced(a.shape())?).collect();
    let mut result = device.alloc_array(&shape)?;
    compute(&mut Scratch::new(device)?, result.view_mut(), device.default_stream())?;
    Ok(result)
}

/// Checks that a shape has an axis.
fn check_axis(shape: &[usize], axis: usize) -> Result<()> {
    if axis < shape.len() {
        return Ok(());
    }
    let instead = match shape.len().checked_sub(1) {
        Some(last) => format!("axes are numbered from 0 to {last}, and None means all"),
        None => "reduce all elements (None)".into(),
    };
    Err(Error::layout(format!("shape {shape:?} has no axis {axis}; {instead}")))
}

/// Queues the sums of `a` along axes, or of all elements, on `stream`. Waits for nothing, and
/// allocates nothing where [`sum`] reads the array once.
///
/// `dst` has the shape of `a` without the axes; over all elements it has one element.
///
/// # Errors
///
/// As [`sum`]; `Layout` also if `dst` has another shape or gaps; `InvalidArgument` if the operands
/// and the stream are not on one device.
pub fn sum_into<'a, T: Number>(
    a: impl Into<View<'a, T>>,
    axes: impl Into<Along>,
    scratch: &mut Scratch,
    dst: impl Into<ViewMut<'a, T::Sum>>,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::Sum, a.into(), axes.into(), scratch, dst.into(), stream)
}

/// Queues the least elements of `a` along axes, or of all, on `stream`: see [`sum_into`].
///
/// # Errors
///
/// As [`sum_into`] and [`min`].
pub fn min_into<'a, T: Number>(
    a: impl Into<View<'a, T>>,
    axes: impl Into<Along>,
    scratch: &mut Scratch,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::Min, a.into(), axes.into(), scratch, dst.into(), stream)
}

/// Queues the greatest elements of `a` along axes, or of all, on `stream`: see [`sum_into`].
///
/// # Errors
///
/// As [`sum_into`] and [`min`].
pub fn max_into<'a, T: Number>(
    a: impl Into<View<'a, T>>,
    axes: impl Into<Along>,
    scratch: &mut Scratch,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::Max, a.into(), axes.into(), scratch, dst.into(), stream)
}

/// Queues the indices of the greatest elements of `a` along an axis, or of all, on `stream`: see
/// [`sum_into`] and [`argmax`].
///
/// # Errors
///
/// As [`sum_into`] and [`min`].
pub fn argmax_into<'a, T: Number>(
    a: impl Into<View<'a, T>>,
    axis: impl Into<Option<usize>>,
    scratch: &mut Scratch,
    dst: impl Into<ViewMut<'a, u64>>,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::ArgMax, a.into(), axis.into().into(), scratch, dst.into(), stream)
}

/// Plans and launches.
fn queue<T: Number, R: Element>(
    reduction: Reduction,
    a: View<'_, T>,
    axes: Along,
    scratch: &mut Scratch,
    dst: ViewMut<'_, R>,
    stream: &Stream,
) -> Result<()> {
    if let Some(axis) = axes.simple().filter(|_| a.layout().is_standard_layout()) {
        let start = phase(&Operand::read("array", &a))?;
        let plan = ReductionPlan::new(reduction, T::DTYPE, a.shape(), axis, start, Target::of(a.device()))?;
        return plan.launch(a, scratch, dst, stream);
    }
    let reduced = axes.reduced(a.shape())?;
    if reduction != Reduction::Sum && count_along(a.shape(), &reduced) == 0 {
        return Err(no_elements(reduction, a.shape(), &numbers(a.shape().len(), &reduced)));
    }
    check_shape(reduction, kept(a.shape(), &reduced), axes.is_all(), dst.layout())?;
    let room = scratch.view_mut()?;
    let sides = [Operand::written("scratch", &room), Operand::written("destination", &dst)];
    check_results(&a, sides, stream)?;
    let groups = Groups::new(a.layout(), &reduced, reduction == Reduction::ArgMax);
    with_groups(a, &reduced, groups, stream, |from, groups| {
        in_groups(reduction, from, groups, axes.is_all(), sides, stream)
    })
}

/// Checks, before a copy or a first launch is queued, that results lie in C order without gaps, and
/// that all is on one device.
pub(super) fn check_results<T: Element>(a: &View<'_, T>, sides: [Operand<'_>; 2], stream: &Stream) -> Result<()> {
    sides.iter().try_for_each(|side| side.first_byte().map(|_| ()))?;
    check_device([Operand::read("array", a), sides[0], sides[1]], stream)
}

/// Calls a function with the elements of a view as they lie in memory, if they have these groups,
/// or with a copy in which the axes that are reduced come last.
pub(super) fn with_groups<T: Element>(
    a: View<'_, T>,
    reduced: &[bool; MAX_RANK],
    groups: Option<Groups>,
    stream: &Stream,
    then: impl FnOnce(Operand<'_>, Groups) -> Result<()>,
) -> Result<()> {
    if let Some(groups) = groups {
        return then(Operand::read("array", &a), groups);
    }
    let moved = a.permuted_axes(&Groups::order_of_copy(a.shape().len(), reduced))?;
    let mut copy = a.device().alloc_on::<T>(a.len(), stream)?;
    copy_into(moved, copy.view_mut(moved.shape())?, stream)?;
    then(Operand::read("array", &copy.view(moved.shape())?), Groups::of_copy(a.shape(), reduced))
}

/// Reduces groups of axes, one after the other, the last first.
fn in_groups(
    reduction: Reduction,
    from: Operand<'_>,
    groups: Groups,
    is_all: bool,
    [room, to]: [Operand<'_>; 2],
    stream: &Stream,
) -> Result<()> {
    let extents = groups.extents();
    let (shape, axis) = if is_all { (&extents[1..2], None) } else { (&extents[..], Some(1)) };
    let layout = flat(from.layout, shape)?;
    let from = from.with(from.dtype, &layout);
    let plan = ReductionPlan::new(reduction, from.dtype, shape, axis, phase(&from)?, Target::of(from.device()))?;
    if groups.has_one() {
        return plan.run([from, room, to], stream);
    }
    let (len, dtype) = (extents[0] * extents[2], reduction.result(from.dtype));
    let between = from.device().alloc_on::<u8>(len * dtype.width(), stream)?;
    let line = Layout::row_major(&[len])?;
    let result = Operand::made("result", &between, &line).with(dtype, &line);
    plan.run([from, room, result], stream)?;
    in_groups(reduction, result, groups.without_last(), false, [room, to], stream)
}

/// Returns the layout in C order of elements that lie side by side from where a layout starts.
pub(super) fn flat(layout: &Layout, shape: &[usize]) -> Result<Layout> {
    let order = Layout::row_major(shape)?;
    Layout::new(shape, order.strides(), layout.offset(), layout.storage_len())
}
