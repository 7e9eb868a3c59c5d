//! Moves tiles of several axes, for runs that continue over several axes on either side.
//!
//! Origin: our own, without a published model that we know; ADR 9 says when a plan takes it.
//!
//! A block loads the source's runs unchanged, in words of 4 bytes or of one element, and keeps them
//! in shared memory in the source's order. Each axis has a stride there, so the start of a run and
//! the offset of an element in it add up: two small tables a side replace the divisions. Words keep
//! their alignment in the source, because strides agree modulo a word, so no word is ever shifted.
//! The destination's words are gathered element by element through the destination's own tables.
//!
//! ```text
//! (image, chunk of the first axis, chunk of the second axis) = digits of the block's number
//! table of runs, for both sides: run -> (offset in global memory, offset in shared memory)
//! table of elements, for the destination's narrow ones: element of a run -> offset in shared memory
//! barrier
//! for each run of the source, for each word of it:   # a thread: one word of every `down`th run
//!     load the word; store it to shared memory at run + word
//! barrier
//! for each run of the destination, for each word of it:
//!     gather the word's elements from shared memory at run + element
//!     store the word; store partial words element by element
//! ```
//!
//! ```text
//! source [a, b, c], c contiguous              destination [c, b, a], a contiguous
//!   run 0: c0 c1 c2 c3   of (a0, b0)            run 0: a0 a1 a2   of (c0, b0)
//!   run 1: c0 c1 c2 c3   of (a0, b1)            run 1: a0 a1 a2   of (c0, b1)
//!   run 2: c0 c1 c2 c3   of (a1, b0)            ...
//! shared memory, in the source's order
//!   | a0b0: c0 c1 c2 c3 | a0b1: c0 c1 c2 c3 | a1b0: c0 c1 c2 c3 | ...
//!           ^                                         ^  the run a of (c0, b0) gathers these
//! ```

use super::packed_tiles::{Block, NO_LIMITS, PAST, walk};
use crate::abi::{PACKED_STEPS, PACKED_STORES, PackedParams, PackedSide};
use crate::index::{Index, quotient};
use crate::thread::cache::Cache;
use crate::thread::grain::Grain;
use crate::thread::{self, B16, B32x2, Global, Shared, Word};
use crate::unrolled;

/// Words that a thread has in flight from global memory.
const LOADS: usize = PACKED_STEPS as usize;
/// Words that it gathers at once.
const STORES: usize = PACKED_STORES as usize;

/// The tile that a block moves.
struct Tile<'a> {
    params: &'a PackedParams,
    block: Block<'a>,
    tables: Shared,
    /// The address of the element at `src`: its offset in a word is that of global memory.
    start: Shared,
}

/// The start of a run.
#[derive(Clone, Copy)]
struct Run {
    at: Global,
    shared: Shared,
    exists: bool,
}

/// The words of a run.
#[derive(Clone, Copy)]
struct Span {
    /// Bytes of the run after the last whole word before its start.
    lead: u32,
    /// Bytes of the run.
    bytes: u32,
}

impl Span {
    /// Returns the words of a run of this number of bytes.
    #[inline(always)]
    fn new<W: Grain>(run: Run, bytes: u32) -> Self {
        Span { lead: run.at.low() & (W::Granule::BYTES - 1), bytes }
    }

    /// Returns the offset of a word in the run; negative if it starts before the run.
    #[inline(always)]
    fn from(self, word: u32, width: u32) -> i32 {
        (word * width) as i32 - self.lead as i32
    }

    #[inline(always)]
    fn is_whole(self, from: i32, width: u32) -> bool {
        from >= 0 && from + width as i32 <= self.bytes as i32
    }
}

impl<'a> Tile<'a> {
    #[inline(always)]
    fn new<W: Grain, I: Index>(params: &'a PackedParams) -> Self {
        let (block, tables) = (Block::new::<W, I>(&params.tiles), Shared::dynamic());
        let start = tables.offset(params.tile as u32 + (block.src.low() & (W::Granule::BYTES - 1)));
        Tile { params, block, tables, start }
    }

    /// Returns the elements of this tile's runs.
    #[inline(always)]
    fn len(&self, side: &PackedSide) -> u32 {
        self.block.len(side.chunk, side.unit, side.len)
    }

    /// Writes the starts of a side's runs, and entries without a run up to a whole number of a
    /// thread's steps.
    ///
    /// # Safety
    ///
    /// No other thread accesses the table before the next barrier.
    #[inline(always)]
    unsafe fn write_runs(&self, side: &PackedSide) {
        let mut number = thread::thread_x();
        while number < side.entries as u32 {
            let limits = self.block.limits(side.chunked);
            let place = walk(number, &side.outer, side.outer_rank, limits);
            let exists = number < side.runs as u32 && place.room != PAST;
            // A missing run has the address of an existing one, so loads need not wait for
            // conditions.
            let entry = if exists { B32x2::new(place.stride, place.room) } else { NO_RUN };
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { entry.store_shared(self.tables.offset(side.run_table as u32 + number * 8)) };
            number += thread::block_width();
        }
    }

    /// Writes the offsets of the elements of a destination run, by which the words of narrow
    /// elements are gathered.
    ///
    /// # Safety
    ///
    /// As [`write_runs`](Self::write_runs).
    #[inline(always)]
    unsafe fn write_places<W: Grain>(&self) {
        let side = &self.params.dst_side;
        let mut number = thread::thread_x();
        let mask = (1 << W::COUNT_LOG2) - 1;
        while number < (side.words as u32) << W::COUNT_LOG2 {
            let turned = (number >> W::COUNT_LOG2 & self.params.turn as u32) / (8 * W::BYTES);
            let element = number & !mask | (number + turned) & mask;
            let place = walk(element, &side.inner, side.inner_rank, NO_LIMITS).room;
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { B16::new(place).store_shared(self.tables.offset(side.table as u32 + number * 2)) };
            number += thread::block_width();
        }
    }

    /// Returns the entry of run `number` of a side.
    ///
    /// # Safety
    ///
    /// It is within the table, which has been written.
    #[inline(always)]
    unsafe fn entry(&self, side: &PackedSide, number: u32) -> B32x2 {
        // SAFETY: as the caller promises.
        unsafe { B32x2::load_shared(self.tables.offset(side.run_table as u32 + number * 8)) }
    }

    /// Returns the run of an entry.
    #[inline(always)]
    fn run<W: Word>(&self, start: Global, entry: B32x2) -> Run {
        Run { at: at::<W>(start, entry), shared: self.start.offset(entry.high()), exists: entry.high() != PAST }
    }

    /// Returns the entry of a table of 2 bytes each.
    ///
    /// # Safety
    ///
    /// As [`entry`](Self::entry).
    #[inline(always)]
    unsafe fn place(&self, side: &PackedSide, number: u32) -> u32 {
        // SAFETY: within the table, which no thread writes any more.
        unsafe { B16::load_shared(self.tables.offset(side.table as u32 + number * 2)) }.low()
    }

    /// Returns whether all words of a side's runs are whole, in this tile.
    #[inline(always)]
    fn is_whole<W: Grain>(&self, side: &PackedSide) -> bool {
        W::COUNT_LOG2 == 0 || side.aligned != 0 && self.len(side) & ((1 << W::COUNT_LOG2) - 1) == 0
    }

    /// Returns whether the words that partly hold the source's runs, and one more after each, may
    /// be read whole.
    #[inline(always)]
    fn is_clear<W: Grain>(&self) -> bool {
        let room = |elements: u64| (elements + 8).wrapping_mul(u64::from(W::BYTES));
        let (low, high) = (
            self.block.src.offset(room(self.params.tiles.below).wrapping_neg()),
            self.block.src.offset(room(self.params.tiles.above)),
        );
        self.block.is_inside(low, W::Granule::BYTES) && self.block.is_inside(high, W::Granule::BYTES)
    }

    /// Loads the words of the tile to shared memory: a thread has the same word of every `down`th
    /// run.
    ///
    /// # Safety
    ///
    /// As for the entry; the tables have been written, and no other thread accesses the tile before
    /// the next barrier. `WHOLE` is [`is_whole`](Self::is_whole), and without it `CLEAR` is
    /// [`is_clear`](Self::is_clear).
    #[inline(always)]
    unsafe fn load<W: Grain, const WHOLE: bool, const CLEAR: bool>(&self, cache: impl Cache<W::Granule>) {
        let side = &self.params.src_side;
        let (width, len) = (W::Granule::BYTES, self.len(side) * W::BYTES);
        let (first, down) = (quotient(thread::thread_x(), &side.across), side.down as u32);
        let mut word = thread::thread_x() - first * side.across.value as u32;
        let words = if WHOLE { len / width } else { side.words as u32 };
        while word < words && first < down {
            let place = walk(word << W::COUNT_LOG2, &side.inner, side.inner_rank, NO_LIMITS).room;
            let (src, to) = (self.block.src.offset(u64::from(word * width)), self.start.offset(place));
            let mut top = first;
            while top < side.runs as u32 {
                let mut entries = [B32x2::ZERO; LOADS];
                let mut held = [W::Granule::ZERO; LOADS];
                unrolled!(step < LOADS => {
                    // SAFETY: the table holds whole steps.
                    entries[step] = unsafe { self.entry(side, top + step as u32 * down) };
                });
                unrolled!(step < LOADS => {
                    let at = at::<W>(src, entries[step]);
                    if WHOLE {
                        // SAFETY: a word of the source; if there is no run, the same word of the
                        // first run, which exists.
                        held[step] = unsafe { cache.load(at) };
                    } else {
                        let lead = at.low() & (width - 1);
                        let (at, from) = (at.offset(u64::from(lead).wrapping_neg()), (word * width).wrapping_sub(lead) as i32);
                        let whole = from >= 0 && from + width as i32 <= len as i32;
                        if CLEAR || from < len as i32 && (whole || self.block.is_inside(at, W::Granule::BYTES)) {
                            // SAFETY: aligned, and of a source without gaps: `is_inside`, or, for
                            // all words of the tile, `is_clear`; or all of it belongs to a run.
                            held[step] = unsafe { cache.load(at) };
                        } else {
                            entries[step] = NO_RUN;
                        }
                        if CLEAR && from >= len as i32 {
                            entries[step] = NO_RUN;
                        }
                    }
                });
                unrolled!(step < LOADS => {
                    if entries[step].high() != PAST {
                        let to = to.offset(entries[step].high());
                        // SAFETY: within the tile, where each word has its own address.
                        unsafe { held[step].store_shared(if WHOLE { to } else { to.floor(width) }) };
                    }
                });
                top += LOADS as u32 * down;
            }
            word += side.across.value as u32;
        }
        if !WHOLE && !CLEAR {
            // SAFETY: as the caller promises.
            unsafe { self.load_ends::<W>() };
        }
    }

    /// Loads words that may not be read whole, element by element.
    ///
    /// # Safety
    ///
    /// As [`load`](Self::load).
    #[inline(always)]
    unsafe fn load_ends<W: Grain>(&self) {
        let (side, width) = (&self.params.src_side, W::Granule::BYTES);
        let mut number = thread::thread_x();
        while number < 2 * side.runs as u32 {
            // SAFETY: a run of the source.
            let run = self.run::<W>(self.block.src, unsafe { self.entry(side, number / 2) });
            let span = Span::new::<W>(run, self.len(side) * W::BYTES);
            let last = (span.lead + span.bytes - 1) / width;
            let word = if number & 1 == 0 { 0 } else { last };
            let from = span.from(word, width);
            let at = run.at.offset(i64::from(from) as u64);
            let single = number & 1 == 0 || last != 0;
            if run.exists && single && !span.is_whole(from, width) && !self.block.is_inside(at, W::Granule::BYTES) {
                let place = walk(word << W::COUNT_LOG2, &side.inner, side.inner_rank, NO_LIMITS).room;
                let shared = run.shared.offset(place).floor(width);
                for lane in 0..1 << W::COUNT_LOG2 {
                    let byte = lane * W::BYTES;
                    if from + byte as i32 >= 0 && from + (byte as i32) < span.bytes as i32 {
                        // SAFETY: an element of the source, to its address in the tile.
                        unsafe { W::load_global(at.offset(u64::from(byte))).store_shared(shared.offset(byte)) };
                    }
                }
            }
            number += thread::block_width();
        }
    }

    /// Gathers the words of the destination and stores them.
    ///
    /// # Safety
    ///
    /// As for the entry; the tile has been loaded, and no thread writes it any more. `WHOLE` is
    /// [`is_whole`](Self::is_whole).
    #[inline(always)]
    unsafe fn store<W: Grain, const WHOLE: bool>(&self, cache: impl Cache<W::Granule>) {
        let side = &self.params.dst_side;
        let (width, len) = (W::Granule::BYTES, self.len(side) * W::BYTES);
        let (first, down) = (quotient(thread::thread_x(), &side.across), side.down as u32);
        let mut word = thread::thread_x() - first * side.across.value as u32;
        let words = if WHOLE { len / width } else { side.words as u32 };
        while word < words && first < down {
            // SAFETY: the word of a run.
            let fixed = unsafe { self.fixed::<W>(word) };
            let dst = self.block.dst.offset(u64::from(word * width));
            let mut top = first;
            while top < side.runs as u32 {
                let mut entries = [B32x2::ZERO; STORES];
                let mut gathered = [W::Granule::ZERO; STORES];
                let mut to = [Global::NONE; STORES];
                unrolled!(step < STORES <= 4 => {
                    // SAFETY: the table holds whole steps.
                    entries[step] = unsafe { self.entry(side, top + step as u32 * down) };
                });
                unrolled!(step < STORES <= 4 => {
                    let mut found = fixed;
                    to[step] = at::<W>(dst, entries[step]);
                    if !WHOLE {
                        let lead = to[step].low() & (width - 1);
                        let from = (word * width) as i32 - lead as i32;
                        to[step] = to[step].offset(u64::from(lead).wrapping_neg());
                        if from < 0 || from + width as i32 > len as i32 {
                            entries[step] = NO_RUN;
                        } else if side.aligned == 0 {
                            // SAFETY: a whole word of a run.
                            found = unsafe { self.places::<W>(from as u32 / W::BYTES) };
                        }
                    }
                    if entries[step].high() != PAST {
                        let from = self.start.offset(entries[step].high());
                        for lane in 0..1 << W::COUNT_LOG2 {
                            // SAFETY: within the tile, which no thread writes any more.
                            let part = unsafe { W::load_shared(from.offset(found[lane as usize])) };
                            gathered[step] = part.with(gathered[step], lane);
                        }
                    }
                });
                unrolled!(step < STORES <= 4 => {
                    if entries[step].high() != PAST {
                        let rotated = W::rotated(gathered[step], word & self.params.turn as u32);
                        // SAFETY: a word of the destination, which no other thread has.
                        unsafe { cache.store(to[step], rotated) };
                    }
                });
                top += STORES as u32 * down;
            }
            word += side.across.value as u32;
        }
        if !WHOLE {
            // SAFETY: as the caller promises.
            unsafe { self.store_ends::<W>() };
        }
    }

    /// Returns the offsets in shared memory of the elements of a destination word, from the start
    /// of the run, if they are the same for every run.
    ///
    /// # Safety
    ///
    /// It is a word of a run, and the tables have been written.
    #[inline(always)]
    unsafe fn fixed<W: Grain>(&self, word: u32) -> [u32; 4] {
        let side = &self.params.dst_side;
        if W::COUNT_LOG2 == 0 {
            return [walk(word, &side.inner, side.inner_rank, NO_LIMITS).room, 0, 0, 0];
        }
        // SAFETY: as the caller promises.
        unsafe { self.places::<W>(word << W::COUNT_LOG2) }
    }

    /// Returns the same from the table; `element` is the word's first.
    ///
    /// # Safety
    ///
    /// The table has been written, and all are elements of a run.
    #[inline(always)]
    unsafe fn places<W: Grain>(&self, element: u32) -> [u32; 4] {
        let mut places = [0; 4];
        for lane in 0..1 << W::COUNT_LOG2 {
            // SAFETY: within the table.
            places[lane] = unsafe { self.place(&self.params.dst_side, element + lane as u32) };
        }
        places
    }

    /// Stores the parts of a run that are less than a word, element by element.
    ///
    /// # Safety
    ///
    /// As [`store`](Self::store).
    #[inline(always)]
    unsafe fn store_ends<W: Grain>(&self) {
        let (side, width) = (&self.params.dst_side, W::Granule::BYTES);
        let mut number = thread::thread_x();
        while number < 2 * side.runs as u32 {
            // SAFETY: a run of the destination.
            let run = self.run::<W>(self.block.dst, unsafe { self.entry(side, number / 2) });
            let span = Span::new::<W>(run, self.len(side) * W::BYTES);
            let last = (span.lead + span.bytes - 1) / width;
            let word = if number & 1 == 0 { 0 } else { last };
            let from = span.from(word, width);
            let single = number & 1 == 0 || last != 0;
            if run.exists && single && !span.is_whole(from, width) {
                for lane in 0..1 << W::COUNT_LOG2 {
                    let byte = from + (lane * W::BYTES) as i32;
                    if byte >= 0 && byte < span.bytes as i32 {
                        let turned = (word & self.params.turn as u32) / (8 * W::BYTES);
                        let mask = (1 << W::COUNT_LOG2) - 1;
                        let element = byte as u32 / W::BYTES;
                        let entry = element & !mask | element.wrapping_sub(turned) & mask;
                        // SAFETY: an element of a run.
                        let place = unsafe { self.place(side, entry) };
                        // SAFETY: within the tile, which no thread writes any more.
                        let part = unsafe { W::load_shared(run.shared.offset(place)) };
                        // SAFETY: an element of the destination, which no other thread has.
                        unsafe { part.store_global(run.at.offset(u64::from(byte as u32))) };
                    }
                }
            }
            number += thread::block_width();
        }
    }
}

/// The entry without a run.
const NO_RUN: B32x2 = B32x2::new(0, PAST);

/// The start of an entry's run.
#[inline(always)]
fn at<W: Word>(start: Global, entry: B32x2) -> Global {
    start.offset((i64::from(entry.low() as i32) * i64::from(W::BYTES)) as u64)
}

/// Moves several axes at a time, from the runs of the source to those of the destination.
///
/// # Safety
///
/// See [`PackedParams`]: all elements are allocated, and no other work writes them.
#[inline(always)]
pub unsafe fn packed<W: Grain, I: Index, C: Cache<W::Granule>>(params: PackedParams) {
    let cache = C::new();
    let tile = Tile::new::<W, I>(&params);
    // SAFETY: no thread reads the tables before the barrier.
    unsafe { tile.write_runs(&params.src_side) };
    // SAFETY: as above.
    unsafe { tile.write_runs(&params.dst_side) };
    if W::COUNT_LOG2 > 0 {
        // SAFETY: as above.
        unsafe { tile.write_places::<W>() };
    }
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    if tile.is_whole::<W>(&params.src_side) {
        // SAFETY: as the caller promises.
        unsafe { tile.load::<W, true, false>(cache) };
    } else if tile.is_clear::<W>() {
        // SAFETY: as the caller promises.
        unsafe { tile.load::<W, false, true>(cache) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { tile.load::<W, false, false>(cache) };
    }
    // SAFETY: as above.
    unsafe { thread::barrier() };
    if tile.is_whole::<W>(&params.dst_side) {
        // SAFETY: as the caller promises.
        unsafe { tile.store::<W, true>(cache) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { tile.store::<W, false>(cache) };
    }
}
