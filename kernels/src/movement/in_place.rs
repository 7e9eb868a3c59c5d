//! Transposes matrices within their own memory.
//!
//! Origin: a square matrix exchanges tiles across the diagonal. In a matrix of another shape,
//! elements move along cycles across the whole matrix; Catanzaro, Keller and Garland ("A
//! decomposition for in-place matrix transposition", PPoPP 2014) found that this is a permutation
//! within each column, then within each row, then within each column again. `permute_lines` is one
//! of these passes; [`LinesParams`] has the permutation.
//!
//! ```text
//! (matrix, panel) = digits of the block's number         # whole rows, or whole columns, that fit in shared memory
//! for each element of the panel, in the order of memory:
//!     load it
//!     store it to shared memory, at its own index or at its partner's
//! barrier
//! for each element of the panel, in the order of memory:
//!     load it from shared memory, at its partner's index or at its own
//!     store it to where it was loaded from
//! ```
//!
//! Partners are one to one, so each address of shared memory is filled once. Rows or columns that
//! are too long for shared memory go through scratch memory by two launches of `spill_lines`, which
//! are the two loops.
//!
//! ```text
//! a pass over columns: panels of whole columns     a pass over rows: panels of whole rows
//!         +------+------+---+                              +-----------------+
//!         | p0   | p1   |p2 |                              | p0              |
//!         |  |   |      |   |  the last panel              +-----------------+
//!         |  v   |      |   |  may be smaller              | p1   -->        |
//!         +------+------+---+                              +-----------------+
//! ```

use core::marker::PhantomData;

use crate::abi::{LINES_BLOCK, LINES_SHARED, LinesParams, SquareParams, TILE, TILE_ROWS, square_side};
use crate::block;
use crate::index::Index;
use crate::index::axes::remainder;
use crate::thread::{self, Footprint, Global, Shared, Word};
use crate::unrolled;

/// Most elements of a tile that one thread moves.
const MOST: u32 = 16;

/// Two tiles of a square matrix in shared memory, with rows longer by a bank or an element: both
/// are written along rows and read along columns without a bank conflict, see
/// [`Padded`](block::Padded).
struct Pair<W> {
    start: Shared,
    of: PhantomData<W>,
}

impl<W: Word> Footprint for Pair<W> {
    const BYTES: u32 = 2 * Pair::<W>::TILE_BYTES;
}

impl<W: Word> Pair<W> {
    const SIDE: u32 = square_side(W::BYTES);
    const PITCH: u32 = Self::SIDE * W::BYTES + if W::BYTES < 4 { 4 } else { W::BYTES };
    const TILE_BYTES: u32 = Self::SIDE * Self::PITCH;
    /// Elements of a tile in one row of threads.
    const ACROSS: u32 = Self::SIDE / TILE;
    /// Elements of a tile that one thread moves.
    const STEPS: u32 = Self::ACROSS * Self::SIDE / TILE_ROWS;

    /// Returns row and column in its tile of this thread's element `step`.
    #[inline(always)]
    fn place(step: u32) -> (u32, u32) {
        let row = thread::thread_y() + step / Self::ACROSS * TILE_ROWS;
        (row, thread::thread_x() + step % Self::ACROSS * TILE)
    }

    #[inline(always)]
    fn at(&self, tile: u32, (row, column): (u32, u32)) -> Shared {
        self.start.offset(tile * Self::TILE_BYTES + row * Self::PITCH + column * W::BYTES)
    }
}

/// One tile of a square matrix in global memory.
struct Corner<I> {
    start: Global,
    row: I,
    col: I,
    /// Rows and columns of the matrix; 0 if the tile has nothing to move.
    n: I,
    row_stride: I,
    col_stride: I,
}

impl<I: Index> Corner<I> {
    #[inline(always)]
    fn at<W: Word>(&self, (row, col): (u32, u32)) -> Option<Global> {
        let (row, col) = (self.row + I::new(row), self.col + I::new(col));
        let offset = row * self.row_stride + col * self.col_stride;
        (row < self.n && col < self.n).then(|| self.start.offset(offset.bytes::<W>()))
    }

    /// Loads this thread's elements of the tile, zero outside the matrix: all loads are in flight
    /// before the first use.
    ///
    /// # Safety
    ///
    /// The matrix lies in allocated memory, aligned to the width, and the tile is not written
    /// meanwhile.
    #[inline(always)]
    unsafe fn load<W: Word>(&self) -> [W; MOST as usize] {
        const { assert!(Pair::<W>::STEPS <= MOST, "a thread holds its part of a tile") };
        let mut held = [W::ZERO; MOST as usize];
        unrolled!(step < MOST => {
            if let (true, Some(address)) = (step < Pair::<W>::STEPS, self.at::<W>(Pair::<W>::place(step))) {
                // SAFETY: an element of the matrix; the rest as the caller promises.
                held[step as usize] = unsafe { W::load_global(address) };
            }
        });
        held
    }

    /// Stores this thread's elements of the tile from one of the pair, transposed.
    ///
    /// # Safety
    ///
    /// The matrix lies in allocated memory, aligned to the width; the pair has been written and is
    /// not written meanwhile, and no other thread accesses this one's elements.
    #[inline(always)]
    unsafe fn store_turned<W: Word>(&self, pair: &Pair<W>, tile: u32) {
        for step in 0..Pair::<W>::STEPS {
            let (row, col) = Pair::<W>::place(step);
            if let Some(address) = self.at::<W>((row, col)) {
                // SAFETY: inside the pair, which the caller promises to be written and not written
                // meanwhile.
                let turned = unsafe { W::load_shared(pair.at(tile, (col, row))) };
                // SAFETY: an element of the matrix; the rest as the caller promises.
                unsafe { turned.store_global(address) };
            }
        }
    }
}

/// Returns row and column of the tile that block `number` takes of those on or above the diagonal.
///
/// The first and the last row of the triangle together are as long as the second and the last but
/// one: folded, it is a rectangle of whole numbers (if the number of rows is odd, the first is as
/// long as the second and the last). So every block has a pair, where half of a square grid would
/// have none, and no thread computes a square root.
#[inline(always)]
fn upper_tile(tiles: u32, number: u32) -> (u32, u32) {
    let across = tiles | 1;
    let (y, x) = (number / across, number % across);
    let spare = across - tiles;
    if x < tiles - y { (y, y + x) } else { (tiles - spare - y, x - spare) }
}

/// Exchanges a tile with the one across the diagonal and transposes both. A tile on the diagonal is
/// only transposed.
///
/// # Safety
///
/// See [`SquareParams`]: the matrices are allocated, aligned to the width, reach no element twice,
/// and no other work accesses them.
#[inline(always)]
pub unsafe fn swap_tiles<W: Word, I: Index>(params: SquareParams) {
    let pair = Pair::<W> { start: Shared::reserve::<Pair<W>>(), of: PhantomData };
    let batch = I::new(thread::block_z()) * I::new(thread::grid_y()) + I::new(thread::block_y());
    if batch >= I::truncate(params.batches) {
        return;
    }
    let side = u64::from(Pair::<W>::SIDE);
    // At most 65 535, which the host ensures.
    let (i, j) = upper_tile(params.n.div_ceil(side) as u32, thread::block_x());
    let start = (batch * I::truncate(params.batch_stride as u64)).bytes::<W>();
    let corner = |row: u32, col: u32, n: u64| Corner {
        start: Global::new(params.matrix).offset(start),
        row: I::new(row) * I::new(Pair::<W>::SIDE),
        col: I::new(col) * I::new(Pair::<W>::SIDE),
        n: I::truncate(n),
        row_stride: I::truncate(params.row_stride as u64),
        col_stride: I::truncate(params.col_stride as u64),
    };
    let tiles = [corner(i, j, params.n), corner(j, i, if i == j { 0 } else { params.n })];

    // SAFETY: as the caller promises; only this block has the tile, and writes it after the
    // barrier.
    let first = unsafe { tiles[0].load::<W>() };
    // SAFETY: as above.
    let second = unsafe { tiles[1].load::<W>() };
    unrolled!(step < MOST => {
        if step < Pair::<W>::STEPS {
            let place = Pair::<W>::place(step);
            // SAFETY: inside the first tile, and each thread has its own elements.
            unsafe { first[step as usize].store_shared(pair.at(0, place)) };
            // SAFETY: the same for the second tile.
            unsafe { second[step as usize].store_shared(pair.at(1, place)) };
        }
    });
    // SAFETY: every thread of the block comes here: above, all return or none.
    unsafe { thread::barrier() };
    // Each tile takes the other's elements; on the diagonal the second has nothing to take. SAFETY:
    // after the barrier, the pair has been written and all threads have read the tile, of which
    // each has its own elements.
    unsafe { tiles[0].store_turned(&pair, u32::from(i != j)) };
    // SAFETY: the same.
    unsafe { tiles[1].store_turned(&pair, 0) };
}

/// Whole rows or whole columns of one matrix, and the partner of each element: see [`LinesParams`].
///
/// Its elements are numbered as if it had all columns of a panel; `None` stands for those that the
/// last panel lacks.
struct Panel<'a, I> {
    params: &'a LinesParams,
    /// Elements from the start of the memory to the first of the matrix.
    base: I,
    row: I,
    col: I,
    len: I,
}

/// Row and column in a panel.
#[derive(Clone, Copy)]
struct Position<I> {
    row: I,
    col: I,
}

impl<'a, I: Index> Panel<'a, I> {
    /// Returns panel `number` of the launch; an empty one if the launch has fewer.
    #[inline(always)]
    fn new(params: &'a LinesParams, number: I) -> Self {
        let number = I::truncate(params.first) + number;
        let matrix = number.divide(&params.panels);
        let place = remainder(number, matrix, &params.panels);
        let (rows, height) = (I::truncate(params.rows.value), I::truncate(params.height));
        let width = I::truncate(params.width.value);
        let zero = I::new(0);
        let (row, col) = if params.columns != 0 { (zero, place * width) } else { (place * height, zero) };
        let height = if height < rows - row { height } else { rows - row };
        Panel {
            params,
            base: matrix * rows * I::truncate(params.cols.value),
            row,
            col,
            len: if number < I::truncate(params.end) { height * width } else { zero },
        }
    }

    /// Returns the offset of element `at`.
    #[inline(always)]
    fn place(&self, at: I) -> Option<Position<I>> {
        let row = at.divide(&self.params.width);
        let col = remainder(at, row, &self.params.width);
        (at < self.len && self.col + col < I::truncate(self.params.cols.value)).then_some(Position { row, col })
    }

    /// Returns the address of an element.
    #[inline(always)]
    fn address<W: Word>(&self, Position { row, col }: Position<I>) -> Global {
        let offset = self.base + (self.row + row) * I::truncate(self.params.cols.value) + self.col + col;
        Global::new(self.params.matrix).offset(offset.bytes::<W>())
    }

    /// Returns the element of the panel that is the partner of another.
    #[inline(always)]
    fn partner(&self, Position { row, col }: Position<I>) -> Position<I> {
        let LinesParams { rows, cols, period, section, .. } = self.params;
        let (i, j) = (self.row + row, self.col + col);
        // No sum exceeds the elements of the matrix, and none is negative: `i / period` is at most
        // `rows`.
        let turned =
            i * I::truncate(self.params.factor) + I::truncate(rows.value) - i.divide(period) + j.divide(section);
        let turned = remainder(turned, turned.divide(rows), rows);
        if self.params.columns != 0 {
            return Position { row: turned, col };
        }
        let moved = turned + j * I::truncate(rows.value);
        Position { row, col: remainder(moved, moved.divide(cols), cols) }
    }

    /// Returns the element of the other memory to which an element moves from the matrix, or from
    /// which it comes back.
    #[inline(always)]
    fn other(&self, place: Position<I>, back: bool) -> I {
        let Position { row, col } = if (self.params.scatter != 0) == back { place } else { self.partner(place) };
        row * I::truncate(self.params.width.value) + col
    }
}

/// Shared memory for a panel.
struct PanelRoom;

impl Footprint for PanelRoom {
    const BYTES: u32 = LINES_SHARED;
}

/// Permutes within the rows or columns of one panel a block, through shared memory.
///
/// # Safety
///
/// See [`LinesParams`]: the matrices are allocated, aligned to the width, and no other work
/// accesses them; a panel has at most [`LINES_SHARED`] bytes, and partners are one to one.
#[inline(always)]
pub unsafe fn permute_lines<W: Word, I: Index>(params: LinesParams) {
    let room = Shared::reserve::<PanelRoom>();
    let panel = Panel::<I>::new(&params, block::linear());
    let held = |at: I| room.offset(at.low() * W::BYTES);

    let mut at = I::new(thread::thread_x());
    while at < panel.len {
        if let Some(place) = panel.place(at) {
            // SAFETY: an element of the panel, which only this block has and writes after the
            // barrier.
            let element = unsafe { W::load_global(panel.address::<W>(place)) };
            // SAFETY: within the memory, as large as a panel can be; partners are one to one, so
            // only this element has the address.
            unsafe { element.store_shared(held(panel.other(place, false))) };
        }
        at = at + I::new(LINES_BLOCK);
    }
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    let mut at = I::new(thread::thread_x());
    while at < panel.len {
        if let Some(place) = panel.place(at) {
            // SAFETY: an address that was written before the barrier, as partners are one to one,
            // and is not written any more.
            let element = unsafe { W::load_shared(held(panel.other(place, true))) };
            // SAFETY: an element of the panel, which was read before the barrier and which only
            // this thread writes.
            unsafe { element.store_global(panel.address::<W>(place)) };
        }
        at = at + I::new(LINES_BLOCK);
    }
}

/// Does one half of this for panels that exceed shared memory: writes panel `blockIdx.y` to the
/// scratch, or back.
///
/// # Safety
///
/// See [`LinesParams`]: the matrices and the scratch are allocated, aligned to the width, and no
/// other work accesses them; partners are one to one. When it writes back, the scratch holds the
/// other half's output.
#[inline(always)]
pub unsafe fn spill_lines<W: Word, I: Index>(params: LinesParams) {
    let number = I::new(thread::block_y());
    let panel = Panel::<I>::new(&params, number);
    let at = I::new(thread::block_x()) * I::new(LINES_BLOCK) + I::new(thread::thread_x());
    let Some(place) = panel.place(at) else { return };
    let back = params.back != 0;
    let start = number * I::truncate(params.height) * I::truncate(params.width.value);
    let held = (start + panel.other(place, back)).bytes::<W>();
    let (ours, scratch) = (panel.address::<W>(place), Global::new(params.scratch).offset(held));
    let (from, to) = if back { (scratch, ours) } else { (ours, scratch) };
    // SAFETY: an element of the panel, or of the scratch that the other half wrote; this half
    // writes only the other of the two.
    let element = unsafe { W::load_global(from) };
    // SAFETY: an address in the scratch, within its memory for a panel, which only this element
    // has, as partners are one to one; or this thread's own element of the panel.
    unsafe { element.store_global(to) };
}
