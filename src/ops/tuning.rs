//! What was found by measuring, as data.

/// How the tile kernels cut a matrix, by element width.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileShape {
    /// Width of the elements, in bytes.
    pub(super) width: usize,
    /// Base-2 logarithm of the squares in a tile, which the kernel was compiled with: 128 threads times what each moves.
    pub(super) squares_log2: u32,
    /// Base-2 logarithm of those along a row of the source, where the matrix is large enough.
    pub(super) across_log2: u32,
    /// The same for ragged rows.
    pub(super) ragged_across_log2: u32,
}

/// Found on an H100 (16384 x 16384 and the like) and taken for every architecture: runs of 256 bytes on both sides are what
/// matters, and longer ones gain nothing.
pub(super) const TILES: [TileShape; 5] = [
    TileShape { width: 1, squares_log2: 7, across_log2: 3, ragged_across_log2: 3 },
    TileShape { width: 2, squares_log2: 8, across_log2: 4, ragged_across_log2: 4 },
    TileShape { width: 4, squares_log2: 8, across_log2: 4, ragged_across_log2: 4 },
    TileShape { width: 8, squares_log2: 9, across_log2: 4, ragged_across_log2: 5 },
    TileShape { width: 16, squares_log2: 10, across_log2: 4, ragged_across_log2: 4 },
];

/// Bytes that a run needs on each side for the full speed of an H100's memory.
pub(super) const RUN: usize = 256;

/// Bytes of the shortest run that is moved by shifted accesses rather than element by element.
pub(super) const SHORTEST_ROW: usize = 64;

/// Bytes of a run from which on its stores start on lines of the L2 cache rather than on quads.
pub(super) const LONG_ROW: usize = 4096;
