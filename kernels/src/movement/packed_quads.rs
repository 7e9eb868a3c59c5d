//! Moves tiles of several axes by vectors, for runs that start anywhere on either side.
//!
//! Origin: our own.
//!
//! A block loads the aligned vectors that hold the source's runs and keeps them in shared memory as
//! they lie: each run keeps its offset from a multiple of 16 bytes, so no vector is ever shifted.
//! Then each thread gathers aligned vectors of the destination element by element.
//!
//! A run of the destination is a number of lines, and a line is a number of cells at equal
//! distances. A line has at least the elements of a vector but one, so a vector has elements of two
//! lines at most: the thread finds both once. A cell is one element, or several of short axes; then
//! a table has the offsets of the elements that follow each of the cell's.
//!
//! ```text
//! (image, chunk of the first axis, chunk of the second axis) = digits of the block's number
//! for each vector of the source's runs:          # a thread: every `threads`th
//!     load the vector; store it to shared memory at run + vector
//! table of lines: line of a destination's run -> offset in shared memory
//! barrier
//! for each vector of the destination's runs:
//!     gather its elements from shared memory at run + line + cell * step
//!     store the vector; store partial vectors in parts
//! ```
//!
//! ```text
//! source: matrices of 3 x 3, whole            shared memory, as they lie
//!   | a b c d e f g h i | j k l ...             .. a b c d e f g h i j k l ..
//! destination                                       ^     ^     ^
//!   | a d g b e h c f i | j m p ...             a vector gathers a d g b, the next e h c f
//! ```

use core::mem::MaybeUninit;

use super::gathered::{Entry, Gathered, Moved};
use super::packed_tiles::{Block, NO_LIMITS, PAST, walk};
use super::quad_side::{Part, Side, VECTOR};
use crate::abi::{Digit, LINE_AXES, PACKED_LOADS, PackedQuadsParams, QuadSide};
use crate::index::quotient;
use crate::thread::cache::Cache;
use crate::thread::grain::Grain;
use crate::thread::quad::{Lanes, rotated};
use crate::thread::{self, B8, B16, B32x2, Global, Quad, Shared, Word};
use crate::unrolled;

/// Vectors that a thread has in flight from global memory.
const LOADS: usize = PACKED_LOADS as usize;
/// Elements of lines from which on vectors within one are gathered apart: few warps, of up to 512
/// elements at a time, then have a lane at an end that keeps the others waiting.
const LONG_LINE: u32 = 2048;

/// The tile that a block moves.
struct Tile<'a, G> {
    /// Makes the destination's elements from the tile's.
    gathered: G,
    params: &'a PackedQuadsParams,
    block: Block<'a>,
    tables: Shared,
    /// The address of the element at `src`: its offset in a vector is that of global memory.
    start: Shared,
    /// The start of the destination's first run: its lowest address.
    dst: Global,
    /// The place of its first cell, before the offsets of tables.
    low: Shared,
}

/// The place of an element of a run of the destination, and of those after it.
struct Found {
    /// The start of its cell.
    start: Shared,
    /// The start that its cell would have if the elements of the next line lay at the same offsets.
    next: Shared,
    /// Elements to the end of the line.
    left: u32,
    /// The table of the offsets from the start of the cell to the elements from this one on.
    offsets: Shared,
}

/// Elements of a vector.
#[inline(always)]
const fn lanes<W: Word>() -> u32 {
    VECTOR / W::BYTES
}

impl<'a, G: Gathered> Tile<'a, G> {
    #[inline(always)]
    fn new(params: &'a PackedQuadsParams, gathered: G) -> Self {
        let (block, tables) = (Block::new::<G::From, G::To>(&params.tiles), Shared::dynamic());
        let start = tables.offset(params.tile as u32 + block.src.misalignment());
        let lacks = |which: usize| params.tiles.chunk[which] as u32 - block.valid[which];
        let lacks = match params.dst_side.chunk {
            0 => lacks(0),
            1 => lacks(1),
            _ => 0,
        };
        let lacks = if params.lacking == 0 { 0 } else { lacks };
        let dst = block.dst.offset(u64::from(lacks * params.dst_side.unit as u32 * G::To::BYTES));
        let low = start.offset((params.low as u32).wrapping_sub(lacks * params.lacking as u32));
        Tile { gathered, params, block, tables, start, dst, low }
    }

    /// Writes the starts of the runs of a side.
    ///
    /// # Safety
    ///
    /// No other thread accesses the table before the next barrier.
    #[inline(always)]
    unsafe fn write_runs(&self, side: &QuadSide) {
        let mut number = thread::thread_x();
        let limits = self.block.limits(side.chunked);
        while number < side.runs as u32 {
            let place = walk(number, &side.outer, side.outer_rank, limits);
            let entry = B32x2::new(place.stride, place.room);
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { entry.store_shared(self.tables.offset(side.table as u32 + number * 8)) };
            number += thread::block_width();
        }
    }

    /// Returns whether all vectors that partly hold the source's runs may be read whole.
    #[inline(always)]
    fn is_clear(&self) -> bool {
        let reach = |elements: u64| elements.wrapping_mul(u64::from(G::From::BYTES));
        let low = self.block.src.offset((reach(self.params.tiles.below) + u64::from(VECTOR)).wrapping_neg());
        let high = self.block.src.offset(reach(self.params.tiles.above) + u64::from(G::From::BYTES + VECTOR));
        self.block.is_inside(low, VECTOR) && self.block.is_inside(high, VECTOR)
    }

    /// Loads the vectors of the tile to shared memory, and writes the tables of the destination
    /// meanwhile.
    ///
    /// # Safety
    ///
    /// As for the entry; the source's table of runs has been written, and no other thread accesses
    /// the tile and the other tables before the next barrier.
    #[inline(always)]
    unsafe fn load(&self, cache: impl Cache<Quad>) {
        let side = Side::new::<G::From>(&self.block, &self.params.src_side, self.block.src);
        // An element that is a vector is read whole.
        let clear = lanes::<G::From>() == 1 || self.is_clear();
        let (taking, before) = (side.taking(clear), self.start.offset(VECTOR.wrapping_neg()));
        let mut top = thread::thread_x();
        loop {
            let mut held = [const { MaybeUninit::<Quad>::uninit() }; LOADS];
            let mut to = [PAST; LOADS];
            unrolled!(step < LOADS => {
                let number = top + step as u32 * thread::block_width();
                if number < side.vectors {
                    // SAFETY: as the caller promises.
                    let part = unsafe { side.part_of::<G::From>(self.tables, number) };
                    if taking.has(part) {
                        // SAFETY: aligned, and all of it belongs to the run, or it lies inside the
                        // source's elements, which have no gaps.
                        held[step].write(unsafe { cache.load(part.at) });
                        // The vector of a run's start may lie up to 15 bytes before it.
                        to[step] = part.room.wrapping_add((part.from + VECTOR as i32) as u32);
                    }
                }
            });
            // Threads without a vector write their lines, too.
            if top == thread::thread_x() {
                // SAFETY: as the caller promises.
                unsafe { self.write_tables_of_dst() };
            }
            unrolled!(step < LOADS => {
                if to[step] != PAST {
                    // SAFETY: it was loaded above.
                    let held = unsafe { held[step].assume_init() };
                    // SAFETY: within the tile, where each vector has its own address, a multiple of
                    // 16 bytes as in global memory.
                    unsafe { thread::store_shared_quad(before.offset(to[step]), held) };
                }
            });
            top += PACKED_LOADS * thread::block_width();
            if top >= side.vectors {
                break;
            }
        }
        if !clear {
            // SAFETY: as the caller promises.
            unsafe { self.load_ends(&side) };
        }
    }

    /// Loads the elements of the vectors that runs hold in part, where the rest of these vectors
    /// may not be read: among other elements, and at an end of the source.
    ///
    /// # Safety
    ///
    /// As [`load`](Self::load).
    #[inline(always)]
    unsafe fn load_ends(&self, side: &Side) {
        let mut number = thread::thread_x();
        while number < side.ends::<G::From>() {
            // SAFETY: as the caller promises.
            if let Some(part) = unsafe { side.end::<G::From>(self.tables, number) } {
                let to = self.start.offset(part.room.wrapping_add(part.from as u32));
                if side.has_all::<G::From>(part) {
                    // SAFETY: a granule of the source, to its address in the tile.
                    unsafe { <G::From as Grain>::Granule::load_global(part.at).store_shared(to) };
                } else {
                    let mut elements = side.elements_at::<G::From>(part.from, <G::From as Grain>::Granule::BYTES);
                    while elements != 0 {
                        let byte = elements.trailing_zeros() * G::From::BYTES;
                        let from = part.at.offset(u64::from(byte));
                        // SAFETY: an element of the source, to its address in the tile.
                        unsafe { G::From::load_global(from).store_shared(to.offset(byte)) };
                        elements &= elements - 1;
                    }
                }
            }
            number += thread::block_width();
        }
    }

    /// Writes the tables that the destination's side reads.
    ///
    /// # Safety
    ///
    /// No other thread accesses the tables before the next barrier.
    #[inline(always)]
    unsafe fn write_tables_of_dst(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.write_lines() };
        if self.has_cells() {
            // SAFETY: as the caller promises.
            unsafe { self.write_cells() };
        }
        // SAFETY: as the caller promises.
        unsafe { self.write_runs(&self.params.dst_side) };
    }

    /// Writes the starts of the lines of a run of the destination, and one more.
    ///
    /// # Safety
    ///
    /// No other thread accesses the table before the next barrier.
    #[inline(always)]
    unsafe fn write_lines(&self) {
        let mut line = thread::thread_x();
        while line < self.params.table as u32 {
            let room = walk(line, &self.params.lines, self.params.lines_rank, NO_LIMITS).room;
            let entry = G::Entry::of(room.wrapping_add(self.params.lines_low as u32));
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { entry.store_shared(self.tables.offset(line * G::Entry::BYTES)) };
            line += thread::block_width();
        }
    }

    /// Writes, for each element of a cell, the offsets of as many elements as a vector has, from
    /// the cell's start.
    ///
    /// # Safety
    ///
    /// As [`write_lines`](Self::write_lines).
    #[inline(always)]
    unsafe fn write_cells(&self) {
        let mut entry = thread::thread_x();
        let len = self.params.cell.value as u32;
        while entry < len * lanes::<G::To>() {
            let element = entry / lanes::<G::To>() + entry % lanes::<G::To>();
            let cell = quotient(element, &self.params.cell);
            let room = walk(element - cell * len, &self.params.cells, self.params.cells_rank, NO_LIMITS).room;
            let room = room.wrapping_add(self.params.cells_low as u32);
            let offset = G::Entry::of(room.wrapping_add(cell.wrapping_mul(self.params.step as u32)));
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { offset.store_shared(self.tables.offset(self.params.cell_table as u32 + entry * G::Entry::BYTES)) };
            entry += thread::block_width();
        }
    }

    /// Returns the offsets in shared memory of a line of the destination's runs, and of the next.
    ///
    /// # Safety
    ///
    /// The line exists, and the table has been written.
    #[inline(always)]
    unsafe fn lines(&self, line: u32) -> (u32, u32) {
        let [Digit { room, .. }, ..]: &[Digit; LINE_AXES] = &self.params.lines;
        if self.params.table == 0 {
            return (line.wrapping_mul(*room), (line + 1).wrapping_mul(*room));
        }
        let entry = self.tables.offset(line * G::Entry::BYTES);
        // SAFETY: within the table, which also has the line after the last.
        let (start, next) =
            unsafe { (G::Entry::load_shared(entry), G::Entry::load_shared(entry.offset(G::Entry::BYTES))) };
        (start.place(), next.place())
    }

    /// Says whether cells have several elements.
    #[inline(always)]
    fn has_cells(&self) -> bool {
        G::To::BYTES < 8 && self.params.cell.value as u32 > 1
    }

    /// Finds an element of a run of the destination.
    ///
    /// # Safety
    ///
    /// It is an element of a whole tile's run, and the tables have been written.
    #[inline(always)]
    unsafe fn find(&self, run: Shared, element: u32, cells: bool) -> Found {
        let line = quotient(element, &self.params.line);
        let place = element - line * self.params.line.value as u32;
        let (cell, from) = if cells {
            let cell = quotient(place, &self.params.cell);
            (cell, place - cell * self.params.cell.value as u32)
        } else {
            (place, 0)
        };
        let step = self.params.step as u32;
        // SAFETY: as the caller promises.
        let (start, next) = unsafe { self.lines(line) };
        let start = run.offset(start.wrapping_add(cell.wrapping_mul(step)));
        let next = run.offset(next.wrapping_sub((self.params.cell_count as u32 - cell).wrapping_mul(step)));
        let offsets = self.tables.offset(self.params.cell_table as u32 + from * lanes::<G::To>() * G::Entry::BYTES);
        Found { start, next, left: self.params.line.value as u32 - place, offsets }
    }

    /// Gathers the elements of a granule, which are `first` and more elements further than the one
    /// that was found: all of them belong to its line, or some to the next.
    ///
    /// # Safety
    ///
    /// They are elements of a whole tile's run, fewer than a vector's from the one that was found;
    /// the tile has been loaded, and no thread writes it any more.
    #[inline(always)]
    unsafe fn gather(&self, found: &Found, first: u32, cells: bool, in_line: bool) -> <G::To as Grain>::Granule {
        let step = self.params.step as u32;
        let (left, along) = (found.left as i32 - first as i32, first.wrapping_mul(step));
        let at = found.offsets.offset(first * G::Entry::BYTES);
        // SAFETY: within the table, and aligned to the elements of a granule.
        let offsets = if cells { unsafe { G::Entry::load(at, G::To::COUNT_LOG2) } } else { [0; 4] };
        let place = |lane: usize| {
            let line = if in_line || (lane as i32) < left { found.start } else { found.next };
            let offset = if cells { offsets[lane] } else { along.wrapping_add(step.wrapping_mul(lane as u32)) };
            line.offset(offset)
        };
        // SAFETY: as the caller promises.
        unsafe { self.gathered.granule(place) }
    }

    /// Gathers a vector from an element of a run of the destination, beginning with granule `turn`.
    ///
    /// # Safety
    ///
    /// Its elements are those of a whole tile's run, and as for [`gather`](Self::gather).
    #[inline(always)]
    unsafe fn gather_vector(&self, run: Shared, element: u32, turn: u32, cells: bool) -> Quad {
        // SAFETY: as the caller promises.
        let found = unsafe { self.find(run, element, cells) };
        let is_long = G::LONG_LINES && self.params.line.value as u32 >= LONG_LINE;
        // A vector of one element ends with its line at the latest.
        if lanes::<G::To>() == 1 || is_long && found.left >= lanes::<G::To>() {
            // SAFETY: as the caller promises, and all of them belong to the line.
            unsafe { self.gather_granules(&found, turn, cells, true) }
        } else {
            // SAFETY: as the caller promises.
            unsafe { self.gather_granules(&found, turn, cells, false) }
        }
    }

    /// Gathers a vector from the element that was found.
    ///
    /// # Safety
    ///
    /// As [`gather`](Self::gather), for a whole vector.
    #[inline(always)]
    unsafe fn gather_granules(&self, found: &Found, turn: u32, cells: bool, in_line: bool) -> Quad {
        let granules = VECTOR / <G::To as Grain>::Granule::BYTES;
        let mut held = [0; 4];
        unrolled!(step < 4 => {
            if step < granules as usize {
                let first = ((step as u32 + turn) & (granules - 1)) << G::To::COUNT_LOG2;
                // SAFETY: as the caller promises.
                held = unsafe { self.gather(found, first, cells, in_line) }.put(held, step);
            }
        });
        rotated(held, turn * (4 / granules))
    }

    /// Gathers the whole vectors of the destination and stores them.
    ///
    /// # Safety
    ///
    /// As for the entry; the tile has been loaded, and no thread writes it any more.
    #[inline(always)]
    unsafe fn store(&self, cache: impl Cache<Quad>, cells: bool) {
        let side = Side::new::<G::To>(&self.block, &self.params.dst_side, self.dst);
        let (granules, whole) = (VECTOR / <G::To as Grain>::Granule::BYTES, side.taking(false));
        let turn = (thread::thread_x() >> (self.params.turn as u32 & 31)) & (granules - 1);
        let (mut number, across) = (thread::thread_x(), &self.params.across);
        while number < side.vectors {
            let part = if across.value > 1 {
                let quad = quotient(number, across);
                let run = number - quad * across.value as u32;
                // SAFETY: `across` divides by the runs, so the remainder is one of them. The tables
                // have been written.
                Side::part(unsafe { side.run::<G::To>(self.tables, run) }, quad)
            } else {
                // SAFETY: the number is below the side's vectors, and the tables have been written.
                unsafe { side.part_of::<G::To>(self.tables, number) }
            };
            if whole.has(part) {
                let run = self.low.offset(part.room);
                // SAFETY: elements of a run.
                let held = unsafe { self.gather_vector(run, part.from as u32 / G::To::BYTES, turn, cells) };
                // SAFETY: a vector of the destination, which no other thread has.
                unsafe { cache.store(part.at, held) };
            }
            number += thread::block_width();
        }
    }

    /// Stores the elements of the vectors that a run holds in part, its first and its last. Lanes
    /// that follow each other store granules that do, so that a vector takes one access.
    ///
    /// # Safety
    ///
    /// As [`store`](Self::store).
    #[inline(always)]
    unsafe fn store_ends(&self) {
        if lanes::<G::To>() == 1 {
            return;
        }
        let side = Side::new::<G::To>(&self.block, &self.params.dst_side, self.dst);
        let (width, cells) = (<G::To as Grain>::Granule::BYTES, self.has_cells());
        // The last threads have the fewest whole vectors.
        let mut number = thread::block_width() - 1 - thread::thread_x();
        while number < side.ends::<G::To>() {
            // SAFETY: the tables have been written.
            if let Some(part) = unsafe { side.end::<G::To>(self.tables, number) } {
                let run = self.low.offset(part.room);
                if side.has_all::<G::To>(part) {
                    // SAFETY: elements of a run, to a granule that no other thread has.
                    unsafe {
                        let found = self.find(run, part.from as u32 / G::To::BYTES, cells);
                        self.gather(&found, 0, cells, false).store_global(part.at);
                    }
                } else if G::JOINS_ENDS && side.bytes >= width {
                    // SAFETY: elements of the run that no other thread has.
                    unsafe { self.store_some(&side, part, run, cells) };
                } else {
                    // SAFETY: as above.
                    unsafe { self.store_each(&side, part, run, cells) };
                }
            }
            number += thread::block_width();
        }
    }

    /// Stores the elements that a run has of a granule, as two accesses at most. They are the first
    /// or the last of the run, and the thread gathers a whole granule from there.
    ///
    /// # Safety
    ///
    /// As [`store`](Self::store); the run has some elements of the granule, not all, and a
    /// granule's elements or more.
    #[inline(always)]
    unsafe fn store_some(&self, side: &Side, part: Part, run: Shared, cells: bool) {
        let (width, starts) = (<G::To as Grain>::Granule::BYTES, part.from < 0);
        let bytes = if starts { (part.from + width as i32) as u32 } else { side.bytes - part.from as u32 };
        let element = if starts { 0 } else { side.bytes - width } / G::To::BYTES;
        // SAFETY: elements of the run.
        let granule = unsafe { self.gather(&self.find(run, element, cells), 0, cells, false) };
        // Three bytes are a pair on an even address and a single one.
        let past = if starts { 0 } else { 8 * (width - bytes) };
        let (single, pair) = if starts { (0, bytes & 1) } else { (bytes & 2, 0) };
        let to = part.at.offset(u64::from(if starts { width - bytes } else { 0 }));
        let word = G::To::bits(granule) >> past;
        if bytes & 2 != 0 {
            // SAFETY: elements of the destination that no other thread has, aligned to two bytes.
            unsafe { B16::new(word >> (8 * pair)).store_global(to.offset(u64::from(pair))) };
        }
        if G::To::BYTES == 1 && bytes & 1 != 0 {
            // SAFETY: an element of the destination that no other thread has.
            unsafe { B8::new(word >> (8 * single)).store_global(to.offset(u64::from(single))) };
        }
    }

    /// Stores the elements that a run has of a granule one by one.
    ///
    /// # Safety
    ///
    /// As [`store`](Self::store).
    #[inline(always)]
    unsafe fn store_each(&self, side: &Side, part: Part, run: Shared, cells: bool) {
        let mut elements = side.elements_at::<G::To>(part.from, <G::To as Grain>::Granule::BYTES);
        while elements != 0 {
            let byte = elements.trailing_zeros() * G::To::BYTES;
            // SAFETY: an element of a run, within the tile, which no thread writes any more.
            let element = unsafe {
                let found = self.find(run, (part.from + byte as i32) as u32 / G::To::BYTES, cells);
                let offset = if cells { G::Entry::load_shared(found.offsets).place() } else { 0 };
                self.gathered.element(found.start.offset(offset))
            };
            // SAFETY: an element of the destination, which no other thread has.
            unsafe { element.store_global(part.at.offset(u64::from(byte))) };
            elements &= elements - 1;
        }
    }
}

/// Moves several axes at a time by vectors, from the runs of the source to those of the
/// destination.
///
/// # Safety
///
/// See [`PackedQuadsParams`]: all elements are allocated, and no other work writes them.
#[inline(always)]
pub unsafe fn packed_quads<W: Grain, C: Cache<Quad>>(params: PackedQuadsParams) {
    // SAFETY: as the caller promises.
    unsafe { gather_tile::<_, C>(&params, Moved::<W>::new()) }
}

/// Loads a tile and gathers the destination's vectors, of what is made of its elements.
///
/// # Safety
///
/// As [`packed_quads`]; no other thread accesses what `gathered` has in shared memory from its
/// barrier on.
#[inline(always)]
pub unsafe fn gather_tile<G: Gathered, C: Cache<Quad>>(params: &PackedQuadsParams, gathered: G) {
    let (cache, tile) = (C::new(), Tile::new(params, gathered));
    // SAFETY: no thread reads the table before the barrier.
    unsafe { tile.write_runs(&params.src_side) };
    // SAFETY: every thread of the block comes here.
    unsafe { thread::barrier() };
    // SAFETY: as the caller promises.
    unsafe { tile.load(cache) };
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    // SAFETY: as the caller promises.
    unsafe { tile.store_ends() };
    // Each way has a loop of its own.
    if tile.has_cells() {
        // SAFETY: as the caller promises.
        unsafe { tile.store(cache, true) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { tile.store(cache, false) };
    }
}
