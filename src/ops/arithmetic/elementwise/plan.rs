//! Plans a launch from a length and starts.

use super::Elementwise;
use crate::abi::ElementwiseParams;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Float};
use crate::error::{Error, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::ops::Target;
use crate::ops::arithmetic::kernel;
use crate::ops::numbering::grid;
use crate::ops::operand::{Operand, check_same_or_apart, check_shapes, queue};
use crate::ops::plan::{AtMostOne, Step, placed, plan_of};
use crate::ops::span::{Contiguous, Phase, lanes, reason, span};
use crate::ops::tuning::Tuning;
use crate::ops::units::wide::VECTOR;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// A plan of an element-wise operation. The length, the type and the starts decide it.
///
/// If all operands start equally far from a multiple of 16 bytes, they move by vectors, else
/// element by element. Arrays that exceed the L2 cache move with hints to it.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::ops::{Elementwise, ElementwisePlan, Phase, Target};
/// use warpstride::{Backend, DType, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let (start, target) = (Phase::ALIGNED, Target::of(&device));
/// let plan = ElementwisePlan::new(Elementwise::Triad, DType::F32, 3, [start; 2], start, target)?;
/// let (a, b) = (device.array(&[3], &[1.0_f32, 2.0, 3.0])?, device.array(&[3], &[1.0_f32; 3])?);
/// let mut sum = device.alloc_array::<f32>(&[3])?;
/// for scalar in [10.0, 20.0] {
///     plan.launch(scalar, &[&a, &b], &mut sum, device.default_stream())?;
///     assert_eq!(sum.to_vec()?[2], 3.0 + scalar as f32);
/// }
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementwisePlan {
    operation: Elementwise,
    /// A second source that the operation lacks is the first.
    sources: [Contiguous; 2],
    dst: Contiguous,
    step: AtMostOne<ElementwiseParams>,
}

placed! {
    ElementwiseParams: |own, (scalar, [a, b], dst): (f64, [u64; 2], u64)| {
        Self { dst, a, b, scalar: scalar.to_bits(), ..own }
    };
}

impl ElementwisePlan {
    /// Plans an operation on `len` elements of a type, with the starts of the sources and of the
    /// destination. It ignores the start of a second source if the operation has none.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no kernel computes with the type, or a start is not a multiple of an
    /// element.
    pub fn new(
        operation: Elementwise,
        dtype: DType,
        len: u64,
        [a, b]: [Phase; 2],
        dst: Phase,
        target: Target,
    ) -> Result<Self> {
        let entry = kernel(operation.family(), operation, dtype)?;
        let b = if operation.sources() == 2 { b } else { a };
        let to = Contiguous::new("destination", dtype, len, dst)?;
        let from = [("first operand", a), ("second operand", b)];
        let [first, second] = from.map(|(which, start)| Contiguous::new(which, dtype, len, start));
        let sources = [first?, second?];
        if len == 0 {
            return Ok(Self { operation, sources, dst: to, step: AtMostOne(None) });
        }
        let width = dtype.width() as u64;
        let span = span(len, width, &[dst, a, b]);
        let params = ElementwiseParams { dst: 0, a: 0, b: 0, span, scalar: 0 };
        let tuning = Tuning::of(target);
        let entry = tuning.hinted(entry, to.bytes(), target);
        let shape = shape(lanes(&span, VECTOR / width), tuning.arithmetic.elementwise_block);
        Ok(Self { operation, sources, dst: to, step: AtMostOne(Some(Step { entry, shape, params })) })
    }

    /// Queues the operation on `stream`, with the number of sources that [`Elementwise::sources`]
    /// gives. `scalar` is rounded to the type.
    ///
    /// # Errors
    ///
    /// As [`scale_into`](super::scale_into); `Layout` also if an operand does not match the plan;
    /// `InvalidArgument` also if the number of sources is wrong.
    pub fn launch<'a, T: Float>(
        &self,
        scalar: f64,
        sources: &[impl Into<View<'a, T>> + Copy],
        dst: impl Into<ViewMut<'a, T>>,
        stream: &Stream,
    ) -> Result<()> {
        let (a, b) = match (sources, self.operation.sources()) {
            ([a], 1) => (a, a),
            ([a, b], 2) => (a, b),
            _ => return Err(self.other_sources(sources.len())),
        };
        let (a, b, dst) = ((*a).into(), (*b).into(), dst.into());
        let [a, b, to] = [
            Operand::read("first operand", &a),
            Operand::read("second operand", &b),
            Operand::written("destination", &dst),
        ];
        check_shapes(a.layout, to.layout)?;
        check_shapes(b.layout, to.layout)?;
        let [first, second] = &self.sources;
        let to_start = self.dst.in_view(&to)?;
        let starts = [first.in_view(&a)?, second.in_view(&b)?];
        queue([a, b, to], stream, &|device, [a, b, dst], stream| {
            let addresses = [a + starts[0], b + starts[1]];
            // SAFETY: the shape has a lane for every vector and every other element. The views have
            // the planned number of contiguous elements, within live buffers; the destination is
            // borrowed exclusively, so no source overlaps it; `queue` orders other work.
            unsafe { self.step.launch(device, (scalar, addresses, dst + to_start), stream) }
        })
    }

    /// Queues the operation on the addresses of the sources and of the destination, with `scalar`
    /// rounded to the type. It ignores a second source if the operation has none.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an operand does not start as planned, or a source overlaps the
    /// destination without being it; else the driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract). A source may be the destination.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        scalar: f64,
        [a, b]: [u64; 2],
        dst: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        let [first, second] = &self.sources;
        let sources = &[("first operand", a, first), ("second operand", b, second)][..self.operation.sources()];
        self.dst.check_address("destination", dst)?;
        for &(which, address, planned) in sources {
            planned.check_address(which, address)?;
            check_same_or_apart([which, "destination"], address, dst, self.dst.bytes())?;
        }
        // SAFETY: the shape has a lane for every vector and every other element. The operands start
        // as planned, and each source is the destination or shares no byte with it; the rest as the
        // caller promises.
        unsafe { self.step.launch(device, (scalar, [a, b], dst), stream) }
    }

    fn other_sources(&self, given: usize) -> Error {
        let (operation, has) = (self.operation, counted(self.operation.sources(), "source"));
        Error::argument(format!(
            "{operation} computes with {has} beside its destination, and got {given}; give it {has}"
        ))
    }
}

/// Returns the shape of a launch with this number of lanes, at least one, in blocks of `block`
/// threads.
pub(in crate::ops::arithmetic) fn shape(lanes: u64, block: u32) -> LaunchShape {
    LaunchShape { grid: grid(lanes.div_ceil(u64::from(block))), block: [block, 1, 1], dynamic_shared: 0 }
}

plan_of!(
    ElementwisePlan by step,
    |plan| counted(plan.dst.len, "element"),
    plan.step.reason(|params| reason(&params.span)),
    [plan.dst.bytes().saturating_mul(plan.operation.reads()), plan.dst.bytes()],
    "nothing to compute"
);
