//! Scales, shifts and converts elements in tiles: a transpose whose sides have different types.

use crate::abi::{AffineTileParams, VECTOR_TILE_THREADS, vector_tile_squares};
use crate::block;
use crate::conversion::affine::{Computed, Pair};
use crate::conversion::cast::Scalar;
use crate::index::axes::{self, Offsets};
use crate::index::{Index, Wide};
use crate::movement::vector_tile::{Quads, place};
use crate::thread::number::Number;
use crate::thread::quad::Lanes;
use crate::thread::{self, Global, Quad, Shared, Word};
use crate::unrolled;

/// The tile of a block.
struct Tile<'a> {
    params: &'a AffineTileParams,
    /// The first row and column.
    row: u64,
    col: u64,
    /// The start of the batch's image, in elements.
    src_start: u64,
    dst_start: u64,
    /// The image's channel.
    channel: Wide,
}

impl<'a> Tile<'a> {
    #[inline(always)]
    fn new(params: &'a AffineTileParams, height: u32, width: u32) -> Self {
        let tile = block::linear::<Wide>();
        let (across, down) = (&params.tiles_across, &params.tiles_down);
        let above = tile.divide(across);
        let image = above.divide(down);
        let (x, y) = (axes::remainder(tile, above, across).0, axes::remainder(above, image, down).0);
        let [Offsets { src, dst }] = axes::offsets([image], &params.axes, params.rank);
        Tile {
            params,
            row: y * u64::from(height),
            col: x * u64::from(width),
            src_start: src.0,
            dst_start: dst.0,
            channel: params.values.channel(image),
        }
    }

    #[inline(always)]
    fn has(&self, row: u64, col: u64) -> bool {
        row < self.params.rows && col < self.params.cols
    }

    #[inline(always)]
    fn src<W: Word>(&self, row: u64, col: u64) -> Global {
        let offset = self.src_start.wrapping_add(row.wrapping_mul(self.params.src_pitch as u64)).wrapping_add(col);
        Global::new(self.params.src).offset(offset.wrapping_mul(u64::from(W::BYTES)))
    }

    #[inline(always)]
    fn dst<W: Word>(&self, row: u64, col: u64) -> Global {
        let offset = self.dst_start.wrapping_add(col.wrapping_mul(self.params.dst_pitch as u64)).wrapping_add(row);
        Global::new(self.params.dst).offset(offset.wrapping_mul(u64::from(W::BYTES)))
    }

    /// Returns the factor and the offset of an element.
    ///
    /// # Safety
    ///
    /// The element is in the matrix, and the channels' values are allocated and not written
    /// meanwhile.
    #[inline(always)]
    unsafe fn pair<V: Computed>(&self, row: u64, col: u64) -> Pair<V> {
        let along = if self.params.along_rows != 0 {
            row
        } else if self.params.along_cols != 0 {
            col
        } else {
            0
        };
        // SAFETY: the element's channel: that of its image, or 0 plus its index if rows or columns
        // are channels.
        unsafe { self.params.values.pair(self.channel + Wide::truncate(along)) }
    }
}

/// The micro-tiles of one thread: each has `COLS` elements of the source by `ROWS` of the
/// destination, a vector of each.
struct Rectangles<'a, const COLS: usize, const ROWS: usize> {
    tile: Tile<'a>,
    across_log2: u32,
    down_log2: u32,
    /// Shared memory for the exchange.
    shared: Shared,
}

impl<'a, const COLS: usize, const ROWS: usize> Rectangles<'a, COLS, ROWS> {
    #[inline(always)]
    fn new<const SQUARES: usize, const QUADS: usize>(params: &'a AffineTileParams) -> Self {
        let shared = Shared::reserve::<Quads<QUADS>>();
        let across_log2 = params.across_log2 as u32;
        let down_log2 = (VECTOR_TILE_THREADS * SQUARES as u32).ilog2() - across_log2;
        let tile = Tile::new(params, (ROWS as u32) << down_log2, (COLS as u32) << across_log2);
        Rectangles { tile, across_log2, down_log2, shared }
    }

    /// Returns column and row, in micro-tiles, of this thread's micro-tile `step`: neighbours in a
    /// row belong to neighbouring threads.
    #[inline(always)]
    fn number(&self, step: usize) -> (u32, u32) {
        let number = thread::thread_x() + step as u32 * VECTOR_TILE_THREADS;
        (number & ((1 << self.across_log2) - 1), number >> self.across_log2)
    }

    /// Returns its first row and column.
    #[inline(always)]
    fn first(&self, step: usize) -> (u64, u64) {
        let (x, y) = self.number(step);
        (self.tile.row + u64::from(y * ROWS as u32), self.tile.col + u64::from(x * COLS as u32))
    }

    #[inline(always)]
    fn place(&self, column: u32, part: u32) -> Shared {
        place(COLS.ilog2(), self.across_log2, self.down_log2, self.shared, column, part)
    }

    /// Loads micro-tile `step`; zero outside the matrix.
    ///
    /// # Safety
    ///
    /// As [`affine_tile`].
    #[inline(always)]
    unsafe fn load<W: Word>(&self, step: usize) -> [Quad; ROWS] {
        let mut held = [[0; 4]; ROWS];
        let (row, col) = self.first(step);
        if self.tile.has(row, col) {
            let start = self.tile.src::<W>(row, col);
            let pitch = (self.tile.params.src_pitch as u64).wrapping_mul(u64::from(W::BYTES));
            unrolled!(down < ROWS => {
                // SAFETY: whole vectors of rows of the matrix, as the caller promises.
                held[down] = unsafe { thread::load_quad(start.offset((down as u64).wrapping_mul(pitch))) };
            });
        }
        held
    }

    /// Maps micro-tile `step` and writes it to the exchange, column by column.
    ///
    /// # Safety
    ///
    /// As [`affine_tile`]; no thread reads the exchange before the next barrier.
    #[inline(always)]
    unsafe fn exchange<S: Scalar, D: Number<Value: Computed>>(&self, step: usize, held: &[Quad; ROWS]) {
        let ((x, y), (row, col)) = (self.number(step), self.first(step));
        let Tile { params, .. } = self.tile;
        if self.tile.has(row, col) {
            // SAFETY: a micro-tile of the matrix; so below.
            let mut pairs = [unsafe { self.tile.pair::<D::Value>(row, col) }; ROWS];
            if params.along_rows != 0 {
                unrolled!(down < ROWS => {
                    // SAFETY: see above.
                    pairs[down] = unsafe { params.values.of_channel(Wide::truncate(row + down as u64)) };
                });
            }
            unrolled!(lane < COLS => {
                if params.along_cols != 0 {
                    // SAFETY: see above.
                    pairs = [unsafe { params.values.of_channel(Wide::truncate(col + lane as u64)) }; ROWS];
                }
                let quad = column::<S, D, ROWS>(held, lane, &pairs);
                // SAFETY: inside the tile, and each thread has its own micro-tiles.
                unsafe { thread::store_shared_quad(self.place(x * COLS as u32 + lane as u32, y), quad) };
            });
        }
    }

    /// Stores vector `step` of this thread: neighbouring threads have neighbouring parts of a
    /// column.
    ///
    /// # Safety
    ///
    /// As [`affine_tile`]; the exchange is complete.
    #[inline(always)]
    unsafe fn store<W: Word>(&self, step: u32) {
        let number = thread::thread_x() + step * VECTOR_TILE_THREADS;
        let (column, part) = (number >> self.down_log2, number & ((1 << self.down_log2) - 1));
        let (row, col) = (self.tile.row + u64::from(part * ROWS as u32), self.tile.col + u64::from(column));
        if self.tile.has(row, col) {
            // SAFETY: inside the tile, which no thread writes any more.
            let quad = unsafe { thread::load_shared_quad(self.place(column, part)) };
            // SAFETY: a whole vector of a row of the destination, which no other thread has.
            unsafe { thread::store_quad(self.tile.dst::<W>(row, col), quad) };
        }
    }
}

/// Maps matrices whose rows start on 16 bytes and hold whole vectors on both sides. It works as
/// `vector_tile`, but a thread transposes micro-tiles of `ROWS` rows of a source vector, which
/// become `COLS` vectors of the destination. So both sides of a tile are accessed 16 bytes at a
/// time, whatever their widths, and the exchange holds mapped elements.
///
/// `COLS` and `ROWS` are the elements of a vector of the source and of the destination, `SQUARES`
/// the micro-tiles of a thread, `QUADS` the product of `COLS` and `SQUARES` with the threads:
/// generic arithmetic on constants is not stable.
///
/// # Safety
///
/// See [`AffineTileParams`]: all elements and the channels' values are allocated and no other work
/// writes them.
#[inline(always)]
pub unsafe fn affine_tile<
    S: Scalar,
    D: Number<Value: Computed>,
    const COLS: usize,
    const ROWS: usize,
    const SQUARES: usize,
    const QUADS: usize,
>(
    params: AffineTileParams,
) {
    const { assert!(COLS == S::Word::COUNT && ROWS == D::Word::COUNT, "rectangles are of whole quads") };
    const { assert!(SQUARES as u32 == vector_tile_squares(S::Word::BYTES), "the host cuts tiles of as many") };
    const { assert!(QUADS == COLS * SQUARES * VECTOR_TILE_THREADS as usize, "the exchange has room for the tile") };
    let rectangles = Rectangles::<COLS, ROWS>::new::<SQUARES, QUADS>(&params);
    let mut held = [[[0; 4]; ROWS]; SQUARES];
    unrolled!(step < SQUARES => {
        // SAFETY: as the caller promises.
        held[step] = unsafe { rectangles.load::<S::Word>(step) };
    });
    unrolled!(step < SQUARES => {
        // SAFETY: as the caller promises, and no thread reads before the barrier.
        unsafe { rectangles.exchange::<S, D>(step, &held[step]) };
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    for step in 0..(COLS * SQUARES) as u32 {
        // SAFETY: as the caller promises, after the barrier.
        unsafe { rectangles.store::<D::Word>(step) };
    }
}

/// Maps a column of a micro-tile to a vector of the destination.
#[inline(always)]
fn column<S: Scalar, D: Number<Value: Computed>, const ROWS: usize>(
    rows: &[Quad; ROWS],
    lane: usize,
    pairs: &[Pair<D::Value>; ROWS],
) -> Quad {
    let mut quad = [0; 4];
    unrolled!(row < ROWS => {
        let value = D::Value::take(S::value(S::Word::get(rows[row], lane)));
        quad = D::word(pairs[row].apply(value)).put(quad, row);
    });
    quad
}
