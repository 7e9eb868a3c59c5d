//! Transposes batches of small matrices: a tile holds micro-tiles of several images, as in
//! [`super::vector_tile`].
//!
//! A tile that a matrix does not fill leaves threads idle. Here the images of one axis of the batch
//! are stacked: the numbers of micro-tiles, and of vectors in shared memory, continue from one
//! image to the next.

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
    /// Images of the tile: the number that it has room for, or that is left.
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

    /// Returns the address of a vector in shared memory. Vectors are numbered by image, then
    /// column, then part of the column.
    ///
    /// Eight lanes read vectors that follow each other. They write vectors of eight micro-tiles,
    /// whose numbers differ in bits of the part, of the column's micro-tile and of the image: the
    /// latter two are exclusive-ored into the bits, of the three that choose the banks, that the
    /// part leaves. Every bit is changed only by higher ones, because a micro-tile has eight
    /// columns and more, or an image more vectors than `STACKED_QUADS`. So no two vectors share an
    /// address.
    #[inline(always)]
    fn place(&self, number: u32) -> Shared {
        let low = |bits: u32| if bits < 3 { bits } else { 3 };
        let (column, image) = (self.down_log2 + self.lanes_log2, self.down_log2 + self.lanes_log2 + self.across_log2);
        let rest = 3 - low(self.across_log2);
        let columns = ((number >> column) << rest) & 7;
        let images = ((number >> image) << low(self.down_log2)) & ((1 << rest) - 1);
        self.shared.offset((number ^ columns ^ images) * 16)
    }

    /// Returns the address of an element of an image, on the side with this start and length of
    /// rows.
    #[inline(always)]
    fn at<W: Word>(start: u64, first: I, [image, row, col]: [u32; 3], stride: i64, len: u64) -> Global {
        let within = I::new(row) * I::truncate(len) + I::new(col);
        let offset = first + I::new(image) * I::truncate(stride as u64) + within;
        Global::new(start).offset(offset.bytes::<W>())
    }
}

/// Transposes batches whose rows start on 16 bytes and hold whole vectors on both sides, if a tile
/// has room for several images.
///
/// `LANES`, `SQUARES` and `QUADS` are as for `vector_tile`.
///
/// # Safety
///
/// See [`StackedTileParams`]: all elements are allocated and no other work writes them. Blocks
/// beyond the last, which only a grid of more than 2^31 - 1 has, repeat the first ones.
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
                // SAFETY: whole vectors of rows of the image, as the caller promises.
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
            // SAFETY: inside the tile, each thread has its own micro-tiles, and no two vectors one
            // place; before the barrier nothing reads it.
            unsafe { thread::store_shared_quad(place, turned[lane]) };
        });
    });
    // SAFETY: every thread of the block comes here: no code above returns.
    unsafe { thread::barrier() };
    for step in 0..(LANES * SQUARES) as u32 {
        let number = thread::thread_x() + step * VECTOR_TILE_THREADS;
        // SAFETY: inside the tile, which no thread writes any more.
        let quad = unsafe { thread::load_shared_quad(stack.place(number)) };
        let row = (number & ((1 << down_log2) - 1)) << lanes_log2;
        let col = (number >> down_log2) & ((1 << (across_log2 + lanes_log2)) - 1);
        let image = number >> (across_log2 + down_log2 + lanes_log2);
        if row < rows && col < cols && image < stack.images {
            let to = Stack::at::<W>(params.dst, stack.dst, [image, col, row], params.dst_stride, params.rows);
            // SAFETY: a whole vector of a row of the destination, which no other thread has.
            unsafe { cache.store(to, quad) };
        }
    }
}
