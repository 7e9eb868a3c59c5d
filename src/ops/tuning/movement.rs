//! The constants of permutes and of transposes in place: what each one decides.
//!
//! The values, and the measurements they come from, stand in the file of each architecture.

/// Constants of permutes, by strategy.
#[derive(Debug)]
pub(in crate::ops) struct Permutes {
    pub(in crate::ops) small: Small,
    pub(in crate::ops) rows: Rows,
    pub(in crate::ops) fields: Fields,
    pub(in crate::ops) stacked: Stacked,
    pub(in crate::ops) packed: Packed,
    pub(in crate::ops) tiles: Tiles,
}

/// When an array is small enough for kernels with few parameters.
#[derive(Debug)]
pub(in crate::ops) struct Small {
    /// Most elements of a matrix that `patch` moves, one element a thread.
    pub(in crate::ops) patch_elements: usize,
    /// Most bytes of one side of such a matrix.
    pub(in crate::ops) patch_bytes: usize,
    /// Most elements of several matrices that `patch` moves. The next larger kernel for several
    /// matrices has more parameters than the one for a single matrix.
    pub(in crate::ops) patches_elements: usize,
    /// Most threads of `patch` for each element that it may move at most.
    pub(in crate::ops) patch_threads: usize,
    /// Base-2 logarithm of the columns of a patch, where the matrix has that many: for elements of
    /// less than 8 bytes, and for wider ones.
    pub(in crate::ops) patch_across_log2: [u32; 2],
    /// Most bytes of one side for which a single matrix has a kernel with few parameters.
    pub(in crate::ops) matrix_bytes: usize,
    /// Bytes of one side from which on such a matrix is worth micro-tiles, each a thread's. Fewer
    /// leave multiprocessors idle.
    pub(in crate::ops) micro_tiles_bytes: usize,
    /// Elements of that width and more are always worth micro-tiles.
    pub(in crate::ops) micro_tiles_width: usize,
    /// The part of a tile, along either side, that the matrix must fill.
    pub(in crate::ops) filled_part: usize,
}

/// When runs of bytes off 16 bytes are moved by shifted accesses.
#[derive(Debug)]
pub(in crate::ops) struct Rows {
    /// Bytes of the shortest run that is moved by shifted accesses rather than element by element.
    pub(in crate::ops) shortest: usize,
    /// Bytes of a run from which on its stores start on lines of the L2 cache rather than on
    /// vectors.
    pub(in crate::ops) long: usize,
}

/// When packed structs are moved as structs, and how they are cut.
#[derive(Debug)]
pub(in crate::ops) struct Fields {
    /// Most fields of a struct. With more, tiles have columns enough.
    pub(in crate::ops) most: usize,
    /// Fewest bytes of an image of structs that are worth a block.
    pub(in crate::ops) smallest_image: usize,
    /// The part of its structs' bytes that blocks may have idle where tiles would move them too.
    pub(in crate::ops) idle_part: usize,
    /// Threads that a block is sized for where lanes move vectors: fewer where whole warps of
    /// vectors of each field are less, more where one of each is.
    pub(in crate::ops) vector_threads: usize,
    /// Bytes of structs of a large array that are best in flight on a multiprocessor.
    pub(in crate::ops) in_flight: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub(in crate::ops) shared: u32,
    /// Bytes of it that each block takes for itself.
    pub(in crate::ops) shared_of_block: u32,
}

/// When several small matrices fill a tile.
#[derive(Debug)]
pub(in crate::ops) struct Stacked {
    /// Most bytes of a matrix whose elements of 4 bytes and more go one by one at a copy's speed.
    pub(in crate::ops) cached_matrix: usize,
    /// Most bytes of a matrix whose narrower elements `packed` moves faster.
    pub(in crate::ops) packed_matrix: usize,
    /// The part of a tile that the matrices must fill.
    pub(in crate::ops) filled_part: usize,
}

/// When tiles of several axes are better than tiles of one axis a side, and how they are cut.
#[derive(Debug)]
pub(in crate::ops) struct Packed {
    /// Bytes of the elements in a tile, beside which its tables lie: for elements of less than
    /// 8 bytes, and for wider ones.
    pub(in crate::ops) tile: [usize; 2],
    /// Fewest bytes of a tile that are worth a block.
    pub(in crate::ops) smallest_tile: usize,
    /// Fewest bytes of an array that are worth such tiles.
    pub(in crate::ops) smallest: usize,
    /// Bytes of a side's nearest axis below which a run is short: several axes are then better
    /// than a ragged tile, or than accesses along one axis of both sides.
    pub(in crate::ops) short_run: usize,
    /// The same bound beside ragged tiles of 8-byte elements of large arrays.
    pub(in crate::ops) short_run_of_8: usize,
    /// The same bound beside whole tiles of 16-byte elements of large arrays.
    pub(in crate::ops) short_run_of_16: usize,
    /// How the runs of source and destination may relate: tiles are grown by each of these weights,
    /// and the cheapest is taken.
    pub(in crate::ops) weights: [[usize; 2]; 3],
    /// How often a split sector counts in the cost of a tile: of the source, of the destination.
    pub(in crate::ops) split_costs: [usize; 2],
    /// Steps for which a thread spends as long before its first words.
    pub(in crate::ops) start_steps: usize,
    /// Threads that a block may have.
    pub(in crate::ops) threads: [usize; 5],
    /// Strides in shared memory may be longer by this part to keep lanes off each other's banks.
    pub(in crate::ops) spread_part: usize,
}

/// When and how tiles are cut from a matrix.
#[derive(Debug)]
pub(in crate::ops) struct Tiles {
    /// Bytes that a run needs on each side for the full speed of memory.
    pub(in crate::ops) run: usize,
    /// Most bytes of one side for which a matrix is small: the L2 cache holds what it writes.
    pub(in crate::ops) small: usize,
    /// Base-2 logarithm of the micro-tiles along a column of a small matrix's tile.
    pub(in crate::ops) small_down_log2: u32,
    /// Bytes of a ragged row of the destination from which on it stays one axis.
    pub(in crate::ops) folded_row: usize,
    /// Most bytes of a column of ragged tiles, of one side, that are numbered down it.
    pub(in crate::ops) column: usize,
    /// The part of its micro-tiles by which a ragged tile of another shape than the tuned one must
    /// be fuller to be taken.
    pub(in crate::ops) fuller_part: usize,
    /// Base-2 logarithm of the fewest micro-tiles along a row of the source that a ragged tile is
    /// given to be fuller.
    pub(in crate::ops) narrowest_log2: u32,
    /// The part of its micro-tiles by which so narrow a tile takes longer.
    pub(in crate::ops) narrow_part: usize,
    /// The part of a tile that the matrix must fill.
    pub(in crate::ops) filled_part: usize,
    /// The part of their micro-tiles that full tiles may have empty.
    pub(in crate::ops) empty_part: usize,
}

/// Constants of transposes in place.
#[derive(Debug)]
pub(in crate::ops) struct InPlace {
    /// The scratch for long lines has at most this part of the matrix's bytes, or what one panel
    /// needs.
    pub(in crate::ops) scratch_part: u64,
    /// Panels are made smaller than they might be until there are that many.
    pub(in crate::ops) enough_panels: u64,
    /// Sectors that a panel of columns is wide at least, where shared memory has room for them.
    pub(in crate::ops) panel_sectors: u64,
}
