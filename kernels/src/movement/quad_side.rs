//! Numbers the vectors that hold the runs of a side, for `packed_quads`.

use super::packed_tiles::{Block, PAST};
use crate::abi::QuadSide;
use crate::index::quotient;
use crate::thread::grain::Grain;
use crate::thread::{B32x2, Global, Shared, Word};

/// Bytes of a vector.
pub const VECTOR: u32 = 16;

/// The start of a run: on a side, and its offset in the tile or [`PAST`].
#[derive(Clone, Copy)]
pub struct Run {
    pub at: Global,
    pub room: u32,
}

/// The part of a run that a vector holds.
#[derive(Clone, Copy)]
pub struct Part {
    /// The vector's address.
    pub at: Global,
    /// Bytes from the start of the run to the vector; negative if the vector starts before it.
    pub from: i32,
    /// The offset of the run in the tile.
    pub room: u32,
}

/// The vectors of a run that are taken.
#[derive(Clone, Copy)]
pub struct Taking {
    /// Bytes from the first place of such a vector to the start of the run.
    lead: u32,
    /// The number of places.
    count: u32,
}

impl Taking {
    /// Says whether a vector is taken.
    #[inline(always)]
    pub fn has(self, part: Part) -> bool {
        part.room != PAST && (part.from as u32).wrapping_add(self.lead) < self.count
    }
}

/// One side of the tile of a block.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub params: &'a QuadSide,
    pub start: Global,
    /// Bytes of this tile's runs.
    pub bytes: u32,
    /// Vectors of the side, with those of runs past the end of a chunked axis.
    pub vectors: u32,
}

impl<'a> Side<'a> {
    #[inline(always)]
    pub fn new<W: Word>(block: &Block<'_>, params: &'a QuadSide, start: Global) -> Self {
        let bytes = block.len(params.chunk, params.unit, params.len) * W::BYTES;
        Side { params, start, bytes, vectors: params.runs as u32 * params.quads.value as u32 }
    }

    /// Returns the start of a run.
    ///
    /// # Safety
    ///
    /// The side's table of runs has been written to `tables`.
    #[inline(always)]
    pub unsafe fn run<W: Word>(&self, tables: Shared, number: u32) -> Run {
        // SAFETY: an entry of the table.
        let entry = unsafe { B32x2::load_shared(tables.offset(self.params.table as u32 + number * 8)) };
        let at = self.start.offset((i64::from(entry.low() as i32) * i64::from(W::BYTES)) as u64);
        Run { at, room: entry.high() }
    }

    /// Returns the part of a run that its vector number `quad` holds, if it holds any.
    #[inline(always)]
    pub fn part(run: Run, quad: u32) -> Part {
        let from = (quad * VECTOR) as i32 - run.at.misalignment() as i32;
        Part { at: run.at.offset(i64::from(from) as u64), from, room: run.room }
    }

    /// Returns the part of a run that vector `number` of the side holds, if it holds any.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run), for numbers below `vectors`.
    #[inline(always)]
    pub unsafe fn part_of<W: Word>(&self, tables: Shared, number: u32) -> Part {
        let run = quotient(number, &self.params.quads);
        // SAFETY: as the caller promises.
        Self::part(unsafe { self.run::<W>(tables, run) }, number - run * self.params.quads.value as u32)
    }

    /// Returns the vectors to take: those of which a run has all bytes or, with `parts`, some.
    #[inline(always)]
    pub fn taking(&self, parts: bool) -> Taking {
        if parts {
            Taking { lead: VECTOR - 1, count: self.bytes + (VECTOR - 1) }
        } else {
            Taking { lead: 0, count: if self.bytes < VECTOR { 0 } else { self.bytes - (VECTOR - 1) } }
        }
    }

    /// Returns granule `number` of the vectors that runs hold in part, if a run has it or a part of
    /// it. Each run has two such vectors at most, its first and its last, of which it may have all
    /// or nothing. The granules of a vector have numbers that follow each other.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run), for numbers below [`ends`](Self::ends).
    #[inline(always)]
    pub unsafe fn end<W: Grain>(&self, tables: Shared, number: u32) -> Option<Part> {
        let (width, granules) = (W::Granule::BYTES, VECTOR / W::Granule::BYTES);
        let is_last = number & granules != 0;
        // SAFETY: as the caller promises.
        let run = unsafe { self.run::<W>(tables, number / (2 * granules)) };
        let last = (run.at.misalignment() + self.bytes - 1) / VECTOR;
        let part = Self::part(run, if is_last { last } else { 0 });
        let is_end = !self.taking(false).has(part) && (last != 0 || !is_last);
        let byte = (number & (granules - 1)) * width;
        let granule = Part { at: part.at.offset(u64::from(byte)), from: part.from + byte as i32, ..part };
        let has_some = granule.from > -(width as i32) && granule.from < self.bytes as i32;
        (is_end && part.room != PAST && has_some).then_some(granule)
    }

    /// Returns the number of granules of [`end`](Self::end).
    #[inline(always)]
    pub fn ends<W: Grain>(&self) -> u32 {
        self.params.runs as u32 * 2 * (VECTOR / W::Granule::BYTES)
    }

    /// Returns whether a run has all of a granule of which it has some.
    #[inline(always)]
    pub fn has_all<W: Grain>(&self, granule: Part) -> bool {
        W::COUNT_LOG2 == 0 || granule.from >= 0 && granule.from + W::Granule::BYTES as i32 <= self.bytes as i32
    }

    /// Returns the elements of a word that belong to its run, as bits: the compiler would unroll a
    /// loop over numbers, and its copies would take more registers than all else in the kernel.
    #[inline(always)]
    pub fn elements_at<W: Word>(&self, from: i32, width: u32) -> u32 {
        let in_word = |byte: i32| {
            if byte < 0 {
                0
            } else if byte > width as i32 {
                width
            } else {
                byte as u32
            }
        };
        let start = in_word(from.wrapping_neg()) / W::BYTES;
        let end = in_word(self.bytes as i32 - from) / W::BYTES;
        (1 << end) - (1 << start)
    }
}
