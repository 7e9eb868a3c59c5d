//! Converts elements to another type.

use std::fmt;

use crate::abi::{CAST, CAST_BLOCK, CastParams, EntryId, Key};
use crate::array::DeviceArray;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, Result, counted, refuse};
use crate::launch_shape::LaunchShape;
use crate::layout::Layout;
use crate::ops::numbering::grid;
use crate::ops::operand::{Operand, check_apart, check_shapes, in_new_array, queue};
use crate::ops::plan::{AtMostOne, Explanation, Plan, Step, placed};
use crate::ops::span::{Contiguous, Phase, common_span, lanes, phase, reason};
use crate::ops::units::wide::VECTOR;
use crate::ops::{Align, PermutePlan, Target};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Converts elements to another type in a new buffer, on the default stream:
/// `cast::<u8, _>(floats)`. See [`cast_into`].
///
/// # Errors
///
/// As [`cast_into`]; `OutOfMemory` if the result does not fit.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let numbers = device.upload(&[-1.5_f32, 0.5, 99.9, 1e9, f32::NAN])?;
/// let bytes = warpstride::ops::cast::<u8, _>(numbers.view(&[5])?)?;
/// assert_eq!(bytes.to_vec()?, [0, 0, 99, 255, 0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[track_caller]
pub fn cast<'a, D: Element, S: Element>(src: impl Into<View<'a, S>>) -> Result<DeviceArray<D>> {
    let src = src.into();
    in_new_array(src.device(), src.shape(), |dst, stream| cast_into(src, dst, stream))
}

/// Queues `dst = src as D`, element by element, on `stream`. Reads and writes `n` elements.
///
/// Numbers convert as by Rust's `as`. Integers that become narrower keep their low bits. Floats
/// lose their fraction; those beyond an integer's range become its least or greatest value, and NaN
/// becomes 0. A number that becomes a float is rounded once, to the nearest, ties to even; if it is
/// too large, it becomes infinite. NaN stays NaN, but its bits may change. Equal types, and types
/// that differ only in their sign, are copied.
///
/// # Errors
///
/// `Layout` if the shapes differ or an operand does not lie in C order without gaps;
/// `InvalidArgument` if an element is complex, or the operands and the stream are not on one
/// device; else the driver's error.
pub fn cast_into<'a, S: Element, D: Element>(
    src: impl Into<View<'a, S>>,
    dst: impl Into<ViewMut<'a, D>>,
    stream: &Stream,
) -> Result<()> {
    let (src, dst) = (src.into(), dst.into());
    queue_cast([Operand::read("source", &src), Operand::written("destination", &dst)], stream)
}

/// Plans and queues a cast. It does not depend on the types, so the compiler makes one, and not one
/// for each pair of types.
fn queue_cast([src, dst]: [Operand<'_>; 2], stream: &Stream) -> Result<()> {
    let (from, to) = ((phase(&src)?, src.dtype), (phase(&dst)?, dst.dtype));
    check_shapes(src.layout, dst.layout)?;
    CastPlan::new(from, to, dst.layout.len() as u64, Target::of(dst.device()))?.run([src, dst], stream)
}

/// A plan of a cast. Types, length and starts decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CastPlan {
    src: Contiguous,
    dst: Contiguous,
    /// The plan that copies, if the bits stay the same.
    copy: Option<PermutePlan>,
    step: AtMostOne<CastParams>,
}

placed!(CastParams);

impl CastPlan {
    /// Plans the cast of `len` elements: each side has a start and a type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a type is complex, a start is not a multiple of an element, or the
    /// bits stay and there are more elements than can be addressed; `Layout` if these elements
    /// have more bytes than can be addressed.
    pub fn new(
        (src_start, from): (Phase, DType),
        (dst_start, to): (Phase, DType),
        len: u64,
        target: Target,
    ) -> Result<Self> {
        let src = Contiguous::new("source", from, len, src_start)?;
        let dst = Contiguous::new("destination", to, len, dst_start)?;
        let Some(entry) = entry(from, to)? else {
            let Ok(elements) = usize::try_from(len) else {
                refuse!(InvalidArgument, "{} are more than can be addressed; cast fewer", counted(len, "element"))
            };
            let layout = Layout::row_major(&[elements])?;
            let aligns = [src_start, dst_start].map(|start| Align::of(start.bytes()));
            let copy = PermutePlan::new(&layout, aligns[0], &layout, aligns[1], to.width(), target)?;
            // A copy may depend on the whole start.
            let (src, dst) = (src.exactly(src_start), dst.exactly(dst_start));
            return Ok(Self { src, dst, copy: (len > 0).then_some(copy), step: AtMostOne(None) });
        };
        let widths = [from, to].map(|dtype| dtype.width() as u64);
        let count = VECTOR / widths[0].max(widths[1]);
        let span = common_span(len, count, [(src_start, widths[0]), (dst_start, widths[1])]);
        let blocks = lanes(&span, count).div_ceil(u64::from(CAST_BLOCK));
        let shape = LaunchShape { grid: grid(blocks), block: [CAST_BLOCK, 1, 1], dynamic_shared: 0 };
        let step = Step { entry, shape, params: CastParams { src: 0, dst: 0, span } };
        Ok(Self { src, dst, copy: None, step: AtMostOne((len > 0).then_some(step)) })
    }

    /// Queues the cast of `src` into `dst` on `stream`.
    ///
    /// # Errors
    ///
    /// As [`cast_into`]; `Layout` also if an operand is not what the plan was made for.
    pub fn launch<'a, S: Element, D: Element>(
        &self,
        src: impl Into<View<'a, S>>,
        dst: impl Into<ViewMut<'a, D>>,
        stream: &Stream,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        self.run([Operand::read("source", &src), Operand::written("destination", &dst)], stream)
    }

    fn run(&self, [src, dst]: [Operand<'_>; 2], stream: &Stream) -> Result<()> {
        check_shapes(src.layout, dst.layout)?;
        let starts = [self.src.in_view(&src)?, self.dst.in_view(&dst)?];
        queue([src, dst], stream, &|device, [src, dst], stream| {
            // SAFETY: `in_view` saw that both views have the planned elements without gaps, and
            // their starts, within buffers that the views borrow. The destination is borrowed
            // exclusively; `queue` holds all to one device and orders other work.
            unsafe { self.place(device, [src + starts[0], dst + starts[1]], stream) }
        })
    }

    /// Queues the cast of elements at two addresses.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a side does not start as planned, the sides overlap, or the device
    /// does not allow the launch; else the driver's error.
    ///
    /// # Safety
    ///
    /// The raw contract of [`ops`](crate::ops#the-raw-contract).
    pub unsafe fn launch_raw(&self, device: &Device, src: u64, dst: u64, stream: StreamHandle) -> Result<()> {
        self.src.check_address("source", src)?;
        self.dst.check_address("destination", dst)?;
        check_apart(self.src.range(src), self.dst.range(dst))?;
        // SAFETY: `check_address` saw that both sides start as planned, and `check_apart` that they
        // share no byte; the caller promises the rest of the raw contract.
        unsafe { self.place(device, [src, dst], stream) }
    }

    /// # Safety
    ///
    /// As [`CastPlan::launch_raw`], for sides that start as planned and do not overlap.
    unsafe fn place(&self, device: &Device, [src, dst]: [u64; 2], stream: StreamHandle) -> Result<()> {
        if let Some(copy) = &self.copy {
            // SAFETY: both types have the same bits for each value; the rest as the caller
            // promises.
            return unsafe { copy.launch_raw(device, src, dst, stream) };
        }
        // SAFETY: the shape has a lane for every run and every other element; the rest as the
        // caller promises.
        unsafe { self.step.launch(device, [src, dst], stream) }
    }
}

impl Plan for CastPlan {
    fn entry(&self) -> Option<&'static str> {
        self.copy.as_ref().map_or(self.step.entry(), Plan::entry)
    }

    fn shape(&self) -> Option<LaunchShape> {
        self.copy.as_ref().map_or(self.step.shape(), Plan::shape)
    }

    fn launches(&self) -> u64 {
        self.copy.as_ref().map_or(self.step.count(), Plan::launches)
    }

    fn explain(&self) -> Explanation {
        let why = match &self.copy {
            Some(_) => "both types have the same bits, so they are copied".into(),
            None => self.step.reason(|params| reason(&params.span)),
        };
        Explanation::of(self, why, self.src.bytes(), self.dst.bytes())
    }
}

impl fmt::Display for CastPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.copy {
            Some(copy) => copy.fmt(f),
            None => self.step.write(f, counted(self.src.len, "element"), "nothing to cast"),
        }
    }
}

/// Returns the kernel that casts between two types; `None` if the bits stay the same.
///
/// # Errors
///
/// `InvalidArgument` if a type is complex.
fn entry(from: DType, to: DType) -> Result<Option<EntryId>> {
    if from.is_complex() || to.is_complex() {
        return Err(Error::argument(format!(
            "{from} cannot be cast to {to}: complex types cannot be cast; view them as floats with a last axis of 2"
        )));
    }
    let (from, to) = kernel(from, to);
    Ok(CAST.find(Key::types(from, to)))
}

/// Returns the types whose kernel does this cast; they are equal if the bits stay the same. The
/// sign of an integer matters only if it becomes a wider integer or a float, or if a float becomes
/// it.
fn kernel(from: DType, to: DType) -> (DType, DType) {
    let (Some(unsigned_from), Some(unsigned_to)) = (unsigned(from), unsigned(to)) else { return (from, to) };
    (if to.width() <= from.width() { unsigned_from } else { from }, unsigned_to)
}

/// Returns the unsigned integer of an integer's width.
fn unsigned(dtype: DType) -> Option<DType> {
    match dtype {
        DType::U8 | DType::I8 => Some(DType::U8),
        DType::U16 | DType::I16 => Some(DType::U16),
        DType::U32 | DType::I32 => Some(DType::U32),
        DType::U64 | DType::I64 => Some(DType::U64),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
