//! Contiguous arrays to one value: sums, products summed, least and greatest elements.
//!
//! Every result is the same on every run and every device: which elements a block joins, and in which order, depends on nothing
//! but their number and how far from 16 bytes they start. Blocks leave a value each, and a second launch of one block joins those.

use std::fmt;

use crate::abi::{DOT, DType, EntryId, Key, MAX, MIN, REDUCE_BLOCK, REDUCE_BLOCKS, REDUCE_STEPS, ReduceParams, SUM};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Number;
use crate::error::{Error, ErrorKind, Result};
use crate::launch_shape::LaunchShape;
use crate::memory::{Allocation, DeviceBuffer};
use crate::ops::arithmetic::sum_type;
use crate::ops::operand::{check_aligned, queue_among};
use crate::ops::operand::{check_shapes, start};
use crate::ops::span::span;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Most bytes of a block's value.
const VALUE: usize = 8;
const _: () = assert!(REDUCE_BLOCKS as usize * VALUE <= Scratch::BYTES);

/// What becomes of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum: of halves in single precision.
    Sum,
    /// The sum of the products of two arrays.
    Dot,
    /// The least; NaN where there is one.
    Min,
    /// The greatest; NaN where there is one.
    Max,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Dot, Self::Min, Self::Max];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Dot => "dot",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// Arrays that it reads.
    pub fn reads(self) -> u64 {
        if self == Self::Dot { 2 } else { 1 }
    }

    /// The type of the result.
    fn result(self, number: DType) -> DType {
        match self {
            Self::Sum | Self::Dot => sum_type(number),
            Self::Min | Self::Max => number,
        }
    }

    /// The name of its kernel; of large arrays the first of two.
    pub fn entry_name(self, number: DType) -> &'static str {
        self.entry(number).name()
    }

    /// The kernel of the blocks' values.
    fn entry(self, number: DType) -> EntryId {
        let family = match self {
            Self::Sum => SUM,
            Self::Dot => DOT,
            Self::Min => MIN,
            Self::Max => MAX,
        };
        family.get(Key::dtype(number))
    }

    /// What joins the blocks' values.
    fn last(self) -> Self {
        if self == Self::Dot { Self::Sum } else { self }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Device memory for what parts of a reduction come to, 1 MiB, which one reduction after the other may use.
#[derive(Debug)]
pub struct Scratch(DeviceBuffer<u8>);

impl Scratch {
    /// Bytes of it.
    pub const BYTES: usize = 1 << 20;

    /// Room on a device.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` where the device has none.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self(device.alloc(Self::BYTES)?))
    }

    /// Where it lies.
    pub(in crate::ops) fn memory(&self) -> &Allocation {
        self.0.memory()
    }
}

/// The sum of all elements; 0 of none. Halves are summed in `f32`. Waits for it.
///
/// # Errors
///
/// `Layout` where the elements do not lie in C order without gaps, `OutOfMemory`, and what the driver failed with.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
/// let buffer = device.upload(&numbers)?;
/// assert_eq!(warpstride::ops::sum(buffer.view(&[1000])?)?, 499_500.0);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn sum<T: Number>(a: View<'_, T>) -> Result<T::Sum> {
    value(a, |result, scratch, stream| sum_into(a, result, scratch, stream))
}

/// The sum of the products of the elements; 0 of none. Waits for it.
///
/// # Errors
///
/// As [`sum`]; `Layout` also where the shapes differ, `InvalidArgument` where the two are not of one device.
pub fn dot<T: Number>(a: View<'_, T>, b: View<'_, T>) -> Result<T::Sum> {
    value(a, |result, scratch, stream| dot_into(a, b, result, scratch, stream))
}

/// The least element; NaN where there is one. Waits for it.
///
/// # Errors
///
/// As [`sum`]; `InvalidArgument` where there are no elements.
pub fn min<T: Number>(a: View<'_, T>) -> Result<T> {
    value(a, |result, scratch, stream| min_into(a, result, scratch, stream))
}

/// The greatest element; NaN where there is one. Waits for it.
///
/// # Errors
///
/// As [`min`].
pub fn max<T: Number>(a: View<'_, T>) -> Result<T> {
    value(a, |result, scratch, stream| max_into(a, result, scratch, stream))
}

/// The one element that a reduction of `a` leaves.
fn value<T: Number, R: Number>(
    a: View<'_, T>,
    reduce: impl FnOnce(ViewMut<'_, R>, &mut Scratch, &Stream) -> Result<()>,
) -> Result<R> {
    let device = a.device();
    let mut result = device.alloc::<R>(1)?;
    reduce(result.view_mut(&[1])?, &mut Scratch::new(device)?, device.default_stream())?;
    Ok(result.download()?[0])
}

/// Queues the sum of all elements of `a` on `stream`, into the one element of `result`. Allocates nothing and waits for nothing.
///
/// # Errors
///
/// As [`sum`]; `Layout` also where `result` has not one element, `InvalidArgument` where all are not of one device.
pub fn sum_into<T: Number>(
    a: View<'_, T>,
    result: ViewMut<'_, T::Sum>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::Sum, a, a, &result, scratch, stream)
}

/// Queues the sum of the products of the elements on `stream`: see [`sum_into`].
///
/// # Errors
///
/// As [`sum_into`] and [`dot`].
pub fn dot_into<T: Number>(
    a: View<'_, T>,
    b: View<'_, T>,
    result: ViewMut<'_, T::Sum>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::Dot, a, b, &result, scratch, stream)
}

/// Queues the least element on `stream`: see [`sum_into`].
///
/// # Errors
///
/// As [`sum_into`] and [`min`].
pub fn min_into<T: Number>(
    a: View<'_, T>,
    result: ViewMut<'_, T>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::Min, a, a, &result, scratch, stream)
}

/// Queues the greatest element on `stream`: see [`sum_into`].
///
/// # Errors
///
/// As [`sum_into`] and [`min`].
pub fn max_into<T: Number>(
    a: View<'_, T>,
    result: ViewMut<'_, T>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(Reduction::Max, a, a, &result, scratch, stream)
}

fn queue<T: Number, R: Number>(
    reduction: Reduction,
    a: View<'_, T>,
    b: View<'_, T>,
    result: &ViewMut<'_, R>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    check_shapes(a.layout(), b.layout())?;
    if result.len() != 1 {
        return Err(Error::new(
            ErrorKind::Layout,
            format!(
                "the result of {reduction} is one value, and its view has shape {:?}; give one of one element",
                result.shape()
            ),
        ));
    }
    let starts = [start::<T>(a.layout())?, start::<T>(b.layout())?, (result.layout().offset() * size_of::<R>()) as u64];
    let memories = [a.memory(), b.memory(), result.memory(), scratch.memory()];
    queue_among(memories, stream, || {
        let [a_at, b_at, result] = [0, 1, 2].map(|at| memories[at].address() + starts[at]);
        let operands = Reduced { a: a_at, b: b_at, len: a.len() as u64, result, scratch: memories[3].address() };
        // SAFETY: views of as many contiguous elements and of one result, which lie within buffers that live until their drops;
        // what is written is borrowed exclusively; other work is ordered by `queue_among`, which also holds all to one device.
        unsafe { reduce_raw(a.device(), reduction, T::DTYPE, &operands, stream.handle()) }
    })
}

/// Where the elements lie that a reduction takes, and what it leaves: device addresses, multiples of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduced {
    /// The elements.
    pub a: u64,
    /// The other elements, of a dot product.
    pub b: u64,
    /// Elements of each.
    pub len: u64,
    /// The result: of sums of halves an `f32`, else of the type of the elements.
    pub result: u64,
    /// [`Scratch::BYTES`] bytes, aligned to 16.
    pub scratch: u64,
}

/// Queues a reduction of memory that others own, by addresses: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where an address is not aligned, or where there is no least or greatest of no elements; and what the driver
/// failed with.
///
/// # Safety
///
/// - `len` elements of the type from each address of an operand, the result and the scratch lie within memory that `device` can
///   access, live until the reduction has run; the result and the scratch overlap nothing else.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes the operands or touches the result or the scratch, unless it is
///   ordered before or after it on `stream` or by events.
pub unsafe fn reduce_raw(
    device: &Device,
    reduction: Reduction,
    number: DType,
    operands: &Reduced,
    stream: StreamHandle,
) -> Result<()> {
    let Reduced { a, b, len, result, scratch } = *operands;
    let outcome = reduction.result(number);
    let second = if reduction == Reduction::Dot { b } else { a };
    let width = number.width() as u64;
    check_aligned(&[
        ("array", a, width),
        ("array", second, width),
        ("result", result, outcome.width() as u64),
        ("scratch", scratch, 16),
    ])?;
    if len == 0 && matches!(reduction, Reduction::Min | Reduction::Max) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("there is no {reduction} of no elements; give at least one"),
        ));
    }
    let span = span(len, number.width() as u64, &[a, second]);
    let blocks = blocks(len, number.width() as u64);
    let entry = reduction.entry(number);
    let one = |blocks| LaunchShape { grid: [blocks, 1, 1], block: [REDUCE_BLOCK, 1, 1], dynamic_shared: 0 };
    let partials = if blocks == 1 { result } else { scratch };
    // SAFETY: the entry takes these parameters, and the scratch has room for a value of each block, the result for one; the rest
    // as the caller promises.
    unsafe { device.launch(entry, &one(blocks), &ReduceParams { a, b: second, partials, span }, stream) }?;
    if blocks == 1 {
        return Ok(());
    }
    let span = self::span(u64::from(blocks), outcome.width() as u64, &[scratch]);
    let params = ReduceParams { a: scratch, b: scratch, partials: result, span };
    // SAFETY: as many values as the first launch leaves, to one result; the stream orders the two.
    unsafe { device.launch(reduction.last().entry(outcome), &one(1), &params, stream) }
}

/// Blocks for so many elements: one for each run of quads, up to a number.
fn blocks(len: u64, width: u64) -> u32 {
    let run = u64::from(REDUCE_BLOCK * REDUCE_STEPS) * 16;
    len.saturating_mul(width).div_ceil(run).clamp(1, u64::from(REDUCE_BLOCKS)) as u32
}
