//! Transposes fast: 16-byte accesses on both sides, whatever the width of the elements.
//!
//! Origin: transposing micro-tiles in registers is PyTorch's idea for narrow types
//! (pytorch/pytorch#194310). The length of the runs follows the measurements in the notes on
//! coalescing of Dao-AILab/quack.
//!
//! A vector is 16 bytes. A micro-tile has one vector's elements in each direction: 16 x 16 bytes, 4
//! x 4 floats. A thread loads micro-tiles, one vector a row, and transposes each in registers; its
//! vectors then are parts of columns. The block exchanges them through shared memory, so that both
//! sides of a tile are runs of 256 bytes, which an H100 needs for its full speed.
//!
//! ```text
//! (image, tile y, tile x) = digits of the block's number
//! for each micro-tile of the thread:                 # neighbours in a row are neighbouring threads
//!     for each of its rows: load a vector of the source
//! for each micro-tile of the thread:
//!     transpose it in registers
//!     for each of its columns: store the vector to shared memory at place(column, part)
//! barrier
//! for each vector of the thread:                     # neighbours in a column are neighbouring threads
//!     load it from shared memory at place(column, part)
//!     store it to row `column` of the destination
//! ```
//!
//! `place` exclusive-ors the part with the column, so that eight lanes that access it together
//! never share banks.
//!
//! ```text
//! a tile of the source, four micro-tiles across       a micro-tile of 4-byte elements, in registers
//!           col ->                                      rows in             columns out
//!         +----+----+----+----+                         a0 a1 a2 a3         a0 b0 c0 d0
//!     row | t0 | t1 | t2 | t3 |                         b0 b1 b2 b3   -->   a1 b1 c1 d1
//!      |  +----+----+----+----+                         c0 c1 c2 c3         a2 b2 c2 d2
//!      v  | t4 | t5 | t6 | t7 |                         d0 d1 d2 d3         a3 b3 c3 d3
//!         +----+----+----+----+                         one vector a row    one vector a column
//! ```

use crate::abi::{VECTOR_TILE_THREADS, VectorTileParams, vector_tile_squares};
use crate::block;
use crate::index::Index;
use crate::index::axes::{self, Offsets};
use crate::thread::cache::Cache;
use crate::thread::quad::Lanes;
use crate::thread::{self, Footprint, Global, Quad, Shared, Word};
use crate::unrolled;

/// Shared memory for this number of vectors.
pub struct Quads<const COUNT: usize>;

impl<const COUNT: usize> Footprint for Quads<COUNT> {
    const BYTES: u32 = 16 * COUNT as u32;
}

/// Returns the address of a part of a column in shared memory, with `1 << (across_log2 +
/// count_log2)` columns of `1 << down_log2` vectors.
///
/// Eight lanes read eight parts that follow each other, but write parts of eight columns that are
/// `COUNT` columns apart: the number of that step, in the bits above, is exclusive-ored into the
/// three bits that choose the banks.
#[inline(always)]
pub fn place(count_log2: u32, across_log2: u32, down_log2: u32, start: Shared, column: u32, part: u32) -> Shared {
    let number = (column << down_log2) + part;
    let step = count_log2 + down_log2;
    let from = if step > 3 { step } else { 3 };
    let spread = if across_log2 < 3 { 3 - across_log2 } else { 0 };
    start.offset((number ^ (((number >> from) << spread) & 7)) * 16)
}

/// The tile of a block: `across x down` micro-tiles of `W::COUNT` x `W::COUNT` elements. Its first
/// `margin` rows of micro-tiles are the last of the tile above.
pub struct Tile<'a, I> {
    pub params: &'a VectorTileParams,
    pub margin: u32,
    pub across_log2: u32,
    pub down_log2: u32,
    /// The first row and column.
    pub row: I,
    pub col: I,
    /// The start of the batch's image, in elements.
    pub src_start: I,
    pub dst_start: I,
    /// Shared memory for the exchange.
    shared: Shared,
}

impl<'a, I: Index> Tile<'a, I> {
    #[inline(always)]
    pub fn new<W: Lanes, const SQUARES: usize, const QUADS: usize>(params: &'a VectorTileParams, margin: u32) -> Self {
        let shared = Shared::reserve::<Quads<QUADS>>();
        let across_log2 = params.across_log2 as u32;
        let down_log2 = (VECTOR_TILE_THREADS * SQUARES as u32).ilog2() - across_log2;
        let tile = block::linear::<I>();
        let down_first = params.down_first != 0;
        let (across, down) = (&params.tiles_across, &params.tiles_down);
        let (inner, outer) = if down_first { (down, across) } else { (across, down) };
        let above = tile.divide(inner);
        let image = above.divide(outer);
        let (first, second) = (axes::remainder(tile, above, inner), axes::remainder(above, image, outer));
        let (x, y) = if down_first { (second, first) } else { (first, second) };
        let [Offsets { src: src_start, dst: dst_start }] = axes::offsets([image], &params.axes, params.rank);
        let lanes = W::COUNT as u32;
        let row = y * I::new(lanes * ((1 << down_log2) - margin)) - I::new(lanes * margin);
        let col = x * I::new(lanes << across_log2);
        Tile { params, margin, across_log2, down_log2, row, col, src_start, dst_start, shared }
    }

    /// Returns column and row, in micro-tiles, of this thread's micro-tile `step`: neighbours in a
    /// row belong to neighbouring threads.
    #[inline(always)]
    pub fn square(&self, step: usize) -> (u32, u32) {
        let number = thread::thread_x() + step as u32 * VECTOR_TILE_THREADS;
        (number & ((1 << self.across_log2) - 1), number >> self.across_log2)
    }

    /// Returns the column in elements, and the part of the column in vectors, that this thread
    /// stores in `step`.
    #[inline(always)]
    pub fn part(&self, step: u32) -> (u32, u32) {
        let number = thread::thread_x() + step * VECTOR_TILE_THREADS;
        (number >> self.down_log2, number & ((1 << self.down_log2) - 1))
    }

    /// Returns the address of a part of a column in shared memory.
    #[inline(always)]
    pub fn place<W: Lanes>(&self, column: u32, part: u32) -> Shared {
        place((W::COUNT as u32).ilog2(), self.across_log2, self.down_log2, self.shared, column, part)
    }

    #[inline(always)]
    pub fn src<W: Word>(&self, row: I, col: I) -> Global {
        let offset = self.src_start + axes::fold(row, &self.params.src_rows) + col;
        Global::new(self.params.src).offset(offset.bytes::<W>())
    }

    #[inline(always)]
    pub fn dst<W: Word>(&self, row: I, col: I) -> Global {
        let offset = self.dst_start + axes::fold(col, &self.params.dst_rows) + row;
        Global::new(self.params.dst).offset(offset.bytes::<W>())
    }

    #[inline(always)]
    pub fn rows(&self) -> I {
        I::truncate(self.params.rows)
    }

    #[inline(always)]
    pub fn cols(&self) -> I {
        I::truncate(self.params.cols)
    }

    /// Transposes a micro-tile and writes its vectors to the exchange.
    ///
    /// # Safety
    ///
    /// Between the same barriers no other thread accesses these addresses.
    #[inline(always)]
    pub unsafe fn exchange<W: Lanes, const LANES: usize>(&self, step: usize, square: [Quad; LANES]) {
        let (x, y) = self.square(step);
        let turned = W::turn(square);
        unrolled!(lane < LANES => {
            // SAFETY: inside the tile, and each thread has its own micro-tiles.
            unsafe { thread::store_shared_quad(self.place::<W>(x * W::COUNT as u32 + lane as u32, y), turned[lane]) };
        });
    }
}

/// Transposes matrices whose rows start on 16 bytes and hold whole vectors on both sides.
///
/// `LANES` is `W::COUNT`, `SQUARES` the micro-tiles of a thread, `QUADS` their product with the
/// threads and `LANES`: generic arithmetic on constants is not stable.
///
/// # Safety
///
/// See [`VectorTileParams`]: all elements are allocated and no other work writes them.
#[inline(always)]
pub unsafe fn vector_tile<
    W: Word + Lanes,
    I: Index,
    C: Cache<Quad>,
    const LANES: usize,
    const SQUARES: usize,
    const QUADS: usize,
>(
    params: VectorTileParams,
) {
    const { assert!(SQUARES as u32 == vector_tile_squares(W::BYTES), "the host cuts tiles of as many squares") };
    let tile = Tile::<I>::new::<W, SQUARES, QUADS>(&params, 0);
    let lanes = W::COUNT as u32;
    let cache = C::new();
    let mut held = [[[0; 4]; LANES]; SQUARES];
    unrolled!(step < SQUARES => {
        let (x, y) = tile.square(step);
        let (row, col) = (tile.row + I::new(y * lanes), tile.col + I::new(x * lanes));
        if row < tile.rows() && col < tile.cols() {
            let start = tile.src::<W>(row, col);
            let pitch = (params.src_rows.inner_stride as u64).wrapping_mul(u64::from(W::BYTES));
            unrolled!(lane < LANES => {
                // SAFETY: whole vectors of rows of the matrix, as the caller promises.
                held[step][lane] = unsafe { cache.load(start.offset((lane as u64).wrapping_mul(pitch))) };
            });
        }
    });
    unrolled!(step < SQUARES => {
        // SAFETY: before the barrier, no thread reads the exchange.
        unsafe { tile.exchange::<W, LANES>(step, held[step]) };
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    for step in 0..(LANES * SQUARES) as u32 {
        let (column, part) = tile.part(step);
        // SAFETY: inside the tile, which no thread writes any more.
        let quad = unsafe { thread::load_shared_quad(tile.place::<W>(column, part)) };
        let (row, col) = (tile.row + I::new(part * lanes), tile.col + I::new(column));
        if row < tile.rows() && col < tile.cols() {
            // SAFETY: a whole vector of a row of the destination, which no other thread has.
            unsafe { cache.store(tile.dst::<W>(row, col), quad) };
        }
    }
}
