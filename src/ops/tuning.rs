//! What was found by measuring, as data.

/// How a tile kernel cuts a matrix, as base-2 logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileShape {
    /// Squares in a tile, which the kernel was compiled with: 128 threads times what each moves.
    pub(super) squares: u32,
    /// Those along a row of the source, where the matrix is large enough.
    pub(super) across: u32,
    /// Those along a row of the source where both sides fit in the L2 cache: there only what is read comes from memory.
    pub(super) across_small: u32,
}

/// The shapes of one element width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiles {
    /// Width of the elements, in bytes.
    pub(super) width: usize,
    /// Of `vector_tile`.
    pub(super) vector: TileShape,
    /// Of `ragged_tile`, which elements of 16 bytes never need.
    pub(super) ragged: Option<TileShape>,
}

const fn shape(squares: u32, across: u32, across_small: u32) -> TileShape {
    TileShape { squares, across, across_small }
}

/// Found on an H100, on squares of 256 to 16384, and taken for every architecture: runs of 256 bytes on both sides are what
/// matters, and longer ones gain nothing.
pub(super) const TILES: [Tiles; 5] = [
    Tiles { width: 1, vector: shape(7, 3, 5), ragged: Some(shape(7, 3, 4)) },
    Tiles { width: 2, vector: shape(8, 4, 6), ragged: Some(shape(7, 3, 4)) },
    Tiles { width: 4, vector: shape(8, 4, 6), ragged: Some(shape(7, 4, 4)) },
    Tiles { width: 8, vector: shape(9, 4, 7), ragged: Some(shape(7, 4, 3)) },
    Tiles { width: 16, vector: shape(10, 4, 8), ragged: None },
];

/// Most bytes of one side for which a transpose is small.
pub(super) const SMALL: usize = 16 << 20;

/// Bytes that a run needs on each side for the full speed of an H100's memory.
pub(super) const RUN: usize = 256;
