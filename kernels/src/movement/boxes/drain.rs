//! Gathers the vectors of a box's lines and stores them.

use super::fetch::Fetch;
use super::gather::{Gather, turned};
use super::place::Place;
use super::tables::divided;
use super::{Tile, VECTOR};
use crate::abi::{ENDS_BOTH, HAS_EDGES, ON_VECTORS, ROWS_DIFFER, TAKES_HEADS};
use crate::thread::quad::rotated;
use crate::thread::{self, B32, B32x2, Global, Shared, Word};
use crate::unrolled;

/// Most vectors that a thread gathers at once. With four, entries of 4 bytes spill on `sm_80`.
const GATHERS: usize = 3;

/// The vectors that a thread moves: the same of each line of a slice.
struct Vectors<const N: usize> {
    /// The places of the elements in the order in which they are gathered.
    places: [u32; N],
    /// The words by which that order is turned.
    turn: u32,
    /// The vector of a line that starts at the box.
    dst: Global,
    /// Bytes from the start of a line.
    from: u32,
    /// Bytes from there to the first element of the vector's sector and behind it.
    of_sector: u32,
}

impl Tile<'_> {
    /// Gathers the vectors of a box's lines and stores them.
    ///
    /// # Safety
    ///
    /// As for the entry; the rows have been fetched, and no thread writes them any more.
    #[inline(always)]
    pub(super) unsafe fn drain<W: Gather, const N: usize, const G: u32>(&self, place: &Place, fetch: impl Fetch) {
        let params = self.params;
        let aligned = self.aligned();
        let (both, takes_heads) = (self.has(ENDS_BOTH), self.has(TAKES_HEADS));
        let delta = if self.has(ROWS_DIFFER) { 0 } else { place.src.low() & (G - 1) };
        let tile = self.tables.offset(params.tile - place.lacking + delta);
        let (goes_on, bytes) = (takes_heads && !place.is_last(), place.len * W::BYTES);
        let is_plain = place.limit >= params.limit && !(both && place.is_last());
        let units = params.slices * params.vectors;
        let mut unit = thread::thread_x();
        while unit < units {
            let slice = divided(unit, params.vectors_multiplier, params.vectors_shift);
            let vector = unit - slice * params.vectors;
            unit += thread::block_width();
            // SAFETY: the tables have been written.
            let found = unsafe { self.slice(slice) };
            let from = (place.dst.low().wrapping_add(found.high()).wrapping_neg() & (aligned - 1)) + VECTOR * vector;
            // Both vectors of a sector that starts within the line belong to the line that goes on.
            let of_sector = from - VECTOR * (vector & (aligned / VECTOR - 1)) + W::BYTES;
            if (if goes_on || both && takes_heads { of_sector } else { from + VECTOR }) > bytes {
                continue;
            }
            let turn = if W::BYTES <= 4 && params.turn > 0 { vector >> (params.turn - 1) & 3 } else { 0 };
            let mut places = [0; N];
            unrolled!(lane < 16 => {
                if lane < N {
                    let element = from / W::BYTES + turned::<N>(lane as u32, turn);
                    // SAFETY: an element of the line, or of the head of the next.
                    places[lane] = unsafe { B32::load_shared(self.place_entry::<N>(element)) }.low();
                }
            });
            let vectors = Vectors { places, turn, dst: place.dst.offset(u64::from(from)), from, of_sector };
            let line = params.line_table + 8 * (found.low() & 0xffff);
            let lines = [line, line + 8 * (found.low() >> 16)];
            // SAFETY: as the caller promises.
            unsafe {
                if is_plain {
                    self.store_all::<W, N>(&vectors, tile, lines, fetch);
                } else {
                    self.store_wanted::<W, N>(&vectors, place, tile, lines, fetch);
                }
            }
        }
        if self.has(HAS_EDGES) && (!takes_heads || place.is_first() || place.is_last()) {
            // SAFETY: as the caller promises.
            unsafe { self.store_edges::<W, N>(place, tile) };
        }
    }

    /// Returns the first line of a slice, with the number of its lines in the upper half, and the
    /// distance of the lines from a sector.
    ///
    /// # Safety
    ///
    /// The table of slices has been written, if there is one.
    #[inline(always)]
    unsafe fn slice(&self, slice: u32) -> B32x2 {
        let params = self.params;
        if !self.has(ON_VECTORS) {
            // SAFETY: as the caller promises.
            return unsafe { B32x2::load_shared(self.tables.offset(params.slice_table + 8 * slice)) };
        }
        let first = slice * params.slice;
        let left = params.lines - first;
        B32x2::new(first | (if left < params.slice { left } else { params.slice }) << 16, 0)
    }

    /// Moves the vectors of lines, whose entries lie between two places.
    ///
    /// # Safety
    ///
    /// As [`drain`](Self::drain); every line has the vector.
    #[inline(always)]
    unsafe fn store_all<W: Gather, const N: usize>(
        &self,
        vectors: &Vectors<N>,
        tile: Shared,
        [mut line, end]: [u32; 2],
        fetch: impl Fetch,
    ) {
        let many = if W::BYTES == 4 { GATHERS as u32 } else { 2 };
        while line + 8 * (many - 1) < end {
            let (mut entries, mut held) = ([B32x2::ZERO; GATHERS], [[0; 4]; GATHERS]);
            unrolled!(step < GATHERS => {
                if (step as u32) < many {
                    // SAFETY: the table of lines has been written.
                    entries[step] = unsafe { self.line(line + 8 * step as u32) };
                }
            });
            unrolled!(step < GATHERS => {
                if (step as u32) < many {
                    // SAFETY: elements of the box, which have been fetched.
                    held[step] = unsafe { W::gather(&vectors.places, tile.offset(entries[step].low())) };
                }
            });
            unrolled!(step < GATHERS => {
                if (step as u32) < many {
                    let to = vectors.dst.offset(u64::from(entries[step].high()));
                    // SAFETY: a vector of the destination, which no other thread has.
                    unsafe { fetch.store(to, rotated(held[step], vectors.turn)) };
                }
            });
            line += 8 * many;
        }
        while line < end {
            // SAFETY: as the caller promises.
            unsafe { self.store_one::<W, N>(vectors, tile, line, fetch) };
            line += 8;
        }
    }

    /// Moves the vectors of those lines that have them.
    ///
    /// # Safety
    ///
    /// As [`drain`](Self::drain).
    #[inline(always)]
    unsafe fn store_wanted<W: Gather, const N: usize>(
        &self,
        vectors: &Vectors<N>,
        place: &Place,
        tile: Shared,
        [mut line, end]: [u32; 2],
        fetch: impl Fetch,
    ) {
        let takes_heads = self.has(TAKES_HEADS);
        while line < end {
            // SAFETY: the table of lines has been written.
            let index = unsafe { self.index(line) };
            let mut is_wanted = index < place.limit;
            if self.has(ENDS_BOTH) && is_wanted {
                let goes_on = takes_heads && (!place.is_last() || index + self.params.step < place.limit);
                let reach = if goes_on { vectors.of_sector } else { vectors.from + VECTOR };
                is_wanted = reach <= self.line_len(place, index) * W::BYTES;
            }
            if is_wanted {
                // SAFETY: as the caller promises.
                unsafe { self.store_one::<W, N>(vectors, tile, line, fetch) };
            }
            line += 8;
        }
    }

    /// Moves the vector of a line.
    ///
    /// # Safety
    ///
    /// As [`drain`](Self::drain); the line has the vector.
    #[inline(always)]
    unsafe fn store_one<W: Gather, const N: usize>(
        &self,
        vectors: &Vectors<N>,
        tile: Shared,
        line: u32,
        fetch: impl Fetch,
    ) {
        // SAFETY: the table of lines has been written.
        let entry = unsafe { self.line(line) };
        // SAFETY: elements of the box, which have been fetched.
        let held = unsafe { W::gather(&vectors.places, tile.offset(entry.low())) };
        let to = vectors.dst.offset(u64::from(entry.high()));
        // SAFETY: a vector of the destination, which no other thread has.
        unsafe { fetch.store(to, rotated(held, vectors.turn)) };
    }

    /// Returns the start of the line with its entry at `line`, in shared memory and in the
    /// destination.
    ///
    /// # Safety
    ///
    /// The table has been written.
    #[inline(always)]
    unsafe fn line(&self, line: u32) -> B32x2 {
        // SAFETY: as the caller promises.
        unsafe { B32x2::load_shared(self.tables.offset(line)) }
    }

    /// Returns the index, along the axis that ends rows, of the line with its entry at `line`.
    ///
    /// # Safety
    ///
    /// The table has been written.
    #[inline(always)]
    unsafe fn index(&self, line: u32) -> u32 {
        let at = self.params.indices + (line - self.params.line_table) / 2;
        // SAFETY: as the caller promises.
        unsafe { B32::load_shared(self.tables.offset(at)) }.low()
    }

    /// Returns the elements of the line with this index.
    #[inline(always)]
    fn line_len(&self, place: &Place, index: u32) -> u32 {
        let left = self.params.unit * (place.limit - index);
        if self.has(ENDS_BOTH) && left < place.len { left } else { place.len }
    }

    /// Stores the elements of lines that no vector has, one by one.
    ///
    /// # Safety
    ///
    /// As [`drain`](Self::drain).
    #[inline(always)]
    unsafe fn store_edges<W: Gather, const N: usize>(&self, place: &Place, tile: Shared) {
        let params = self.params;
        let aligned = self.aligned();
        let (both, takes_heads) = (self.has(ENDS_BOTH), self.has(TAKES_HEADS));
        let most = aligned / W::BYTES;
        let mut number = thread::thread_x();
        while number < 2 * most * params.lines {
            let (lane, rest) = (number & (most - 1), number / most);
            let (is_tail, line) = (rest & 1 != 0, params.line_table + 8 * (rest / 2));
            number += thread::block_width();
            // SAFETY: the table of lines has been written.
            let index = unsafe { self.index(line) };
            if index >= place.limit {
                continue;
            }
            let (starts, ends) = if both {
                (place.is_first() && index == 0, place.is_last() && index + params.step >= place.limit)
            } else {
                (place.is_first(), place.is_last())
            };
            if takes_heads && !(if is_tail { ends } else { starts }) {
                continue;
            }
            // SAFETY: the table of lines has been written.
            let entry = unsafe { self.line(line) };
            let (len, lies) = (self.line_len(place, index), place.dst.low().wrapping_add(entry.high()));
            let head = (lies.wrapping_neg() & (aligned - 1)) / W::BYTES;
            let element = if is_tail {
                let whole = ((lies & 15) + len * W::BYTES & !15).saturating_sub(lies & 15) / W::BYTES;
                lane + if whole < head { head } else { whole }
            } else if lane < head {
                lane
            } else {
                continue;
            };
            if element < len {
                // SAFETY: an element of the line.
                let found = unsafe { B32::load_shared(self.place_entry::<N>(element)) }.low();
                // SAFETY: an element of the box, which has been fetched.
                let part = unsafe { W::load_shared(tile.offset(entry.low() + found)) };
                let to = place.dst.offset(u64::from(entry.high() + element * W::BYTES));
                // SAFETY: an element of the destination, which no other thread has.
                unsafe { part.store_global(to) };
            }
        }
    }
}
