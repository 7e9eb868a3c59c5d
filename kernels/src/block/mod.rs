//! A block's number in the grid, and a tile in shared memory.

pub mod group;

use core::marker::PhantomData;

use crate::abi::TILE;
use crate::index::{Index, Wide};
use crate::thread::{self, Footprint, Shared, Word};

/// Returns the number of this block, x first and then y: x alone ends at 2^31 - 1 blocks.
#[inline(always)]
pub fn linear<I: Index>() -> I {
    I::new(thread::block_y()) * I::new(thread::grid_x()) + I::new(thread::block_x())
}

/// Returns this thread's number in the grid, whatever the number of threads in a block: a tuning
/// policy chooses that.
#[inline(always)]
pub fn lane() -> u64 {
    (linear::<Wide>() * Wide::new(thread::block_width()) + Wide::new(thread::thread_x())).0
}

/// Returns row and column, in tiles, of the tile that this block moves: only x may exceed 65 535,
/// so rows take y and z.
#[inline(always)]
pub fn tile_position<I: Index>() -> (I, I) {
    let row = I::new(thread::block_z()) * I::new(thread::grid_y()) + I::new(thread::block_y());
    (row, I::new(thread::block_x()))
}

/// An arrangement of a tile's rows in shared memory.
///
/// Shared memory has 32 banks of 4 bytes. Lanes that access different words of one bank wait for
/// each other, and a tile is written along its rows but read along its columns.
pub trait Arrangement<W: Word> {
    /// Bytes from one row to the next.
    const PITCH: u32;

    /// Returns the index within its row of the element at `(row, column)`.
    #[inline(always)]
    fn place(row: u32, column: u32) -> u32 {
        let _ = row;
        column
    }
}

/// Contiguous rows: with 4-byte elements, one bank holds a whole column.
pub struct Plain;

impl<W: Word> Arrangement<W> for Plain {
    const PITCH: u32 = TILE * W::BYTES;
}

/// Rows that are longer by one element, or by one bank if an element is less, so that columns step
/// through the banks.
pub struct Padded;

impl<W: Word> Arrangement<W> for Padded {
    const PITCH: u32 = TILE * W::BYTES + if W::BYTES < 4 { 4 } else { W::BYTES };
}

/// Columns that are exclusive-ored by the row: columns step through the banks, and the tile needs
/// no additional memory.
pub struct Staggered;

impl<W: Word> Arrangement<W> for Staggered {
    const PITCH: u32 = TILE * W::BYTES;

    #[inline(always)]
    fn place(row: u32, column: u32) -> u32 {
        column ^ row
    }
}

/// A tile of `TILE` x `TILE` elements in shared memory.
pub struct Tile<W, A> {
    start: Shared,
    of: PhantomData<(W, A)>,
}

impl<W: Word, A: Arrangement<W>> Footprint for Tile<W, A> {
    const BYTES: u32 = TILE * A::PITCH;
}

impl<W: Word, A: Arrangement<W>> Tile<W, A> {
    /// Reserves the block's tile: once a kernel, see [`Shared::reserve`].
    #[inline(always)]
    pub fn reserve() -> Self {
        Tile { start: Shared::reserve::<Self>(), of: PhantomData }
    }

    #[inline(always)]
    fn at(&self, row: u32, column: u32) -> Shared {
        self.start.offset(row * A::PITCH + A::place(row, column) * W::BYTES)
    }

    /// Writes one element.
    ///
    /// # Safety
    ///
    /// `row` and `column` are below `TILE`, and no other thread accesses the element before the
    /// next barrier.
    #[inline(always)]
    pub unsafe fn write(&self, row: u32, column: u32, value: W) {
        // SAFETY: inside the tile, whose rows start aligned to the width; the rest as the caller
        // promises.
        unsafe { value.store_shared(self.at(row, column)) }
    }

    /// Reads one element.
    ///
    /// # Safety
    ///
    /// `row` and `column` are below `TILE`, and no other thread writes the element before the next
    /// barrier.
    #[inline(always)]
    pub unsafe fn read(&self, row: u32, column: u32) -> W {
        // SAFETY: inside the tile, whose rows start aligned to the width; the rest as the caller
        // promises.
        unsafe { W::load_shared(self.at(row, column)) }
    }
}
