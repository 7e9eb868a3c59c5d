//! Rows taken from an array, or put into one, by their indices.

use crate::abi::{Divisor, Family, GATHER, INDEXED_BLOCK, INDEXED_PER_THREAD, IndexedRowsParams, Key, SCATTER};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::ops::numbering::grid;
use crate::ops::operand::queue_among;
use crate::ops::operand::{check_contiguous_addresses, start};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Which side indices are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The source's.
    Gather,
    /// The destination's.
    Scatter,
}

impl Way {
    fn family(self) -> Family {
        match self {
            Self::Gather => GATHER,
            Self::Scatter => SCATTER,
        }
    }
}

/// Queues `dst[k] = src[indices[k]]` on `stream`, whole rows, along the first axis. Indices are `u32` or `i64`.
///
/// An index that is none of the source's rows leaves its row of the destination as it is.
///
/// # Errors
///
/// `Layout` where rows differ in shape, there are not as many indices as rows of the destination, or an operand does not lie in C
/// order without gaps; `InvalidArgument` where indices are of another type, or the operands are not of one device; and what the
/// driver failed with.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let (rows, indices) = (device.upload(&[0_u16, 1, 10, 11, 20, 21])?, device.upload(&[2_u32, 0])?);
/// let mut taken = device.zeros::<u16>(4)?;
/// let stream = device.default_stream();
/// warpstride::ops::gather_rows(rows.view(&[3, 2])?, indices.view(&[2])?, taken.view_mut(&[2, 2])?, stream)?;
/// assert_eq!(taken.download()?, [20, 21, 0, 1]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn gather_rows<T: Element, I: Element>(
    src: View<'_, T>,
    indices: View<'_, I>,
    dst: ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    queue(Way::Gather, src, indices, &dst, stream)
}

/// Queues `dst[indices[k]] = src[k]` on `stream`, whole rows, along the first axis. Indices are `u32` or `i64`.
///
/// No index is there twice; a row that two name becomes a mixture of both, which may differ from run to run. A row whose index is
/// none of the destination's is left out.
///
/// # Errors
///
/// As [`gather_rows`], with as many indices as rows of the source.
pub fn scatter_rows<T: Element, I: Element>(
    src: View<'_, T>,
    indices: View<'_, I>,
    dst: ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    queue(Way::Scatter, src, indices, &dst, stream)
}

fn queue<T: Element, I: Element>(
    way: Way,
    src: View<'_, T>,
    indices: View<'_, I>,
    dst: &ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    let shapes = [src.layout().shape(), indices.layout().shape(), dst.layout().shape()];
    let (straight, indexed) = if way == Way::Gather { (shapes[2], shapes[0]) } else { (shapes[0], shapes[2]) };
    let (&[count], [many, row @ ..], [rows, same @ ..]) = (shapes[1], straight, indexed) else {
        return Err(unlike(shapes));
    };
    if count != *many || row != same {
        return Err(unlike(shapes));
    }
    let starts = [start::<T>(src.layout())?, start::<I>(indices.layout())?, start::<T>(dst.layout())?];
    let memories = [src.memory(), indices.memory(), dst.memory()];
    queue_among(memories, stream, || {
        let [src, indices, to] = [0, 1, 2].map(|at| memories[at].address() + starts[at]);
        let row_bytes = (row.iter().product::<usize>() as u64).saturating_mul(size_of::<T>() as u64);
        let rows =
            IndexedRows { src, dst: to, rows: *rows as u64, row_bytes, indices, index: I::DTYPE, count: count as u64 };
        // SAFETY: views of as many contiguous elements, which lie within buffers that live until their drops; what is written is
        // borrowed exclusively; other work is ordered by `queue_among`, which also holds all to one device.
        unsafe { launch(way, dst.device(), &rows, stream.handle()) }
    })
}

fn unlike([src, indices, dst]: [&[usize]; 3]) -> Error {
    Error::new(
        ErrorKind::Layout,
        format!(
            "rows of shape {src:?} do not become {dst:?} by indices of shape {indices:?}; give one axis of indices, as many as rows \
             that they are for, and rows of one shape"
        ),
    )
}

/// Rows of bytes, and where they go or come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedRows {
    /// Device address of the first row to read.
    pub src: u64,
    /// Device address of the first row to write.
    pub dst: u64,
    /// Rows of the side that indices are of.
    pub rows: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Device address of the first index.
    pub indices: u64,
    /// The type of indices: `u32` or `i64`.
    pub index: DType,
    /// Indices, and rows of the other side.
    pub count: u64,
}

/// Queues [`gather_rows`] in memory that others own: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where indices are not `u32` or `i64` or not aligned to them, or the destination overlaps what is read; and what
/// the driver failed with.
///
/// # Safety
///
/// - From the addresses, `rows` rows of the source, `count` of the destination and as many indices lie within memory that `device`
///   can access, live until it has run.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes what is read or touches what is written, unless it is ordered before or
///   after it on `stream` or by events.
pub unsafe fn gather_rows_raw(device: &Device, rows: &IndexedRows, stream: StreamHandle) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { launch(Way::Gather, device, rows, stream) }
}

/// Queues [`scatter_rows`] in memory that others own: see [`ops`](super).
///
/// # Errors
///
/// As [`gather_rows_raw`].
///
/// # Safety
///
/// As [`gather_rows_raw`], with `count` rows of the source and `rows` of the destination.
pub unsafe fn scatter_rows_raw(device: &Device, rows: &IndexedRows, stream: StreamHandle) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { launch(Way::Scatter, device, rows, stream) }
}

/// # Safety
///
/// As [`gather_rows_raw`] or [`scatter_rows_raw`].
unsafe fn launch(way: Way, device: &Device, indexed: &IndexedRows, stream: StreamHandle) -> Result<()> {
    let &IndexedRows { src, dst, rows, row_bytes, indices, index, count } = indexed;
    if !matches!(index, DType::U32 | DType::I64) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("rows are found by indices of u32 or i64, not {index}; cast them (cast)"),
        ));
    }
    let [straight, there] = [count, rows].map(|rows| u128::from(rows) * u128::from(row_bytes));
    let (from, to) = if way == Way::Gather { (there, straight) } else { (straight, there) };
    check_contiguous_addresses([(src, 1), (dst, 1)], [from, to])?;
    let width = index.width() as u64;
    check_contiguous_addresses([(indices, width), (dst, 1)], [u128::from(count) * u128::from(width), to])?;
    // The widest words that rows start on and hold.
    let access = 16.min(1 << (src | dst | row_bytes | 16).trailing_zeros());
    let words = row_bytes / access;
    let (Some(len), Some(entry)) = (words.checked_mul(count), way.family().find(Key::width(access as usize))) else {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "nothing can address {count} of {row_bytes}; give fewer",
                count = counted(count, "row"),
                row_bytes = counted(row_bytes, "byte")
            ),
        ));
    };
    if len == 0 {
        return Ok(());
    }
    let long = u64::from(index == DType::I64);
    let params = IndexedRowsParams { src, dst, indices, long, rows, words: Divisor::wide(words), len };
    let blocks = len.div_ceil(u64::from(INDEXED_BLOCK) * u64::from(INDEXED_PER_THREAD));
    let shape = LaunchShape { grid: grid(blocks), block: [INDEXED_BLOCK, 1, 1], dynamic_shared: 0 };
    // SAFETY: the entry takes these parameters; the shape has a lane for every word; the rest as the caller promises.
    unsafe { device.launch(entry, &shape, &params, stream) }
}
