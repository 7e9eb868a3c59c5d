//! Computes softmax along the last axis.

use super::{Launch, Sides, check_rows, counted_rows, elements, rows_of};
use crate::abi::{ROWWISE_THREADS, SOFTMAX, SOFTMAX_PARTS, softmax_quads};
use crate::array::DeviceArray;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Float};
use crate::error::Result;
use crate::ops::Target;
use crate::ops::arithmetic::kernel;
use crate::ops::operand::{Operand, check_same_or_apart, check_shapes, check_written_apart, in_new_array, queue};
use crate::ops::plan::plan_of;
use crate::ops::span::{Contiguous, Phase, phase};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Computes the softmax along the last axis into a new buffer, on the default stream. See
/// [`softmax_into`].
///
/// # Errors
///
/// As [`softmax_into`]; `OutOfMemory` if the result does not fit.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let buffer = device.upload(&[0.0_f32, 0.0, 1000.0, 1000.0])?;
/// assert_eq!(warpstride::ops::softmax(buffer.view(&[2, 2])?)?.to_vec()?, [0.5, 0.5, 0.5, 0.5]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn softmax<'a, T: Float>(a: impl Into<View<'a, T>>) -> Result<DeviceArray<T>> {
    let a = a.into();
    in_new_array(a.device(), a.shape(), |dst, stream| softmax_into(a, dst, stream))
}

/// Queues the softmax of `a` along the last axis on `stream`: each row becomes `e^(x - greatest)`
/// over the sum of these. Waits for nothing, and allocates nothing unless a row has more than 64
/// KiB (32 of halves, 40 of `f64`): then it takes a little memory in the order of the stream.
///
/// Before halves are rounded once from single precision, an element differs from the exact softmax
/// by less than `48 + |x - greatest|` roundings (of 2^-24, in double precision of 2^-53) of itself.
/// In such long rows the bound is twice that, and below the least normal number half the
/// least number above zero is added. A thread sums one part of 512 in sequence, so each 32 MiB of a
/// row (16 of halves, 20 of `f64`) add a rounding to the bound: 512 of them at 2^18 parts, which
/// are 16 GiB (8 of halves, 10 of `f64`). A row with NaN or positive infinity, or of negative
/// infinity alone, becomes NaN.
///
/// # Errors
///
/// `Layout` if the shapes differ or the elements do not lie in C order without gaps;
/// `InvalidArgument` if the operands and the stream are not on one device; else the driver's error.
pub fn softmax_into<'a, T: Float>(
    a: impl Into<View<'a, T>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    let (a, dst) = (a.into(), dst.into());
    let starts = [phase(&Operand::read("source", &a))?, phase(&Operand::written("destination", &dst))?];
    SoftmaxPlan::new(T::DTYPE, rows_of(a.shape()), starts, Target::of(a.device()))?.launch(a, dst, stream)
}

/// A plan of a softmax. The rows, the type and the starts decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftmaxPlan {
    rows: [u64; 2],
    src: Contiguous,
    dst: Contiguous,
    launch: Launch,
}

impl SoftmaxPlan {
    /// Plans the softmax of rows: `shape` is the number of rows, and of the elements of each;
    /// `starts` are those of the source and the destination. The `target` must not have more
    /// multiprocessors than the device that launches the plan: the blocks that share a long row
    /// wait for each other, and a device refuses a launch whose blocks it cannot all run at once.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the rows have more bytes than can be addressed, no kernel computes with
    /// the type, or a start is not a multiple of an element.
    pub fn new(dtype: DType, shape: [u64; 2], starts: [Phase; 2], target: Target) -> Result<Self> {
        let len = elements(shape, dtype)?;
        let src = Contiguous::new("source", dtype, len, starts[0])?;
        let dst = Contiguous::new("destination", dtype, len, starts[1])?;
        let [of_groups, of_teams] = [kernel(SOFTMAX, "softmax", dtype)?, kernel(SOFTMAX_PARTS, "softmax", dtype)?];
        let held = [softmax_quads(dtype.width() as u32), ROWWISE_THREADS];
        let aligned = src.start() == dst.start();
        let launch = Launch::new((of_groups, of_teams, None), dtype, shape, held, aligned, target);
        Ok(Self { rows: shape, src, dst, launch })
    }

    /// Queues the softmax of `a` into `dst` on `stream`.
    ///
    /// # Errors
    ///
    /// As [`softmax_into`]; `Layout` also if an operand does not match the plan.
    pub fn launch<'a, T: Float>(
        &self,
        a: impl Into<View<'a, T>>,
        dst: impl Into<ViewMut<'a, T>>,
        stream: &Stream,
    ) -> Result<()> {
        let (a, dst) = (a.into(), dst.into());
        check_shapes(a.layout(), dst.layout())?;
        let [from, to] = [Operand::read("source", &a), Operand::written("destination", &dst)];
        let starts = [self.src.in_view(&from)?, self.dst.in_view(&to)?];
        check_rows(self.rows, a.shape())?;
        self.launch.with_scratch(a.device(), stream, |room| {
            queue([from, to, room], stream, &|device, [src, dst, scratch], stream| {
                let sides = Sides { src: src + starts[0], dst: dst + starts[1], variances: 0, scratch };
                // SAFETY: blocks are whole groups, which hold their rows if the plan says so. The
                // views have the planned number of contiguous elements, within live buffers; the
                // destination is borrowed exclusively, so it shares no byte with the source.
                // `queue` orders other work, and nothing else knows the scratch.
                unsafe { self.launch.launch(device, sides, stream) }
            })
        })
    }

    /// Returns the bytes of the scratch memory of [`launch_raw`](Self::launch_raw), which are
    /// aligned to 32: 0 if no row is long.
    pub fn scratch_bytes(&self) -> u64 {
        self.launch.scratch_bytes()
    }

    /// Queues the softmax of rows at an address.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an operand does not start as planned, source and destination overlap
    /// and are not the same, or the scratch is not aligned or overlaps one of them; else the
    /// driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract), with a scratch of
    /// [`scratch_bytes`](Self::scratch_bytes). `dst` may be `src`.
    ///
    /// The scratch belongs to one launch at a time. This call queues a fill and a kernel, and
    /// another thread could queue a launch between them, also on the same stream. So from this call
    /// until its work has run, no other launch uses the scratch, unless that one is called after
    /// this call has returned, and is queued behind it on the stream.
    pub unsafe fn launch_raw(
        &self,
        device: &Device,
        src: u64,
        dst: u64,
        scratch: u64,
        stream: StreamHandle,
    ) -> Result<()> {
        self.src.check_address("source", src)?;
        self.dst.check_address("destination", dst)?;
        check_same_or_apart(["source", "destination"], src, dst, self.src.bytes())?;
        let operands = [("source", self.src.range(src)), ("destination", self.dst.range(dst))];
        check_written_apart(&operands, &[self.launch.scratch_at(scratch)?])?;
        // SAFETY: blocks are whole groups, which hold their rows if the plan says so. Both operands
        // start as planned, and the scratch shares no byte with them. They are the same or share
        // none. If they are the same, no thread reads what another one has written: a thread
        // without a vector reads the row's first one, which lane 0 overwrites, but that value goes
        // into the greatest, which all threads join before any of them stores. A block of a team
        // has parts of its own, and reads these alone, the second time too. The rest is as the
        // caller promises.
        unsafe { self.launch.launch(device, Sides { src, dst, variances: 0, scratch }, stream) }
    }
}

plan_of!(
    SoftmaxPlan by launch,
    |plan| counted_rows(plan.rows),
    plan.launch.reason(),
    [plan.src.bytes(), plan.dst.bytes()],
    "nothing to compute"
);
