//! `vector_tile` for a single matrix that is small: with the few parameters of a transpose, no
//! division, and one square a thread, so that there are blocks enough.
//!
//! What is accessed once is said to be (`.cs`): on an H100 a matrix of 4 MiB then takes 6.5 us
//! rather than 7.1, and a copy of as much 7.2. From 16 MiB on it is the slower way.

use crate::abi::{SMALL_TILE_ACROSS, SMALL_TILE_DOWN, TransposeParams};
use crate::index::{Index, Narrow};
use crate::thread::quad::Lanes;
use crate::thread::{self, Footprint, Global, Shared, Word};
use crate::unrolled;

/// Room for a tile of squares of `LANES` quads.
struct Tile<const LANES: usize>;

impl<const LANES: usize> Footprint for Tile<LANES> {
    const BYTES: u32 = 16 * SMALL_TILE_ACROSS * SMALL_TILE_DOWN * LANES as u32;
}

/// Where a quad lies in shared memory: eight lanes read quads that follow each other, and write
/// some that are a step of `LANES` columns apart. The number of that step chooses the banks.
#[inline(always)]
fn place<const LANES: usize>(tile: Shared, number: u32) -> Shared {
    let step = SMALL_TILE_DOWN * LANES as u32;
    let step = if step > 8 { step } else { 8 };
    tile.offset((number ^ (number / step & 7)) * 16)
}

/// Block `(x, y)` turns tile `(y, x)`, of [`SMALL_TILE_ACROSS`] x [`SMALL_TILE_DOWN`] squares of
/// `LANES` x `LANES` elements, a thread each; `LANES` is `W::COUNT`.
///
/// # Safety
///
/// See [`TransposeParams`]: both matrices are allocated and nothing else writes them. Their columns
/// are contiguous, and every row of both starts on 16 bytes and holds whole quads.
#[inline(always)]
pub unsafe fn small_tile<W: Word + Lanes, const LANES: usize>(params: TransposeParams) {
    let tile = Shared::reserve::<Tile<LANES>>();
    let (thread, lanes) = (thread::thread_x(), LANES as u32);
    let (first_row, first_col) =
        (thread::block_y() * SMALL_TILE_DOWN * lanes, thread::block_x() * SMALL_TILE_ACROSS * lanes);
    let at = |start: u64, row: u32, stride: i64, col: u32| {
        let offset = Narrow::new(row) * Narrow::truncate(stride as u64) + Narrow::new(col);
        Global::new(start).offset(offset.bytes::<W>())
    };

    let (x, y) = (thread % SMALL_TILE_ACROSS, thread / SMALL_TILE_ACROSS);
    let (row, col) = (first_row + y * lanes, first_col + x * lanes);
    let mut held = [[0; 4]; LANES];
    if row < params.rows as u32 && col < params.cols as u32 {
        unrolled!(lane < LANES => {
            let from = at(params.src, row + lane as u32, params.src_row_stride, col);
            // SAFETY: a whole quad of a row of the source.
            held[lane] = unsafe { thread::load_quad_once(from) };
        });
    }
    let turned = W::turn(held);
    unrolled!(lane < LANES => {
        let number = (x * lanes + lane as u32) * SMALL_TILE_DOWN + y;
        // SAFETY: inside the tile, and each thread has its own squares.
        unsafe { thread::store_shared_quad(place::<LANES>(tile, number), turned[lane]) };
    });
    // SAFETY: every thread of the block comes here: nothing above returns.
    unsafe { thread::barrier() };
    unrolled!(step < LANES => {
        let number = thread + step as u32 * SMALL_TILE_ACROSS * SMALL_TILE_DOWN;
        // SAFETY: inside the tile, which nothing writes any more.
        let quad = unsafe { thread::load_shared_quad(place::<LANES>(tile, number)) };
        let (col, row) = (first_col + number / SMALL_TILE_DOWN, first_row + number % SMALL_TILE_DOWN * lanes);
        if row < params.rows as u32 && col < params.cols as u32 {
            let to = at(params.dst, col, params.dst_row_stride, row);
            // SAFETY: a whole quad of a row of the destination, which no other thread has.
            unsafe { thread::store_quad_once(to, quad) };
        }
    });
}
