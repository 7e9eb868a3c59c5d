//! Transposes matrices whose rows start and end anywhere, by the tiles of [`super::vector_tile`].
//!
//! Origin: the tile, its micro-tiles and their exchange are those of [`super::vector_tile`]. The
//! difference is how runs that start off 16 bytes keep accesses of 16 bytes.
//!
//! ```text
//! (image, tile y, tile x) = digits of the block's number; a tile overlaps the one above by the halo
//! for each micro-tile, for each of its rows:
//!     load the one or two aligned vectors that hold its 16 bytes
//!     shift them by the bytes that the row starts off 16   # element by element where these may not be read
//! transpose the micro-tile in registers; store its columns to shared memory
//! barrier
//! for each column of the tile:
//!     end = the tile's first own row of it, in the destination
//!     off = bytes from the last whole sector to `end`
//!     for each vector from `end - off` on: join it from two of shared memory, store it aligned
//!     store single elements where the destination's row ends
//! ```
//!
//! A sector of 32 bytes that two blocks write in part costs more than reading a few rows twice. So
//! each tile starts its columns on a whole sector and reads the elements before it, the halo,
//! again. If every row of the destination starts on a sector, there is no halo. Most tiles touch no
//! edge of the matrix and take a path without bounds checks.
//!
//! Rows and columns of 1 and 2 bytes may be runs of any axes; see [`super::ragged_lines`].
//!
//! ```text
//! source: a row off 16 bytes                          destination: a row of two tiles' columns
//!   | vector     | vector     | aligned                 | sector   | sector   | sector   | aligned
//!   .....aaaaaaaaaaaa.......                            ..0000000000000000001111111111111111
//!        ^ off   = shift(low, high, off)                                    ^ the lower tile starts here, and takes
//!                                                                             the elements from there to its own first
//!                                                                             row out of its halo
//! ```

use crate::abi::{Fold, VECTOR_TILE_THREADS, VectorTileParams, ragged_tile_folds, ragged_tile_squares};
use crate::index::Index;
use crate::index::axes;
use crate::movement::ragged_lines::{Lines, goes_on};
use crate::movement::vector_tile::Tile;
use crate::thread::cache::LineCache;
use crate::thread::quad::{self, Lanes};
use crate::thread::{self, Global, Quad, Shared, Word};
use crate::unrolled;

/// Transposes matrices whose rows start and end anywhere: vectors within rows are still loaded and
/// stored whole, shifted by the misalignment of their row. Only the ends of rows move as single
/// elements.
///
/// The runs that a tile stores start and end on whole sectors of each row: a sector that two tiles
/// write costs more than the few rows, the halo, that are read twice. If all rows of the
/// destination start on sectors, none are.
///
/// The runs that it loads start and end anywhere, so loads make the L2 cache fetch whole lines: the
/// next tile needs the rest.
///
/// # Safety
///
/// See [`VectorTileParams`]: every row of the source is allocated or, if `src_end` is not 0, all
/// bytes from `src_start` to there; so are the destination's elements, and no other work writes
/// either. Blocks beyond the last image, which only a grid of more than 2^31 - 1 has, repeat the
/// first one.
#[inline(always)]
pub unsafe fn ragged_tile<
    W: Word + Lanes,
    I: Index,
    C: LineCache,
    const LANES: usize,
    const SQUARES: usize,
    const QUADS: usize,
>(
    params: VectorTileParams,
) {
    const { assert!(SQUARES as u32 == ragged_tile_squares(W::BYTES), "the host cuts tiles of as many squares") };
    let tile = Tile::<I>::new::<W, SQUARES, QUADS>(&params, params.margin as u32);
    let cache = C::new();
    let lines = Lines { tile: &tile, tables: Shared::dynamic() };
    if !ragged_tile_folds(W::BYTES) {
        // SAFETY: no thread reads the tables before the barrier.
        unsafe { lines.write::<W>() };
        // SAFETY: every thread of the block comes here.
        unsafe { thread::barrier() };
    }
    // Most tiles are inside the matrix and need half of the instructions. Elements of 4 and of 8
    // bytes take so few that the test costs the same.
    let (is_clear, is_inner) = if ragged_tile_folds(W::BYTES) {
        let is_inner = !matches!(LANES, 2 | 4) && is_inner::<W, I>(&tile);
        (is_inner, is_inner)
    } else {
        (lines.is_clear::<W>(), lines.has_all_rows::<W>())
    };
    if is_clear {
        // SAFETY: as the caller promises.
        unsafe { load_inner::<W, I, LANES, SQUARES>(&lines, cache) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { load_any::<W, I, LANES, SQUARES>(&lines, cache) };
    }
    // SAFETY: every thread of the block comes here, because no code above returns. If the compiler
    // puts the barrier into both branches, all threads take the same one: `is_clear` depends only
    // on the block's number and the parameters.
    unsafe { thread::barrier() };
    if is_inner {
        // SAFETY: as the caller promises, and the exchange is complete.
        unsafe { store_inner::<W, I, LANES, SQUARES>(&lines, cache) };
    } else {
        // SAFETY: as above.
        unsafe { store_any::<W, I, LANES, SQUARES>(&lines, cache) };
    }
}

/// Returns whether no thread of the block needs to look for an end: of the matrix, of the readable
/// bytes, or of an inner axis of its rows or columns. Then a vector before and after the tile's
/// part of every row is readable: this holds for the first and the last, and the others lie between
/// them, all at one index of the outer axis.
#[inline(always)]
fn is_inner<W: Word + Lanes, I: Index>(tile: &Tile<I>) -> bool {
    let (params, lanes) = (tile.params, W::COUNT as u32);
    let (height, width) = (I::new(lanes << tile.down_log2), I::new(lanes << tile.across_log2));
    // Above the first row, the number wraps to more than all rows.
    let within = tile.row < tile.rows()
        && !(tile.rows() - tile.row < height)
        && tile.col < tile.cols()
        && !(tile.cols() - tile.col < width);
    let (last_row, last_col) = (tile.row + height - I::new(1), tile.col + width - I::new(1));
    let inner = |first: I, last: I, by| first.divide(by) == last.divide(by);
    // The vectors that hold a row of the tile are at most one more on each side.
    let readable = |row: I| {
        let from = tile.src::<W>(row, tile.col);
        let (first, end) = (from.offset(16_u64.wrapping_neg()), from.offset(width.bytes::<W>() + 16));
        !first.is_before(Global::new(params.src_start)) && !Global::new(params.src_end).is_before(end)
    };
    let readable = if params.src_end == 0 {
        let [before, after] = goes_on::<W, I>(tile);
        before && after
    } else {
        readable(tile.row) && readable(last_row)
    };
    within
        && readable
        && inner(tile.row, last_row, &params.src_rows.inner)
        && inner(tile.col, last_col, &params.dst_rows.inner)
        // The threads store whole columns at a time.
        && VECTOR_TILE_THREADS >> tile.down_log2 != 0
}

/// Returns the bytes from a row of the source, or of the destination, to the next of the same inner
/// axis.
#[inline(always)]
fn pitch<W: Word>(stride: i64) -> u64 {
    (stride as u64).wrapping_mul(u64::from(W::BYTES))
}

/// Loads and transposes the micro-tiles of a tile that is inside.
///
/// # Safety
///
/// As [`ragged_tile`]; the tile is inside, and no thread reads the exchange.
#[inline(always)]
unsafe fn load_inner<W: Word + Lanes, I: Index, const LANES: usize, const SQUARES: usize>(
    lines: &Lines<I>,
    cache: impl LineCache,
) {
    let (tile, lanes) = (lines.tile, W::COUNT as u32);
    let pitch = pitch::<W>(tile.params.src_rows.inner_stride);
    unrolled!(step < SQUARES => {
        let (x, y) = tile.square(step);
        let col = tile.col + I::new(x * lanes);
        let start = match ragged_tile_folds(W::BYTES) {
            true => tile.src::<W>(tile.row + I::new(y * lanes), col),
            false => lines.src_start::<W>(col),
        };
        let mut square = [[0; 4]; LANES];
        // Only tables are used at the end of the columns.
        let within = ragged_tile_folds(W::BYTES) || col < tile.cols();
        // Four rows at a time: with more loads in flight it was slower on an H100.
        unrolled!(group < 4 => {
            let (mut held, mut offs) = ([[[0; 4]; 2]; 4], [0; 4]);
            unrolled!(i < 4 => {
                if 4 * group + i < LANES && within {
                    let down = (4 * group + i) as u32;
                    let from = match ragged_tile_folds(W::BYTES) {
                        true => start.offset(u64::from(down).wrapping_mul(pitch)),
                        // SAFETY: the tables have been written.
                        false => start.offset(unsafe { lines.row::<W>(y, down) }.bytes::<W>()),
                    };
                    offs[i] = from.misalignment();
                    let low = from.offset(u64::from(offs[i]).wrapping_neg());
                    // SAFETY: aligned, and at most one vector before or after the tile's part of
                    // the row, which `is_inner` found readable.
                    held[i][0] = unsafe { cache.load_of_line(low) };
                    if LANES > 1 {
                        // SAFETY: as above.
                        held[i][1] = unsafe { cache.load_of_line(low.offset(16)) };
                    }
                }
            });
            unrolled!(i < 4 => {
                if 4 * group + i < LANES {
                    square[4 * group + i] = quad::shift::<W>(held[i][0], held[i][1], offs[i]);
                }
            });
        });
        // SAFETY: before the barrier, no thread reads the exchange.
        unsafe { exchange::<W, I, LANES>(tile, step, square) };
    });
}

/// Loads and transposes the micro-tiles of any tile.
///
/// # Safety
///
/// As [`ragged_tile`]; no thread reads the exchange.
#[inline(always)]
unsafe fn load_any<W: Word + Lanes, I: Index, const LANES: usize, const SQUARES: usize>(
    lines: &Lines<I>,
    cache: impl LineCache,
) {
    let (tile, lanes) = (lines.tile, W::COUNT as u32);
    unrolled!(step < SQUARES => {
        let (x, y) = tile.square(step);
        let (row, col) = (tile.row + I::new(y * lanes), tile.col + I::new(x * lanes));
        let (start, folded) = (lines.src_start::<W>(col), SquareRows::new::<W>(tile, row, col));
        let mut square = [[0; 4]; LANES];
        unrolled!(group < 4 => {
            let mut rows = [Unaligned::NONE; 4];
            let mut held = [[[0; 4]; 2]; 4];
            unrolled!(i < 4 => {
                let down = 4 * group as u32 + i as u32;
                if 4 * group + i < LANES && row + I::new(down) < tile.rows() && col < tile.cols() {
                    let from = match ragged_tile_folds(W::BYTES) {
                        true => folded.at::<W>(down),
                        // SAFETY: the tables have been written.
                        false => start.offset(unsafe { lines.row::<W>(y, down) }.bytes::<W>()),
                    };
                    rows[i] = Unaligned::new::<W, I>(from, col, tile.params);
                }
            });
            unrolled!(i < 4 => {
                // SAFETY: from a row of the source, or NONE, which reads nothing.
                held[i] = unsafe { rows[i].load(cache) };
            });
            unrolled!(i < 4 => {
                if 4 * group + i < LANES {
                    // SAFETY: as above.
                    square[4 * group + i] = unsafe { rows[i].finish::<W, LANES>(held[i]) };
                }
            });
        });
        // SAFETY: before the barrier, no thread reads the exchange.
        unsafe { exchange::<W, I, LANES>(tile, step, square) };
    });
}

/// Exchanges as [`Tile::exchange`], for tiles with at least eight micro-tiles a column, in which
/// the columns of a micro-tile lie equally far apart.
///
/// # Safety
///
/// Between the same barriers no other thread accesses these addresses.
#[inline(always)]
unsafe fn exchange<W: Lanes, I: Index, const LANES: usize>(tile: &Tile<I>, step: usize, square: [Quad; LANES]) {
    let (x, y) = tile.square(step);
    let first = tile.place::<W>(x * W::COUNT as u32, y);
    let turned = W::turn(square);
    unrolled!(lane < LANES => {
        let place = first.offset((lane as u32 * 16) << tile.down_log2);
        // SAFETY: inside the tile, and each thread has its own micro-tiles.
        unsafe { thread::store_shared_quad(place, turned[lane]) };
    });
}

/// A vector of a column before it is stored.
struct Part {
    /// Its first element in the tile's column.
    first: u32,
    to: Global,
    quad: Quad,
}

impl Part {
    /// Returns part `part` of a column whose share of this tile ends at `end`: its run starts on a
    /// whole sector of its own row, less than the halo before the elements that this tile adds.
    ///
    /// # Safety
    ///
    /// No thread writes the exchange any more.
    #[inline(always)]
    unsafe fn new<W: Word + Lanes, I: Index>(tile: &Tile<I>, column: u32, part: u32, end: Global) -> Self {
        let lanes = W::COUNT as u32;
        let off = end.sector_misalignment();
        let first = (tile.margin + part) * lanes - off / W::BYTES;
        let (number, lead) = (first / lanes, first % lanes);
        // SAFETY: `part` is one of the tile's own, so this is a vector of the column, written
        // before the barrier and not since.
        let mut quad = unsafe { thread::load_shared_quad(tile.place::<W>(column, number)) };
        if lanes > 1 {
            // SAFETY: as above; with a lead, the run starts less than the halo before the tile's
            // own elements, so its last part ends inside the column.
            let high = unsafe { thread::load_shared_quad(tile.place::<W>(column, number + (lead != 0) as u32)) };
            quad = quad::shift::<W>(quad, high, lead * W::BYTES);
        }
        Part { first, to: end.offset(u64::from(16 * part).wrapping_sub(u64::from(off))), quad }
    }
}

/// Stores the elements that the tile adds to its columns, if it is inside.
///
/// # Safety
///
/// As [`ragged_tile`]; the tile is inside, and no thread writes the exchange any more.
#[inline(always)]
unsafe fn store_inner<W: Word + Lanes, I: Index, const LANES: usize, const SQUARES: usize>(
    lines: &Lines<I>,
    cache: impl LineCache,
) {
    let tile = lines.tile;
    let (column, part) = tile.part(0);
    if part < (1 << tile.down_log2) - tile.margin {
        let columns = VECTOR_TILE_THREADS >> tile.down_log2;
        let pitch = pitch::<W>(tile.params.dst_rows.inner_stride).wrapping_mul(u64::from(columns));
        let own = tile.row + I::new(tile.margin * W::COUNT as u32);
        let mut start = match ragged_tile_folds(W::BYTES) {
            true => tile.dst::<W>(own, tile.col + I::new(column)),
            false => lines.dst_start::<W>(own),
        };
        let left = tile.cols() - tile.col;
        for step in 0..(LANES * SQUARES) as u32 {
            let column = column + step * columns;
            // Only tables are used at the end of the columns.
            if !ragged_tile_folds(W::BYTES) && !(I::new(column) < left) {
                break;
            }
            let end = match ragged_tile_folds(W::BYTES) {
                true => start,
                // SAFETY: the tables have been written.
                false => start.offset(unsafe { lines.col::<W>(column) }.bytes::<W>()),
            };
            // SAFETY: after the barrier, and one of the tile's own parts.
            let part = unsafe { Part::new::<W, I>(tile, column, part, end) };
            // SAFETY: all of an inner tile's rows belong to the matrix, and this column: this is a
            // whole vector of a row of the destination, aligned by its sector, which no other
            // thread has.
            unsafe { cache.store(part.to, part.quad) };
            if ragged_tile_folds(W::BYTES) {
                start = start.offset(pitch);
            }
        }
    }
}

/// Stores the elements that any tile adds to its columns.
///
/// # Safety
///
/// As [`ragged_tile`]; no thread writes the exchange any more.
#[inline(always)]
unsafe fn store_any<W: Word + Lanes, I: Index, const LANES: usize, const SQUARES: usize>(
    lines: &Lines<I>,
    cache: impl LineCache,
) {
    let (tile, lanes) = (lines.tile, W::COUNT as u32);
    for step in 0..(LANES * SQUARES) as u32 {
        let (column, part) = tile.part(step);
        let col = tile.col + I::new(column);
        // As a difference, the tile's own parts would take registers: an H100 would run 8 blocks of
        // 4-byte elements, not 9.
        if part + tile.margin < 1 << tile.down_log2 && col < tile.cols() {
            let own = tile.row + I::new(tile.margin * lanes);
            let end = match ragged_tile_folds(W::BYTES) {
                true => tile.dst::<W>(own, col),
                // SAFETY: the tables have been written.
                false => lines.dst_start::<W>(own).offset(unsafe { lines.col::<W>(column) }.bytes::<W>()),
            };
            // SAFETY: after the barrier, and one of the tile's own parts.
            let Part { first, to, quad } = unsafe { Part::new::<W, I>(tile, column, part, end) };
            let row = tile.row + I::new(first);
            if row < tile.rows() && !(tile.rows() - row < I::new(lanes)) {
                // SAFETY: a whole vector of a row of the destination, aligned by its sector, which
                // no other thread has.
                unsafe { cache.store(to, quad) };
            } else {
                unrolled!(lane < LANES => {
                    if row + I::new(lane as u32) < tile.rows() {
                        let to = to.offset(lane as u64 * u64::from(W::BYTES));
                        // SAFETY: an element of that row, which no other thread has.
                        unsafe { W::get(quad, lane).store_global(to) };
                    }
                });
            }
        }
    }
}

/// The rows of a micro-tile: an inner stride apart, but at the next index of the outer axis from
/// row `left` on.
struct SquareRows<I> {
    start: Global,
    /// Bytes from one to the next.
    pitch: u64,
    left: I,
    /// Bytes from the end of the inner axis to its next start.
    skip: u64,
}

impl<I: Index> SquareRows<I> {
    #[inline(always)]
    fn new<W: Word>(tile: &Tile<I>, row: I, col: I) -> Self {
        let Fold { inner, inner_stride, outer_stride } = &tile.params.src_rows;
        let left = I::truncate(inner.value) - axes::remainder(row, row.divide(inner), inner);
        let skip = outer_stride.wrapping_sub((inner.value as i64).wrapping_mul(*inner_stride));
        let (pitch, skip) = (pitch::<W>(*inner_stride), pitch::<W>(skip));
        SquareRows { start: tile.src::<W>(row, col), pitch, left, skip }
    }

    #[inline(always)]
    fn at<W: Word>(&self, down: u32) -> Global {
        let is_beyond = ragged_tile_folds(W::BYTES) && !(I::new(down) < self.left);
        let from = self.start.offset(u64::from(down).wrapping_mul(self.pitch));
        from.offset(if is_beyond { self.skip } else { 0 })
    }
}

/// Sixteen bytes of a row that start anywhere.
#[derive(Clone, Copy)]
struct Unaligned {
    from: Global,
    /// Bytes from the last multiple of 16.
    off: u32,
    /// Elements from here to the row's end.
    left: u32,
    /// True if the aligned vectors that hold them lie within the readable bytes: the row, or a
    /// source without gaps.
    whole: bool,
}

impl Unaligned {
    const NONE: Self = Unaligned { from: Global::NONE, off: 0, left: 0, whole: false };

    /// Describes a vector at `from`, which is element `col` of a row. Only the row is read or, if
    /// the matrix has no gaps, only the matrix.
    #[inline(always)]
    fn new<W: Word + Lanes, I: Index>(from: Global, col: I, params: &VectorTileParams) -> Self {
        let (lanes, off) = (W::COUNT as u32, from.misalignment());
        let span = if off == 0 { 16 } else { 32 };
        let left = I::truncate(params.cols) - col;
        let start = from.offset(u64::from(off).wrapping_neg());
        let (low, high) = if params.src_end == 0 {
            (from.offset(col.bytes::<W>().wrapping_neg()), from.offset(left.bytes::<W>()))
        } else {
            (Global::new(params.src_start), Global::new(params.src_end))
        };
        Unaligned {
            from,
            off,
            left: if left < I::new(lanes) { left.low() } else { lanes },
            whole: !start.is_before(low) && !high.is_before(start.offset(span)),
        }
    }

    /// Loads the aligned vectors that hold it, if all of them may be read.
    ///
    /// # Safety
    ///
    /// The row is allocated or, for a source without gaps, all of it; no work writes it.
    #[inline(always)]
    unsafe fn load(&self, cache: impl LineCache) -> [Quad; 2] {
        let mut held = [[0; 4]; 2];
        let start = self.from.offset(u64::from(self.off).wrapping_neg());
        if self.whole {
            // SAFETY: aligned, and `whole` says that it may be read.
            held[0] = unsafe { cache.load_of_line(start) };
        }
        if self.whole && self.off != 0 {
            // SAFETY: the same for the next vector, which `whole` includes if `off` is not 0.
            held[1] = unsafe { cache.load_of_line(start.offset(16)) };
        }
        held
    }

    /// Joins the vector from those. At the row's ends it loads element by element, with zeros after
    /// it.
    ///
    /// # Safety
    ///
    /// The row is allocated or, for a source without gaps, all of it; no work writes it.
    #[inline(always)]
    unsafe fn finish<W: Word + Lanes, const LANES: usize>(&self, [low, high]: [Quad; 2]) -> Quad {
        let mut quad = quad::shift::<W>(low, high, self.off);
        if !self.whole {
            quad = [0; 4];
            unrolled!(lane < LANES => {
                if (lane as u32) < self.left {
                    // SAFETY: one of the elements that are left of the row.
                    let element = unsafe { W::load_global(self.from.offset(lane as u64 * u64::from(W::BYTES))) };
                    quad = element.put(quad, lane);
                }
            });
        }
        quad
    }
}
