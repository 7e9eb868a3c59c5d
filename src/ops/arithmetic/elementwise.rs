//! Arithmetic on every element of contiguous arrays, by the names and byte counts of BabelStream (Deakin et al. 2018).
//!
//! Elements are computed one by one: halves in single precision and rounded once, the others in their own, a product and a sum
//! each rounded. So a CPU that does the same gets the same bits.

use std::fmt;

use crate::abi::{
    ADD, AXPY, DType, ELEMENTWISE_BLOCK, ElementwiseParams, EntryId, FILL, FillParams, Key, MUL, NSTREAM, TRIAD,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{Element, Number};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::ops::numbering::grid;
use crate::ops::operand::{check_aligned, queue_among};
use crate::ops::operand::{check_shapes, start};
use crate::ops::span::{lanes, span};
use crate::ops::{Target, tuning};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// An operation of one or two arrays, element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// `dst = scalar * a`
    Mul,
    /// `dst = a + b`
    Add,
    /// `dst = a + scalar * b`
    Triad,
    /// `dst = dst + (a + scalar * b)`
    NStream,
    /// `dst = dst + scalar * a`
    Axpy,
}

impl Elementwise {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mul, Self::Add, Self::Triad, Self::NStream, Self::Axpy];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mul => "mul",
            Self::Add => "add",
            Self::Triad => "triad",
            Self::NStream => "nstream",
            Self::Axpy => "axpy",
        }
    }

    /// Arrays that it reads, and always writes one.
    pub fn reads(self) -> u64 {
        match self {
            Self::Mul => 1,
            Self::Add | Self::Triad | Self::Axpy => 2,
            Self::NStream => 3,
        }
    }

    /// Whether it has a second operand besides the destination.
    fn has_second(self) -> bool {
        matches!(self, Self::Add | Self::Triad | Self::NStream)
    }

    /// The name of its kernel for arrays of `len` elements.
    pub fn entry_name(self, number: DType, len: u64, target: Target) -> &'static str {
        self.entry(number, len, target).name()
    }

    /// The kernel, with hints to the L2 cache where they are for arrays of that length.
    fn entry(self, number: DType, len: u64, target: Target) -> EntryId {
        let family = match self {
            Self::Mul => MUL,
            Self::Add => ADD,
            Self::Triad => TRIAD,
            Self::NStream => NSTREAM,
            Self::Axpy => AXPY,
        };
        tuning::hinted(family.get(Key::dtype(number)), len.saturating_mul(number.width() as u64), target)
    }
}

impl fmt::Display for Elementwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Queues `dst = scalar * a` on `stream`. Moves `2 n` elements.
///
/// # Errors
///
/// `Layout` where the shapes differ or an operand does not lie in C order without gaps, `InvalidArgument` where the operands and
/// the stream are not of one device, and what the driver failed with. So for the others here.
pub fn mul<T: Number>(scalar: T, a: View<'_, T>, dst: ViewMut<'_, T>, stream: &Stream) -> Result<()> {
    queue(Elementwise::Mul, scalar.to_f64(), a, a, &dst, stream)
}

/// Queues `dst = a + b` on `stream`. Moves `3 n` elements.
///
/// # Errors
///
/// As [`mul`].
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let (a, b) = (device.upload(&[1.0_f32, 2.0, 3.0])?, device.upload(&[0.5_f32; 3])?);
/// let mut c = device.alloc::<f32>(3)?;
/// warpstride::ops::add(a.view(&[3])?, b.view(&[3])?, c.view_mut(&[3])?, device.default_stream())?;
/// assert_eq!(c.download()?, [1.5, 2.5, 3.5]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn add<T: Number>(a: View<'_, T>, b: View<'_, T>, dst: ViewMut<'_, T>, stream: &Stream) -> Result<()> {
    queue(Elementwise::Add, 0.0, a, b, &dst, stream)
}

/// Queues `dst = a + scalar * b` on `stream`. Moves `3 n` elements.
///
/// # Errors
///
/// As [`mul`].
pub fn triad<T: Number>(a: View<'_, T>, scalar: T, b: View<'_, T>, dst: ViewMut<'_, T>, stream: &Stream) -> Result<()> {
    queue(Elementwise::Triad, scalar.to_f64(), a, b, &dst, stream)
}

/// Queues `dst = dst + (a + scalar * b)` on `stream`. Moves `4 n` elements.
///
/// # Errors
///
/// As [`mul`].
pub fn nstream<T: Number>(
    a: View<'_, T>,
    scalar: T,
    b: View<'_, T>,
    dst: ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    queue(Elementwise::NStream, scalar.to_f64(), a, b, &dst, stream)
}

/// Queues `dst = dst + scalar * a` on `stream`. Moves `3 n` elements.
///
/// # Errors
///
/// As [`mul`].
pub fn axpy<T: Number>(scalar: T, a: View<'_, T>, dst: ViewMut<'_, T>, stream: &Stream) -> Result<()> {
    queue(Elementwise::Axpy, scalar.to_f64(), a, a, &dst, stream)
}

fn queue<T: Number>(
    operation: Elementwise,
    scalar: f64,
    a: View<'_, T>,
    b: View<'_, T>,
    dst: &ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    for operand in [a, b] {
        check_shapes(operand.layout(), dst.layout())?;
    }
    let starts = [start::<T>(dst.layout())?, start::<T>(a.layout())?, start::<T>(b.layout())?];
    let memories = [dst.memory(), a.memory(), b.memory()];
    queue_among(memories, stream, || {
        let [to, a, b] = [0, 1, 2].map(|at| memories[at].address() + starts[at]);
        let operands = Operands { dst: to, a, b, len: dst.len() as u64 };
        // SAFETY: views of as many contiguous elements, which lie within buffers that live until their drops; what is written
        // is borrowed exclusively, so that nothing overlaps it; other work is ordered by `queue_among`, which also holds all
        // to one device.
        unsafe { launch(dst.device(), operation, T::DTYPE, scalar, &operands, stream.handle()) }
    })
}

/// Where the elements lie that an operation takes: device addresses, multiples of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operands {
    /// What is written.
    pub dst: u64,
    /// The first operand; may be `dst`.
    pub a: u64,
    /// The second operand, of those that have one; may be `dst`.
    pub b: u64,
    /// Elements of each.
    pub len: u64,
}

/// Queues an operation on memory that others own, by addresses: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where an address is not a multiple of an element, or an operand overlaps the destination without being it;
/// and what the driver failed with.
///
/// # Safety
///
/// - From each address that the operation takes, `len` elements of the type lie within memory that `device` can access, live
///   until it has run.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes what it reads or touches what it writes, unless it is ordered before
///   or after it on `stream` or by events.
pub unsafe fn elementwise_raw(
    device: &Device,
    operation: Elementwise,
    number: DType,
    scalar: f64,
    operands: &Operands,
    stream: StreamHandle,
) -> Result<()> {
    let width = number.width() as u64;
    let bytes = u128::from(operands.len) * u128::from(width);
    let used = [operands.dst, operands.a, if operation.has_second() { operands.b } else { operands.a }];
    check_aligned(&[
        ("destination", used[0], width),
        ("first operand", used[1], width),
        ("second operand", used[2], width),
    ])?;
    for address in used {
        let apart = u128::from(address.abs_diff(operands.dst));
        if apart > 0 && apart < bytes {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the operand at {address:#x} overlaps the destination at {:#x}, of {bytes} each; pass the same \
                     address or memory apart",
                    operands.dst,
                    bytes = counted(bytes, "byte")
                ),
            ));
        }
    }
    // SAFETY: as the caller promises; aligned and apart as checked above.
    unsafe { launch(device, operation, number, scalar, operands, stream) }
}

/// # Safety
///
/// As [`elementwise_raw`]; moreover the addresses are aligned, and operands are the destination or apart from it.
unsafe fn launch(
    device: &Device,
    operation: Elementwise,
    number: DType,
    scalar: f64,
    operands: &Operands,
    stream: StreamHandle,
) -> Result<()> {
    let Operands { dst, a, b, len } = *operands;
    if len == 0 {
        return Ok(());
    }
    let second = if operation.has_second() { b } else { a };
    let span = span(len, number.width() as u64, &[dst, a, second]);
    let params = ElementwiseParams { dst, a, b, span, scalar: scalar.to_bits() };
    let entry = operation.entry(number, len, Target::of(device));
    // SAFETY: the entry takes these parameters; the shape has a lane for every quad and every other element; the rest as
    // the caller promises.
    unsafe { device.launch(entry, &shape(lanes(&span, number.width() as u64)), &params, stream) }
}

/// Queues setting every element of `dst` to `value` on `stream`. Moves `n` elements.
///
/// # Errors
///
/// As [`mul`].
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let mut buffer = device.zeros::<u16>(5)?;
/// warpstride::ops::fill(7, buffer.view_mut(&[5])?.slice(0, 1..4, 1)?, device.default_stream())?;
/// assert_eq!(buffer.download()?, [0, 7, 7, 7, 0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn fill<T: Element>(value: T, dst: ViewMut<'_, T>, stream: &Stream) -> Result<()> {
    let start = start::<T>(dst.layout())?;
    queue_among([dst.memory()], stream, || {
        let address = dst.memory().address() + start;
        // SAFETY: elements of a buffer that lives until its drop, borrowed exclusively, contiguous and aligned; other work is
        // ordered by `queue_among`, which also holds all to one device.
        unsafe { fill_raw(dst.device(), value, address, dst.len() as u64, stream.handle()) }
    })
}

/// Queues setting `len` elements from the address `dst` on, in memory that others own: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where the address is not a multiple of an element, and what the driver failed with.
///
/// # Safety
///
/// As [`elementwise_raw`], of the destination.
pub unsafe fn fill_raw<T: Element>(device: &Device, value: T, dst: u64, len: u64, stream: StreamHandle) -> Result<()> {
    let width = size_of::<T>();
    check_aligned(&[("destination", dst, width as u64)])?;
    if len == 0 {
        return Ok(());
    }
    // SAFETY: as many readable bytes as an element has, none of them padding, for as long as `value` lives.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&value).cast::<u8>(), width) };
    // What repeats every element repeats every 16 bytes of the address.
    let mut pattern = [[0; 8]; 2];
    pattern.as_flattened_mut().iter_mut().zip(bytes.iter().cycle()).for_each(|(to, from)| *to = *from);
    let [low, high] = pattern.map(u64::from_le_bytes);
    let Some(bytes) = len.checked_mul(width as u64) else {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{len} of {width} are more than an address can count; fill fewer",
                len = counted(len, "element"),
                width = counted(width, "byte")
            ),
        ));
    };
    let span = span(bytes, 1, &[dst]);
    let params = FillParams { dst, span, low, high };
    // SAFETY: `fill` takes these parameters; the shape has a lane for every quad and every other byte; the rest as the caller
    // promises.
    unsafe { device.launch(FILL.get(Key::ONLY), &shape(lanes(&span, 1)), &params, stream) }
}

/// A launch of so many lanes, at least one.
fn shape(lanes: u64) -> LaunchShape {
    let blocks = lanes.div_ceil(u64::from(ELEMENTWISE_BLOCK));
    LaunchShape { grid: grid(blocks), block: [ELEMENTWISE_BLOCK, 1, 1], dynamic_shared: 0 }
}
