//! One axis of contiguous arrays to one value: sums, least and greatest elements, and where the greatest lie.
//!
//! An array is `[outer, n, inner]` to a reduction along its middle axis. The last axis (`inner` is 1) is read along rows, any other
//! down columns. Where results are few, an axis is split in parts, and a second launch joins what those come to. As of
//! [`reduce`](crate::ops::reduce), a result is the same on every run and every device.

use std::fmt;

use crate::abi::{
    ARGMAX_COLUMNS, ARGMAX_ROWS, DType, Divisor, EntryId, Key, MAX_COLUMNS, MAX_ROWS, MIN_COLUMNS, MIN_ROWS,
    REDUCE_BLOCKS, REDUCE_COLUMNS_BLOCK, ReduceColumnsParams, ReduceRowsParams, SUM_COLUMNS, SUM_ROWS,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{Element, Number};
use crate::error::{Error, ErrorKind, Result};
use crate::launch_shape::LaunchShape;
use crate::memory::DeviceBuffer;
use crate::ops::arithmetic::sum_type;
use crate::ops::operand::start;
use crate::ops::operand::{check_aligned, queue_among};
use crate::ops::reduce::{Reduction, Scratch};
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// Bytes of a quad.
const QUAD: u64 = 16;
/// Threads in a block along rows, which one long row has, or several short ones share: the best of 128 to 1024 on an H100.
const ROWS_BLOCK: u64 = 256;
/// Quads that a thread of a row takes at least, before a row has more threads.
const ROW_STEPS: u64 = 4;
/// Rows that a thread takes down columns at least, before a column has threads to share with: as many as it loads at once.
const COLUMN_STEPS: u64 = 4;
/// Quads along the inner axis that neighbouring threads read, where there are as many: the best of 8 to 256 on an H100.
const COLUMN_QUADS: u64 = 16;
/// The same of bytes, where columns are elements.
const COLUMN_BYTES: u64 = 512;
/// Blocks that an axis is split for: as many as [`reduce`](crate::ops::reduce) has at most.
const BLOCKS: u64 = REDUCE_BLOCKS as u64;
/// The same where columns are quads: two blocks a multiprocessor of an H100 keep its memory busy, and a second launch, or more of
/// what it has to join, takes longer than they gain (3011 GB/s in one launch, 2965 in 16 parts).
const QUAD_BLOCKS: u64 = 256;
/// Blocks that are at work at once there. The last of a few more would be alone, so from there on an axis is split as any other.
const QUAD_BLOCKS_AT_ONCE: u64 = 768;
/// Most elements of a column that a thread adds one after the other, as it rounds every time.
const LONGEST_COLUMN: u64 = 1024;
/// Bytes that a part of a column or a row is worth a block for.
const PART_BYTES: u64 = 64 << 10;

/// What becomes of the elements along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AxisReduction {
    /// Their sum: of halves in single precision.
    Sum,
    /// The least; NaN where there is one.
    Min,
    /// The greatest; NaN where there is one.
    Max,
    /// Where the greatest lies, the first of several, as `u64`. NaN is greater than any number, as NumPy has it.
    ArgMax,
}

impl AxisReduction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::ArgMax];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => Reduction::Sum.name(),
            Self::Min => Reduction::Min.name(),
            Self::Max => Reduction::Max.name(),
            Self::ArgMax => "argmax",
        }
    }

    /// Bytes of a result.
    pub fn result_width(self, number: DType) -> u64 {
        match self {
            Self::Sum => sum_type(number).width() as u64,
            Self::Min | Self::Max => number.width() as u64,
            Self::ArgMax => 8,
        }
    }

    /// Bytes that a part leaves: of places, with the elements that lie there.
    fn partial_width(self, number: DType) -> u64 {
        self.result_width(number) + if self == Self::ArgMax { number.width() as u64 } else { 0 }
    }

    /// The type of what parts leave, which a second launch joins.
    fn partial_type(self, number: DType) -> DType {
        if self == Self::Sum { sum_type(number) } else { number }
    }

    fn rows(self, number: DType) -> EntryId {
        let family = match self {
            Self::Sum => SUM_ROWS,
            Self::Min => MIN_ROWS,
            Self::Max => MAX_ROWS,
            Self::ArgMax => ARGMAX_ROWS,
        };
        family.get(Key::dtype(number))
    }

    fn columns(self, number: DType) -> EntryId {
        let family = match self {
            Self::Sum => SUM_COLUMNS,
            Self::Min => MIN_COLUMNS,
            Self::Max => MAX_COLUMNS,
            Self::ArgMax => ARGMAX_COLUMNS,
        };
        family.get(Key::dtype(number))
    }
}

impl fmt::Display for AxisReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a reduction along an axis is launched. Extents and alignment alone decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisPlan {
    reduction: AxisReduction,
    number: DType,
    extents: [u64; 3],
    /// Elements of a part, and how many parts an axis has; each but one leaves its results to a second launch.
    part: u64,
    parts: u64,
    threads: Threads,
}

/// Who reads what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threads {
    /// So many threads a row.
    Rows { group: u64 },
    /// So many columns a block, each of a quad or of an element.
    Columns { across: u64, quads: bool },
}

impl AxisPlan {
    /// For an array of `[outer, n, inner]` numbers from `address` on, of which only the place in 16 bytes matters.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the array has more bytes than can be addressed, or would have with one element along axes of none.
    pub fn new(reduction: AxisReduction, number: DType, extents: [u64; 3], address: u64) -> Result<Self> {
        let bytes = extents.iter().map(|&extent| extent.max(1)).try_fold(number.width() as u64, u64::checked_mul);
        if bytes.is_none_or(|bytes| bytes > isize::MAX as u64) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "an array of {extents:?} {number:?} has more bytes than can be addressed; pass smaller extents"
                ),
            ));
        }
        let [outer, n, inner] = extents;
        let width = number.width() as u64;
        let threads = if inner == 1 { rows(n * width) } else { columns(extents, width, address) };
        // Whole quads of the axis or of columns, so that parts begin as their array does.
        let (blocks, grain) = match threads {
            Threads::Rows { group } => (outer.div_ceil(ROWS_BLOCK / group), QUAD / width),
            Threads::Columns { across, .. } => (column_count(extents, width, threads).div_ceil(across), 1),
        };
        let results = outer * inner;
        let read_by_block = (n * results * width) / blocks.max(1);
        let room = Scratch::BYTES as u64 / results.saturating_mul(reduction.partial_width(number)).max(1);
        let wanted = match threads {
            Threads::Rows { .. } => BLOCKS / blocks.max(1),
            Threads::Columns { across, quads } => {
                let blocks = blocks.max(1);
                let few = quads && blocks <= QUAD_BLOCKS_AT_ONCE;
                let enough = if few { QUAD_BLOCKS.div_ceil(blocks) } else { BLOCKS / blocks };
                let down = u64::from(REDUCE_COLUMNS_BLOCK) / across;
                enough.max(n.div_ceil(LONGEST_COLUMN * down.max(1)).min(BLOCKS))
            }
        };
        let wanted = wanted.min(read_by_block / PART_BYTES).min(room).max(1);
        let part = n.div_ceil(wanted).next_multiple_of(grain).max(1);
        Ok(Self { reduction, number, extents, part, parts: n.div_ceil(part).max(1), threads })
    }

    /// The name of its kernel, or of the first of two.
    pub fn entry_name(&self) -> &'static str {
        self.entry().name()
    }

    /// Parts that each axis is split in; from 2 on, a second launch joins them.
    pub fn parts(&self) -> u64 {
        self.parts
    }

    fn entry(&self) -> EntryId {
        match self.threads {
            Threads::Rows { .. } => self.reduction.rows(self.number),
            Threads::Columns { .. } => self.reduction.columns(self.number),
        }
    }

    /// Queues it: `a` (with places of its own where those are not 0) to `result`, and of places the elements to `values`, where
    /// that is not 0.
    ///
    /// # Safety
    ///
    /// As [`reduce_axis_raw`], with room for the results of every part.
    unsafe fn launch(&self, device: &Device, sides: Sides, stream: StreamHandle) -> Result<()> {
        let [outer, n, inner] = self.extents;
        let Sides { a, places, result, values } = sides;
        let part = self.part;
        let shape = |blocks: u64, block: u64| LaunchShape {
            grid: [u32::try_from(blocks).unwrap_or(u32::MAX), self.parts as u32, 1],
            block: [block as u32, 1, 1],
            dynamic_shared: 0,
        };
        match self.threads {
            Threads::Rows { group } => {
                let shape = shape(outer.div_ceil(ROWS_BLOCK / group), ROWS_BLOCK);
                let params = ReduceRowsParams { a, result, values, rows: outer, n, part, group };
                // SAFETY: the entry takes these parameters; blocks are of whole groups; the rest as the caller promises.
                unsafe { device.launch(self.entry(), &shape, &params, stream) }
            }
            Threads::Columns { across, quads } => {
                let columns = column_count(self.extents, self.number.width() as u64, self.threads);
                let params = ReduceColumnsParams {
                    a,
                    places,
                    result,
                    values,
                    columns,
                    lanes: Divisor::wide(columns / outer),
                    n,
                    part,
                    across: Divisor::narrow(across),
                    quads: u64::from(quads),
                };
                debug_assert_eq!(columns % outer, 0, "{inner} elements are whole columns");
                let shape = shape(columns.div_ceil(across), u64::from(REDUCE_COLUMNS_BLOCK));
                // SAFETY: the entry takes these parameters, and quads are columns only where they are aligned; the rest as the
                // caller promises.
                unsafe { device.launch(self.entry(), &shape, &params, stream) }
            }
        }
    }
}

/// Threads for a row of so many bytes: a power of two.
fn rows(bytes: u64) -> Threads {
    let group = (bytes / QUAD / ROW_STEPS).max(1).next_power_of_two().min(ROWS_BLOCK);
    Threads::Rows { group }
}

/// Threads for columns: as many neighbours as read well; the others of the block down them, where there is work for them.
fn columns(extents: [u64; 3], width: u64, address: u64) -> Threads {
    let [_, n, inner] = extents;
    let quads = (inner * width).is_multiple_of(QUAD) && address.is_multiple_of(QUAD);
    let bytes = if quads { QUAD } else { width };
    let lanes = inner * width / bytes;
    let block = u64::from(REDUCE_COLUMNS_BLOCK);
    let neighbours = lanes.min(if quads { COLUMN_QUADS } else { COLUMN_BYTES / bytes }).min(block).max(1);
    let down = n.div_ceil(COLUMN_STEPS).clamp(1, block / neighbours);
    Threads::Columns { across: block / down / neighbours * neighbours, quads }
}

/// Columns of the whole array.
fn column_count([outer, _, inner]: [u64; 3], width: u64, threads: Threads) -> u64 {
    let lanes = if matches!(threads, Threads::Columns { quads: true, .. }) { QUAD / width } else { 1 };
    outer * inner / lanes
}

/// The addresses of a launch.
#[derive(Clone, Copy)]
struct Sides {
    a: u64,
    places: u64,
    result: u64,
    values: u64,
}

/// Where an array lies that is reduced along an axis, and its results: device addresses, multiples of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisReduced {
    /// The elements of `[outer, n, inner]`, in C order.
    pub a: u64,
    /// Extents of the axes before the reduced one, of it, and of those behind it, multiplied.
    pub extents: [u64; 3],
    /// `outer * inner` results: of sums of halves `f32`, of places `u64`, else of the type of the elements.
    pub result: u64,
    /// [`Scratch::BYTES`] bytes, aligned to 16.
    pub scratch: u64,
}

/// Queues a reduction along an axis of memory that others own, by addresses: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where an address is not aligned, where there is no least or greatest of no elements, and where the array has
/// more bytes than can be addressed; and what the driver failed with.
///
/// # Safety
///
/// - The elements, the results and the scratch lie within memory that `device` can access, live until the reduction has run; the
///   results and the scratch overlap nothing else.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes the elements or touches the results or the scratch, unless it is
///   ordered before or after it on `stream` or by events.
pub unsafe fn reduce_axis_raw(
    device: &Device,
    reduction: AxisReduction,
    number: DType,
    operands: &AxisReduced,
    stream: StreamHandle,
) -> Result<()> {
    let AxisReduced { a, extents: [outer, n, inner], result, scratch } = *operands;
    let outcome = reduction.result_width(number);
    check_aligned(&[("array", a, number.width() as u64), ("result", result, outcome), ("scratch", scratch, QUAD)])?;
    let plan = AxisPlan::new(reduction, number, operands.extents, a)?;
    let results = outer * inner;
    if results == 0 {
        return Ok(());
    }
    if n == 0 && reduction != AxisReduction::Sum {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("there is no {reduction} of no elements, and the axis has none; give at least one"),
        ));
    }
    if plan.parts == 1 {
        // SAFETY: as the caller promises.
        return unsafe { plan.launch(device, Sides { a, places: 0, result, values: 0 }, stream) };
    }
    // Of places, those first, and the elements that lie there behind them.
    let partials = plan.parts * results;
    let behind = if reduction == AxisReduction::ArgMax { scratch + 8 * partials } else { 0 };
    // SAFETY: as the caller promises; the plan has no more parts than the scratch has room for.
    unsafe { plan.launch(device, Sides { a, places: 0, result: scratch, values: behind }, stream) }?;
    let (from, places) = if behind == 0 { (scratch, 0) } else { (behind, scratch) };
    let last = AxisPlan {
        part: plan.parts,
        parts: 1,
        // Elements, because the parts of several results need not be whole quads.
        threads: columns([1, plan.parts, results], reduction.partial_type(number).width() as u64, 1),
        extents: [1, plan.parts, results],
        number: reduction.partial_type(number),
        ..plan
    };
    // SAFETY: the results of the parts, which the first launch leaves and the stream orders, to those of the caller.
    unsafe { last.launch(device, Sides { a: from, places, result, values: 0 }, stream) }
}

/// The sums along an axis; 0 of none. Halves are summed in `f32`. The result has the shape of `a` without the axis, in C order.
///
/// Queued on the default stream, as for the other convenient forms here.
///
/// # Errors
///
/// `Layout` where there is no such axis or the elements do not lie in C order without gaps, `OutOfMemory`, and what the driver
/// failed with.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
/// use warpstride::ops;
///
/// let device = Device::open(Backend::Soft)?;
/// let buffer = device.upload(&[1.0_f32, 5.0, 2.0, 4.0, 0.0, 9.0])?;
/// let matrix = buffer.view(&[2, 3])?;
/// assert_eq!(ops::sum_axis(matrix, 1)?.download()?, [8.0, 13.0]);
/// assert_eq!(ops::max_axis(matrix, 0)?.download()?, [4.0, 5.0, 9.0]);
/// assert_eq!(ops::argmax_axis(matrix, 1)?.download()?, [1, 2]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn sum_axis<T: Number>(a: View<'_, T>, axis: usize) -> Result<DeviceBuffer<T::Sum>> {
    buffer(a, axis, sum_axis_into)
}

/// The least elements along an axis; NaN where there is one: see [`sum_axis`].
///
/// # Errors
///
/// As [`sum_axis`]; `InvalidArgument` where the axis has no elements and there are results.
pub fn min_axis<T: Number>(a: View<'_, T>, axis: usize) -> Result<DeviceBuffer<T>> {
    buffer(a, axis, min_axis_into)
}

/// The greatest elements along an axis; NaN where there is one: see [`sum_axis`].
///
/// # Errors
///
/// As [`min_axis`].
pub fn max_axis<T: Number>(a: View<'_, T>, axis: usize) -> Result<DeviceBuffer<T>> {
    buffer(a, axis, max_axis_into)
}

/// Where the greatest elements lie along an axis, the first of several; NaN is greater than any number: see [`sum_axis`].
///
/// # Errors
///
/// As [`min_axis`].
pub fn argmax_axis<T: Number>(a: View<'_, T>, axis: usize) -> Result<DeviceBuffer<u64>> {
    buffer(a, axis, argmax_axis_into)
}

/// The number, in C order, of the greatest element of all, the first of several; NaN is greater than any number. Waits for it.
///
/// # Errors
///
/// As [`min_axis`].
pub fn argmax<T: Number>(a: View<'_, T>) -> Result<u64> {
    let device = a.device();
    let mut result = device.alloc::<u64>(1)?;
    argmax_into(a, result.view_mut(&[1])?, &mut Scratch::new(device)?, device.default_stream())?;
    Ok(result.download()?[0])
}

/// What `reduce` makes of an array, in a buffer of its own.
fn buffer<T: Number, R: Element>(
    a: View<'_, T>,
    axis: usize,
    reduce: impl FnOnce(View<'_, T>, usize, ViewMut<'_, R>, &mut Scratch, &Stream) -> Result<()>,
) -> Result<DeviceBuffer<R>> {
    let shape = without(a.shape(), axis)?;
    let device = a.device();
    let mut result = device.alloc::<R>(shape.iter().product())?;
    reduce(a, axis, result.view_mut(&shape)?, &mut Scratch::new(device)?, device.default_stream())?;
    Ok(result)
}

/// A shape without one of its axes.
fn without(shape: &[usize], axis: usize) -> Result<Vec<usize>> {
    if axis < shape.len() {
        return Ok([&shape[..axis], &shape[axis + 1..]].concat());
    }
    let instead = match shape.len().checked_sub(1) {
        Some(last) => format!("axes are numbered from 0 to {last}"),
        None => "its one element is what it comes to".into(),
    };
    Err(Error::new(ErrorKind::Layout, format!("shape {shape:?} has no axis {axis}; {instead}")))
}

/// Queues the sums of `a` along an axis on `stream`, into a `result` of the shape of `a` without the axis. Allocates nothing and
/// waits for nothing.
///
/// # Errors
///
/// As [`sum_axis`]; `Layout` also where `result` has another shape or gaps, `InvalidArgument` where all are not of one device.
pub fn sum_axis_into<T: Number>(
    a: View<'_, T>,
    axis: usize,
    result: ViewMut<'_, T::Sum>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(AxisReduction::Sum, a, axis, &result, scratch, stream)
}

/// Queues the least elements of `a` along an axis on `stream`: see [`sum_axis_into`].
///
/// # Errors
///
/// As [`sum_axis_into`] and [`min_axis`].
pub fn min_axis_into<T: Number>(
    a: View<'_, T>,
    axis: usize,
    result: ViewMut<'_, T>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(AxisReduction::Min, a, axis, &result, scratch, stream)
}

/// Queues the greatest elements of `a` along an axis on `stream`: see [`sum_axis_into`].
///
/// # Errors
///
/// As [`sum_axis_into`] and [`min_axis`].
pub fn max_axis_into<T: Number>(
    a: View<'_, T>,
    axis: usize,
    result: ViewMut<'_, T>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(AxisReduction::Max, a, axis, &result, scratch, stream)
}

/// Queues where the greatest elements of `a` lie along an axis on `stream`: see [`sum_axis_into`] and [`argmax_axis`].
///
/// # Errors
///
/// As [`sum_axis_into`] and [`min_axis`].
pub fn argmax_axis_into<T: Number>(
    a: View<'_, T>,
    axis: usize,
    result: ViewMut<'_, u64>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    queue(AxisReduction::ArgMax, a, axis, &result, scratch, stream)
}

/// Queues the number of the greatest element of all on `stream`, into the one element of `result`: see [`argmax`].
///
/// # Errors
///
/// As [`sum_axis_into`] and [`min_axis`].
pub fn argmax_into<T: Number>(
    a: View<'_, T>,
    result: ViewMut<'_, u64>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    if result.len() != 1 {
        return Err(Error::new(
            ErrorKind::Layout,
            format!(
                "the place of the greatest element is one number, and its view has shape {:?}; give one of one element",
                result.shape()
            ),
        ));
    }
    queue_extents(AxisReduction::ArgMax, a, [1, a.len() as u64, 1], &result, scratch, stream)
}

fn queue<T: Number, R: Element>(
    reduction: AxisReduction,
    a: View<'_, T>,
    axis: usize,
    result: &ViewMut<'_, R>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    let shape = without(a.shape(), axis)?;
    let product = |extents: &[usize]| extents.iter().product::<usize>() as u64;
    let extents = [product(&a.shape()[..axis]), a.shape()[axis] as u64, product(&a.shape()[axis + 1..])];
    if result.shape() != shape {
        return Err(Error::new(
            ErrorKind::Layout,
            format!("the {reduction} has shape {shape:?}, and its view {:?}; give a view of {shape:?}", result.shape()),
        ));
    }
    queue_extents(reduction, a, extents, result, scratch, stream)
}

fn queue_extents<T: Number, R: Element>(
    reduction: AxisReduction,
    a: View<'_, T>,
    extents: [u64; 3],
    result: &ViewMut<'_, R>,
    scratch: &mut Scratch,
    stream: &Stream,
) -> Result<()> {
    let starts = [start::<T>(a.layout())?, start::<R>(result.layout())?];
    let memories = [a.memory(), result.memory(), scratch.memory()];
    queue_among(memories, stream, || {
        let [a_at, result, scratch] = memories.map(|memory| memory.address());
        let operands = AxisReduced { a: a_at + starts[0], extents, result: result + starts[1], scratch };
        // SAFETY: views of as many contiguous elements and of as many results, which lie within buffers that live until their
        // drops; what is written is borrowed exclusively; other work is ordered by `queue_among`, which also holds all to one
        // device.
        unsafe { reduce_axis_raw(a.device(), reduction, T::DTYPE, &operands, stream.handle()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(reduction: AxisReduction, extents: [u64; 3]) -> AxisPlan {
        AxisPlan::new(reduction, DType::F32, extents, 0).unwrap()
    }

    #[test]
    fn what_cannot_be_addressed_is_refused_and_what_can_is_planned() {
        let plan = |extents| AxisPlan::new(AxisReduction::ArgMax, DType::F16, extents, 0);
        for extents in [[1 << 40, 1 << 40, 1], [1 << 62, 1, 1], [0, 1 << 40, 1 << 40], [1, u64::MAX, 1]] {
            assert_eq!(plan(extents).unwrap_err().kind(), ErrorKind::InvalidArgument, "{extents:?}");
        }
        for extents in [[1 << 61, 1, 1], [1, 1 << 61, 1], [1, 1, 1 << 61], [0, 0, 0], [5, 0, 3]] {
            assert!(plan(extents).unwrap().parts() > 0, "{extents:?}");
        }
    }

    #[test]
    fn few_results_are_split_and_many_are_not() {
        for extents in [[1, 1 << 30, 1], [3, 1 << 28, 1], [1, 1 << 20, 256], [1, 1 << 20, 1024], [1, 1 << 28, 3]] {
            for reduction in AxisReduction::ALL {
                let plan = plan(reduction, extents);
                assert!((64..=BLOCKS).contains(&plan.parts()), "{plan:?}");
                let left = plan.parts() * extents[0] * extents[2] * reduction.partial_width(DType::F32);
                assert!(left <= Scratch::BYTES as u64, "{plan:?} leaves {left} bytes");
                assert!(plan.part * plan.parts() >= extents[1] && plan.part * (plan.parts() - 1) < extents[1]);
            }
        }
        let many = [[16384, 16384, 1], [1 << 20, 100, 1], [1, 100, 1 << 20], [1, 5, 1], [100, 1000, 4096]];
        for extents in many.into_iter().chain([[1, 8192, 16384], [1, 8192, 49152], [3, 1 << 14, 8192]]) {
            assert_eq!(plan(AxisReduction::Sum, extents).parts(), 1, "{extents:?}");
        }
        // Many results of long columns, whose sums would lose too much.
        for extents in [[1, 1 << 16, 16384], [1, 1 << 18, 16384], [3, 1 << 16, 8192]] {
            assert!(plan(AxisReduction::Sum, extents).part <= 16 * LONGEST_COLUMN, "{extents:?}");
        }
    }

    #[test]
    fn rows_share_a_block_where_they_are_short() {
        let threads = |n| plan(AxisReduction::Sum, [1 << 20, n, 1]).threads;
        assert_eq!(threads(3), Threads::Rows { group: 1 });
        assert_eq!(threads(256), Threads::Rows { group: 16 });
        assert_eq!(threads(1 << 20), Threads::Rows { group: 256 });
    }

    #[test]
    fn columns_are_quads_where_all_are_aligned() {
        let threads =
            |inner, address| AxisPlan::new(AxisReduction::Max, DType::F16, [9, 500, inner], address).unwrap().threads;
        assert!(matches!(threads(64, 256), Threads::Columns { across: 8, quads: true }));
        assert!(matches!(threads(64, 258), Threads::Columns { across: 64, quads: false }));
        assert!(matches!(threads(60, 256), Threads::Columns { across: 60, quads: false }));
        assert!(matches!(threads(3, 256), Threads::Columns { across: 3, quads: false }));
    }
}
