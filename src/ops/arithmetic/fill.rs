//! Sets every element of an array to one value.

use crate::abi::{FILL, FillParams, Key};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, Result, counted};
use crate::ops::Target;
use crate::ops::arithmetic::elementwise::shape;
use crate::ops::operand::{Operand, queue};
use crate::ops::plan::{AtMostOne, Step, placed, plan_of};
use crate::ops::span::{Contiguous, Phase, lanes, phase, reason, span};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;
use crate::stream::Stream;
use crate::view::ViewMut;

/// Queues a fill of every element of `dst` with `value` on `stream`. Writes `n` elements.
///
/// # Errors
///
/// `Layout` if `dst` does not lie in C order without gaps; `InvalidArgument` if `stream` is of
/// another device; else the driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut buffer = device.zeros::<u16>(5)?;
/// warpstride::ops::fill_into(7, buffer.view_mut(&[5])?.slice(0, 1..4, 1)?, device.default_stream())?;
/// assert_eq!(buffer.download()?, [0, 7, 7, 7, 0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn fill_into<'a, T: Element>(value: T, dst: impl Into<ViewMut<'a, T>>, stream: &Stream) -> Result<()> {
    let dst = dst.into();
    let start = phase(&Operand::written("destination", &dst))?;
    FillPlan::new(T::DTYPE, dst.len() as u64, start, Target::of(dst.memory().device()))?.launch(value, dst, stream)
}

/// A plan of a fill. Length, start and target decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillPlan {
    dst: Contiguous,
    step: AtMostOne<FillParams>,
}

placed! {
    // A launch adds an address and a pattern of 16 bytes to the plan.
    FillParams: |own, (dst, [low, high]): (u64, [u64; 2])| Self { dst, low, high, ..own };
}

impl FillPlan {
    /// Plans a fill of `len` elements that start at `dst`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the start is not a multiple of an element, or the elements have more
    /// bytes than can be addressed.
    pub fn new(dtype: DType, len: u64, dst: Phase, target: Target) -> Result<Self> {
        let planned = Contiguous::new("destination", dtype, len, dst)?;
        let Some(bytes) = len.checked_mul(dtype.width() as u64) else {
            return Err(Error::argument(format!(
                "{} of {dtype} have more bytes than can be addressed; fill fewer",
                counted(len, "element")
            )));
        };
        let span = span(bytes, 1, &[dst]);
        let params = FillParams { dst: 0, span, low: 0, high: 0 };
        let shape = shape(lanes(&span, VECTOR), Tuning::of(target).arithmetic.fill_block);
        let step = Step { entry: FILL.get(Key::ONLY), shape, params };
        Ok(Self { dst: planned, step: AtMostOne((len > 0).then_some(step)) })
    }

    /// Queues a fill of every element of `dst` with `value` on `stream`.
    ///
    /// # Errors
    ///
    /// As [`fill_into`]; `Layout` also if `dst` does not match the plan.
    pub fn launch<'a, T: Element>(&self, value: T, dst: impl Into<ViewMut<'a, T>>, stream: &Stream) -> Result<()> {
        let dst = dst.into();
        let to = Operand::written("destination", &dst);
        let start = self.dst.in_view(&to)?;
        queue([to], stream, &|device, [dst], stream| {
            // SAFETY: the kernel writes one byte in each lane that the shape has beyond vectors.
            // The elements lie within a live buffer, which is borrowed exclusively; `queue` orders
            // other work.
            unsafe { self.step.launch(device, (dst + start, pattern(value)), stream) }
        })
    }

    /// Queues a fill of the elements at an address.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the elements do not start as planned, or are of another type; else the
    /// driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract).
    pub unsafe fn launch_raw<T: Element>(
        &self,
        device: &Device,
        value: T,
        dst: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        self.dst.check_address("destination", dst)?;
        if T::DTYPE != self.dst.dtype {
            return Err(Error::argument(format!(
                "the value is of {} and the plan was made for {}; make one for it",
                T::DTYPE,
                self.dst.dtype
            )));
        }
        // SAFETY: the kernel writes one byte in each lane that the shape has beyond vectors; the
        // elements start as planned, and the rest is as the caller promises.
        unsafe { self.step.launch(device, (dst, pattern(value)), stream) }
    }
}

/// Returns the bytes of a value, repeated to 16: a pattern that repeats every element repeats every
/// 16 bytes of the address.
fn pattern<T: Element>(value: T) -> [u64; 2] {
    // SAFETY: a value has this number of readable bytes, none of them padding, while `value` lives.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&value).cast::<u8>(), size_of::<T>()) };
    let mut pattern = [[0; 8]; 2];
    pattern.as_flattened_mut().iter_mut().zip(bytes.iter().cycle()).for_each(|(to, from)| *to = *from);
    pattern.map(u64::from_le_bytes)
}

plan_of!(
    FillPlan by step,
    |plan| format_args!("{} of {}", counted(plan.dst.len, "element"), plan.dst.dtype),
    plan.step.reason(|params| reason(&params.span)),
    [0, plan.dst.bytes()],
    "nothing to compute"
);
