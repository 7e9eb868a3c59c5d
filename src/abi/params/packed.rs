//! Tiles of several axes.

use crate::abi::{Axis, Divisor, MAX_AXES, params};

/// Runs that a thread of `packed` looks up at once, for loads in flight.
pub const PACKED_STEPS: u32 = 8;
/// Runs of the destination whose words it gathers at once.
pub const PACKED_STORES: u32 = 4;
/// Most axes within a run of `packed`, and most axes that number runs.
pub const PACKED_AXES: usize = 6;

params! {
    /// One axis of a tile of `packed`, for numbers below 2^31.
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

    /// How one side of `packed` numbers the elements of a tile: `runs` runs of contiguous elements.
    ///
    /// A run moves in words: 4 bytes, or one element if that is more. Tables lie in dynamic shared
    /// memory. For each run, 8 bytes give its start on both sides. For the destination, if elements
    /// are less than a word, 2 bytes for every element of a run give its offset in shared memory
    /// from there.
    pub struct PackedSide {
        /// Most words of a run, including partial ones.
        pub words: u64,
        /// Threads along a run. Narrow in every entry.
        pub across: Divisor,
        /// Runs that have threads at the same time.
        pub down: u64,
        /// Elements of a run.
        pub len: u64,
        /// Elements of it for each index of the axis `chunk`, which then is the outermost of the
        /// run.
        pub unit: u64,
        /// The chunked axis that ends a run, 0 or 1; 2 if none does.
        pub chunk: u64,
        /// Runs of a whole tile.
        pub runs: u64,
        /// Entries of the table of runs: a multiple of those that threads look up at once.
        pub entries: u64,
        /// Positions of the two chunked axes in `outer`, or past it.
        pub chunked: [u64; 2],
        /// The start of the table of runs.
        pub run_table: u64,
        /// The start of the table of the destination's elements within a run.
        pub table: u64,
        /// 1 if every run starts on a whole word.
        pub aligned: u64,
        /// Axes within a run.
        pub inner_rank: u64,
        /// The axes within a run, innermost first.
        pub inner: [Digit; PACKED_AXES],
        /// Axes that number the runs.
        pub outer_rank: u64,
        /// The axes that number the runs.
        pub outer: [Digit; PACKED_AXES],
    }

    /// The place of the tiles of `packed`, `packed_quads` and `packed_stepped`: several whole axes,
    /// and parts of up to two more.
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

    /// Parameters of `packed`. A block has enough threads for `across * down` of either side.
    pub struct PackedParams {
        /// The place of the tiles.
        pub tiles: PackedTiles,
        /// The start of the tile in dynamic shared memory.
        pub tile: u64,
        /// Bits of a destination word's number by which its elements are rotated, in the table and
        /// when they are gathered: lanes that would share a bank start with different elements.
        pub turn: u64,
        /// How the source numbers the tile.
        pub src_side: PackedSide,
        /// How the destination numbers the tile.
        pub dst_side: PackedSide,
    }
}
