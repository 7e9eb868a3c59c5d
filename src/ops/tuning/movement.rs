//! The constants of permutes and of transposes in place: what each one decides.
//!
//! The file of each GPU has the values and the measurements they come from.

use crate::device::Weights;

/// Constants of permutes, by strategy.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Permutes {
    pub(in crate::ops) small: Small,
    pub(in crate::ops) rows: Rows,
    pub(in crate::ops) fields: Fields,
    pub(in crate::ops) quads: Quads,
    pub(in crate::ops) tiles: Tiles,
    pub(in crate::ops) boxes: Boxes,
    pub(in crate::ops) estimates: Estimates,
}

/// When an array is small enough for kernels with few parameters.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Small {
    /// Most bytes of one side that are moved by kernels for small arrays, or else one by one, by
    /// the base-2 logarithm of the elements' width.
    pub(in crate::ops) bytes: [usize; 5],
    /// Fewest bytes of one side of which the L2 cache does not join the parts of sectors.
    pub(in crate::ops) cached: usize,
    /// Most elements of a matrix that `patch` moves, one element a thread.
    pub(in crate::ops) patch_elements: usize,
    /// Most bytes of one side of this matrix.
    pub(in crate::ops) patch_bytes: usize,
    /// Most elements of several matrices that `patch` moves. The next larger kernel for several
    /// matrices has more parameters than the kernel for one.
    pub(in crate::ops) patches_elements: usize,
    /// Most threads of `patch` per element of its limit.
    pub(in crate::ops) patch_threads: usize,
    /// Base-2 logarithm of the columns of a patch, if the matrix has this number: for elements of
    /// less than 8 bytes, and for wider ones.
    pub(in crate::ops) patch_across_log2: [u32; 2],
    /// Most bytes of one side for which a single matrix uses a kernel with few parameters.
    pub(in crate::ops) matrix_bytes: usize,
    /// Fewest bytes of one side for which each thread of such a matrix takes a micro-tile. Smaller
    /// ones would leave multiprocessors idle.
    pub(in crate::ops) micro_tiles_bytes: usize,
    /// Elements of this width and more always use micro-tiles.
    pub(in crate::ops) micro_tiles_width: usize,
    /// The part of a tile, along either side, that the matrix must fill.
    pub(in crate::ops) filled_part: usize,
}

/// When shifted accesses move runs of bytes that are not aligned to 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Rows {
    /// Bytes of the shortest run that moves by shifted accesses.
    pub(in crate::ops) shortest: usize,
    /// Fewest bytes of a run whose stores start on lines of the L2 cache rather than on vectors.
    pub(in crate::ops) long: usize,
}

/// When packed structs move as structs, and how they are cut.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Fields {
    /// Most fields of a struct that moves as one. With more, tiles have enough columns.
    pub(in crate::ops) most: usize,
    /// The number of threads for which a block is sized where lanes move vectors. A block has fewer
    /// if whole warps of vectors of each field are fewer, and more if one warp of each is more.
    pub(in crate::ops) vector_threads: usize,
    /// Bytes of structs of a large array that are best in flight on a multiprocessor.
    pub(in crate::ops) in_flight: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub(in crate::ops) shared: u32,
    /// Bytes of it that each block reserves.
    pub(in crate::ops) shared_of_block: u32,
}

/// When tiles of several axes move by vectors, and how they are cut.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Quads {
    /// Fewest bytes of an array that keeps the multiprocessors busy: of a permute, and of the
    /// larger side of an affine map.
    pub(in crate::ops) smallest: usize,
    /// Most bytes of a matrix, contiguous on both sides, that a block moves whole.
    pub(in crate::ops) kept: usize,
    /// Bytes of a tile of such matrices, if several fit.
    pub(in crate::ops) tile_of_kept: usize,
    /// Bytes of other tiles, by the base-2 logarithm of the elements' width: of those that are one
    /// run of a side, and of those that are several of both.
    pub(in crate::ops) tile: [[usize; 2]; 5],
    /// How many times as long the destination's runs of a tile are as the source's, by the base-2
    /// logarithm of the elements' width.
    pub(in crate::ops) longer_stored: [usize; 5],
    /// Most bytes of a side's nearest axis that other tiles take whole.
    pub(in crate::ops) whole_axis: usize,
    /// Lanes that share a bank and do not delay a tile: memory is slower.
    pub(in crate::ops) calm: usize,
    /// Bytes of a run from which on a vector between runs takes little room.
    pub(in crate::ops) spread_run: usize,
    /// Most threads of a block.
    pub(in crate::ops) threads: usize,
}

/// When and how tiles are cut from a matrix.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Tiles {
    /// Bytes that a run needs on each side for the full speed of memory.
    pub(in crate::ops) run: usize,
    /// Most bytes of one side of a small matrix: the L2 cache holds what it writes.
    pub(in crate::ops) small: usize,
    /// Base-2 logarithm of the micro-tiles along a column of a small matrix's tile.
    pub(in crate::ops) small_down_log2: u32,
    /// Fewest bytes of a ragged row of the destination that stays one axis.
    pub(in crate::ops) folded_row: usize,
    /// Most bytes of one side of a column of ragged tiles that are numbered down the column.
    pub(in crate::ops) column: usize,
    /// The part of its micro-tiles by which a ragged tile must be fuller than the tuned shape to be
    /// used instead.
    pub(in crate::ops) fuller_part: usize,
    /// Base-2 logarithm of the fewest micro-tiles along a row of the source in a ragged tile of
    /// another shape.
    pub(in crate::ops) narrowest_log2: u32,
    /// The part of its micro-tiles by which such a narrow tile takes longer.
    pub(in crate::ops) narrow_part: usize,
    /// The part of a tile that the matrix must fill.
    pub(in crate::ops) filled_part: usize,
}

/// How long each strategy takes, relative to a copy, and how these times choose.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Estimates {
    /// The time from which on no other strategy is asked, relative to the least that the layouts
    /// allow.
    pub(in crate::ops) enough: f64,
    /// The part of the best time so far that a strategy which is asked later may take.
    pub(in crate::ops) gain: f64,
    /// Weights of what a layout costs, which the strategies count.
    pub(in crate::ops) weights: &'static Weights,
}

/// Constants of transposes in place.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct InPlace {
    /// Scratch for long rows and columns has at most this part of the matrix's bytes, or the bytes
    /// that one panel needs.
    pub(in crate::ops) scratch_part: u64,
    /// Panels shrink until there is this number of them.
    pub(in crate::ops) enough_panels: u64,
    /// Fewest sectors of a panel of columns in width, if shared memory has room for them.
    pub(in crate::ops) panel_sectors: u64,
}

/// How boxes are cut, and the estimate of their time. Cycles are those of a multiprocessor.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Boxes {
    /// Fewest and most bytes of a line.
    pub(in crate::ops) line: [u64; 2],
    /// Fewest and most bytes of a box.
    pub(in crate::ops) tile: [u64; 2],
    /// The blocks that are tried.
    pub(in crate::ops) blocks: [BoxesBlock; 3],
    /// Fewest bytes of an array.
    pub(in crate::ops) smallest: usize,
    pub(in crate::ops) search: BoxesSearch,
    pub(in crate::ops) layout: BoxesLayout,
    pub(in crate::ops) guess: BoxesGuess,
    pub(in crate::ops) splits: Splits,
    pub(in crate::ops) memory: BoxesMemory,
    pub(in crate::ops) shared: BoxesShared,
    pub(in crate::ops) issue: BoxesIssue,
    pub(in crate::ops) latency: BoxesLatency,
    /// Multiprocessors, where the target does not say how many there are.
    pub(in crate::ops) multiprocessors: u32,
    /// Threads of a multiprocessor.
    pub(in crate::ops) threads: u32,
    /// Registers of a multiprocessor, and of a thread.
    pub(in crate::ops) registers: [u32; 2],
    /// Bytes of shared memory of a multiprocessor, and those that each block reserves.
    pub(in crate::ops) room: [u32; 2],
    /// How many times the estimate of a box counts for which a kernel asks for shared memory.
    pub(in crate::ops) larger: f64,
}

/// How many boxes are tried, and which.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesSearch {
    /// Most elements of a line, and most rows of a box.
    pub(in crate::ops) most: u64,
    /// Most bytes of a row.
    pub(in crate::ops) longest_row: u64,
    /// Most boxes that are cut from the coarse grid, and in all.
    pub(in crate::ops) cuts: [usize; 2],
    /// The bytes to which the parts of an axis grow in the coarse grid: of a row, and of a line.
    pub(in crate::ops) parts: [u64; 2],
    /// The best boxes whose neighbours are tried.
    pub(in crate::ops) starts: usize,
    /// Boxes that are laid out in shared memory before one is chosen.
    pub(in crate::ops) laid_out: usize,
    /// How many times as long as the next one's rough estimate the best may take, before that is
    /// laid out too.
    pub(in crate::ops) excess: f64,
    /// Most boxes along the source's cut axis with which it is numbered before the destination's,
    /// if that has more.
    pub(in crate::ops) few: u64,
}

/// How a box is laid out in shared memory.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesLayout {
    /// The gaps that are tried, in granules: between rows, and between groups of rows.
    pub(in crate::ops) gaps: [[u32; 2]; 6],
    /// The wavefronts that a gap of a granule must save.
    pub(in crate::ops) gap: f64,
    /// The wavefronts that turned vectors must save.
    pub(in crate::ops) turned: f64,
    /// The lines of a slice that are tried.
    pub(in crate::ops) slices: [u32; 10],
    /// Instructions of a vector of a slice: a constant, and those of each element.
    pub(in crate::ops) vector: [u32; 2],
    /// The same of each line of the slice.
    pub(in crate::ops) line: [u32; 2],
}

/// The guesses about a box before it is laid out.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesGuess {
    /// Fewest wavefronts of a gathering.
    pub(in crate::ops) conflicts: f64,
    /// Most lines of a slice.
    pub(in crate::ops) slice: f64,
    /// How many times as many rounds of loads a block has as its granules fill.
    pub(in crate::ops) rounds: f64,
}

/// A number of threads, and the boxes that suit it.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesBlock {
    /// Threads.
    pub(in crate::ops) threads: u32,
    /// Fewest and most bytes of a box.
    pub(in crate::ops) tile: [u64; 2],
}

/// Sectors that a run costs beyond its bytes, because its ends lie within sectors.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Splits {
    /// Bytes between rows that are read as one run.
    pub(in crate::ops) gap: u64,
    /// Those of a row that starts anywhere.
    pub(in crate::ops) read: f64,
    /// Those of a row that starts at a sector and ends within one.
    pub(in crate::ops) read_end: f64,
    /// Those of a line that ends at whole sectors.
    pub(in crate::ops) written_heads: f64,
    /// Those of a line that starts on a vector.
    pub(in crate::ops) written_vectors: f64,
    /// Those of a line that starts anywhere.
    pub(in crate::ops) written_elements: f64,
}

/// Cycles of memory.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesMemory {
    /// Those of a byte. The others are in such bytes.
    pub(in crate::ops) byte: f64,
    /// Those of a byte of read sectors beyond the box: of narrow elements, and of 16 bytes.
    pub(in crate::ops) split_read: [f64; 2],
    /// Those of a byte of written sectors beyond the box: at whole sectors, and by edges.
    pub(in crate::ops) split_written: [f64; 2],
    /// Those of a row.
    pub(in crate::ops) row: f64,
    /// Those of a line.
    pub(in crate::ops) line: f64,
    /// Those of a byte of split sectors whose other part comes much later.
    pub(in crate::ops) far: f64,
    /// The bytes of runs that are not short.
    pub(in crate::ops) long: f64,
    /// Those of each byte by which a row is shorter.
    pub(in crate::ops) short_row: f64,
    /// Those of each byte by which a line is shorter.
    pub(in crate::ops) short_line: f64,
}

/// Cycles of shared memory, for the lanes of a warp together.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesShared {
    /// Those of a wavefront that gathers words.
    pub(in crate::ops) gather: f64,
    /// Those of a granule of narrow elements, and of elements of 16 bytes.
    pub(in crate::ops) granule: [f64; 2],
    /// Those of an element's place.
    pub(in crate::ops) look_up: f64,
    /// Those of a vector that is stored.
    pub(in crate::ops) store: f64,
    /// Those of an element of an edge.
    pub(in crate::ops) edge: f64,
    /// How many times as long all take with elements of less than 8 bytes.
    pub(in crate::ops) narrow: f64,
}

/// Cycles of instructions, for the lanes of a warp together.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesIssue {
    /// Those of a granule.
    pub(in crate::ops) granule: f64,
    /// Those of an element of a vector.
    pub(in crate::ops) element: f64,
    /// Those of a vector.
    pub(in crate::ops) vector: f64,
    /// Those of an element's place.
    pub(in crate::ops) look_up: f64,
    /// Those of an element of an edge.
    pub(in crate::ops) edge: f64,
    /// Those of a place that each box writes again.
    pub(in crate::ops) rebuilt: f64,
}

/// Cycles that a block waits, which other blocks of the multiprocessor fill.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct BoxesLatency {
    /// For the first granules.
    pub(in crate::ops) load: f64,
    /// For each granule of a thread.
    pub(in crate::ops) load_round: f64,
    /// For each slice of a thread.
    pub(in crate::ops) round: f64,
    /// For each element of a vector of a slice.
    pub(in crate::ops) element: f64,
    /// For each line of a slice.
    pub(in crate::ops) line: f64,
    /// For each thread at a barrier.
    pub(in crate::ops) thread: f64,
    /// For each element of an edge of a thread.
    pub(in crate::ops) edges: f64,
    /// For places that each box writes again.
    pub(in crate::ops) rebuilt: f64,
    /// The boxes that the last blocks of a multiprocessor take longer, for each block.
    pub(in crate::ops) tail: f64,
    /// Those of the launch.
    pub(in crate::ops) start: f64,
    /// For each row, each place and each line of a thread in the tables of a block, which it writes
    /// once.
    pub(in crate::ops) tables: [f64; 3],
}
