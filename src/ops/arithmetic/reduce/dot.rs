//! Dot products of contiguous arrays.

use super::pass::Passes;
use super::{Scratch, over_all};
use crate::abi::{DOT, SUM};
use crate::array::DeviceArray;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Float};
use crate::error::{Error, Result, counted};
use crate::ops::arithmetic::{kernel, sum_type};
use crate::ops::operand::{Operand, bytes_from, check_aligned, check_shapes, check_written_apart, queue};
use crate::ops::plan::plan_of;
use crate::ops::span::{Contiguous, Phase, phase};
use crate::ops::units::wide::VECTOR;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Returns the dot product of two arrays in a new buffer of one element, queued on the default
/// stream. Halves are computed in `f32`. Without elements it is 0.
///
/// # Errors
///
/// `Layout` if the shapes differ, or the elements do not lie in C order without gaps;
/// `InvalidArgument` if the arrays are not on one device; `OutOfMemory` if the device has no room;
/// else the driver's error.
#[track_caller]
pub fn dot<'a, T: Float>(a: impl Into<View<'a, T>>, b: impl Into<View<'a, T>>) -> Result<DeviceArray<T::Sum>> {
    let (a, b) = (a.into(), b.into());
    let device = a.device();
    let mut result = device.alloc_array(&[])?;
    dot_into(a, b, &mut Scratch::new(device)?, &mut result, device.default_stream())?;
    Ok(result)
}

/// Queues the dot product of two arrays on `stream`, into the one element of `dst`. Allocates
/// nothing and waits for nothing.
///
/// # Errors
///
/// As [`dot`]; `Layout` also if `dst` does not have one element.
pub fn dot_into<'a, T: Float>(
    a: impl Into<View<'a, T>>,
    b: impl Into<View<'a, T>>,
    scratch: &mut Scratch,
    dst: impl Into<ViewMut<'a, T::Sum>>,
    stream: &Stream,
) -> Result<()> {
    let (a, b, dst) = (a.into(), b.into(), dst.into());
    let starts = [phase(&Operand::read("first operand", &a))?, phase(&Operand::read("second operand", &b))?];
    DotPlan::new(T::DTYPE, a.len() as u64, starts)?.launch(a, b, scratch, dst, stream)
}

/// A plan of a dot product. Length, type and starts decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DotPlan {
    operands: [Contiguous; 2],
    passes: Passes,
}

impl DotPlan {
    /// Plans the dot product of `len` elements of a type with these starts.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no kernel computes with the type, or a start is not a multiple of an
    /// element.
    pub fn new(dtype: DType, len: u64, starts: [Phase; 2]) -> Result<Self> {
        let (outcome, width) = (sum_type(dtype), dtype.width() as u64);
        let entries = [kernel(DOT, "dot", dtype)?, kernel(SUM, "sum", outcome)?];
        let operands = [
            Contiguous::new("first operand", dtype, len, starts[0])?,
            Contiguous::new("second operand", dtype, len, starts[1])?,
        ];
        Ok(Self { operands, passes: over_all::passes(entries, len, width, outcome, starts) })
    }

    /// Queues the dot product of `a` and `b` into `dst` on `stream`.
    ///
    /// # Errors
    ///
    /// As [`dot_into`]; `Layout` also if an operand does not match the plan.
    pub fn launch<'a, T: Float>(
        &self,
        a: impl Into<View<'a, T>>,
        b: impl Into<View<'a, T>>,
        scratch: &mut Scratch,
        dst: impl Into<ViewMut<'a, T::Sum>>,
        stream: &Stream,
    ) -> Result<()> {
        let (a, b, dst) = (a.into(), b.into(), dst.into());
        check_shapes(a.layout(), b.layout())?;
        if dst.len() != 1 {
            return Err(Error::layout(format!(
                "a dot product is one value, and its view has shape {:?}; give one element",
                dst.shape()
            )));
        }
        let room = scratch.view_mut()?;
        let [a, b, room, to] = [
            Operand::read("first operand", &a),
            Operand::read("second operand", &b),
            Operand::written("scratch", &room),
            Operand::written("destination", &dst),
        ];
        let starts = [self.operands[0].in_view(&a)?, self.operands[1].in_view(&b)?, to.first_byte()?];
        queue([a, b, room, to], stream, &|device, [a, b, scratch, result], stream| {
            let sides = [a + starts[0], b + starts[1], result + starts[2], scratch];
            // SAFETY: `in_view` saw that both views have the planned elements without gaps, and
            // their starts; `dst` has one element, as checked above, and a `Scratch` has room for
            // the parts of any plan. All lie within buffers that their views borrow, and written
            // memory is borrowed exclusively. `queue` requires one device and orders other work.
            unsafe { self.passes.launch(device, sides, stream) }
        })
    }

    /// Queues the dot product of elements at two addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an operand does not start as planned, an address is not aligned, or the
    /// result or the scratch overlaps another operand; else the driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract), for one result and
    /// [`Scratch::BYTES`](super::Scratch::BYTES) of scratch.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        operands: [u64; 2],
        result: u64,
        scratch: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        let [a, b] = operands;
        self.operands[0].check_address("first operand", a)?;
        self.operands[1].check_address("second operand", b)?;
        let width = sum_type(self.operands[0].dtype).width() as u64;
        check_aligned(&[("result", result, width), ("scratch", scratch, VECTOR)])?;
        // A single launch does not use the scratch.
        let room = if self.passes.second.is_some() { Scratch::BYTES as u128 } else { 0 };
        check_written_apart(
            &[("first operand", self.operands[0].range(a)), ("second operand", self.operands[1].range(b))],
            &[("result", bytes_from(result, width.into())), ("scratch", bytes_from(scratch, room))],
        )?;
        // SAFETY: the operands start as planned, every address is aligned, and written memory
        // shares no byte with another operand, as checked above; the caller promises the rest of
        // the raw contract.
        unsafe { self.passes.launch(device, [a, b, result, scratch], stream) }
    }
}

plan_of!(
    DotPlan by passes,
    |plan| counted(plan.operands[0].len, "element"),
    format!("each block sums a value from all {} of each array", counted(plan.operands[0].len, "element")),
    [plan.operands[0].bytes().saturating_mul(2), sum_type(plan.operands[0].dtype).width() as u64],
    "nothing to compute"
);
