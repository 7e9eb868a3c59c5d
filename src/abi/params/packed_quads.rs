//! Tiles of several axes that move by vectors.

use crate::abi::{Axis, Divisor, MAX_AXES, params};

/// Vectors that a thread of `packed_quads` has in flight.
pub const PACKED_LOADS: u32 = 4;
/// Most axes that number the runs of a side of `packed_quads`.
pub const PACKED_AXES: usize = 6;
/// Most axes that number the lines of a run of `packed_quads`.
pub const LINE_AXES: usize = 5;
/// Most axes of a cell of `packed_quads`. Four axes have at least the 16 elements of a vector, and
/// a line goes along the last of them.
pub const CELL_AXES: usize = 3;

params! {
    /// One axis of a tile of `packed_quads`, for numbers below 2^31.
    #[derive(Hash)]
    pub struct Digit {
        /// Positions along the axis.
        pub extent: u32,
        /// See [`Divisor`].
        pub multiplier: u32,
        /// See [`Divisor`].
        pub shift: u32,
        /// Bytes from one index to the next in shared memory.
        pub room: u32,
        /// Elements from one index to the next in global memory; signed.
        pub stride: i64,
    }

    /// The place of the tiles of `packed_quads`: several whole axes, and parts of up to two more.
    ///
    /// The digits of `b` are the parts of the two chunked axes and the index of the batch that
    /// block `b` moves: the second chunk the least, then the first, then the batch.
    pub struct PackedTiles {
        /// Device address of the first source element.
        pub src: u64,
        /// Device address of the first destination element.
        pub dst: u64,
        /// As in `VectorTileParams`.
        pub src_start: u64,
        /// As in `VectorTileParams`.
        pub src_end: u64,
        /// The chunks of the two axes; strides from one chunk to the next.
        pub chunks: [Axis; 2],
        /// Indices of a chunk; the last of an axis may have fewer.
        pub chunk: [u64; 2],
        /// Extents of the chunked axes.
        pub extents: [u64; 2],
        /// Elements of the source that a whole tile reaches below its first.
        pub below: u64,
        /// Elements that it reaches above it.
        pub above: u64,
        /// Axes of the batch.
        pub rank: u64,
        /// The batch, the first axis numbered fastest.
        pub axes: [Axis; MAX_AXES],
    }

    /// How one side of `packed_quads` numbers the vectors of a tile: `runs` runs of contiguous
    /// elements, each with the same number of vectors.
    pub struct QuadSide {
        /// Most vectors of a run, including partial ones.
        pub quads: Divisor,
        /// Elements of a run.
        pub len: u64,
        /// Elements of it for each index of the axis `chunk`, which then is the outermost of the
        /// run.
        pub unit: u64,
        /// The chunked axis that ends a run, 0 or 1; 2 if none does.
        pub chunk: u64,
        /// Runs of a whole tile.
        pub runs: u64,
        /// The start of the side's table of runs in dynamic shared memory: 8 bytes for each run,
        /// its start on this side and in the tile.
        pub table: u64,
        /// Positions of the two chunked axes in `outer`, or past it.
        pub chunked: [u64; 2],
        /// Axes that number the runs.
        pub outer_rank: u64,
        /// The axes that number the runs.
        pub outer: [Digit; PACKED_AXES],
    }

    /// Parameters of `packed_quads`. Dynamic shared memory holds a table of lines, one of cells,
    /// those of runs, and the tile. A line is a number of cells at equal distances, and a run of
    /// the destination has one or more lines. Distances in shared memory are negative, modulo 2^32,
    /// along axes that run backwards in the destination.
    pub struct PackedQuadsParams {
        /// The place of the tiles.
        pub tiles: PackedTiles,
        /// The start of the tile in dynamic shared memory, after the tables.
        pub tile: u64,
        /// Base-2 logarithm of the lanes that start to gather at the same word of their vectors.
        /// The next lanes start a word later, because they would share banks.
        pub turn: u64,
        /// The runs of the destination, if lanes that follow each other gather vectors of different
        /// runs; else 1.
        pub across: Divisor,
        /// Bytes of shared memory from the start of the tile to the cell that starts a whole run of
        /// the destination, before the offsets of tables are added. Runs start at their lowest
        /// address, so an axis that runs backwards starts at its last index.
        pub low: u64,
        /// The axis that ends a run of the destination, if it runs backwards and is chunked: bytes
        /// of shared memory from one index to the next. A last chunk starts that much nearer for
        /// each index that it lacks, and as many elements later as the index has. 0 if it runs
        /// forwards.
        pub lacking: u64,
        /// Elements of a line.
        pub line: Divisor,
        /// Entries of the table of lines, one more than the lines, or 0 if one axis numbers them.
        pub table: u64,
        /// Bytes that the table adds to the offsets of lines, so that none is negative.
        pub lines_low: u64,
        /// Axes that number the lines of a run.
        pub lines_rank: u64,
        /// The axes that number the lines of a run.
        pub lines: [Digit; LINE_AXES],
        /// Bytes of shared memory from one cell of a line to the next.
        pub step: u64,
        /// Cells of a line.
        pub cell_count: u64,
        /// Elements of a cell: 1, or those of axes that are shorter together than a vector.
        pub cell: Divisor,
        /// The start of the table of cells in dynamic shared memory, if a cell has several
        /// elements: for each, 2 bytes for each element of a vector that starts there, its offset
        /// from the start of the cell.
        pub cell_table: u64,
        /// Bytes that the table adds to the offsets in cells, so that none is negative.
        pub cells_low: u64,
        /// Axes of a cell.
        pub cells_rank: u64,
        /// The axes of a cell.
        pub cells: [Digit; CELL_AXES],
        /// How the source numbers the tile.
        pub src_side: QuadSide,
        /// How the destination numbers the tile.
        pub dst_side: QuadSide,
    }
}
