//! Moves tiles of several axes by vectors, for runs that start anywhere on either side.
//!
//! Origin: our own. `packed` has the same tiles and moves them by words.
//!
//! A block loads the aligned vectors that hold the source's runs and keeps them in shared memory as
//! they lie: each run keeps its offset from a multiple of 16 bytes, so no vector is ever shifted.
//! Then each thread gathers aligned vectors of the destination element by element. A run of the
//! destination is a number of rows along its nearest axis; a small table has the rows' starts.
//!
//! ```text
//! (image, chunk of the first axis, chunk of the second axis) = digits of the block's number
//! for each vector of the source's runs:          # a thread: every `threads`th
//!     load the vector; store it to shared memory at run + vector
//! table of rows: row of a destination's run -> offset in shared memory
//! barrier
//! for each vector of the destination's runs:
//!     gather its elements from shared memory at run + row + position * step
//!     store the vector; store partial vectors in parts
//! ```
//!
//! ```text
//! source: matrices of 3 x 3, whole            shared memory, as they lie
//!   | a b c d e f g h i | j k l ...             .. a b c d e f g h i j k l ..
//! destination                                       ^     ^     ^
//!   | a d g b e h c f i | j m p ...             a vector gathers a d g b, the next e h c f
//! ```

use super::packed_tiles::{Block, NO_LIMITS, PAST, walk};
use crate::abi::{Digit, PACKED_AXES, PACKED_LOADS, PackedQuadsParams, QuadSide, STEPPED_LOADS};
use crate::index::{Narrow, quotient};
use crate::thread::cache::{Cache, Unhinted};
use crate::thread::grain::Grain;
use crate::thread::quad::{Lanes, rotated};
use crate::thread::{self, B16, B32x2, Global, Quad, Shared, Word};
use crate::unrolled;

/// Vectors that a thread has in flight from global memory.
const LOADS: usize = PACKED_LOADS as usize;
/// Elements that it has in flight, where elements move alone.
const ELEMENTS: usize = STEPPED_LOADS as usize;
/// Bytes of a vector.
const VECTOR: u32 = 16;

/// The tile that a block moves.
struct Tile<'a> {
    params: &'a PackedQuadsParams,
    block: Block<'a>,
    tables: Shared,
    /// The address of the element at `src`: its offset in a vector is that of global memory.
    start: Shared,
}

/// The start of a run: on a side, and its offset in the tile or [`PAST`].
#[derive(Clone, Copy)]
struct Run {
    at: Global,
    room: u32,
}

/// The part of a run that a vector holds.
#[derive(Clone, Copy)]
struct Part {
    /// The vector's address.
    at: Global,
    /// Bytes from the start of the run to the vector; negative if the vector starts before it.
    from: i32,
    /// The offset of the run in the tile.
    room: u32,
    exists: bool,
}

impl Part {
    #[inline(always)]
    fn is_whole(self, bytes: u32) -> bool {
        self.from >= 0 && self.from + VECTOR as i32 <= bytes as i32
    }
}

impl<'a> Tile<'a> {
    #[inline(always)]
    fn new<W: Word>(params: &'a PackedQuadsParams) -> Self {
        let (block, tables) = (Block::new::<W, Narrow>(&params.tiles), Shared::dynamic());
        let start = tables.offset(params.tile as u32 + block.src.misalignment());
        Tile { params, block, tables, start }
    }

    /// Returns the elements of this tile's runs.
    #[inline(always)]
    fn len(&self, side: &QuadSide) -> u32 {
        self.block.len(side.chunk, side.unit, side.len)
    }

    /// Returns the vectors of a side, with those of runs past the end of a chunked axis.
    #[inline(always)]
    fn vectors(side: &QuadSide) -> u32 {
        side.runs as u32 * side.quads.value as u32
    }

    /// Returns the start of a run of a side.
    ///
    /// # Safety
    ///
    /// The side's table, if it has one, has been written.
    #[inline(always)]
    unsafe fn run<W: Word>(&self, side: &QuadSide, start: Global, number: u32) -> Run {
        let entry = if side.outer_rank as u32 <= 1 {
            let [Digit { stride, room, .. }, ..]: &[Digit; PACKED_AXES] = &side.outer;
            let past = |which: usize| side.chunked[which] as u32 == 0 && number >= self.block.valid[which];
            let room = if past(0) || past(1) { PAST } else { number * room };
            B32x2::new(number.wrapping_mul(*stride as u32), room)
        } else {
            // SAFETY: an entry of the table.
            unsafe { B32x2::load_shared(self.tables.offset(side.table as u32 + number * 8)) }
        };
        let at = start.offset((i64::from(entry.low() as i32) * i64::from(W::BYTES)) as u64);
        Run { at, room: entry.high() }
    }

    /// Returns the part of a run that its vector number `quad` holds, if the run has such a vector.
    #[inline(always)]
    fn part(run: Run, quad: u32, bytes: u32) -> Part {
        let from = (quad * VECTOR) as i32 - run.at.misalignment() as i32;
        let exists = run.room != PAST && from < bytes as i32;
        Part { at: run.at.offset(i64::from(from) as u64), from, room: run.room, exists }
    }

    /// Returns the part of a run that vector `number` of a side holds.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run), for numbers below [`vectors`](Self::vectors).
    #[inline(always)]
    unsafe fn part_of<W: Word>(&self, side: &QuadSide, start: Global, number: u32, bytes: u32) -> Part {
        let run = quotient(number, &side.quads);
        // SAFETY: as the caller promises.
        Self::part(unsafe { self.run::<W>(side, start, run) }, number - run * side.quads.value as u32, bytes)
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

    /// Whether all vectors that partly hold the source's runs may be read whole.
    #[inline(always)]
    fn is_clear<W: Word>(&self) -> bool {
        let reach = |elements: u64| elements.wrapping_mul(u64::from(W::BYTES));
        let low = self.block.src.offset((reach(self.params.tiles.below) + u64::from(VECTOR)).wrapping_neg());
        let high = self.block.src.offset(reach(self.params.tiles.above) + u64::from(W::BYTES + VECTOR));
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
    unsafe fn load<W: Word>(&self, cache: impl Cache<Quad>) {
        let side = &self.params.src_side;
        let (bytes, clear) = (self.len(side) * W::BYTES, self.is_clear::<W>());
        let mut top = thread::thread_x();
        loop {
            let mut held = [[0; 4]; LOADS];
            let mut to = [None; LOADS];
            unrolled!(step < LOADS => {
                let number = top + step as u32 * thread::block_width();
                if number < Self::vectors(side) {
                    // SAFETY: as the caller promises.
                    let part = unsafe { self.part_of::<W>(side, self.block.src, number, bytes) };
                    if part.exists && (clear || part.is_whole(bytes) || self.block.is_inside(part.at, VECTOR)) {
                        // SAFETY: aligned, and either all of it belongs to the run, or it lies
                        // inside the source's elements, which have no gaps.
                        held[step] = unsafe { cache.load(part.at) };
                        to[step] = Some(self.start.offset(part.room.wrapping_add(part.from as u32)));
                    }
                }
            });
            // Threads without a vector write their rows, too.
            if top == thread::thread_x() {
                // SAFETY: as the caller promises.
                unsafe { self.write_tables_of_dst() };
            }
            unrolled!(step < LOADS => {
                if let Some(to) = to[step] {
                    // SAFETY: within the tile, where each vector has its own address, a multiple of
                    // 16 bytes as in global memory.
                    unsafe { thread::store_shared_quad(to, held[step]) };
                }
            });
            top += PACKED_LOADS * thread::block_width();
            if top >= Self::vectors(side) {
                break;
            }
        }
        if !clear {
            // SAFETY: as the caller promises.
            unsafe { self.load_ends::<W>(bytes) };
        }
    }

    /// Loads the elements of the tile to shared memory, where those of a run follow each other, and
    /// writes the tables of the destination meanwhile.
    ///
    /// # Safety
    ///
    /// As [`load`](Self::load).
    #[inline(always)]
    unsafe fn load_elements<W: Word>(&self) {
        let side = &self.params.src_side;
        let (len, gap) = (self.len(side), (self.params.gap as u32).wrapping_mul(W::BYTES));
        let mut top = thread::thread_x();
        loop {
            let mut held = [W::ZERO; ELEMENTS];
            let mut to = [None; ELEMENTS];
            unrolled!(step < ELEMENTS => {
                let number = top + step as u32 * thread::block_width();
                if number < Self::vectors(side) {
                    let run = quotient(number, &side.quads);
                    let element = number - run * side.quads.value as u32;
                    // SAFETY: as the caller promises.
                    let run = unsafe { self.run::<W>(side, self.block.src, run) };
                    if run.room != PAST && element < len {
                        // SAFETY: an element of the source.
                        held[step] = unsafe { W::load_global(run.at.offset(i64::from(element.wrapping_mul(gap) as i32) as u64)) };
                        to[step] = Some(self.start.offset(run.room + element * W::BYTES));
                    }
                }
            });
            if top == thread::thread_x() {
                // SAFETY: as the caller promises.
                unsafe { self.write_tables_of_dst() };
            }
            unrolled!(step < ELEMENTS => {
                if let Some(to) = to[step] {
                    // SAFETY: within the tile, where each element has its own address.
                    unsafe { held[step].store_shared(to) };
                }
            });
            top += STEPPED_LOADS * thread::block_width();
            if top >= Self::vectors(side) {
                break;
            }
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
        unsafe { self.write_rows() };
        if self.params.dst_side.outer_rank as u32 > 1 {
            // SAFETY: as the caller promises.
            unsafe { self.write_runs(&self.params.dst_side) };
        }
    }

    /// Loads the vectors that may not be read whole, element by element.
    ///
    /// # Safety
    ///
    /// As [`load`](Self::load).
    #[inline(always)]
    unsafe fn load_ends<W: Word>(&self, bytes: u32) {
        let side = &self.params.src_side;
        let mut number = thread::thread_x();
        while number < Self::vectors(side) {
            // SAFETY: as the caller promises.
            let part = unsafe { self.part_of::<W>(side, self.block.src, number, bytes) };
            if part.exists && !part.is_whole(bytes) && !self.block.is_inside(part.at, VECTOR) {
                let (mut byte, end) = part_of_vector(part, bytes);
                while byte < end {
                    let to = self.start.offset(part.room.wrapping_add((part.from + byte) as u32));
                    // SAFETY: an element of the source, to its address in the tile.
                    unsafe { W::load_global(part.at.offset(byte as u64)).store_shared(to) };
                    byte += W::BYTES as i32;
                }
            }
            number += thread::block_width();
        }
    }

    /// Writes the starts of the rows of a run of the destination, and one more.
    ///
    /// # Safety
    ///
    /// No other thread accesses the table before the next barrier.
    #[inline(always)]
    unsafe fn write_rows(&self) {
        let mut row = thread::thread_x();
        while row < self.params.table as u32 {
            let room = walk(row, &self.params.rows, self.params.rows_rank, NO_LIMITS).room;
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { B16::new(room).store_shared(self.tables.offset(row * 2)) };
            row += thread::block_width();
        }
    }

    /// Returns the offset in shared memory of a row of the destination's runs.
    ///
    /// # Safety
    ///
    /// The row exists or is the one after the last, and the table has been written.
    #[inline(always)]
    unsafe fn row(&self, row: u32) -> u32 {
        let [Digit { room, .. }, ..]: &[Digit; PACKED_AXES] = &self.params.rows;
        // SAFETY: within the table.
        if self.params.table == 0 { row * room } else { unsafe { B16::load_shared(self.tables.offset(row * 2)) }.low() }
    }

    /// Returns the offset in the tile, from the start of a run, of an element of the destination.
    ///
    /// # Safety
    ///
    /// It is an element of a whole tile's run, or lies in the row after the last, and the table has
    /// been written.
    #[inline(always)]
    unsafe fn place(&self, element: u32) -> u32 {
        let row = quotient(element, &self.params.row);
        // SAFETY: as the caller promises.
        let start = unsafe { self.row(row) };
        start + (element - row * self.params.row.value as u32) * self.params.step as u32
    }

    /// Gathers the elements of a granule from `element` of a run of the destination.
    ///
    /// # Safety
    ///
    /// They are elements of a whole tile's run, the tile has been loaded, and no thread writes it
    /// any more.
    #[inline(always)]
    unsafe fn gather<W: Grain>(&self, run: Shared, element: u32) -> W::Granule {
        let (step, extent) = (self.params.step as u32, self.params.row.value as u32);
        let row = quotient(element, &self.params.row);
        let position = element - row * extent;
        // SAFETY: as the caller promises.
        let first = unsafe { self.row(row) } + position * step;
        if W::COUNT_LOG2 == 0 {
            // SAFETY: as the caller promises.
            return unsafe { W::load_shared(run.offset(first)) }.with(W::Granule::ZERO, 0);
        }
        let mut granule = W::Granule::ZERO;
        // Rows of 3 elements and more: a granule has elements of two rows at most.
        if W::COUNT_LOG2 == 1 || extent > 2 {
            let left = extent - position;
            // SAFETY: the row after the last has an entry, too.
            let next = unsafe { self.row(row + 1) }.wrapping_sub(left * step);
            unrolled!(lane < 4 => {
                if lane < 1 << W::COUNT_LOG2 {
                    let start = if (lane as u32) < left { first } else { next };
                    let at = run.offset(start.wrapping_add(lane as u32 * step));
                    // SAFETY: as the caller promises.
                    granule = unsafe { W::load_shared(at) }.with(granule, lane as u32);
                }
            });
        } else {
            unrolled!(lane < 4 => {
                // SAFETY: as the caller promises.
                let at = run.offset(unsafe { self.place(element + lane as u32) });
                // SAFETY: as above.
                granule = unsafe { W::load_shared(at) }.with(granule, lane as u32);
            });
        }
        granule
    }

    /// Gathers the whole vectors of the destination and stores them.
    ///
    /// # Safety
    ///
    /// As for the entry; the tile has been loaded, and no thread writes it any more.
    #[inline(always)]
    unsafe fn store<W: Grain>(&self, cache: impl Cache<Quad>) {
        let side = &self.params.dst_side;
        let (bytes, granules) = (self.len(side) * W::BYTES, VECTOR / W::Granule::BYTES);
        let turn = (thread::thread_x() >> (self.params.turn as u32 & 31)) & (granules - 1);
        let mut number = thread::thread_x();
        while number < Self::vectors(side) {
            // SAFETY: as the caller promises.
            let part = unsafe { self.part_of::<W>(side, self.block.dst, number, bytes) };
            if part.exists && part.is_whole(bytes) {
                let run = self.start.offset(part.room);
                let first = part.from as u32 / W::BYTES;
                let mut held = [0; 4];
                unrolled!(step < 4 => {
                    if step < granules as usize {
                        let granule = (step as u32 + turn) & (granules - 1);
                        // SAFETY: elements of a run.
                        held = unsafe { self.gather::<W>(run, first + (granule << W::COUNT_LOG2)) }.put(held, step);
                    }
                });
                // SAFETY: a vector of the destination, which no other thread has.
                unsafe { cache.store(part.at, rotated(held, turn * (4 / granules))) };
            }
            number += thread::block_width();
        }
    }

    /// Stores the elements of the vectors that a run holds in part, its first and its last. Lanes
    /// that follow each other store granules that do, so that a vector takes one access to memory.
    ///
    /// # Safety
    ///
    /// As [`store`](Self::store).
    #[inline(always)]
    unsafe fn store_ends<W: Grain>(&self) {
        let side = &self.params.dst_side;
        let (bytes, width) = (self.len(side) * W::BYTES, W::Granule::BYTES);
        let granules = VECTOR / width;
        // The last threads have the fewest whole vectors.
        let mut number = thread::block_width() - 1 - thread::thread_x();
        while number < side.runs as u32 * 2 * granules {
            let is_last = number & granules != 0;
            // SAFETY: as the caller promises.
            let run = unsafe { self.run::<W>(side, self.block.dst, number / (2 * granules)) };
            let last = (run.at.misalignment() + bytes - 1) / VECTOR;
            let part = Self::part(run, if is_last { last } else { 0 }, bytes);
            if part.exists && !part.is_whole(bytes) && (last != 0 || !is_last) {
                let from = part.from + ((number & (granules - 1)) * width) as i32;
                let at = part.at.offset(u64::from((number & (granules - 1)) * width));
                let shared = self.start.offset(part.room);
                if from >= 0 && from + width as i32 <= bytes as i32 {
                    // SAFETY: elements of a run.
                    let granule = unsafe { self.gather::<W>(shared, from as u32 / W::BYTES) };
                    // SAFETY: a granule of the destination, which no other thread has.
                    unsafe { granule.store_global(at) };
                } else if W::COUNT_LOG2 > 0 {
                    for lane in 0..1 << W::COUNT_LOG2 {
                        let byte = from + (lane * W::BYTES) as i32;
                        if byte >= 0 && byte < bytes as i32 {
                            // SAFETY: an element of a run.
                            let from = shared.offset(unsafe { self.place(byte as u32 / W::BYTES) });
                            // SAFETY: within the tile, which no thread writes any more.
                            let element = unsafe { W::load_shared(from) };
                            // SAFETY: an element of the destination, which no other thread has.
                            unsafe { element.store_global(at.offset(u64::from(lane * W::BYTES))) };
                        }
                    }
                }
            }
            number += thread::block_width();
        }
    }
}

/// Returns the bytes of a vector that belong to its run.
#[inline(always)]
fn part_of_vector(part: Part, bytes: u32) -> (i32, i32) {
    let (from, left) = (part.from.wrapping_neg(), bytes as i32 - part.from);
    (if from > 0 { from } else { 0 }, if left < VECTOR as i32 { left } else { VECTOR as i32 })
}

/// Moves several axes at a time by vectors, from the runs of the source to those of the
/// destination.
///
/// # Safety
///
/// See [`PackedQuadsParams`]: all elements are allocated, and no other work writes them.
#[inline(always)]
pub unsafe fn packed_quads<W: Grain, C: Cache<Quad>>(params: PackedQuadsParams) {
    let cache = C::new();
    // SAFETY: as the caller promises; `load` writes the whole tile.
    unsafe { through_tile::<W, _>(&params, cache, |tile| tile.load::<W>(cache)) };
}

/// Moves several axes at a time from runs with elements between theirs, which belong to others and
/// are not read: by elements from the source, by vectors to the destination.
///
/// # Safety
///
/// As [`packed_quads`].
#[inline(always)]
pub unsafe fn packed_stepped<W: Grain>(params: PackedQuadsParams) {
    // SAFETY: as the caller promises; `load_elements` writes the whole tile.
    unsafe { through_tile::<W, _>(&params, Unhinted, |tile| tile.load_elements::<W>()) };
}

/// Loads a tile, and stores the destination's runs from it.
///
/// # Safety
///
/// As [`packed_quads`]; every thread returns from `load`, and the threads together load the tile
/// and write the destination's tables.
#[inline(always)]
unsafe fn through_tile<W: Grain, C: Cache<Quad>>(params: &PackedQuadsParams, cache: C, load: impl FnOnce(&Tile)) {
    let tile = Tile::new::<W>(params);
    if params.src_side.outer_rank as u32 > 1 {
        // SAFETY: no thread reads the table before the barrier.
        unsafe { tile.write_runs(&params.src_side) };
        // SAFETY: every thread of the block comes here, because all have the same parameters.
        unsafe { thread::barrier() };
    }
    load(&tile);
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    // SAFETY: as the caller promises.
    unsafe { tile.store_ends::<W>() };
    // SAFETY: as the caller promises.
    unsafe { tile.store::<W>(cache) };
}
