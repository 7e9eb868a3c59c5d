//! Transposes a single small matrix as `vector_tile` does, with the few parameters of a transpose,
//! no division, and one micro-tile a thread, so that there are enough blocks.
//!
//! Accesses are marked as single (`.cs`): on an H100 a matrix of 4 MiB then takes 6.5 us rather
//! than 7.1, and a copy of the same size 7.2. From 16 MiB on it is slower.

use crate::abi::{SMALL_TILE_ACROSS, SMALL_TILE_DOWN, TransposeParams};
use crate::index::{Index, Narrow};
use crate::thread::quad::Lanes;
use crate::thread::{self, Footprint, Global, Shared, Word};
use crate::unrolled;

/// Shared memory for a tile of micro-tiles of `LANES` vectors.
struct Tile<const LANES: usize>;

impl<const LANES: usize> Footprint for Tile<LANES> {
    const BYTES: u32 = 16 * SMALL_TILE_ACROSS * SMALL_TILE_DOWN * LANES as u32;
}

/// Returns the address of a vector in shared memory. Eight lanes read vectors that follow each
/// other, and write vectors that are a step of `LANES` columns apart. The number of that step
/// chooses the banks.
#[inline(always)]
fn place<const LANES: usize>(tile: Shared, number: u32) -> Shared {
    let step = SMALL_TILE_DOWN * LANES as u32;
    let step = if step > 8 { step } else { 8 };
    tile.offset((number ^ (number / step & 7)) * 16)
}

/// Transposes tile `(y, x)` in block `(x, y)`: [`SMALL_TILE_ACROSS`] x [`SMALL_TILE_DOWN`]
/// micro-tiles of `LANES` x `LANES` elements, one a thread; `LANES` is `W::COUNT`.
///
/// # Safety
///
/// See [`TransposeParams`]: both matrices are allocated and no other work writes them. Their
/// columns are contiguous, and every row of both starts on 16 bytes and holds whole vectors.
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
            // SAFETY: a whole vector of a row of the source.
            held[lane] = unsafe { thread::load_quad_once(from) };
        });
    }
    let turned = W::turn(held);
    unrolled!(lane < LANES => {
        let number = (x * lanes + lane as u32) * SMALL_TILE_DOWN + y;
        // SAFETY: inside the tile, and each thread has its own micro-tiles.
        unsafe { thread::store_shared_quad(place::<LANES>(tile, number), turned[lane]) };
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    unrolled!(step < LANES => {
        let number = thread + step as u32 * SMALL_TILE_ACROSS * SMALL_TILE_DOWN;
        // SAFETY: inside the tile, which no thread writes any more.
        let quad = unsafe { thread::load_shared_quad(place::<LANES>(tile, number)) };
        let (col, row) = (first_col + number / SMALL_TILE_DOWN, first_row + number % SMALL_TILE_DOWN * lanes);
        if row < params.rows as u32 && col < params.cols as u32 {
            let to = at(params.dst, col, params.dst_row_stride, row);
            // SAFETY: a whole vector of a row of the destination, which no other thread has.
            unsafe { thread::store_quad_once(to, quad) };
        }
    });
}
