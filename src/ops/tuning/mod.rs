//! What was found by measuring, as data. `warpstride bench --tune` finds it again, on any GPU.

mod arithmetic;

pub(in crate::ops) use arithmetic::Arithmetic;

use super::Target;
use crate::abi::{EntryId, VECTOR_TILE_THREADS, ragged_tile_squares, vector_tile_squares};
use crate::launch_shape::MAX_SHARED_BYTES;

/// How the tile kernels cut a matrix, by element width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileShape {
    /// Width of the elements, in bytes.
    pub(super) width: usize,
    /// Base-2 logarithm of the squares in a tile of whole rows, which the kernel was compiled with: 128 threads times what each
    /// moves.
    pub(super) squares_log2: u32,
    /// Base-2 logarithm of those along a row of the source, where the matrix is large enough.
    pub(super) across_log2: u32,
    /// Base-2 logarithm of the squares in a tile of ragged rows, which that kernel was compiled with. Few: with
    /// more shared memory a block it was slower on an H100.
    pub(super) ragged_squares_log2: u32,
    /// Base-2 logarithm of those along a row of the source, where the matrix is large enough.
    pub(super) ragged_across_log2: u32,
}

impl TileShape {
    /// Those used on an architecture: its own, or those of an H100.
    pub fn of(target: Target) -> &'static [Self; 5] {
        let own = TILES.iter().find(|(capability, _)| *capability == target.compute_capability);
        &own.unwrap_or(&TILES[0]).1
    }

    /// Bytes of the elements that it is for.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Base-2 logarithm of the squares along a row of the source.
    pub fn across(&self) -> u32 {
        self.across_log2
    }

    /// The same where rows are ragged.
    pub fn ragged_across(&self) -> u32 {
        self.ragged_across_log2
    }

    /// The most squares along a row of the source, as a base-2 logarithm.
    ///
    /// A ragged tile shares two squares a column with the one above. Of eight, most are its own, and the lanes that read them
    /// from shared memory are not so few that an H100 would serve twice as many at once, which would then share banks.
    pub fn most_across(&self, ragged: bool) -> u32 {
        if ragged { self.ragged_squares_log2 - 3 } else { self.squares_log2 }
    }

    /// The squares of a tile, and those along a row of the source where the matrix is large enough, as base-2 logarithms.
    pub(super) fn squares(&self, ragged: bool, small: bool) -> (u32, u32) {
        match (ragged, small) {
            (true, _) => (self.ragged_squares_log2, self.ragged_across_log2.min(self.most_across(true))),
            (false, false) => (self.squares_log2, self.across_log2),
            (false, true) => (self.squares_log2, self.squares_log2 - SMALL_DOWN_LOG2),
        }
    }

    /// The same tile with another number of squares along a row of the source, as base-2 logarithms: of whole rows, and of
    /// ragged ones. More than [`TileShape::most_across`] are as many as that.
    pub fn with_across(self, across_log2: u32, ragged_across_log2: u32) -> Self {
        Self { across_log2, ragged_across_log2, ..self }
    }
}

/// By compute capability. Found on an H100 (16384 x 16384 and the like), which comes first because others take its row: runs of
/// 256 bytes on both sides are what matters, and longer ones gain nothing.
const TILES: [((u32, u32), [TileShape; 5]); 1] = [(
    (9, 0),
    [
        TileShape { width: 1, squares_log2: 7, across_log2: 3, ragged_squares_log2: 7, ragged_across_log2: 3 },
        TileShape { width: 2, squares_log2: 8, across_log2: 4, ragged_squares_log2: 7, ragged_across_log2: 3 },
        TileShape { width: 4, squares_log2: 8, across_log2: 4, ragged_squares_log2: 7, ragged_across_log2: 4 },
        TileShape { width: 8, squares_log2: 9, across_log2: 4, ragged_squares_log2: 7, ragged_across_log2: 4 },
        TileShape { width: 16, squares_log2: 10, across_log2: 4, ragged_squares_log2: 8, ragged_across_log2: 4 },
    ],
)];

/// Whatever the architecture, tiles have the squares that the kernel was compiled with: a row of others does not build.
const _: () = {
    let mut row = 0;
    while row < TILES.len() {
        let mut width = 0;
        while width < TILES[row].1.len() {
            let tile = TILES[row].1[width];
            assert!(VECTOR_TILE_THREADS * vector_tile_squares(tile.width as u32) == 1 << tile.squares_log2);
            assert!(VECTOR_TILE_THREADS * ragged_tile_squares(tile.width as u32) == 1 << tile.ragged_squares_log2);
            width += 1;
        }
        row += 1;
    }
};

/// Base-2 logarithm of the squares along a column of a small matrix's tile. What it writes stays in the L2 cache of an H100, so
/// that only what it reads wants long runs.
const SMALL_DOWN_LOG2: u32 = 2;

/// Most bytes of one side for which a matrix is small.
pub(super) const SMALL: usize = 16 << 20;

/// Most bytes of one side that are moved without hints to the L2 cache. What is stored to be evicted first is not there for who reads
/// it next: on an H100 a copy of what a copy with hints had just written took 9 % more at 17 MiB, both together, 3 % at 24, and
/// from 32 MiB on no more than the hints had gained.
const UNHINTED: u64 = 32 << 20;

/// The entry for so many bytes of one side: with hints, where there is one and the target knows them.
pub(super) fn hinted(entry: EntryId, bytes: u64, target: Target) -> EntryId {
    if bytes <= UNHINTED { entry } else { entry.hinted(target.compute_capability) }
}

/// Most bytes of a column of ragged tiles, of one side, that are numbered down it. On an H100 columns of 2 MiB gained by that, of 4
/// little, and of 8 and 12 lost: the next column came too late for the lines that the two share.
pub(super) const TILE_COLUMN: usize = 4 << 20;

/// The part of its squares by which a ragged tile of another shape than the tuned one must be fuller to be taken.
pub(super) const FULLER: usize = 64;

/// Bytes of a ragged row of the destination from which on it stays one axis: of rows of 256 to 520 bytes that end within a
/// sector, an H100 moved those that go on where they end 2 to 23 % faster as one.
pub(super) const FOLDED_ROW: usize = 1024;

/// Bytes that a run needs on each side for the full speed of an H100's memory.
pub(super) const RUN: usize = 256;

/// Most fields of a struct that is moved as one: with more, tiles have columns enough.
pub(super) const MOST_FIELDS: usize = 64;

/// Fewest bytes of an image of structs that are worth a block: two granules of 4 bytes a thread.
pub(super) const SMALLEST_IMAGE: usize = 2048;

/// The part of its structs' bytes that blocks may have idle where tiles would move them as well: of structs of 4 to 56 fields
/// without idle ones, an H100 moved all 0 to 2 % faster than by tiles.
pub(super) const IDLE: usize = 16;

/// Threads that a block of `deinterleave_quads` and `interleave_quads` is sized for: fewer where whole warps of quads of each field
/// are less, more where one of each is. Of 128, 256 and 512 threads of 2, 3, 4, 6 and 8 quads, those of 3 were the best on an H100
/// for large arrays by a hair, and for small ones only those of 2 better.
pub(super) const FIELDS_QUADS_THREADS: usize = 128;

/// Dynamic shared memory of a block that moves `chunk` bytes of a large array of structs: what is more than those keeps other
/// blocks off the multiprocessor. An H100 has 228 KiB there, of which each block takes 1 KiB for itself, and is fastest with
/// 64 KiB of structs in flight. Of other architectures none was measured.
pub(super) fn fields_room(chunk: u32, target: Target) -> u32 {
    if target.compute_capability != (9, 0) {
        return chunk;
    }
    let blocks = ((64 << 10) + chunk / 2) / chunk;
    let share = (228 << 10) / blocks.max(1) - (1 << 10);
    // Up to what a launch has without asking.
    chunk.max(share.min(MAX_SHARED_BYTES) / 16 * 16)
}

/// Bytes of the elements in a tile of several axes, beside which its tables lie: of 8, 12, 16 and 24 KiB the best in sum of the
/// cases swept on an H100. Wide elements need more for runs of 256 bytes and longer on both sides.
pub(super) const fn packed_tile(width: usize) -> usize {
    if width < 8 { 12 << 10 } else { 16 << 10 }
}

/// Fewest bytes of such a tile that are worth a block: by what the software GPU counts of tiles of 256 and of 1024 bytes beside
/// `elements`, not by times.
pub(super) const SMALLEST_PACKED_TILE: usize = 1024;

/// Fewest bytes of an array that is worth such tiles.
pub(super) const SMALLEST_PACKED: usize = 2048;

/// Most bytes of a matrix of a batch whose elements of 4 bytes and more go one by one at a copy's speed, as measured on an H100.
pub(super) const CACHED_MATRIX: usize = 1024;

/// Most bytes of a matrix of a batch whose narrower elements `packed` moves faster than tiles of several: u16 8 x 8 at 0.87 of an
/// H100's copy instead of 0.85, where 8 x 16 are at 0.81 instead of 0.90.
pub(super) const PACKED_MATRIX: usize = 128;

/// Bytes of the shortest run that is moved by shifted accesses rather than element by element.
pub(super) const SHORTEST_ROW: usize = 64;

/// Bytes of a run from which on its stores start on lines of the L2 cache rather than on quads.
pub(super) const LONG_ROW: usize = 4096;

/// Most elements, and most bytes of one side, of a matrix that is moved by `patch`, one element a thread.
pub(super) const PATCH_ELEMENTS: usize = 1 << 16;
/// See [`PATCH_ELEMENTS`].
pub(super) const PATCH_BYTES: usize = 256 << 10;

/// The same of several matrices, for which the next larger kernel has more parameters.
pub(super) const PATCHES_ELEMENTS: usize = 1 << 18;

/// Base-2 logarithm of the columns of a patch, where the matrix has as many, for elements of `width` bytes.
pub(super) const fn patch_across_log2(width: usize) -> u32 {
    if width < 8 { 3 } else { 4 }
}

/// Most bytes of one side for which a single matrix is moved by a kernel with few parameters.
pub(super) const SMALL_MATRIX: usize = 8 << 20;

/// Bytes of one side from which on such a matrix is worth squares, each a thread's: fewer leave multiprocessors idle. Elements
/// of [`SMALL_SQUARES_WIDTH`] bytes and more are always.
pub(super) const SMALL_SQUARES: usize = 1 << 20;
/// See [`SMALL_SQUARES`].
pub(super) const SMALL_SQUARES_WIDTH: usize = 4;
