//! Takes rows from an array, or puts rows into one, by their indices.

use crate::abi::{Divisor, Family, GATHER, INDEXED_BLOCK, INDEXED_PER_THREAD, IndexedRowsParams, Key, SCATTER};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::ops::Align;
use crate::ops::numbering::grid;
use crate::ops::operand::{Operand, bytes_from, check_aligned, check_written_apart, queue};
use crate::ops::plan::{AtMostOne, Step, placed, plan_of};
use crate::ops::units::wide::VECTOR;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// The side that the indices number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexed {
    /// The source: rows are taken from it.
    Gather,
    /// The destination: rows are put into it.
    Scatter,
}

impl Indexed {
    fn family(self) -> Family {
        match self {
            Self::Gather => GATHER,
            Self::Scatter => SCATTER,
        }
    }

    /// Returns the rows of the source and of the destination: one side has `rows`, the other
    /// `count`.
    fn sides(self, rows: u64, count: u64) -> [u64; 2] {
        if self == Self::Gather { [rows, count] } else { [count, rows] }
    }
}

/// Queues `dst[k] = src[indices[k]]` on `stream`, whole rows, along the first axis. Indices are
/// `u32` or `i64`.
///
/// If an index is not a row of the source, its row of the destination stays unchanged.
///
/// # Errors
///
/// `Layout` if rows differ in shape, the number of indices is not the number of rows of the
/// destination, or an operand does not lie in C order without gaps; `InvalidArgument` if indices
/// are of another type, or the operands are not on one device; else the driver's error.
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
pub fn gather_rows<'a, T: Element, I: Element>(
    src: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, I>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    let (src, indices, dst) = (src.into(), indices.into(), dst.into());
    queue_rows(Indexed::Gather, src, indices, dst, stream)
}

/// Queues `dst[indices[k]] = src[k]` on `stream`, whole rows, along the first axis. Indices are
/// `u32` or `i64`.
///
/// No index may occur twice: a row that two indices name becomes a mixture of both, which may
/// differ from run to run. A row whose index is not a row of the destination is skipped.
///
/// # Errors
///
/// As [`gather_rows`], with one index for each row of the source.
pub fn scatter_rows<'a, T: Element, I: Element>(
    src: impl Into<View<'a, T>>,
    indices: impl Into<View<'a, I>>,
    dst: impl Into<ViewMut<'a, T>>,
    stream: &Stream,
) -> Result<()> {
    let (src, indices, dst) = (src.into(), indices.into(), dst.into());
    queue_rows(Indexed::Scatter, src, indices, dst, stream)
}

fn queue_rows<T: Element, I: Element>(
    way: Indexed,
    src: View<'_, T>,
    indices: View<'_, I>,
    dst: ViewMut<'_, T>,
    stream: &Stream,
) -> Result<()> {
    let (shapes, align) = ([src.shape(), indices.shape(), dst.shape()], Align::ALLOCATION);
    let (&[count], [rows, row @ ..]) = (shapes[1], if way == Indexed::Gather { shapes[0] } else { shapes[2] }) else {
        return Err(unlike(shapes));
    };
    let row_bytes = bytes_of_row::<T>(row);
    let starts = [Operand::read("source", &src).first_byte()?, Operand::written("destination", &dst).first_byte()?];
    let align = starts.map(Align::of).into_iter().fold(align, Align::min);
    IndexedPlan::new(way, *rows as u64, count as u64, row_bytes, I::DTYPE, align)?.launch(src, indices, dst, stream)
}

fn bytes_of_row<T>(row: &[usize]) -> u64 {
    (row.iter().product::<usize>() as u64).saturating_mul(size_of::<T>() as u64)
}

fn unlike([src, indices, dst]: [&[usize]; 3]) -> Error {
    Error::layout(format!(
        "rows of shape {src:?} do not become {dst:?} by indices of shape {indices:?}; give one axis of indices, one for each row \
             that they number, and rows of one shape"
    ))
}

/// A plan that takes or puts rows by their indices: the kernel, the grid and the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedPlan {
    step: AtMostOne<IndexedRowsParams>,
    way: Indexed,
    rows: u64,
    count: u64,
    row_bytes: u64,
    index: DType,
    /// Alignment of the first row of both sides.
    align: Align,
}

placed! {
    IndexedRowsParams: |own, [src, indices, dst]: [u64; 3]| Self { src, indices, dst, ..own };
}

impl IndexedPlan {
    /// Plans `count` rows of `row_bytes` bytes that are taken from `rows` rows, or put into them,
    /// by indices of type `index`. The first row of either side is aligned to `align`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if indices are not `u32` or `i64`, or the bytes overflow.
    pub fn new(way: Indexed, rows: u64, count: u64, row_bytes: u64, index: DType, align: Align) -> Result<Self> {
        if !matches!(index, DType::U32 | DType::I64) {
            return Err(Error::argument(format!(
                "rows are found by indices of u32 or i64, not {index}; cast them (cast)"
            )));
        }
        // The widest words to which all rows are aligned in start and length.
        let access = 1 << (align.bytes() | row_bytes | VECTOR).trailing_zeros();
        let words = row_bytes / access;
        let (Some(len), Some(entry)) = (words.checked_mul(count), way.family().find(Key::width(access as usize)))
        else {
            return Err(Error::argument(format!(
                "nothing can address {count} of {row_bytes}; give fewer",
                count = counted(count, "row"),
                row_bytes = counted(row_bytes, "byte")
            )));
        };
        let step = (len > 0).then(|| {
            let long = u64::from(index == DType::I64);
            let params = IndexedRowsParams { src: 0, dst: 0, indices: 0, long, rows, words: Divisor::wide(words), len };
            let blocks = len.div_ceil(u64::from(INDEXED_BLOCK) * u64::from(INDEXED_PER_THREAD));
            let shape = LaunchShape { grid: grid(blocks), block: [INDEXED_BLOCK, 1, 1], dynamic_shared: 0 };
            Step { entry, shape, params }
        });
        Ok(Self { step: AtMostOne(step), way, rows, count, row_bytes, index, align })
    }

    /// Returns the bytes of the rows that move.
    fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.row_bytes)
    }

    /// Queues the rows on `stream`.
    ///
    /// # Errors
    ///
    /// `Layout` if the views are not the planned ones or have gaps; `InvalidArgument` if indices
    /// are of another type, rows do not have the planned alignment, or the operands are not on one
    /// device; else the driver's error.
    pub fn launch<'a, T: Element, I: Element>(
        &self,
        src: impl Into<View<'a, T>>,
        indices: impl Into<View<'a, I>>,
        dst: impl Into<ViewMut<'a, T>>,
        stream: &Stream,
    ) -> Result<()> {
        let (src, indices, dst) = (src.into(), indices.into(), dst.into());
        let shapes = [src.shape(), indices.shape(), dst.shape()];
        let sides = self.way.sides(self.rows, self.count);
        let (&[count], [of_src, src_row @ ..], [of_dst, dst_row @ ..]) = (shapes[1], shapes[0], shapes[2]) else {
            return Err(unlike(shapes));
        };
        let is_planned = [*of_src as u64, *of_dst as u64] == sides && count as u64 == self.count;
        if src_row != dst_row || !is_planned || bytes_of_row::<T>(src_row) != self.row_bytes {
            return Err(unlike(shapes));
        }
        let operands =
            [Operand::read("source", &src), Operand::read("indices", &indices), Operand::written("destination", &dst)];
        let starts = [operands[0].first_byte()?, operands[1].first_byte()?, operands[2].first_byte()?];
        if I::DTYPE != self.index {
            return Err(Error::argument(format!(
                "the plan is for indices of {}, and these are {}; make a plan for them",
                self.index,
                I::DTYPE
            )));
        }
        let align = self.align.bytes();
        check_aligned(&[("source", starts[0], align), ("destination", starts[2], align)])?;
        queue(operands, stream, &|device, [src, indices, dst], stream| {
            // SAFETY: the checks above found the planned numbers of rows, of bytes a row and of
            // indices in the views, all without gaps, and rows with the planned alignment. A view
            // lies within its buffer, which it borrows. The kernel skips indices beyond `rows`, so
            // it reaches these elements alone. `dst` is borrowed exclusively; `queue` requires one
            // device and orders other work.
            unsafe { self.step.launch(device, [src + starts[0], indices + starts[1], dst + starts[2]], stream) }
        })
    }

    /// Queues the rows between memory that others own, by the addresses of the first row of the
    /// source, the first index and the first row of the destination.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an address is not aligned as planned, or the destination overlaps what
    /// is read; else the driver's error.
    ///
    /// # Safety
    ///
    /// [The raw contract](crate::ops#the-raw-contract), for rows of the planned bytes without gaps:
    /// to gather, the planned `rows` rows of the source and `count` rows of the destination; to
    /// scatter, `count` rows of the source and `rows` rows of the destination; and for both `count`
    /// indices of the planned type.
    pub unsafe fn launch_raw(&self, device: &Device, operands: [u64; 3], stream: StreamHandle) -> Result<()> {
        let [src, indices, dst] = operands;
        let (align, width) = (self.align.bytes(), self.index.width());
        check_aligned(&[("source", src, align), ("indices", indices, width as u64), ("destination", dst, align)])?;
        let bytes = |rows: u64| u128::from(rows) * u128::from(self.row_bytes);
        let [from, to] = self.way.sides(self.rows, self.count).map(bytes);
        let of_indices = bytes_from(indices, u128::from(self.count) * width as u128);
        let read = [("source", bytes_from(src, from)), ("indices", of_indices)];
        check_written_apart(&read, &[("destination", bytes_from(dst, to))])?;
        // SAFETY: `new` gave the shape a lane for every word of `count` rows, and the kernel skips
        // indices beyond `rows`. `check_aligned` and `check_written_apart` saw that the addresses
        // are aligned and that the destination shares no byte with what is read; the caller
        // promises that the rows and the indices exist, and the order of other work.
        unsafe { self.step.launch(device, operands, stream) }
    }
}

plan_of!(
    IndexedPlan by step,
    |plan| format_args!("{} of {}", counted(plan.count, "row"), counted(plan.row_bytes, "byte")),
    "rows move in the widest words to which all of them are aligned".into(),
    [plan.bytes().saturating_add(plan.count.saturating_mul(plan.index.width() as u64)), plan.bytes()],
    "nothing to move"
);
