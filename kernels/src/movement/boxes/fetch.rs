//! Copies the rows of a box to shared memory.

use super::Tile;
use super::place::Place;
use crate::thread::cache::{Cache, Hinted, Unhinted};
use crate::thread::{self, B8, B32x2, Global, Quad, Shared, Word};
use crate::unrolled;

/// Granules that a thread has in flight, where it waits for them.
const FETCHES: usize = 4;

/// A copy of whole granules to shared memory.
pub trait Fetch: Copy {
    /// Makes it, once a thread.
    fn new() -> Self;

    /// Copies the wanted granules of `G` bytes.
    ///
    /// # Safety
    ///
    /// Wanted granules are aligned, allocated and not written meanwhile; no other thread accesses
    /// their places in shared memory before the barrier that follows [`wait`](Fetch::wait).
    unsafe fn start<const G: u32>(
        self,
        wanted: impl Fn(usize) -> bool,
        from: impl Fn(usize) -> Global,
        to: impl Fn(usize) -> Shared,
    );

    /// Waits for this thread's copies.
    fn wait(self);

    /// Stores a vector.
    ///
    /// # Safety
    ///
    /// As [`Word::store_global`].
    unsafe fn store(self, to: Global, vector: Quad);
}

impl Fetch for Unhinted {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    #[inline(always)]
    unsafe fn start<const G: u32>(
        self,
        wanted: impl Fn(usize) -> bool,
        from: impl Fn(usize) -> Global,
        to: impl Fn(usize) -> Shared,
    ) {
        if G == 16 {
            let mut held = [[0; 4]; FETCHES];
            unrolled!(step < 4 => {
                if wanted(step) {
                    // SAFETY: as the caller promises.
                    held[step] = unsafe { thread::load_quad(from(step)) };
                }
            });
            unrolled!(step < 4 => {
                if wanted(step) {
                    // SAFETY: as the caller promises.
                    unsafe { thread::store_shared_quad(to(step), held[step]) };
                }
            });
        } else {
            let mut held = [B32x2::ZERO; FETCHES];
            unrolled!(step < 4 => {
                if wanted(step) {
                    // SAFETY: as the caller promises.
                    held[step] = unsafe { B32x2::load_global(from(step)) };
                }
            });
            unrolled!(step < 4 => {
                if wanted(step) {
                    // SAFETY: as the caller promises.
                    unsafe { held[step].store_shared(to(step)) };
                }
            });
        }
    }

    #[inline(always)]
    fn wait(self) {}

    #[inline(always)]
    unsafe fn store(self, to: Global, vector: Quad) {
        // SAFETY: as the caller promises.
        unsafe { thread::store_quad(to, vector) }
    }
}

impl Fetch for Hinted {
    #[inline(always)]
    fn new() -> Self {
        <Self as Cache<Quad>>::new()
    }

    #[inline(always)]
    unsafe fn start<const G: u32>(
        self,
        wanted: impl Fn(usize) -> bool,
        from: impl Fn(usize) -> Global,
        to: impl Fn(usize) -> Shared,
    ) {
        unrolled!(step < 4 => {
            if wanted(step) {
                // SAFETY: as the caller promises.
                unsafe { thread::copy_async_by::<G>(self.loads(), to(step), from(step)) };
            }
        });
    }

    #[inline(always)]
    fn wait(self) {
        thread::wait_for_copies();
    }

    #[inline(always)]
    unsafe fn store(self, to: Global, vector: Quad) {
        // SAFETY: as the caller promises.
        unsafe { <Self as Cache<Quad>>::store(self, to, vector) }
    }
}

/// A thread's next granule of a box.
struct Granule {
    row: u32,
    /// Bytes from the start of the row's first granule.
    at: u32,
}

/// From a granule of a thread to its next one.
struct Stride {
    rows: u32,
    bytes: u32,
    /// Bytes of a row's granules.
    row_end: u32,
}

impl Stride {
    #[inline(always)]
    fn follow(&self, granule: &mut Granule) {
        granule.row += self.rows;
        granule.at += self.bytes;
        if granule.at >= self.row_end {
            granule.row += 1;
            granule.at -= self.row_end;
        }
    }
}

impl Tile<'_> {
    /// Copies the rows of a box to shared memory.
    ///
    /// # Safety
    ///
    /// As for the entry; no other thread accesses the rows before the next barrier.
    #[inline(always)]
    pub(super) unsafe fn fetch<const G: u32>(&self, place: &Place, fetch: impl Fetch) {
        let params = self.params;
        let row = self.over_granules(thread::thread_x());
        let first = Granule { row, at: (thread::thread_x() - row * params.granules) * G };
        let rows = params.rows_at_once;
        let bytes = (thread::block_width() - rows * params.granules) * G;
        let stride = Stride { rows, bytes, row_end: params.granules * G };
        let lead = place.src.low() & (G - 1);
        let src = place.src.offset(u64::from(lead).wrapping_neg());
        let (start, end) = (Global::new(params.src_start), Global::new(params.src_end));
        let (low, high) = (src.offset(u64::from(G).wrapping_neg()), src.offset(u64::from(params.reach + 2 * G)));
        let keeps = bytes == 0 || rows * params.granules * 8 >= thread::block_width() * 7;
        // SAFETY: as the caller promises.
        unsafe {
            if low.is_before(start) || end.is_before(high) {
                self.fetch_within::<G>(place, [src, start, end], lead, first, &stride);
            } else if keeps {
                self.fetch_columns::<G>(place, src, lead, &first, &stride, fetch);
            } else {
                self.fetch_all::<G>(place, src, lead, first, &stride, fetch);
            }
        }
    }

    /// Returns the offset of a row in the source from the box's, and its place in shared memory.
    ///
    /// # Safety
    ///
    /// The table of rows has been written.
    #[inline(always)]
    unsafe fn row(&self, row: u32) -> B32x2 {
        // SAFETY: as the caller promises.
        unsafe { B32x2::load_shared(self.tables.offset(8 * row)) }
    }

    /// Copies the rows of a box that may reach beyond the source.
    ///
    /// # Safety
    ///
    /// As [`fetch`](Self::fetch).
    #[inline(always)]
    unsafe fn fetch_within<const G: u32>(
        &self,
        place: &Place,
        [src, start, end]: [Global; 3],
        lead: u32,
        mut granule: Granule,
        stride: &Stride,
    ) {
        let tile = self.tables.offset(self.params.tile);
        while granule.row < place.rows {
            // SAFETY: the table of rows has been written.
            let found = unsafe { self.row(granule.row) };
            let offset = found.low() + lead + granule.at;
            let (from, to) = (src.offset(u64::from(offset & !(G - 1))), tile.offset(found.high() + granule.at));
            if granule.at < (offset & (G - 1)) + place.row {
                // SAFETY: as the caller promises; granules and bytes within the source.
                unsafe { copy_within::<G>(from, to, [start, end]) };
            }
            stride.follow(&mut granule);
        }
    }

    /// Copies the rows of a box: a thread has the same granule of every `rows`th row.
    ///
    /// # Safety
    ///
    /// As [`fetch`](Self::fetch), for granules that all lie within the source.
    #[inline(always)]
    unsafe fn fetch_columns<const G: u32>(
        &self,
        place: &Place,
        src: Global,
        lead: u32,
        &Granule { mut row, at }: &Granule,
        stride: &Stride,
        fetch: impl Fetch,
    ) {
        if row >= stride.rows {
            return;
        }
        let (from_at, to_at) = (lead + at, self.tables.offset(self.params.tile + at));
        let is_whole = stride.row_end <= place.row;
        while row < place.rows {
            let mut entries = [B32x2::ZERO; FETCHES];
            unrolled!(copy < 4 => {
                if row + copy as u32 * stride.rows < place.rows {
                    // SAFETY: the table of rows has been written.
                    entries[copy] = unsafe { self.row(row + copy as u32 * stride.rows) };
                }
            });
            // SAFETY: granules within the source that hold bytes of rows, or bytes beside.
            unsafe {
                fetch.start::<G>(
                    |copy| {
                        let offset = entries[copy].low() + from_at;
                        row + (copy as u32) * stride.rows < place.rows
                            && (is_whole || at < (offset & (G - 1)) + place.row)
                    },
                    |copy| src.offset(u64::from(entries[copy].low() + from_at & !(G - 1))),
                    |copy| to_at.offset(entries[copy].high()),
                )
            };
            row += 4 * stride.rows;
        }
    }

    /// Copies the rows of a box: a thread has every `threads`th granule.
    ///
    /// # Safety
    ///
    /// As [`fetch_columns`](Self::fetch_columns).
    #[inline(always)]
    unsafe fn fetch_all<const G: u32>(
        &self,
        place: &Place,
        src: Global,
        lead: u32,
        mut granule: Granule,
        stride: &Stride,
        fetch: impl Fetch,
    ) {
        let tile = self.tables.offset(self.params.tile);
        while granule.row < place.rows {
            let (mut entries, mut places) = ([B32x2::ZERO; FETCHES], [u32::MAX; FETCHES]);
            unrolled!(copy < 4 => {
                if granule.row < place.rows {
                    // SAFETY: the table of rows has been written.
                    entries[copy] = unsafe { self.row(granule.row) };
                    places[copy] = granule.at;
                }
                stride.follow(&mut granule);
            });
            // SAFETY: granules within the source that hold bytes of rows, or bytes beside.
            unsafe {
                fetch.start::<G>(
                    |copy| {
                        let offset = entries[copy].low() + lead + places[copy];
                        places[copy] < (offset & (G - 1)) + place.row
                    },
                    |copy| src.offset(u64::from(entries[copy].low() + lead + places[copy] & !(G - 1))),
                    |copy| tile.offset(entries[copy].high() + places[copy]),
                )
            };
        }
    }
}

/// Copies a granule, or those bytes of it that lie between two addresses.
///
/// # Safety
///
/// Such bytes are allocated and not written; no other thread accesses the granule's place in shared
/// memory.
#[inline(always)]
unsafe fn copy_within<const G: u32>(from: Global, to: Shared, [start, end]: [Global; 2]) {
    if !from.is_before(start) && !end.is_before(from.offset(u64::from(G))) {
        let mut word = 0;
        while word < G {
            // SAFETY: bytes of the granule.
            unsafe { B32x2::load_global(from.offset(u64::from(word))).store_shared(to.offset(word)) };
            word += 8;
        }
        return;
    }
    let mut byte = 0;
    while byte < G {
        let at = from.offset(u64::from(byte));
        if !at.is_before(start) && at.is_before(end) {
            // SAFETY: a byte of the source.
            unsafe { B8::load_global(at).store_shared(to.offset(byte)) };
        }
        byte += 1;
    }
}
