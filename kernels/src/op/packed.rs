//! Tiles of several axes: what is contiguous in memory, on either side, goes over axis after axis.
//!
//! A block loads the source's runs as they lie, in words of 4 bytes or of one element, and keeps them in shared memory in the
//! source's order. Each axis has a stride there, so that where a run starts and where an element lies in it add up: two small
//! tables a side replace the divisions. Words keep the alignment that they have in the source, because strides agree modulo a
//! word; so no word is ever shifted. For the destination's words their elements are gathered by its own tables.

use crate::abi::{Axis, Digit, Divisor, PACKED_AXES, PACKED_THREADS, PackedParams, PackedSide};
use crate::axes::{self, Offsets};
use crate::block;
use crate::index::{Index, Narrow};
use crate::op::fields::Grain;
use crate::thread::{self, B16, B32x2, Global, Shared, Word};
use crate::unrolled;

/// Words that a thread has in flight from global memory.
const LOADS: usize = 8;
/// Words that it gathers at once.
const STORES: usize = 4;
/// The place of a run that is past the end of a chunked axis.
const PAST: u32 = u32::MAX;

/// What a block moves.
struct Tile<'a> {
    params: &'a PackedParams,
    src: Global,
    dst: Global,
    /// Positions of the chunked axes that there are.
    valid: [u32; 2],
    tables: Shared,
    /// Where the element at `src` lies: as far off a word as in global memory.
    start: Shared,
}

/// Where a run starts.
#[derive(Clone, Copy)]
struct Run {
    at: Global,
    shared: Shared,
    exists: bool,
}

/// The words of a run.
#[derive(Clone, Copy)]
struct Span {
    /// Of the run, past a whole number of words.
    lead: u32,
    /// Of the run.
    bytes: u32,
}

impl Span {
    /// Where a word starts in the run; negative where it starts before.
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
        let number = block::linear::<I>();
        let [first, second] = &params.chunks;
        let above = number.divide(&second.extent);
        let images = above.divide(&first.extent);
        let parts = [axes::remainder(above, images, &first.extent), axes::remainder(number, above, &second.extent)];
        let [Offsets { src, dst }] = axes::offsets([images], &params.axes, params.rank);
        let along = |stride: fn(&Axis) -> i64, start: I| {
            let step = |axis: &Axis, part: I| part * I::truncate(stride(axis) as u64);
            bytes::<W, I>(start + step(first, parts[0]) + step(second, parts[1]))
        };
        let valid = |which: usize| {
            let left = I::truncate(params.extents[which]) - parts[which] * I::truncate(params.chunk[which]);
            let most = params.chunk[which] as u32;
            if left < I::new(most) { left.low() } else { most }
        };
        let src = Global::new(params.src).offset(along(|axis| axis.src_stride, src));
        let tables = Shared::dynamic();
        Tile {
            params,
            src,
            dst: Global::new(params.dst).offset(along(|axis| axis.dst_stride, dst)),
            valid: [valid(0), valid(1)],
            tables,
            start: tables.offset(params.tile as u32 + (src.low() & (W::Granule::BYTES - 1))),
        }
    }

    /// Elements of this tile's runs.
    #[inline(always)]
    fn len(&self, side: &PackedSide) -> u32 {
        match side.chunk {
            0 => side.unit as u32 * self.valid[0],
            1 => side.unit as u32 * self.valid[1],
            _ => side.len as u32,
        }
    }

    /// Writes where the runs of a side start.
    ///
    /// # Safety
    ///
    /// Nothing else accesses the table before the next barrier.
    #[inline(always)]
    unsafe fn write_runs(&self, side: &PackedSide) {
        let mut number = thread::thread_x();
        while number < side.runs as u32 {
            let limits = [(side.chunked[0], self.valid[0]), (side.chunked[1], self.valid[1])];
            let place = walk(number, &side.outer, side.outer_rank, limits);
            let entry = B32x2::new(place.stride, place.room);
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { entry.store_shared(self.tables.offset(side.run_table as u32 + number * 8)) };
            number += PACKED_THREADS;
        }
    }

    /// Writes where the words of a run of the source lie, and the elements of one of the destination.
    ///
    /// # Safety
    ///
    /// As [`write_runs`](Self::write_runs).
    #[inline(always)]
    unsafe fn write_places<W: Grain>(&self) {
        let (src, dst) = (&self.params.src_side, &self.params.dst_side);
        let mut number = thread::thread_x();
        while number < src.words.value as u32 {
            let place = walk(number << W::COUNT_LOG2, &src.inner, src.inner_rank, NO_LIMITS).room;
            // SAFETY: within the table, and each thread has its own entries.
            unsafe { B16::new(place).store_shared(self.tables.offset(src.table as u32 + number * 2)) };
            number += PACKED_THREADS;
        }
        let mut number = thread::thread_x();
        let mask = (1 << W::COUNT_LOG2) - 1;
        while number < (dst.words.value as u32) << W::COUNT_LOG2 {
            let turned = (number >> W::COUNT_LOG2 & self.params.turn as u32) / (8 * W::BYTES);
            let element = number & !mask | (number + turned) & mask;
            let place = walk(element, &dst.inner, dst.inner_rank, NO_LIMITS).room;
            // SAFETY: as above.
            unsafe { B16::new(place).store_shared(self.tables.offset(dst.table as u32 + number * 2)) };
            number += PACKED_THREADS;
        }
    }

    /// Run `number` of a side.
    ///
    /// # Safety
    ///
    /// It is one of its runs, and the tables have been written.
    #[inline(always)]
    unsafe fn run<W: Word>(&self, side: &PackedSide, start: Global, number: u32) -> Run {
        // SAFETY: within the table, which nothing writes any more.
        let entry = unsafe { B32x2::load_shared(self.tables.offset(side.run_table as u32 + number * 8)) };
        let (stride, room) = (entry.low() as i32, entry.high());
        let bytes = (i64::from(stride) * i64::from(W::BYTES)) as u64;
        Run { at: start.offset(bytes), shared: self.start.offset(room), exists: room != PAST }
    }

    /// What is in a run that starts there.
    #[inline(always)]
    fn span<W: Grain>(&self, side: &PackedSide, run: Run) -> Span {
        Span { lead: run.at.low() & (W::Granule::BYTES - 1), bytes: self.len(side) * W::BYTES }
    }

    /// The entry of a table of 2 bytes each.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run).
    #[inline(always)]
    unsafe fn place(&self, side: &PackedSide, number: u32) -> u32 {
        // SAFETY: within the table, which nothing writes any more.
        unsafe { B16::load_shared(self.tables.offset(side.table as u32 + number * 2)) }.low()
    }

    /// Whether a word of the source may be read as a whole though not all of it is of the run: nothing outside the elements is.
    #[inline(always)]
    fn is_inside<W: Grain>(&self, at: Global) -> bool {
        let (start, end) = (Global::new(self.params.src_start), Global::new(self.params.src_end));
        self.params.src_end != 0 && !at.is_before(start) && !end.is_before(at.offset(u64::from(W::Granule::BYTES)))
    }

    /// Loads the words of the tile to shared memory.
    ///
    /// # Safety
    ///
    /// As the entry's; the tables have been written, and nothing else accesses the tile before the next barrier.
    #[inline(always)]
    unsafe fn load<W: Grain>(&self) {
        let side = &self.params.src_side;
        let (width, words) = (W::Granule::BYTES, side.words.value as u32 * side.runs as u32);
        let mut first = thread::thread_x();
        while first < words {
            let mut held = [W::Granule::ZERO; LOADS];
            let mut places = [None; LOADS];
            unrolled!(step < LOADS => {
                let number = first + step as u32 * PACKED_THREADS;
                if number < words {
                    let run_number = divide(number, &side.words);
                    let word = number - run_number * side.words.value as u32;
                    // SAFETY: a run of the source, as the caller promises.
                    let run = unsafe { self.run::<W>(side, self.src, run_number) };
                    let span = self.span::<W>(side, run);
                    let from = span.from(word, width);
                    let at = run.at.offset(i64::from(from) as u64);
                    let some = from < span.bytes as i32 && run.exists;
                    if some && (span.is_whole(from, width) || W::COUNT_LOG2 > 0 && self.is_inside::<W>(at)) {
                        // SAFETY: aligned, and elements of the source.
                        held[step] = unsafe { W::Granule::load_global(at) };
                        // SAFETY: a word of a run.
                        let place = unsafe { self.place(side, word) };
                        places[step] = Some(run.shared.offset(place.wrapping_sub(span.lead)));
                    }
                }
            });
            unrolled!(step < LOADS => {
                if let Some(place) = places[step] {
                    // SAFETY: within the tile, where each word has its own place.
                    unsafe { held[step].store_shared(place) };
                }
            });
            first += LOADS as u32 * PACKED_THREADS;
        }
        if W::COUNT_LOG2 > 0 {
            // SAFETY: as the caller promises.
            unsafe { self.load_ends::<W>() };
        }
    }

    /// Loads what lies in words that may not be read as a whole, element by element.
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
            let run = unsafe { self.run::<W>(side, self.src, number / 2) };
            let span = self.span::<W>(side, run);
            let last = (span.lead + span.bytes - 1) / width;
            let word = if number & 1 == 0 { 0 } else { last };
            let from = span.from(word, width);
            let at = run.at.offset(i64::from(from) as u64);
            let single = number & 1 == 0 || last != 0;
            if run.exists && single && !span.is_whole(from, width) && !self.is_inside::<W>(at) {
                // SAFETY: a word of a run.
                let place = unsafe { self.place(side, word) };
                let shared = run.shared.offset(place.wrapping_sub(span.lead));
                for lane in 0..1 << W::COUNT_LOG2 {
                    let byte = lane * W::BYTES;
                    if from + byte as i32 >= 0 && from + (byte as i32) < span.bytes as i32 {
                        // SAFETY: an element of the source, to its place in the tile.
                        unsafe { W::load_global(at.offset(u64::from(byte))).store_shared(shared.offset(byte)) };
                    }
                }
            }
            number += PACKED_THREADS;
        }
    }

    /// Gathers the words of the destination and stores them.
    ///
    /// # Safety
    ///
    /// As the entry's; the tile has been loaded, and nothing writes it any more.
    #[inline(always)]
    unsafe fn store<W: Grain>(&self) {
        let side = &self.params.dst_side;
        let (width, words) = (W::Granule::BYTES, side.words.value as u32 * side.runs as u32);
        let mut first = thread::thread_x();
        while first < words {
            let mut gathered = [W::Granule::ZERO; STORES];
            let mut places = [None; STORES];
            unrolled!(step < 4 => {
                let number = first + step as u32 * PACKED_THREADS;
                if number < words {
                    let run_number = divide(number, &side.words);
                    let word = number - run_number * side.words.value as u32;
                    // SAFETY: a run of the destination, as the caller promises.
                    let run = unsafe { self.run::<W>(side, self.dst, run_number) };
                    let span = self.span::<W>(side, run);
                    let from = span.from(word, width);
                    if run.exists && span.is_whole(from, width) {
                        let element = from as u32 / W::BYTES;
                        // SAFETY: a whole word of a run.
                        let found = unsafe { self.places::<W>(element) };
                        for lane in 0..1 << W::COUNT_LOG2 {
                            // SAFETY: within the tile, which nothing writes any more.
                            let part = unsafe { W::load_shared(run.shared.offset(found[lane as usize])) };
                            gathered[step] = part.with(gathered[step], lane);
                        }
                        gathered[step] = W::rotated(gathered[step], word & self.params.turn as u32);
                        places[step] = Some(run.at.offset(i64::from(from) as u64));
                    }
                }
            });
            unrolled!(step < 4 => {
                if let Some(to) = places[step] {
                    // SAFETY: a word of the destination, which no other thread has.
                    unsafe { gathered[step].store_global(to) };
                }
            });
            first += STORES as u32 * PACKED_THREADS;
        }
        if W::COUNT_LOG2 > 0 {
            // SAFETY: as the caller promises.
            unsafe { self.store_ends::<W>() };
        }
    }

    /// Where the elements of a word of the destination lie in shared memory, from the start of the run; `element` is its first.
    ///
    /// # Safety
    ///
    /// All are elements of a run.
    #[inline(always)]
    unsafe fn places<W: Grain>(&self, element: u32) -> [u32; 4] {
        let side = &self.params.dst_side;
        let mut places = [0; 4];
        if W::COUNT_LOG2 == 2 && side.aligned != 0 {
            // SAFETY: within the table, and aligned because words are.
            let four = unsafe { B32x2::load_shared(self.tables.offset(side.table as u32 + element * 2)) };
            places = [four.low() & 0xffff, four.low() >> 16, four.high() & 0xffff, four.high() >> 16];
        } else {
            for lane in 0..1 << W::COUNT_LOG2 {
                // SAFETY: within the table.
                places[lane] = unsafe { self.place(side, element + lane as u32) };
            }
        }
        places
    }

    /// Stores what of a run is less than a word, element by element.
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
            let run = unsafe { self.run::<W>(side, self.dst, number / 2) };
            let span = self.span::<W>(side, run);
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
                        // SAFETY: within the tile, which nothing writes any more.
                        let part = unsafe { W::load_shared(run.shared.offset(place)) };
                        // SAFETY: an element of the destination, which no other thread has.
                        unsafe { part.store_global(run.at.offset(u64::from(byte as u32))) };
                    }
                }
            }
            number += PACKED_THREADS;
        }
    }
}

/// Offsets in elements, and in bytes of shared memory, or [`PAST`].
struct Place {
    stride: u32,
    room: u32,
}

const NO_LIMITS: [(u64, u32); 2] = [(u64::MAX, 0); 2];

/// Where a number lies by its digits; the last is not reduced. Past where the digit of a place is not below its limit.
#[inline(always)]
fn walk(number: u32, digits: &[Digit; PACKED_AXES], rank: u64, limits: [(u64, u32); 2]) -> Place {
    let (mut rest, mut place, mut past) = (number, Place { stride: 0, room: 0 }, false);
    macro_rules! walk {
        ($($axis:literal)*) => {
            'walk: {$(
                if rank <= $axis {
                    break 'walk;
                }
                let Digit { extent, multiplier, shift, room, stride } = digits[$axis];
                let by = Divisor {
                    value: u64::from(extent), multiplier: u64::from(multiplier), shift: u64::from(shift)
                };
                let quotient = if rank == $axis + 1 { 0 } else { divide(rest, &by) };
                let position = rest - quotient * extent;
                for (of, limit) in limits {
                    past |= of == $axis && position >= limit;
                }
                place.stride = place.stride.wrapping_add(position.wrapping_mul(stride as u32));
                place.room = place.room.wrapping_add(position * room);
                rest = quotient;
            )*}
        };
    }
    walk!(0 1 2 3 4 5);
    Place { room: if past { PAST } else { place.room }, ..place }
}

#[inline(always)]
fn divide(number: u32, by: &Divisor) -> u32 {
    let number: Narrow = Index::new(number);
    number.divide(by).low()
}

#[inline(always)]
fn bytes<W: Word, I: Index>(elements: I) -> u64 {
    elements.sign_extend().wrapping_mul(u64::from(W::BYTES))
}

/// Several axes at a time, from the runs of the source to those of the destination.
///
/// # Safety
///
/// See [`PackedParams`]: all elements are allocated, and nothing else writes them.
#[inline(always)]
pub unsafe fn packed<W: Grain, I: Index>(params: PackedParams) {
    let tile = Tile::new::<W, I>(&params);
    // SAFETY: before the barrier nothing reads the tables.
    unsafe { tile.write_runs(&params.src_side) };
    // SAFETY: as above.
    unsafe { tile.write_runs(&params.dst_side) };
    // SAFETY: as above.
    unsafe { tile.write_places::<W>() };
    // SAFETY: every thread of the block comes here: nothing above returns.
    unsafe { thread::barrier() };
    // SAFETY: as the caller promises.
    unsafe { tile.load::<W>() };
    // SAFETY: as above.
    unsafe { thread::barrier() };
    // SAFETY: as the caller promises.
    unsafe { tile.store::<W>() };
}
