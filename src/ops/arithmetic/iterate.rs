//! Takes every element through a number of fused products and sums: arithmetic of any intensity.

use crate::abi::{ITERATE, IterateParams, Key};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::DType;
use crate::error::{Result, counted};
use crate::ops::arithmetic::elementwise::shape;
use crate::ops::operand::{Operand, check_same_or_apart, check_shapes, queue};
use crate::ops::plan::{AtMostOne, Step, placed, plan_of};
use crate::ops::span::{Contiguous, Phase, lanes, phase, reason, span};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Queues `steps` times `x = fma(factor, x, offset)` on every element of `src` into `dst`, on
/// `stream`. Reads and writes `n` elements, and computes `2 n steps` floating-point operations: a
/// model of chosen arithmetic intensity, `steps / 4` operations for each byte that moves. With
/// 0 steps it copies.
///
/// Each step is rounded once, so [`f32::mul_add`] on a CPU gives the same bits.
///
/// # Errors
///
/// `Layout` if the shapes differ or an operand does not lie in C order without gaps;
/// `InvalidArgument` if the operands and the stream are not on one device; else the driver's error.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let numbers = device.array(&[3], &[0.0_f32, 1.0, 2.0])?;
/// let mut result = device.alloc_array::<f32>(&[3])?;
/// warpstride::ops::iterate_into(0.5, 1.0, 2, &numbers, &mut result, device.default_stream())?;
/// assert_eq!(result.to_vec()?, [1.5, 1.75, 2.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn iterate_into<'a>(
    factor: f32,
    offset: f32,
    steps: u32,
    src: impl Into<View<'a, f32>>,
    dst: impl Into<ViewMut<'a, f32>>,
    stream: &Stream,
) -> Result<()> {
    let (src, dst) = (src.into(), dst.into());
    check_shapes(src.layout(), dst.layout())?;
    let starts = [phase(&Operand::read("source", &src))?, phase(&Operand::written("destination", &dst))?];
    IteratePlan::new(dst.len() as u64, starts)?.launch(factor, offset, steps, src, dst, stream)
}

/// A plan of [`iterate_into`]. The length and the starts decide it; a launch adds the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IteratePlan {
    src: Contiguous,
    dst: Contiguous,
    step: AtMostOne<IterateParams>,
}

placed! {
    IterateParams: |own, (factor, offset, steps, [src, dst]): (f32, f32, u32, [u64; 2])| {
        Self { src, dst, steps: steps.into(), factor: factor.to_bits(), offset: offset.to_bits(), ..own }
    };
}

impl IteratePlan {
    /// Plans the steps of `len` elements, with the starts of source and destination.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a start is not a multiple of an element.
    pub fn new(len: u64, [src, dst]: [Phase; 2]) -> Result<Self> {
        let span = span(len, DType::F32.width() as u64, &[src, dst]);
        let params = IterateParams { dst: 0, src: 0, span, steps: 0, factor: 0, offset: 0 };
        // Arithmetic bounds it rather than memory, so the GPU's speed does not decide its blocks.
        let block = Tuning::common().arithmetic.elementwise_block;
        let shape = shape(lanes(&span, VECTOR / DType::F32.width() as u64).max(1), block);
        let step = Step { entry: ITERATE.get(Key::ONLY), shape, params };
        Ok(Self {
            src: Contiguous::new("source", DType::F32, len, src)?,
            dst: Contiguous::new("destination", DType::F32, len, dst)?,
            step: AtMostOne((len > 0).then_some(step)),
        })
    }

    /// Queues `steps` times `x = fma(factor, x, offset)` on the elements of `src` into `dst`, on
    /// `stream`.
    ///
    /// # Errors
    ///
    /// As [`iterate_into`]; `Layout` also if an operand does not match the plan.
    pub fn launch<'a>(
        &self,
        factor: f32,
        offset: f32,
        steps: u32,
        src: impl Into<View<'a, f32>>,
        dst: impl Into<ViewMut<'a, f32>>,
        stream: &Stream,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        check_shapes(src.layout(), dst.layout())?;
        let [from, to] = [Operand::read("source", &src), Operand::written("destination", &dst)];
        let starts = [self.src.in_view(&from)?, self.dst.in_view(&to)?];
        queue([from, to], stream, &|device, [src, dst], stream| {
            // SAFETY: the shape has a lane for every vector and every other element. The views have
            // the planned number of contiguous elements, within live buffers; the destination is
            // borrowed exclusively, so the source does not overlap it; `queue` orders other work.
            unsafe { self.step.launch(device, (factor, offset, steps, [src + starts[0], dst + starts[1]]), stream) }
        })
    }

    /// Queues `steps` times `x = fma(factor, x, offset)` on the elements at the address of the
    /// source, into those at the address of the destination.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an operand does not start as planned, or the source overlaps the
    /// destination without being it; else the driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract). The source may be the destination.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        factor: f32,
        offset: f32,
        steps: u32,
        [src, dst]: [u64; 2],
        stream: StreamHandle,
    ) -> Result<()> {
        self.src.check_address("source", src)?;
        self.dst.check_address("destination", dst)?;
        check_same_or_apart(["source", "destination"], src, dst, self.dst.bytes())?;
        // SAFETY: the shape has a lane for every vector and every other element. Both operands
        // start as planned, and the source is the destination or shares no byte with it; the rest
        // as the caller promises.
        unsafe { self.step.launch(device, (factor, offset, steps, [src, dst]), stream) }
    }
}

plan_of!(
    IteratePlan by step,
    |plan| counted(plan.dst.len, "element"),
    plan.step.reason(|params| reason(&params.span)),
    [plan.src.bytes(), plan.dst.bytes()],
    "nothing to compute"
);
