//! Tiles of several axes that move by vectors.

use crate::abi::{Digit, Divisor, PACKED_AXES, PackedTiles, params};

/// Vectors that a thread of `packed_quads` has in flight.
pub const PACKED_LOADS: u32 = 4;
/// Elements that a thread of `packed_stepped` has in flight.
pub const STEPPED_LOADS: u32 = 8;

params! {
    /// How one side of `packed_quads` numbers the vectors of a tile: `runs` runs of contiguous
    /// elements, each with the same number of vectors. For the source of `packed_stepped`, elements
    /// take the place of vectors.
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
        /// Where the side's table of runs starts in dynamic shared memory: 8 bytes for each run,
        /// its start on this side and in the tile. One axis that numbers the runs needs no table.
        pub table: u64,
        /// Positions of the two chunked axes in `outer`, or past it.
        pub chunked: [u64; 2],
        /// Axes that number the runs.
        pub outer_rank: u64,
        /// The axes that number the runs.
        pub outer: [Digit; PACKED_AXES],
    }

    /// Parameters of `packed_quads` and `packed_stepped`. Dynamic shared memory holds a table of
    /// rows, those of runs, and the tile. A row is the elements of a run of the destination along
    /// its nearest axis.
    pub struct PackedQuadsParams {
        /// Where the tiles lie.
        pub tiles: PackedTiles,
        /// From one element of a run of the source to the next, in elements: 1 but for
        /// `packed_stepped`; signed.
        pub gap: i64,
        /// Where the tile starts in dynamic shared memory, after the tables.
        pub tile: u64,
        /// Base-2 logarithm of the lanes that start to gather at the same word of their vectors.
        /// The next lanes start a word later, because they would share banks.
        pub turn: u64,
        /// Elements of a row.
        pub row: Divisor,
        /// Bytes of shared memory from one element of a row to the next.
        pub step: u64,
        /// Entries of the table, one more than the rows, or 0 if one axis numbers them.
        pub table: u64,
        /// Axes that number the rows of a run.
        pub rows_rank: u64,
        /// The axes that number the rows of a run.
        pub rows: [Digit; PACKED_AXES],
        /// How the source numbers the tile.
        pub src_side: QuadSide,
        /// How the destination numbers the tile.
        pub dst_side: QuadSide,
    }
}
