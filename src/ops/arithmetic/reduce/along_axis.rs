//! Reduces along one axis, the middle one of `[outer, n, inner]`.
//!
//! The last axis (`inner` is 1) is read along rows, any other down columns. If results are few, the
//! axis is split in parts, and a second launch joins their results.

use super::pass::{Pass, Passes};
use super::{Reduction, Scratch};
use crate::abi::{Divisor, EntryId, REDUCE_BLOCKS, ReduceColumnsParams, ReduceRowsParams, reduce_columns_block};
use crate::element::DType;
use crate::error::{Error, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::ops::arithmetic::kernel;
use crate::ops::plan::Step;
use crate::ops::span::Phase;
use crate::ops::tuning::Arithmetic;
use crate::ops::units::wide::VECTOR;

/// Most blocks for which an axis is split: those of a reduction over all elements.
const BLOCKS: u64 = REDUCE_BLOCKS as u64;

/// A plan's cut of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    extents: [u64; 3],
    width: u64,
    /// Elements of a part.
    part: u64,
    /// Parts of the axis; from 2 on, a second launch joins them.
    parts: u64,
    threads: Threads,
}

/// How threads share the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threads {
    /// `group` threads a row, in blocks of `block`.
    Rows { group: u64, block: u64 },
    /// `across` columns a block, each of a vector or of an element.
    Columns { across: u64, vectors: bool },
}

impl Cut {
    /// Cuts an array of `[outer, n, inner]` elements with this start.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the array has more bytes than can be addressed, with empty axes counted
    /// as one element.
    pub(super) fn new(
        reduction: Reduction,
        dtype: DType,
        extents: [u64; 3],
        start: Phase,
        tuning: &Arithmetic,
    ) -> Result<Self> {
        let width = dtype.width() as u64;
        let bytes = extents.iter().map(|&extent| extent.max(1)).try_fold(width, u64::checked_mul);
        if bytes.is_none_or(|bytes| bytes > isize::MAX as u64) {
            return Err(Error::argument(format!(
                "an array of {extents:?} {dtype} has more bytes than can be addressed; pass smaller extents"
            )));
        }
        let [outer, n, inner] = extents;
        let finds_bytes = reduction == Reduction::ArgMax && width == 1;
        let row = if finds_bytes { tuning.rows_of_bytes } else { [tuning.row_steps, 1] };
        let threads = if inner == 1 { rows(n * width, row, tuning) } else { columns(extents, width, start, tuning) };
        // Parts are whole vectors of the axis or of columns, so they start aligned as their array
        // does.
        let grain = if matches!(threads, Threads::Rows { .. }) { VECTOR / width } else { 1 };
        let blocks = threads.blocks(extents, width).max(1);
        let results = outer * inner;
        let read_by_block = (n * results * width) / blocks;
        let room = Scratch::BYTES as u64 / results.saturating_mul(reduction.partial_width(dtype)).max(1);
        let wanted = threads.wanted(blocks, n, reduction, dtype, tuning);
        let wanted = wanted.min(read_by_block / tuning.part_bytes).min(room).max(1);
        let part = n.div_ceil(wanted).next_multiple_of(grain).max(1);
        Ok(Self { extents, width, part, parts: n.div_ceil(part).max(1), threads })
    }

    /// Returns the launches; there is at least one result.
    pub(super) fn passes(&self, reduction: Reduction, dtype: DType, tuning: &Arithmetic) -> Result<Passes> {
        let [outer, _, inner] = self.extents;
        let first = Some(self.pass(reduction, dtype)?);
        if self.parts == 1 {
            return Ok(Passes { first, second: None, indices: 0 });
        }
        let (results, partial) = (outer * inner, reduction.partial_type(dtype));
        let (extents, width) = ([1, self.parts, results], partial.width() as u64);
        // Threads read single elements, because the parts of several results need not be whole
        // vectors.
        let threads = columns(extents, width, Phase::of(1), tuning);
        let last = Self { extents, width, part: self.parts, parts: 1, threads };
        let indices = if reduction == Reduction::ArgMax { 8 * self.parts * results } else { 0 };
        Ok(Passes { first, second: Some(last.pass(reduction, partial)?), indices })
    }

    fn pass(&self, reduction: Reduction, dtype: DType) -> Result<Pass> {
        let Self { extents: [outer, n, inner], width, part, threads, .. } = *self;
        let blocks = threads.blocks(self.extents, width);
        let shape = |block: u64| LaunchShape {
            grid: [u32::try_from(blocks).unwrap_or(u32::MAX), self.parts as u32, 1],
            block: [block as u32, 1, 1],
            dynamic_shared: 0,
        };
        let entry = |family| -> Result<EntryId> { kernel(family, reduction, dtype) };
        Ok(match threads {
            Threads::Rows { group, block } => {
                let params = ReduceRowsParams { a: 0, result: 0, values: 0, rows: outer, n, part, group };
                Pass::Rows(Step { entry: entry(reduction.rows())?, shape: shape(block), params })
            }
            Threads::Columns { across, vectors } => {
                let columns = threads.columns(self.extents, width);
                debug_assert_eq!(columns % outer, 0, "{inner} elements are whole columns");
                let params = ReduceColumnsParams {
                    a: 0,
                    places: 0,
                    result: 0,
                    values: 0,
                    columns,
                    lanes: Divisor::wide(columns / outer),
                    n,
                    part,
                    across: Divisor::narrow(across),
                    quads: u64::from(vectors),
                };
                Pass::Columns(Step { entry: entry(reduction.columns())?, shape: shape(columns_block(width)), params })
            }
        })
    }

    /// Says why the array is cut so.
    pub(super) fn reason(&self) -> String {
        let threads = match self.threads {
            Threads::Rows { group, .. } => format!("each row has {}", counted(group, "thread")),
            Threads::Columns { vectors: true, .. } => "columns are read by vectors".into(),
            Threads::Columns { vectors: false, .. } => "columns are read element by element".into(),
        };
        match self.parts {
            1 => threads,
            parts => format!("{threads}; results are few, so the axis is split in {parts} parts"),
        }
    }
}

impl Threads {
    /// Returns the columns of the whole array, each a vector or an element.
    fn columns(self, [outer, _, inner]: [u64; 3], width: u64) -> u64 {
        let lanes = if matches!(self, Self::Columns { vectors: true, .. }) { VECTOR / width } else { 1 };
        outer * inner / lanes
    }

    /// Returns the blocks for the whole array if the axis is not split.
    fn blocks(self, extents: [u64; 3], width: u64) -> u64 {
        match self {
            Self::Rows { group, block } => extents[0].div_ceil(block / group),
            Self::Columns { across, .. } => self.columns(extents, width).div_ceil(across),
        }
    }

    /// Returns the parts of an axis of `n` elements that would keep the device busy, if there are
    /// `blocks` without parts.
    fn wanted(self, blocks: u64, n: u64, reduction: Reduction, dtype: DType, tuning: &Arithmetic) -> u64 {
        let Self::Columns { across, vectors } = self else { return BLOCKS / blocks };
        let [enough, at_once] = column_blocks(reduction, dtype, tuning);
        let few = vectors && blocks <= tuning.column_blocks.many;
        let enough = if few { enough.div_ceil(blocks).min(at_once / blocks) } else { BLOCKS / blocks };
        let down = columns_block(dtype.width() as u64) / across;
        enough.max(n.div_ceil(tuning.longest_column * down.max(1)).min(BLOCKS))
    }
}

/// Returns the blocks for which an axis is split where columns are vectors, and those that run at
/// once.
fn column_blocks(reduction: Reduction, dtype: DType, tuning: &Arithmetic) -> [u64; 2] {
    let blocks = tuning.column_blocks;
    let kind = match reduction {
        Reduction::Sum => 0,
        Reduction::Min | Reduction::Max => 1,
        Reduction::ArgMax => 2,
    };
    match (dtype.width(), dtype) {
        (1, _) => blocks.of_bytes[kind],
        (2, DType::I16 | DType::U16) => blocks.of_shorts[kind],
        (2, _) => blocks.of_halves[kind],
        _ => blocks.of_wide,
    }
}

/// Returns the threads for a row of this number of bytes, a power of two: each takes at least
/// `steps` vectors, and the row has at least `least` threads.
fn rows(bytes: u64, [steps, least]: [u64; 2], tuning: &Arithmetic) -> Threads {
    let block = tuning.rows_block;
    Threads::Rows { group: (bytes / VECTOR / steps).max(least).next_power_of_two().min(block), block }
}

/// Returns the threads of a block for columns of elements of `width` bytes.
fn columns_block(width: u64) -> u64 {
    u64::from(reduce_columns_block(width as u32))
}

/// Returns the threads for columns: neighbours that read whole sectors, and the other threads of
/// the block down the columns, if there is work for them.
fn columns([_, n, inner]: [u64; 3], width: u64, start: Phase, tuning: &Arithmetic) -> Threads {
    let vectors = (inner * width).is_multiple_of(VECTOR) && start.bytes().is_multiple_of(VECTOR);
    let bytes = if vectors { VECTOR } else { width };
    let lanes = inner * width / bytes;
    let block = columns_block(width);
    let most = if vectors { tuning.column_vectors } else { tuning.column_bytes / bytes };
    let neighbours = lanes.min(most).min(block).max(1);
    let down = n.div_ceil(tuning.column_steps).clamp(1, block / neighbours);
    Threads::Columns { across: block / down / neighbours * neighbours, vectors }
}

#[cfg(test)]
mod tests;
