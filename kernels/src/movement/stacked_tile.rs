//! Batches of small matrices: the squares of [`super::vector_tile`], of several images a tile.
//!
//! A tile that a matrix does not fill leaves threads idle. Here the images of one axis of the batch
//! are stacked: the numbers of squares, and of quads in shared memory, go on from one image to the
//! next.

use crate::abi::{StackedTileParams, VECTOR_TILE_THREADS, vector_tile_squares};
use crate::block;
use crate::index::Index;
use crate::index::axes::{self, Offsets};
use crate::movement::vector_tile::Quads;
use crate::thread::cache::Cache;
use crate::thread::quad::Lanes;
use crate::thread::{self, Global, Quad, Shared, Word};
use crate::unrolled;

/// The images of a block.
struct Stack<I> {
    across_log2: u32,
    down_log2: u32,
    lanes_log2: u32,
    /// Images of the tile: as many as it has room for, or as there are left.
    images: u32,
    src: I,
    dst: I,
    shared: Shared,
}

impl<I: Index> Stack<I> {
    #[inline(always)]
    fn new<W: Lanes, const SQUARES: usize, const QUADS: usize>(params: &StackedTileParams) -> Self {
        let (across_log2, down_log2) = (params.across_log2 as u32, params.down_log2 as u32);
        let number = block::linear::<I>();
        let above = number.divide(&params.stacks);
        let stack = axes::remainder(number, above, &params.stacks);
        let [Offsets { src, dst }] = axes::offsets([above], &params.axes, params.rank);
        let most = (VECTOR_TILE_THREADS * SQUARES as u32) >> (across_log2 + down_log2);
        let first = stack * I::new(most);
        let left = I::truncate(params.images) - first;
        let stride = |stride: i64| first * I::truncate(stride as u64);
        Stack {
            across_log2,
            down_log2,
            lanes_log2: (W::COUNT as u32).ilog2(),
            images: if left < I::new(most) { left.low() } else { most },
            src: src + stride(params.src_stride),
            dst: dst + stride(params.dst_stride),
            shared: Shared::reserve::<Quads<QUADS>>(),
        }
    }

    /// Where a quad lies in shared memory; they are numbered by image, then column, then part of
    /// the column.
    ///
    /// Eight lanes read quads that follow each other. They write those of as many squares, whose
    /// numbers differ in bits of the part, of the column's square and of the image: the latter two
    /// are exclusive-ored into what the part leaves of the three bits that choose the banks. Every
    /// bit is so changed by higher ones only, as a square has eight columns and more, or an image
    /// more quads than `STACKED_QUADS`: no two have one place.
    #[inline(always)]
    fn place(&self, number: u32) -> Shared {
        let low = |bits: u32| if bits < 3 { bits } else { 3 };
        let (column, image) = (self.down_log2 + self.lanes_log2, self.down_log2 + self.lanes_log2 + self.across_log2);
        let rest = 3 - low(self.across_log2);
        let columns = ((number >> column) << rest) & 7;
        let images = ((number >> image) << low(self.down_log2)) & ((1 << rest) - 1);
        self.shared.offset((number ^ columns ^ images) * 16)
    }

    /// An element of an image, on the side that starts there and has so long rows.
    #[inline(always)]
    fn at<W: Word>(start: u64, first: I, [image, row, col]: [u32; 3], stride: i64, len: u64) -> Global {
        let within = I::new(row) * I::truncate(len) + I::new(col);
        let offset = first + I::new(image) * I::truncate(stride as u64) + within;
        Global::new(start).offset(offset.bytes::<W>())
    }
}

/// Where every row of both sides starts on 16 bytes and holds whole quads, and a tile has room for
/// several images.
///
/// `LANES`, `SQUARES` and `QUADS` are as of `vector_tile`.
///
/// # Safety
///
/// See [`StackedTileParams`]: all elements are allocated and nothing else writes them. Blocks
/// beyond the last, of which only a grid of more than 2^31 - 1 has some, repeat the first ones.
#[inline(always)]
pub unsafe fn stacked_tile<
    W: Word + Lanes,
    I: Index,
    C: Cache<Quad>,
    const LANES: usize,
    const SQUARES: usize,
    const QUADS: usize,
>(
    params: StackedTileParams,
) {
    const { assert!(SQUARES as u32 == vector_tile_squares(W::BYTES), "the host cuts tiles of as many squares") };
    let stack = Stack::<I>::new::<W, SQUARES, QUADS>(&params);
    let (across_log2, down_log2, lanes_log2) = (stack.across_log2, stack.down_log2, stack.lanes_log2);
    let (rows, cols) = (params.rows as u32, params.cols as u32);
    let cache = C::new();
    let mut held = [[[0; 4]; LANES]; SQUARES];
    unrolled!(step < SQUARES => {
        let number = thread::thread_x() + step as u32 * VECTOR_TILE_THREADS;
        let col = (number & ((1 << across_log2) - 1)) << lanes_log2;
        let row = ((number >> across_log2) & ((1 << down_log2) - 1)) << lanes_log2;
        let image = number >> (across_log2 + down_log2);
        if row < rows && col < cols && image < stack.images {
            let start = Stack::at::<W>(params.src, stack.src, [image, row, col], params.src_stride, params.cols);
            let pitch = u64::from(cols * W::BYTES);
            unrolled!(lane < LANES => {
                // SAFETY: whole quads of rows of the image, as the caller promises.
                held[step][lane] = unsafe { cache.load(start.offset(lane as u64 * pitch)) };
            });
        }
    });
    unrolled!(step < SQUARES => {
        let number = thread::thread_x() + step as u32 * VECTOR_TILE_THREADS;
        let (x, y) = (number & ((1 << across_log2) - 1), (number >> across_log2) & ((1 << down_log2) - 1));
        let square = ((number >> (across_log2 + down_log2) << across_log2) + x) << (lanes_log2 + down_log2);
        let turned = W::turn(held[step]);
        unrolled!(lane < LANES => {
            let place = stack.place(square + ((lane as u32) << down_log2) + y);
            // SAFETY: inside the tile, each thread has its own squares, and no two quads one place;
            // before the barrier nothing reads it.
            unsafe { thread::store_shared_quad(place, turned[lane]) };
        });
    });
    // SAFETY: every thread of the block comes here: nothing above returns.
    unsafe { thread::barrier() };
    for step in 0..(LANES * SQUARES) as u32 {
        let number = thread::thread_x() + step * VECTOR_TILE_THREADS;
        // SAFETY: inside the tile, which nothing writes any more.
        let quad = unsafe { thread::load_shared_quad(stack.place(number)) };
        let row = (number & ((1 << down_log2) - 1)) << lanes_log2;
        let col = (number >> down_log2) & ((1 << (across_log2 + lanes_log2)) - 1);
        let image = number >> (across_log2 + down_log2 + lanes_log2);
        if row < rows && col < cols && image < stack.images {
            let to = Stack::at::<W>(params.dst, stack.dst, [image, col, row], params.dst_stride, params.rows);
            // SAFETY: a whole quad of a row of the destination, which no other thread has.
            unsafe { cache.store(to, quad) };
        }
    }
}
