//! Elements scaled, shifted and converted on their way to another layout: `dst = factor * src + offset`, in one pass.
//!
//! A permute reads and writes every element; what else becomes of it on the way costs no more bytes. So a scaled transpose, a
//! cast into another order of axes, or the normalisation of images by their channels is one launch, where a permute, a cast and
//! arithmetic one behind the other move the array three times. cuTENSOR has the like as `cutensorPermute`, `B = alpha * op(perm(A))`,
//! with one type of scalar for all elements; factors and offsets by channel are those of cuDNN's and PyTorch's affine layers.
//!
//! How fast these kernels are was not measured yet. Their tiles are cut as those of [`permute`](mod@crate::ops::permute), whose speed was.

mod axes;
mod plan;

pub use plan::AffinePlan;

use crate::abi::affine_type;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;
use crate::ops::operand::start;
use crate::ops::operand::{check_addresses, queue_among};
use crate::ops::{Align, Target};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// What becomes of an element `x`: `x * factor + offset`, one fused multiply-add, rounded once.
///
/// It is computed in single precision, and rounded once more where the result is a half; doubles are computed in their own. So a
/// CPU that does the same (`f32::mul_add`) gets the same bits, but of what is no number, whose bits may be others.
///
/// `A` is where the values of channels are: views, or of the raw entry points device addresses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Affine<A> {
    /// The same for all elements, rounded to single precision where elements are not doubles.
    Uniform {
        /// What elements are multiplied by.
        factor: f64,
        /// What is added to the product.
        offset: f64,
    },
    /// For each index of an axis, its channels, values of its own: as many contiguous `f32` as the axis has indices.
    ///
    /// To normalise by mean and deviation, as [`normalize`](crate::ops::normalize()) does, `factors` are `1 / deviation` and `offsets` are
    /// `-mean / deviation`.
    PerChannel {
        /// The axis of the operands, counted from 0.
        axis: usize,
        /// What elements of each channel are multiplied by.
        factors: A,
        /// What is added to the product.
        offsets: A,
    },
}

impl<A> Affine<A> {
    /// Elements as they are, but of another type: a cast. The offset is -0, which leaves the sign of a zero.
    pub const IDENTITY: Self = Self::scale(1.0);

    /// Products alone. The offset is -0, which leaves the sign of a zero.
    pub const fn scale(factor: f64) -> Self {
        Self::Uniform { factor, offset: -0.0 }
    }

    /// The axis of channels, where there is one.
    pub fn axis(&self) -> Option<usize> {
        match self {
            Self::Uniform { .. } => None,
            Self::PerChannel { axis, .. } => Some(*axis),
        }
    }
}

/// Queues `dst[i] = src[i] * factor + offset` for every index `i` of two views of one shape, in any layouts, on `stream`: from `u8`,
/// `f16`, `bf16` or `f32` to `f16`, `bf16` or `f32`, or from `f64` to `f64`. How it is done is chosen by the layouts; see
/// [`AffinePlan`].
///
/// # Errors
///
/// `Layout` where the shapes differ, or factors or offsets are not contiguous; `InvalidArgument` where there is no kernel for the
/// types, there are not as many factors and offsets as channels, the shape has no such axis, or the operands and the stream are not
/// of one device; and what the driver failed with.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::ops::{Affine, affine_into};
///
/// let device = Device::open(Backend::Soft)?;
/// // Two pixels of three colours become three planes, scaled to 0 to 1; then each plane gets values of its own.
/// let pixels = device.upload(&[0_u8, 51, 102, 153, 204, 255])?;
/// let mut planes = device.alloc::<f32>(6)?;
/// let by_colour = pixels.view(&[2, 3])?.permuted_axes(&[1, 0])?;
/// affine_into(by_colour, Affine::scale(1.0 / 51.0), planes.view_mut(&[3, 2])?, device.default_stream())?;
/// assert_eq!(planes.download()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
///
/// let (factors, offsets) = (device.upload(&[1.0_f32, 10.0, 100.0])?, device.upload(&[0.5_f32, 0.0, -1.0])?);
/// let values = Affine::PerChannel { axis: 0, factors: factors.view(&[3])?, offsets: offsets.view(&[3])? };
/// affine_into(by_colour, values, planes.view_mut(&[3, 2])?, device.default_stream())?;
/// assert_eq!(planes.download()?, [0.5, 153.5, 510.0, 2040.0, 10199.0, 25499.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn affine_into<S: Element, D: Element>(
    src: View<'_, S>,
    affine: Affine<View<'_, f32>>,
    dst: ViewMut<'_, D>,
    stream: &Stream,
) -> Result<()> {
    let (align, target) = (Align::ALLOCATION, Target::of(dst.memory().device()));
    let plan =
        AffinePlan::new((src.layout(), align, S::DTYPE), (dst.layout(), align, D::DTYPE), affine.axis(), target)?;
    let (source, destination) = (src.memory(), dst.memory());
    let launch = |affine| {
        // SAFETY: the layouts lie within the buffers, and so do the channels' values, as many as there are channels; all live until
        // their drops and are aligned as allocations are; the exclusive borrow of `dst` shows that it shares no element with them;
        // other work on them is ordered by `queue_among`, which also holds all to one device.
        unsafe { plan.launch(destination.device(), source.address(), destination.address(), affine, stream.handle()) }
    };
    match affine {
        Affine::Uniform { factor, offset } => {
            queue_among([source, destination], stream, || launch(Affine::Uniform { factor, offset }))
        }
        Affine::PerChannel { axis, factors, offsets } => {
            let count = src.shape().get(axis).copied().unwrap_or_default();
            let addresses = [channel_values("factors", &factors, count)?, channel_values("offsets", &offsets, count)?];
            let [factors_at, offsets_at] = addresses;
            queue_among([source, destination, factors.memory(), offsets.memory()], stream, || {
                launch(Affine::PerChannel { axis, factors: factors_at, offsets: offsets_at })
            })
        }
    }
}

/// The address of the values of so many channels.
fn channel_values(which: &str, values: &View<'_, f32>, channels: usize) -> Result<u64> {
    if values.shape() != [channels] {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "the {which} have shape {:?} and there is one for each channel; give a view of shape [{channels}]",
                values.shape()
            ),
        ));
    }
    Ok(values.memory().address() + start::<f32>(values.layout())?)
}

/// Queues the same in memory that others own, each side an address, a layout from there, and a type: see [`ops`](super).
///
/// # Errors
///
/// As [`affine_into`]; `InvalidArgument` also for an address that is not a multiple of an element, or where the destination
/// overlaps what is read. `Layout` also where the destination may reach an element twice, or the bytes of a side overflow.
///
/// # Safety
///
/// - Every element of both layouts from their addresses, and as many `f32` from the addresses of factors and offsets as there are
///   channels, lie within memory that `device` can access, live until it has run.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes what is read or touches the destination, unless it is ordered before or
///   after it on `stream` or by events.
pub unsafe fn affine_into_raw(
    device: &Device,
    (src, src_layout, from): (u64, &Layout, DType),
    (dst, dst_layout, to): (u64, &Layout, DType),
    affine: Affine<u64>,
    stream: StreamHandle,
) -> Result<()> {
    let (source, destination) = ((src_layout, Align::of(src), from), (dst_layout, Align::of(dst), to));
    let plan = AffinePlan::new(source, destination, affine.axis(), Target::of(device))?;
    if dst_layout.is_empty() {
        return Ok(());
    }
    let destination = (dst, dst_layout, to.width());
    check_addresses((src, src_layout, from.width()), destination)?;
    if let Affine::PerChannel { axis, factors, offsets } = affine {
        let values = Layout::row_major(&[src_layout.shape()[axis]])?;
        for address in [factors, offsets] {
            check_addresses((address, &values, size_of::<f32>()), destination)?;
        }
    }
    // SAFETY: as the caller promises; what is read and written does not overlap, and the alignments are those of the addresses.
    unsafe { plan.launch(device, src, dst, affine, stream) }
}

/// Whether there is a kernel for these types.
///
/// # Errors
///
/// `InvalidArgument` where there is none.
fn check_types(from: DType, to: DType) -> Result<()> {
    let known = |dtype| affine_type(dtype).is_some();
    if known(from) && known(to) && (from == DType::F64) == (to == DType::F64) && to != DType::U8 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "elements of {from} are not mapped to {to}, but those of u8, f16, bf16 and f32 to f16, bf16 and f32, and \
             those of f64 to f64; cast before or after (ops::cast)"
        ),
    ))
}
