//! Moves any order, step and sign of axes by boxes, for runs that start anywhere on either side.
//!
//! Origin: our own.
//!
//! A block fetches the rows of a box, the runs of the source that hold its elements, and keeps them
//! in shared memory as they lie: a row keeps its distance from a granule, so nothing is shifted.
//! Element `k` of the box's line `j`, a run of the destination, then lies at `place[k] + start[j]`.
//! Two tables replace all index arithmetic. The block writes them once and moves many boxes.
//!
//! Lines whose vectors start alike form a slice. A thread looks the places of a vector up once for
//! all lines of a slice, and gathers the vector of each line from there.
//!
//! A line ends at a whole sector of the destination: its last sector takes the head of the line
//! that follows, for which the box has a few rows more. Two writes of parts of a sector cost far
//! more than the rows.
//!
//! ```text
//! tables: rows, places, lines sorted by the distance of their first element from a sector, slices
//! for each box of the block:
//!     for each granule of the rows: copy it to shared memory
//!     barrier
//!     for each vector of each slice:
//!         look the places of its elements up
//!         for each line of the slice: gather them from place + start of the line, store the vector
//!     store the elements before the first whole sector, and behind the last one
//!     barrier
//! ```

mod drain;
mod fetch;
mod gather;
mod place;
mod tables;

use self::fetch::Fetch;
use self::gather::Gather;
use crate::abi::{BoxesParams, ROWS_DIFFER, TAKES_HEADS};
use crate::thread::{self, B32, Global, Shared, Word};

/// Bytes of a vector of the destination.
const VECTOR: u32 = 16;
/// Bytes of a sector of the destination.
const SECTOR: u32 = 32;
/// Bytes from the state to the number of the next box, which lies in a gap between places.
const NEXT_BOX: u32 = 44;

/// A block's part of shared memory, and the parameters.
struct Tile<'a> {
    params: &'a BoxesParams,
    tables: Shared,
}

impl Tile<'_> {
    #[inline(always)]
    fn has(&self, flag: u32) -> bool {
        self.params.flags & flag != 0
    }

    /// Returns the bytes to which destination vectors of lines are aligned.
    #[inline(always)]
    fn aligned(&self) -> u32 {
        if self.has(TAKES_HEADS) { SECTOR } else { 16 }
    }

    /// Returns the address of the entry of a place: lanes that gather neighbouring vectors look up
    /// entries in different banks.
    #[inline(always)]
    fn place_entry<const N: usize>(&self, element: u32) -> Shared {
        let spread = if N == 1 { 0 } else { element / N as u32 };
        self.tables.offset(self.params.places + 4 * (element + spread))
    }

    #[inline(always)]
    fn state(&self, word: u32, number: u32) -> Shared {
        self.tables.offset(self.params.state + word + 4 * number)
    }

    /// Divides a number of threads by the granules of a row.
    #[inline(always)]
    fn over_granules(&self, threads: u32) -> u32 {
        let by = self.params.granules_multiplier;
        if by == 0 { threads } else { thread::high_product(threads, by) }
    }
}

impl Tile<'_> {
    /// Returns whether this thread asks for the block's boxes: rows keep the first warps busy.
    #[inline(always)]
    fn asks() -> bool {
        thread::thread_x() == thread::block_width() - 32
    }

    /// Asks for the box behind one, and writes that one's place. Returns the answer.
    ///
    /// # Safety
    ///
    /// As [`write_place`](Tile::write_place).
    #[inline(always)]
    unsafe fn follow(&self, which: u32, number: u32) -> u32 {
        let mut next = number;
        if Self::asks() {
            if number < self.params.boxes {
                next = if self.params.counter == 0 {
                    number + thread::grid_x()
                } else {
                    let counter = Global::new(self.params.counter);
                    // SAFETY: the host gives a counter that only this launch uses.
                    thread::grid_x() + unsafe { thread::count_up(counter, self.params.boxes - 1) }
                };
            }
            // SAFETY: as the caller promises.
            unsafe { self.write_place(which, number) };
        }
        next
    }

    /// Keeps the number of the next box: a register would hold it while vectors are gathered.
    ///
    /// # Safety
    ///
    /// The state is the block's own.
    #[inline(always)]
    unsafe fn keep(&self, next: u32) {
        if Self::asks() {
            // SAFETY: within the state, where this thread alone accesses it.
            unsafe { B32::new(next).store_shared(self.state(NEXT_BOX, 0)) };
        }
    }

    /// Returns the number that this thread has kept; 0 on other threads.
    ///
    /// # Safety
    ///
    /// As [`keep`](Self::keep).
    #[inline(always)]
    unsafe fn kept(&self) -> u32 {
        if !Self::asks() {
            return 0;
        }
        // SAFETY: within the state, where this thread alone accesses it.
        unsafe { B32::load_shared(self.state(NEXT_BOX, 0)) }.low()
    }
}

/// Moves boxes: block `b` has the `b`th first, and then those that it asks for.
///
/// # Safety
///
/// See [`BoxesParams`]: all elements and the bytes between those of the source are allocated, and
/// no work writes them, this launch those of the destination apart.
#[inline(always)]
pub unsafe fn boxes<W: Gather, C: Fetch, const N: usize, const G: u32>(params: BoxesParams) {
    let fetch = <C as Fetch>::new();
    let tile = Tile { params: &params, tables: Shared::dynamic() };
    let (mut which, mut is_first) = (0, true);
    // SAFETY: no other thread accesses them before the barrier.
    unsafe { tile.write_axes() };
    // SAFETY: every thread of the block comes here.
    unsafe { thread::barrier() };
    // SAFETY: no other thread accesses it before the barrier.
    let next = unsafe { tile.follow(0, thread::block_x()) };
    // SAFETY: no thread accesses the table before the barrier.
    unsafe { tile.write_rows::<N>() };
    // SAFETY: no other thread accesses it.
    unsafe { tile.keep(next) };
    // SAFETY: every thread of the block comes here.
    unsafe { thread::barrier() };
    loop {
        // SAFETY: it has been written before the last barrier.
        let place = unsafe { tile.read_place(which) };
        // SAFETY: as the caller promises; all threads are done with the box before.
        unsafe { tile.fetch::<G>(&place, fetch) };
        if is_first {
            // The first rows are on their way meanwhile.
            // SAFETY: every thread of the block comes here.
            unsafe { tile.write_tables::<N>() };
            is_first = false;
        }
        if tile.has(ROWS_DIFFER) {
            // SAFETY: all threads are done with the box before.
            unsafe { tile.move_places::<N, G>(place.src.low() & (G - 1)) };
        }
        // SAFETY: all threads are done with the box before.
        let next = unsafe { tile.follow(which ^ 1, tile.kept()) };
        // The answer comes meanwhile.
        fetch.wait();
        // SAFETY: no other thread accesses it.
        unsafe { tile.keep(next) };
        // SAFETY: every thread of the block comes here: all have the same boxes.
        unsafe { thread::barrier() };
        // A thread keeps no place in registers meanwhile.
        // SAFETY: as above.
        let place = unsafe { tile.read_place(which) };
        // SAFETY: as the caller promises.
        unsafe { tile.drain::<W, N, G>(&place, fetch) };
        which = place.which() ^ 1;
        // SAFETY: it has been written before the last barrier.
        if unsafe { tile.number_of(which) } >= params.boxes {
            return;
        }
        // SAFETY: as above.
        unsafe { thread::barrier() };
    }
}
