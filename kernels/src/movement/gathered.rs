//! Makes the destination's elements from those of a tile, for `packed_quads`.

use core::marker::PhantomData;

use crate::thread::grain::Grain;
use crate::thread::{B16, B32, B64, Shared, Word};
use crate::unrolled;

/// An offset in shared memory, as the tables of lines and of cells hold it.
pub trait Entry: Word {
    /// Returns the entry of an offset.
    fn of(place: u32) -> Self;
    /// Returns the offset.
    fn place(self) -> u32;
    /// Loads as many entries as a granule has elements: `2^count_log2`.
    ///
    /// # Safety
    ///
    /// They are entries of a table, and their address is a multiple of all their bytes.
    unsafe fn load(at: Shared, count_log2: u32) -> [u32; 4];
}

impl Entry for B16 {
    #[inline(always)]
    fn of(place: u32) -> Self {
        Self::new(place)
    }

    #[inline(always)]
    fn place(self) -> u32 {
        self.low()
    }

    #[inline(always)]
    unsafe fn load(at: Shared, count_log2: u32) -> [u32; 4] {
        // SAFETY: as the caller promises.
        let bits = unsafe {
            match count_log2 {
                2 => B64::load_shared(at).low(),
                1 => u64::from(B32::load_shared(at).low()),
                _ => u64::from(B16::load_shared(at).low()),
            }
        };
        [0, 1, 2, 3].map(|lane: u32| (bits >> (16 * lane)) as u32 & 0xffff)
    }
}

impl Entry for B32 {
    #[inline(always)]
    fn of(place: u32) -> Self {
        Self::new(place)
    }

    #[inline(always)]
    fn place(self) -> u32 {
        self.low()
    }

    #[inline(always)]
    unsafe fn load(at: Shared, count_log2: u32) -> [u32; 4] {
        if count_log2 == 0 {
            // SAFETY: as the caller promises.
            return [unsafe { B32::load_shared(at) }.low(), 0, 0, 0];
        }
        // SAFETY: as the caller promises: a granule of two bytes' elements has two.
        let pair = unsafe { B64::load_shared(at) }.low();
        [pair as u32, (pair >> 32) as u32, 0, 0]
    }
}

/// Makes elements of the destination of those of a tile.
pub trait Gathered: Copy {
    /// The elements of the tile.
    type From: Grain;
    /// Those of the destination.
    type To: Grain;
    /// Entries of tables.
    type Entry: Entry;
    /// True if vectors within one long line are worth a loop of their own.
    const LONG_LINES: bool;
    /// True if a run's first or last elements are gathered as a granule, and not one by one.
    const JOINS_ENDS: bool;

    /// Makes an element.
    ///
    /// # Safety
    ///
    /// It is the place of an element of the tile, which has been loaded, and no thread writes the
    /// tile any more.
    unsafe fn element(self, place: Shared) -> Self::To;

    /// Makes the elements of a granule.
    ///
    /// # Safety
    ///
    /// As [`element`](Self::element), for the places of all elements of a granule.
    unsafe fn granule(self, place: impl Fn(usize) -> Shared) -> <Self::To as Grain>::Granule;
}

/// Elements that move as they are.
pub struct Moved<W>(PhantomData<W>);

impl<W> Moved<W> {
    #[inline(always)]
    pub fn new() -> Self {
        Moved(PhantomData)
    }
}

impl<W> Clone for Moved<W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Moved<W> {}

impl<W: Grain> Gathered for Moved<W> {
    type From = W;
    type To = W;
    type Entry = B16;
    const LONG_LINES: bool = W::COUNT_LOG2 > 0;
    const JOINS_ENDS: bool = true;

    #[inline(always)]
    unsafe fn element(self, place: Shared) -> W {
        // SAFETY: as the caller promises.
        unsafe { W::load_shared(place) }
    }

    #[inline(always)]
    unsafe fn granule(self, place: impl Fn(usize) -> Shared) -> W::Granule {
        let mut granule = W::Granule::ZERO;
        unrolled!(lane < 4 => {
            if lane < 1 << W::COUNT_LOG2 {
                // SAFETY: as the caller promises.
                granule = unsafe { W::load_shared(place(lane)) }.with(granule, lane as u32);
            }
        });
        granule
    }
}
