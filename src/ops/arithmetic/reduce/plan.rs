//! Plans one launch or two from a shape and an axis.

use super::along::{check_shape, no_elements};
use super::along_axis::Cut;
use super::pass::Passes;
use super::{Reduction, Scratch, check_axis, over_all};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element, Number};
use crate::error::{Error, Result, counted};
use crate::ops::Target;
use crate::ops::arithmetic::kernel;
use crate::ops::operand::{Operand, bytes_from, check_aligned, check_written_apart, queue};
use crate::ops::plan::{Plan, plan_of};
use crate::ops::span::{Contiguous, Phase};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A plan of a reduction. Shape, axis, type and start decide it.
///
/// Along the last axis, threads read rows; along another one, columns. Over all elements, each
/// block leaves a value. If results are few, a second launch joins the results of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReductionPlan {
    reduction: Reduction,
    axis: Option<usize>,
    /// The product of the extents before the reduced axis, its extent, and the product of those
    /// after it.
    extents: [u64; 3],
    a: Contiguous,
    passes: Passes,
    /// How an axis is cut; `None` over all elements.
    cut: Option<Cut>,
}

impl ReductionPlan {
    /// Plans the reduction of an array of this shape, along an axis or over all elements (`None`).
    ///
    /// # Errors
    ///
    /// `Layout` if the shape has no such axis; `InvalidArgument` if `min`, `max` or `argmax` has no
    /// elements to reduce, the array has more bytes than can be addressed, no kernel computes
    /// with the type, or the start is not a multiple of an element.
    pub fn new(
        reduction: Reduction,
        dtype: DType,
        shape: &[usize],
        axis: Option<usize>,
        start: Phase,
        target: Target,
    ) -> Result<Self> {
        if let Some(axis) = axis {
            check_axis(shape, axis)?;
        }
        let (extents, tuning) = (extents(shape, axis), Tuning::of(target).arithmetic);
        let [outer, n, inner] = extents;
        let cut = Cut::new(reduction, dtype, extents, start, &tuning)?;
        let a = Contiguous::new("array", dtype, outer * n * inner, start)?;
        let results = outer * inner;
        // NumPy refuses this too, also where there are no results.
        if n == 0 && reduction != Reduction::Sum {
            return Err(no_elements(
                reduction,
                shape,
                &axis.map_or_else(|| (0..shape.len()).collect(), |axis| vec![axis]),
            ));
        }
        let (passes, cut) = match (axis, reduction.over_all(dtype)) {
            (None, Some(family)) => {
                let outcome = reduction.result(dtype);
                let entries = [kernel(family, reduction, dtype)?, kernel(family, reduction, outcome)?];
                let width = dtype.width() as u64;
                (over_all::passes(entries, n, width, outcome, [start; 2]), None)
            }
            _ if results == 0 => (Passes::NONE, Some(cut)),
            _ => (cut.passes(reduction, dtype, &tuning)?, Some(cut)),
        };
        Ok(Self { reduction, axis, extents, a, passes, cut })
    }

    /// Queues the reduction of `a` into `dst` on `stream`.
    ///
    /// # Errors
    ///
    /// As [`sum_into`](super::sum_into); `Layout` also if `a` does not match the plan;
    /// `InvalidArgument` also if the results are not of the type [`Reduction::result`].
    pub fn launch<'a, T: Number, R: Element>(
        &self,
        a: impl Into<View<'a, T>>,
        scratch: &mut Scratch,
        dst: impl Into<ViewMut<'a, R>>,
        stream: &Stream,
    ) -> Result<()> {
        let (a, dst, room) = (a.into(), dst.into(), scratch.view_mut()?);
        let [from, room, to] =
            [Operand::read("array", &a), Operand::written("scratch", &room), Operand::written("destination", &dst)];
        self.check_results(a.shape(), &to)?;
        self.run([from, room, to], stream)
    }

    /// Queues the reduction of an array, with a scratch, into a destination, which is known to have
    /// an element of the results' type for each index of the other axes.
    pub(super) fn run(&self, [from, room, to]: [Operand<'_>; 3], stream: &Stream) -> Result<()> {
        let starts = [self.a.in_view(&from)?, to.first_byte()?];
        queue([from, room, to], stream, &|device, [a, scratch, result], stream| {
            let a = a + starts[0];
            // SAFETY: `in_view` has found the planned type, number and start of the array's
            // elements, and `first_byte` that results have no gaps; the caller knows that there is
            // one for each index of the other axes. The scratch is an allocation of
            // `Scratch::BYTES`. The operands borrow their buffers, written ones exclusively, and
            // `queue` orders other work.
            unsafe { self.passes.launch(device, [a, a, result + starts[1], scratch], stream) }
        })
    }

    /// Checks that the array has the planned extents, and the results their type and shape.
    fn check_results(&self, shape: &[usize], to: &Operand<'_>) -> Result<()> {
        let Self { reduction, axis, a, .. } = self;
        let wanted = reduction.result(a.dtype);
        if to.dtype != wanted {
            return Err(Error::argument(format!(
                "the {reduction} of {} is of {wanted}, and the destination of {}; give one",
                a.dtype, to.dtype
            )));
        }
        let Some(axis) = *axis else { return check_shape(reduction, std::iter::empty(), true, to.layout) };
        check_axis(shape, axis)?;
        if extents(shape, Some(axis)) != self.extents {
            return Err(Error::layout(format!(
                "the plan was made for {:?} elements before, along and behind axis {axis}, and the array has shape \
                     {shape:?}; make a plan for it",
                self.extents
            )));
        }
        check_shape(reduction, shape[..axis].iter().chain(&shape[axis + 1..]).copied(), false, to.layout)
    }

    /// Queues the reduction of the elements at the address `a` into `result`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the array does not start as planned, an address is not aligned, or the
    /// result or the scratch overlaps another operand; else the driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract), with one result of the type
    /// [`Reduction::result`] for each index of the other axes, and a scratch of [`Scratch::BYTES`],
    /// aligned to 16. Both overlap no other operand.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        a: u64,
        result: u64,
        scratch: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        self.a.check_address("array", a)?;
        let width = self.reduction.result(self.a.dtype).width() as u64;
        check_aligned(&[("result", result, width), ("scratch", scratch, VECTOR)])?;
        let [outer, _, inner] = self.extents;
        let results = u128::from(outer) * u128::from(inner) * u128::from(width);
        // One launch leaves the scratch alone.
        let room = if self.launches() > 1 { Scratch::BYTES as u128 } else { 0 };
        check_written_apart(
            &[("array", self.a.range(a))],
            &[("result", bytes_from(result, results)), ("scratch", bytes_from(scratch, room))],
        )?;
        // SAFETY: the array starts as planned, every address is aligned, and what is written shares
        // no byte with anything else, as checked above; the caller promises the rest of the raw
        // contract.
        unsafe { self.passes.launch(device, [a, a, result, scratch], stream) }
    }

    /// Returns the number of results.
    fn results(&self) -> u64 {
        self.extents[0] * self.extents[2]
    }

    /// Says why the kernels do the work.
    fn reason(&self) -> String {
        match &self.cut {
            _ if self.passes == Passes::NONE => "there are no results".into(),
            Some(cut) => cut.reason(),
            None => format!("each block reduces a value from all {}", counted(self.extents[1], "element")),
        }
    }
}

/// Returns the product of the extents before the reduced axis, its extent, and the product of those
/// after it, each at most 2^64 - 1.
fn extents(shape: &[usize], axis: Option<usize>) -> [u64; 3] {
    let product = |extents: &[usize]| extents.iter().fold(1, |all: u64, &extent| all.saturating_mul(extent as u64));
    match axis {
        None => [1, product(shape), 1],
        Some(axis) => [product(&shape[..axis]), shape[axis] as u64, product(&shape[axis + 1..])],
    }
}

plan_of!(
    ReductionPlan by passes,
    |plan| format_args!("{} of {}", counted(plan.results(), "result"), counted(plan.extents[1], "element")),
    plan.reason(),
    [plan.a.bytes(), plan.results().saturating_mul(plan.reduction.result(plan.a.dtype).width() as u64)],
    "nothing to reduce"
);
