//! Operations on rows that need the whole row first: softmax, mean and variance. Rows are those of the last axis of contiguous
//! arrays.
//!
//! A row is read once, where the threads of a block can hold it: of up to 64 KiB, and of halves 32 KiB. Longer ones are read twice,
//! the second time from the L2 cache where it has them still, for which softmax goes back from their end; so are rows whose result
//! starts at another distance from 16 bytes than they do, element by element. All arithmetic is by operations that every device
//! rounds alike, and in an order that the length of a row, and how far it and its result start from 16 bytes, alone decide: so a
//! result is the same on every run and every device.

use crate::abi::{DType, EntryId, Key, MEAN_VARIANCE, ROWWISE_THREADS, RowwiseParams, SOFTMAX, held_quads};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::Number;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::memory::DeviceBuffer;
use crate::ops::arithmetic::sum_type;
use crate::ops::operand::{check_aligned, queue_among};
use crate::ops::operand::{check_shapes, start};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Bytes of a quad.
const QUAD: u64 = 16;
/// Fewest threads in a block.
const BLOCK: u64 = 128;

/// Rows that lie one behind the other, from an address on that is a multiple of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// The first element.
    pub start: u64,
    /// Rows.
    pub rows: u64,
    /// Elements of each.
    pub n: u64,
}

impl Rows {
    /// Bytes of all.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where that is more than can be addressed.
    fn bytes(self, number: DType) -> Result<u64> {
        let bytes = self.rows.checked_mul(self.n).and_then(|elements| elements.checked_mul(number.width() as u64));
        bytes.filter(|&bytes| bytes <= isize::MAX as u64).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "nothing can address the bytes of {} of {} {number:?}; pass fewer or shorter ones",
                    counted(self.rows, "row"),
                    self.n
                ),
            )
        })
    }
}

/// The mean of each row, and the variance of each: see [`mean_variance`].
pub type Moments<T> = (DeviceBuffer<<T as Number>::Sum>, DeviceBuffer<<T as Number>::Sum>);

/// The name of the kernel of [`softmax`].
pub fn softmax_entry_name(number: DType) -> &'static str {
    SOFTMAX.get(Key::dtype(number)).name()
}

/// The name of the kernel of [`mean_variance`].
pub fn mean_variance_entry_name(number: DType) -> &'static str {
    MEAN_VARIANCE.get(Key::dtype(number)).name()
}

/// The softmax of each row, `e^(x - greatest of the row)` over the sum of these, in a buffer of its own: see [`softmax_into`].
///
/// # Errors
///
/// As [`softmax_into`], and `OutOfMemory`.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let buffer = device.upload(&[0.0_f32, 0.0, 1000.0, 1000.0])?;
/// assert_eq!(warpstride::ops::softmax(buffer.view(&[2, 2])?)?.download()?, [0.5, 0.5, 0.5, 0.5]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn softmax<T: Number>(a: View<'_, T>) -> Result<DeviceBuffer<T>> {
    let mut result = a.device().alloc::<T>(a.len())?;
    softmax_into(a, result.view_mut(a.shape())?, a.device().default_stream())?;
    Ok(result)
}

/// Queues the softmax of each row of `a` on `stream`, into `result`. Allocates nothing and waits for nothing.
///
/// Before halves are rounded from single precision, once, an element differs from the softmax in exact arithmetic by less than
/// `48 + |x - greatest|` roundings (of 2^-24, in double precision of 2^-53) of itself, in rows that are read twice by less than
/// twice that, and where it is below the least normal number, by half the least number above zero besides. A row with NaN or
/// positive infinity, or of negative infinity alone, becomes NaN.
///
/// # Errors
///
/// `Layout` where the shapes differ or the elements do not lie in C order without gaps, `InvalidArgument` where the two and the
/// stream are not of one device, and what the driver failed with.
pub fn softmax_into<T: Number>(a: View<'_, T>, result: ViewMut<'_, T>, stream: &Stream) -> Result<()> {
    check_shapes(a.layout(), result.layout())?;
    let starts = [start::<T>(a.layout())?, start::<T>(result.layout())?];
    let memories = [a.memory(), result.memory()];
    queue_among(memories, stream, || {
        let [from, to] = [0, 1].map(|at| memories[at].address() + starts[at]);
        // SAFETY: views of as many contiguous elements, which lie within buffers that live until their drops; what is written is
        // borrowed exclusively; other work is ordered by `queue_among`, which also holds all to one device.
        unsafe { softmax_raw(a.device(), T::DTYPE, rows_of(a, from), to, stream.handle()) }
    })
}

/// The mean and the variance of each row, in buffers of their own: see [`mean_variance_into`].
///
/// # Errors
///
/// As [`mean_variance_into`], and `OutOfMemory`.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let buffer = device.upload(&[1.0_f32, 3.0, 5.0, 5.0])?;
/// let (mean, variance) = warpstride::ops::mean_variance(buffer.view(&[2, 2])?)?;
/// assert_eq!((mean.download()?, variance.download()?), (vec![2.0, 5.0], vec![1.0, 0.0]));
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn mean_variance<T: Number>(a: View<'_, T>) -> Result<Moments<T>> {
    let shape = &a.shape()[..a.rank().saturating_sub(1)];
    let device = a.device();
    let rows = shape.iter().product();
    let (mut mean, mut variance) = (device.alloc(rows)?, device.alloc(rows)?);
    mean_variance_into(a, mean.view_mut(shape)?, variance.view_mut(shape)?, device.default_stream())?;
    Ok((mean, variance))
}

/// Queues the mean of each row of `a` on `stream`, and its variance: the mean of the squares of the differences from the mean
/// (divided by the length, as NumPy does it). Both have the shape of `a` without the last axis, and halves have them in `f32`.
/// Allocates nothing and waits for nothing.
///
/// The mean first and then the differences from it, in a second pass over what was read once: so that nothing cancels, however large
/// the mean. Their sum tells how far off the mean was rounded (Chan, Golub and LeVeque 1983), and in rows that are read twice what
/// sums lose by rounding is summed too. Of a row with infinity, or whose sum is beyond the greatest number, the mean is infinite and
/// the variance NaN; of one with NaN both are.
///
/// # Errors
///
/// As [`softmax_into`]; `InvalidArgument` also where rows have no elements and there are some.
pub fn mean_variance_into<T: Number>(
    a: View<'_, T>,
    mean: ViewMut<'_, T::Sum>,
    variance: ViewMut<'_, T::Sum>,
    stream: &Stream,
) -> Result<()> {
    let shape = &a.shape()[..a.rank().saturating_sub(1)];
    for result in [&mean, &variance] {
        if result.shape() != shape {
            return Err(Error::new(
                ErrorKind::Layout,
                format!("means and variances have shape {shape:?}, and a view {:?}; give {shape:?}", result.shape()),
            ));
        }
    }
    let starts = [start::<T>(a.layout())?, start::<T::Sum>(mean.layout())?, start::<T::Sum>(variance.layout())?];
    let memories = [a.memory(), mean.memory(), variance.memory()];
    queue_among(memories, stream, || {
        let [from, mean, variance] = [0, 1, 2].map(|at| memories[at].address() + starts[at]);
        // SAFETY: a view of contiguous elements and of two results a row, which lie within buffers that live until their drops;
        // what is written is borrowed exclusively; other work is ordered by `queue_among`, which also holds all to one device.
        unsafe { mean_variance_raw(a.device(), T::DTYPE, rows_of(a, from), [mean, variance], stream.handle()) }
    })
}

/// The rows of the last axis; of no axes, one of one element.
fn rows_of<T: Number>(a: View<'_, T>, start: u64) -> Rows {
    let (rows, n) = match a.shape() {
        [outer @ .., n] => (outer.iter().product::<usize>(), *n),
        [] => (1, 1),
    };
    Rows { start, rows: rows as u64, n: n as u64 }
}

/// Queues [`softmax_into`] on memory that others own, from rows to as many that start at `result`: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where an address is not aligned to an element, where the two overlap and are not the same, and where there
/// are more bytes than can be addressed; and what the driver failed with.
///
/// # Safety
///
/// - The rows, and as many from `result` on, lie within memory that `device` can access, and live until the operation has run.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes what it reads or touches what it writes, unless it is ordered before
///   or after it on `stream` or by events.
pub unsafe fn softmax_raw(device: &Device, number: DType, rows: Rows, result: u64, stream: StreamHandle) -> Result<()> {
    let width = number.width() as u64;
    check_aligned(&[("first row", rows.start, width), ("result", result, width)])?;
    let bytes = rows.bytes(number)?;
    let apart = rows.start.abs_diff(result);
    if apart > 0 && apart < bytes {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "the rows at {:#x} overlap the result at {result:#x}, of {bytes} each; pass the same address or memory \
                 apart",
                rows.start,
                bytes = counted(bytes, "byte")
            ),
        ));
    }
    // Where the sides have no quads in common, elements go one by one, and threads do not hold them.
    let aligned = apart.is_multiple_of(QUAD);
    // SAFETY: as the caller promises; every thread reads what it writes before it does.
    unsafe { launch(device, SOFTMAX.get(Key::dtype(number)), number, rows, [result, 0], aligned, stream) }
}

/// Queues [`mean_variance_into`] on memory that others own, to a mean and a variance a row from two addresses on: see
/// [`ops`](super).
///
/// # Errors
///
/// As [`softmax_raw`], of no result that overlaps; `InvalidArgument` also where rows have no elements.
///
/// # Safety
///
/// As [`softmax_raw`]; the results overlap nothing else.
pub unsafe fn mean_variance_raw(
    device: &Device,
    number: DType,
    rows: Rows,
    results: [u64; 2],
    stream: StreamHandle,
) -> Result<()> {
    let width = sum_type(number).width() as u64;
    let [means, variances] = results;
    check_aligned(&[
        ("first row", rows.start, number.width() as u64),
        ("mean", means, width),
        ("variance", variances, width),
    ])?;
    rows.bytes(number)?;
    if rows.n == 0 && rows.rows > 0 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "there is no mean of rows of no elements; give rows of at least one",
        ));
    }
    // SAFETY: as the caller promises.
    unsafe { launch(device, MEAN_VARIANCE.get(Key::dtype(number)), number, rows, results, true, stream) }
}

/// # Safety
///
/// As the raw entry point of the entry.
unsafe fn launch(
    device: &Device,
    entry: EntryId,
    number: DType,
    rows: Rows,
    [dst, variances]: [u64; 2],
    aligned: bool,
    stream: StreamHandle,
) -> Result<()> {
    let Rows { start: src, rows, n } = rows;
    if rows == 0 || n == 0 {
        return Ok(());
    }
    let (group, held) = group(n, number.width() as u64, aligned);
    let block = group.max(BLOCK);
    let params = RowwiseParams { src, dst, variances, rows, n, group, held: u64::from(held) };
    let blocks = u32::try_from(rows.div_ceil(block / group)).unwrap_or(u32::MAX);
    let shape = LaunchShape { grid: [blocks, 1, 1], block: [block as u32, 1, 1], dynamic_shared: 0 };
    // SAFETY: the entry takes these parameters; blocks are of whole groups, which hold their rows where it says so; the rest as
    // the caller promises.
    unsafe { device.launch(entry, &shape, &params, stream) }
}

/// Threads for rows of so many elements, and whether they hold them.
fn group(n: u64, width: u64, aligned: bool) -> (u64, bool) {
    let (lanes, held) = (QUAD / width, u64::from(held_quads(width as u32)));
    let quads = n / lanes;
    // As few threads as hold it; none takes more than one of the elements outside of quads, of which there may be all but one of a
    // quad on both sides.
    let group = quads.div_ceil(held).next_power_of_two().clamp(2 * lanes, u64::from(ROWWISE_THREADS));
    (group, aligned && quads <= group * held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_held_where_registers_have_room() {
        assert_eq!(group(16384, 4, true), (u64::from(ROWWISE_THREADS), true));
        assert_eq!(group(16388, 4, true), (u64::from(ROWWISE_THREADS), false));
        assert_eq!(group(16384, 2, true), (u64::from(ROWWISE_THREADS), true));
        assert_eq!(group(16384, 4, false), (u64::from(ROWWISE_THREADS), false));
        assert_eq!(group(2048, 4, true), (64, true));
        assert_eq!(group(3, 8, true), (4, true));
        assert_eq!(group(3, 2, true), (16, true));
    }

    #[test]
    fn a_thread_has_no_two_elements_outside_of_quads() {
        for width in [2, 4, 8] {
            for n in 1..200 {
                let (group, held) = group(n, width, true);
                assert!(held && group >= n.min(2 * (QUAD / width - 1)), "{n} of {width} bytes: {group}");
            }
        }
    }
}
