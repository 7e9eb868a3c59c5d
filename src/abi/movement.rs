//! Parameters of the kernels that move elements and leave them as they are, and what these have in common with others.

use super::Divisor;

/// Rows and columns of the tile that one block moves in every transpose kernel, in elements.
pub const TILE: u32 = 32;
/// Rows of threads in a block; each thread moves `TILE / TILE_ROWS` elements.
pub const TILE_ROWS: u32 = 8;
/// Threads in a block of `column_loop`.
pub const COLUMN_BLOCK: u32 = 256;
/// Threads in a block of `elements`.
pub const ELEMENTS_BLOCK: u32 = 256;
/// Elements that one thread of `elements` moves, by their width in bytes, so that as many loads are in flight. Of whole 16-byte
/// accesses there are enough with one a thread, as in `copy`: an H100 moves them faster than four.
pub const fn elements_per_thread(width: u32) -> u32 {
    if width == 16 { 1 } else { 4 }
}
/// Threads in a block of `rows`.
pub const ROWS_BLOCK: u32 = 256;
/// Quads that one thread of `rows` moves, so that as many loads are in flight.
pub const ROWS_PER_THREAD: u32 = 4;
/// Most axes of a launch that is numbered along axes: as many as a layout has.
pub const MAX_AXES: usize = 16;
/// Threads in a block of `copy`: with one 16-byte access a thread, the best copy found on an H100 uses full blocks.
pub const COPY_BLOCK: u32 = 1024;
/// Threads in a block of `vector_tile` and `ragged_tile`.
pub const VECTOR_TILE_THREADS: u32 = 128;
/// Squares that one thread of `vector_tile` moves, by the elements' width in bytes: as many as registers allow.
pub const fn vector_tile_squares(width: u32) -> u32 {
    match width {
        1 => 1,
        2 | 4 => 2,
        8 => 4,
        _ => 8,
    }
}
/// The same for `ragged_tile`.
pub const fn ragged_tile_squares(width: u32) -> u32 {
    if width < 16 { 1 } else { 2 }
}
/// Quads of a tile, by the elements' width in bytes and the squares of a thread: a square has one
/// for each element of a quad.
pub const fn tile_quads(width: u32, squares: u32) -> usize {
    (16 / width * squares * VECTOR_TILE_THREADS) as usize
}
/// Whether the rows of a square of `ragged_tile` may be on two indices of the outer axis, by the elements' width in bytes. Squares
/// of narrow elements have so many rows that finding each costs an H100 more than is gained.
pub const fn ragged_tile_folds(width: u32) -> bool {
    width >= 4
}
/// Rows of squares that a tile of `ragged_tile` shares with the one above where rows of the destination start off sectors: a
/// square is half a sector high.
pub const RAGGED_MARGIN: u32 = 2;
/// Squares along a row of a tile of `small_tile`: rows of 512 bytes.
pub const SMALL_TILE_ACROSS: u32 = 32;
/// Squares along a column of such a tile, each a thread's.
pub const SMALL_TILE_DOWN: u32 = 4;
/// An image of `stacked_tile` of elements of 4 bytes and more has more quads than these: of fewer, two could have one place in
/// shared memory.
pub const STACKED_QUADS: usize = 64;
/// Threads in a block of `patch`.
pub const PATCH_BLOCK: u32 = 256;
/// Threads in a block of `deinterleave` and `interleave`.
pub const FIELDS_THREADS: u32 = 256;
/// Granules that one thread of `deinterleave` or `interleave` moves, by the elements' width in bytes.
///
/// 16 loads of 4 bytes or 8 of 8 are in flight in each thread; but to part 16 granules into narrow elements takes registers for
/// only two blocks a multiprocessor.
pub const fn fields_steps(width: usize, is_packed_src: bool) -> usize {
    if width == 8 || (width < 4 && !is_packed_src) { 8 } else { 16 }
}
/// Quads that one thread of `deinterleave_quads` or `interleave_quads` moves.
pub const FIELDS_QUADS: usize = 3;
/// Runs that a thread of `packed` looks up at once, so that as many loads are in flight.
pub const PACKED_STEPS: u32 = 8;
/// Runs of the destination that it gathers words of at once.
pub const PACKED_STORES: u32 = 4;
/// Most axes of a run of `packed`, and most that runs are numbered along.
pub const PACKED_AXES: usize = 6;
/// Threads in a block of `permute_lines` and `spill_lines`.
pub const LINES_BLOCK: u32 = 512;
/// Bytes of the largest panel that `permute_lines` takes.
pub const LINES_SHARED: u32 = 48 << 10;

/// Parameters of the transposes: `dst[c, r] = src[r, c]` for `r < rows`, `c < cols`.
///
/// Strides are in elements and signed; `src` and `dst` are the addresses of element `[0, 0]`. The tile of a block is
/// `(blockIdx.z * gridDim.y + blockIdx.y, blockIdx.x)` in rows and columns of `src`, because only x may exceed
/// 65,535.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransposeParams {
    /// Device address of `src[0, 0]`.
    pub src: u64,
    /// Device address of `dst[0, 0]`.
    pub dst: u64,
    /// Rows of `src`, columns of `dst`.
    pub rows: u64,
    /// Columns of `src`, rows of `dst`.
    pub cols: u64,
    /// Elements from `src[r, c]` to `src[r + 1, c]`.
    pub src_row_stride: i64,
    /// Elements from `src[r, c]` to `src[r, c + 1]`.
    pub src_col_stride: i64,
    /// Elements from `dst[c, r]` to `dst[c + 1, r]`.
    pub dst_row_stride: i64,
    /// Elements from `dst[c, r]` to `dst[c, r + 1]`.
    pub dst_col_stride: i64,
}

/// Parameters of `column_loop`: `dst[i * dst_stride] = src[i * src_stride]` for `i < len`, one launch a column.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnParams {
    /// Device address of the column's first element.
    pub src: u64,
    /// Device address of the row's first element.
    pub dst: u64,
    /// Elements to move.
    pub len: u64,
    /// Elements from one source element to the next; signed.
    pub src_stride: i64,
    /// Elements from one destination element to the next; signed.
    pub dst_stride: i64,
}

/// Parameters of `copy`: `bytes` bytes from `src` to `dst`, which do not overlap.
///
/// Lane `i` of the grid moves 16 bytes from byte `16 * i`, and the first `bytes % 16` lanes one byte each of the tail. Both
/// addresses are multiples of 16.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyParams {
    /// Device address to read.
    pub src: u64,
    /// Device address to write.
    pub dst: u64,
    /// Bytes to move.
    pub bytes: u64,
}

/// One axis that blocks or threads are numbered along; strides in elements, signed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Positions along the axis.
    pub extent: Divisor,
    /// From one position to the next in the source.
    pub src_stride: i64,
    /// From one position to the next in the destination.
    pub dst_stride: i64,
}

/// Parameters of `elements`: every element of one layout to its place in another.
///
/// Element `i` lies at the digits of `i` in the mixed radix of the extents, `axes[0]` the least. Block `b` (x first, then y)
/// moves [`elements_per_thread`] runs of [`ELEMENTS_BLOCK`] elements, a lane one of each. No two elements have one place in the
/// destination.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementsParams {
    /// Device address of the source's element 0.
    pub src: u64,
    /// Device address of the destination's element 0.
    pub dst: u64,
    /// Elements to move: the product of the extents.
    pub len: u64,
    /// Axes in use, from the first.
    pub rank: u64,
    /// The axes, innermost first.
    pub axes: [Axis; MAX_AXES],
}

/// Parameters of `rows`: runs of bytes from one place to another. Run `i` starts at the digits of `i` in the mixed radix of the
/// axes' extents, `axes[0]` the least; their strides are in bytes.
///
/// The quads of a run are numbered from the last multiple of `grain` before its start in the destination. Block `b` (x first,
/// then y) moves [`ROWS_PER_THREAD`] times [`ROWS_BLOCK`] quads, run after run, a lane one of each. No two runs share a byte of
/// the destination; a quad of it two runs may share.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsParams {
    /// Device address of the first byte of the source's run 0.
    pub src: u64,
    /// Device address of the first byte of the destination's run 0.
    pub dst: u64,
    /// Bytes of a run; at least 32, so that no quad holds both ends.
    pub run: u64,
    /// Where in the destination quads are numbered from: a power of two from 16 to 512.
    pub grain: u64,
    /// Quads of the run that has most, those from the grain's start on included: with fewer the ends of runs would be left out.
    pub quads: Divisor,
    /// Quads of all runs: the product of `quads` and the extents.
    pub len: u64,
    /// Axes in use, from the first.
    pub rank: u64,
    /// The axes that runs are numbered along.
    pub axes: [Axis; MAX_AXES],
}

/// Rows and columns of the tiles that `swap_tiles` exchanges, for elements of `width` bytes: as many as give runs of 256
/// bytes and two elements a lane at most, and tiles of which two fit in shared memory.
pub const fn square_side(width: u32) -> u32 {
    if width <= 4 { 64 } else { 32 }
}

/// Parameters of `swap_tiles`: `m[b, i, j]` and `m[b, j, i]` change places for `b < batches`, `i < j < n`.
///
/// Strides are in elements and signed. With `t` tiles of [`square_side`] along a row there are `t * (t + 1) / 2` pairs of
/// tiles on or above the diagonal, of which block `blockIdx.x` takes one; the batch is
/// `blockIdx.z * gridDim.y + blockIdx.y`. Threads are [`TILE`] x [`TILE_ROWS`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SquareParams {
    /// Device address of `m[0, 0, 0]`.
    pub matrix: u64,
    /// Rows and columns.
    pub n: u64,
    /// Elements from `m[b, i, j]` to `m[b, i + 1, j]`.
    pub row_stride: i64,
    /// Elements from `m[b, i, j]` to `m[b, i, j + 1]`.
    pub col_stride: i64,
    /// Matrices.
    pub batches: u64,
    /// Elements from `m[b, i, j]` to `m[b + 1, i, j]`.
    pub batch_stride: i64,
}

/// Parameters of `permute_lines` and `spill_lines`: in a batch of contiguous `rows` x `cols` matrices, the elements of each
/// row, or of each column, change places among themselves.
///
/// With `k = j / section`, element `(i, j)` is paired with `(i, j')` where the lines are rows and with `(i', j)` where they
/// are columns:
///
/// ```text
/// i' = (i * factor - i / period + k) % rows
/// j' = (i' + j * rows) % cols
/// ```
///
/// Divisors are for the entry's index arithmetic; no number that is divided exceeds `rows * cols` or a panel's number.
///
/// With `scatter`, `(i, j)` goes to its partner's place, else it is taken from there. The lines are cut into panels: whole
/// rows, `height` at a time, or whole columns, `width` at a time. A panel is written to other memory, shared or scratch, and
/// from there back; so nothing is overwritten before it is read.
///
/// The other memory is filled whole, and no place of it twice, only if partners are one to one, which rests on `factor`,
/// `period` and `section` together: see the plan. A panel of `permute_lines` has at most [`LINES_SHARED`] bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinesParams {
    /// Device address of the first element.
    pub matrix: u64,
    /// Device address of room for the panels of a launch of `spill_lines`, `width * height` elements each.
    pub scratch: u64,
    /// Rows of a matrix.
    pub rows: Divisor,
    /// Columns of a matrix.
    pub cols: Divisor,
    /// 1 where lines are columns, 0 where they are rows.
    pub columns: u64,
    /// 1 where elements go to their partners' places, 0 where they come from there.
    pub scatter: u64,
    /// Rows of a panel; the last of a matrix may have fewer.
    pub height: u64,
    /// Columns of a panel; the last of a matrix may have fewer.
    pub width: Divisor,
    /// Panels of one matrix.
    pub panels: Divisor,
    /// The first panel of the launch, counted through all matrices.
    pub first: u64,
    /// The panel behind the last of the launch.
    pub end: u64,
    /// What a row's number is multiplied by; below `rows`, or 1.
    pub factor: u64,
    /// Rows to a step backwards; at most `rows`.
    pub period: Divisor,
    /// Columns to a step forwards.
    pub section: Divisor,
    /// Of `spill_lines`: 0 to write panels to the scratch, 1 to write them back.
    pub back: u64,
}

/// Parameters of `spin`: keeps a stream busy for `nanoseconds`, so that what is queued behind it starts without gaps.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinParams {
    /// How long, by the device's global timer.
    pub nanoseconds: u64,
}

/// Where rows, or images, lie that may be two axes in one: row `r` lies `(r % inner) * inner_stride + (r / inner) *
/// outer_stride` elements from row 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fold {
    /// Rows of the inner axis.
    pub inner: Divisor,
    /// Elements from one index of the inner axis to the next.
    pub inner_stride: i64,
    /// Elements from one index of the outer axis to the next.
    pub outer_stride: i64,
}

/// Parameters of `vector_tile` and `ragged_tile`: a batch of transposes `dst[c, r] = src[r, c]`, contiguous along `c` in the source
/// and along `r` in the destination.
///
/// Of `vector_tile`, both addresses and the strides of rows and batch on both sides are multiples of 16 bytes, `rows` and `cols` of
/// the elements of 16 bytes, a quad. Of `ragged_tile`, they are multiples of an element.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorTileParams {
    /// Device address of the first source element.
    pub src: u64,
    /// Device address of the first destination element.
    pub dst: u64,
    /// Rows of `src`.
    pub rows: u64,
    /// Columns of `src`.
    pub cols: u64,
    /// Device address of the first byte of the source, where all bytes from it to `src_end` are elements of it: a thread may read
    /// any of them, those of other rows too.
    pub src_start: u64,
    /// Device address behind the last byte; 0 where there are gaps, so that each row is read for itself.
    pub src_end: u64,
    /// Where the rows of the source lie. The rows of a square are an inner stride apart: where the outer axis has more than one
    /// index, `inner` is a multiple of a quad's elements, or, of `ragged_tile` where [`ragged_tile_folds`], at least those.
    pub src_rows: Fold,
    /// Where the columns of the source lie in the destination.
    pub dst_rows: Fold,
    /// Of `ragged_tile`: rows of squares that a tile shares with the one above, [`RAGGED_MARGIN`], or 0 where every row of the
    /// destination starts on a sector of 32 bytes.
    pub margin: u64,
    /// Base-2 logarithm of the squares along a row of a tile; a square has a quad of elements in each direction. A tile has as
    /// many squares as the entry was compiled with, a power of two, and the others lie along a column: of `ragged_tile` more
    /// than `margin`, or no row would be its own.
    pub across_log2: u64,
    /// Tiles along a row of the source.
    pub tiles_across: Divisor,
    /// Tiles along a column of the source.
    pub tiles_down: Divisor,
    /// 1 where those along a column are numbered first, 0 where those along a row are.
    pub down_first: u64,
    /// Axes of the batch.
    pub rank: u64,
    /// The batch, the first axis numbered fastest.
    pub axes: [Axis; MAX_AXES],
}

/// Parameters of `stacked_tile`: a batch of transposes `dst[c, r] = src[r, c]` of matrices so small that a tile has several, each
/// without gaps on both sides.
///
/// Addresses and strides on both sides are multiples of 16 bytes, `rows` and `cols` of the elements of 16 bytes. A tile has as
/// many squares as `vector_tile` of the same width, and room for `1 << across_log2` by `1 << down_log2` of each image: of
/// elements of 4 bytes and more, for more quads than [`STACKED_QUADS`]. Block `b` has tile `b % stacks` along the stacked axis,
/// of index `b / stacks` of the batch.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackedTileParams {
    /// Device address of the first source element.
    pub src: u64,
    /// Device address of the first destination element.
    pub dst: u64,
    /// Rows of an image of `src`.
    pub rows: u64,
    /// Columns of an image of `src`.
    pub cols: u64,
    /// Base-2 logarithm of the squares that a tile has along a row of an image.
    pub across_log2: u64,
    /// The same along a column.
    pub down_log2: u64,
    /// Images along the stacked axis.
    pub images: u64,
    /// Elements from one of them to the next in the source; signed.
    pub src_stride: i64,
    /// The same in the destination.
    pub dst_stride: i64,
    /// Tiles along the stacked axis.
    pub stacks: Divisor,
    /// Axes of the batch but the stacked one.
    pub rank: u64,
    /// The batch, the first axis numbered fastest.
    pub axes: [Axis; MAX_AXES],
}

/// Parameters of `patch`: images of `rows` x `cols` elements, in any layouts. Strides are in elements and signed.
///
/// Block `(x, y, z)` has patch `(y, x)` of image `z`: [`PATCH_BLOCK`] elements, a thread each, `1 << across_log2` of them along
/// a row.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchParams {
    /// Device address of the first source element.
    pub src: u64,
    /// Device address of the first destination element.
    pub dst: u64,
    /// Base-2 logarithm of the columns of a patch; at most that of [`PATCH_BLOCK`].
    pub across_log2: u64,
    /// Rows of an image.
    pub rows: u64,
    /// Columns of an image.
    pub cols: u64,
    /// From one row to the next in the source.
    pub src_row_stride: i64,
    /// From one column to the next in the source.
    pub src_col_stride: i64,
    /// From one row to the next in the destination.
    pub dst_row_stride: i64,
    /// From one column to the next in the destination.
    pub dst_col_stride: i64,
    /// Where the images of the source lie.
    pub src_images: Fold,
    /// Where those of the destination lie, of the same inner extent.
    pub dst_images: Fold,
}

/// Parameters of `deinterleave` and `interleave`: images of packed structs on one side, of one plane a field on the other.
///
/// Field `f` of struct `s` is element `s * fields + f` of the packed image, and `f * pitch + s` of the planes. A granule is 4
/// bytes, or one element if that is more; what a lane moves at a time, a share, is a granule or, in `deinterleave_quads` and
/// `interleave_quads`, 16 bytes. Packed images and planes start at whole shares. Block `b` has chunk `b % chunks` of image
/// `b / chunks`.
///
/// A chunk by granules is moved by [`FIELDS_THREADS`] threads, each of which holds as many as its entry was compiled with, and
/// one of the elements that fill no granule. So `run * fields` is at most the granules that they hold, and `fields` times the
/// elements of a granule but one at most the threads; the rest would be left out. By quads, `run * fields` is at most
/// [`FIELDS_QUADS`] for each thread of the block, which has dynamic shared memory for as many.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldsParams {
    /// Device address of the first source element.
    pub src: u64,
    /// Device address of the first destination element.
    pub dst: u64,
    /// Structs of an image.
    pub structs: u64,
    /// Fields of a struct. Narrow in every entry.
    pub fields: Divisor,
    /// Elements from one plane to the next; signed.
    pub pitch: i64,
    /// Shares of a field in a chunk: a multiple of 32, so that a warp stays in one plane. Narrow in every entry.
    pub run: Divisor,
    /// Chunks of an image.
    pub chunks: Divisor,
    /// Packed shares of a group, `fields << group_log2`. Of granules it is at least 16: one is left free in shared memory behind
    /// each group, and there is room for no more. Of quads it is a multiple of 8. Narrow in every entry.
    pub group: Divisor,
    /// Base-2 logarithm of the shares of a field in a group: of quads at least that of the granules of one.
    pub group_log2: u64,
    /// Axes of the batch of images.
    pub rank: u64,
    /// The batch, the first axis numbered fastest.
    pub axes: [Axis; MAX_AXES],
}

/// One axis of a tile of `packed`, for numbers below 2^31.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digit {
    /// Positions along the axis.
    pub extent: u32,
    /// See [`Divisor`].
    pub multiplier: u32,
    /// See [`Divisor`].
    pub shift: u32,
    /// Bytes from one position to the next in shared memory.
    pub room: u32,
    /// Elements from one position to the next in global memory; signed.
    pub stride: i64,
}

/// How one side of `packed` numbers the elements of a tile: so many runs of elements that follow each other in its memory.
///
/// A run is moved in words: 4 bytes, or one element if that is more. Tables lie in dynamic shared memory: of each run, 8 bytes,
/// where it starts on both sides; and of the destination, where elements are less than a word, 2 bytes for every element of a run,
/// where it lies in shared memory from there.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedSide {
    /// Most words of a run: with those that it has in part.
    pub words: u64,
    /// Threads along a run. Narrow in every entry.
    pub across: Divisor,
    /// Runs that have threads at a time.
    pub down: u64,
    /// Elements of a run.
    pub len: u64,
    /// Elements of it for each position of the axis `chunk`, which then is the outermost of the run.
    pub unit: u64,
    /// The chunked axis that ends a run, 0 or 1; 2 where none does.
    pub chunk: u64,
    /// Runs of a whole tile.
    pub runs: u64,
    /// Entries of the table of runs: a multiple of those that threads look up at once.
    pub entries: u64,
    /// Places of the two chunked axes in `outer`, or past it.
    pub chunked: [u64; 2],
    /// Where the table of runs starts.
    pub run_table: u64,
    /// Where the table of what is in a run starts, in the destination.
    pub table: u64,
    /// 1 where every run starts on a whole word.
    pub aligned: u64,
    /// Axes within a run.
    pub inner_rank: u64,
    /// The axes within a run, innermost first.
    pub inner: [Digit; PACKED_AXES],
    /// Axes that runs are numbered along.
    pub outer_rank: u64,
    /// The axes that runs are numbered along.
    pub outer: [Digit; PACKED_AXES],
}

/// Parameters of `packed`: tiles that are several whole axes, and parts of up to two more.
///
/// Block `b` has the parts of the two chunked axes, and the index of the batch, that are the digits of `b`: the second chunk the
/// least, then the first, then the batch. A block has threads enough for `across * down` of either side.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedParams {
    /// Device address of the first source element.
    pub src: u64,
    /// Device address of the first destination element.
    pub dst: u64,
    /// As of [`VectorTileParams`].
    pub src_start: u64,
    /// As of [`VectorTileParams`].
    pub src_end: u64,
    /// The chunks of the two axes; strides from one chunk to the next.
    pub chunks: [Axis; 2],
    /// Positions of a chunk; the last of an axis may have fewer.
    pub chunk: [u64; 2],
    /// Positions of the chunked axes.
    pub extents: [u64; 2],
    /// Elements of the source that a whole tile reaches below its first.
    pub below: u64,
    /// Elements that it reaches above it.
    pub above: u64,
    /// Where the tile starts in dynamic shared memory.
    pub tile: u64,
    /// Bits of a destination word's number by which its elements are rotated in the table and in what is gathered by it: lanes
    /// that would meet in a bank begin with different elements.
    pub turn: u64,
    /// How the source numbers the tile.
    pub src_side: PackedSide,
    /// How the destination does.
    pub dst_side: PackedSide,
    /// Axes of the batch.
    pub rank: u64,
    /// The batch, the first axis numbered fastest.
    pub axes: [Axis; MAX_AXES],
}

// The sizes that the PTX was compiled with; a change of a struct changes the kernels, and must not go unseen.
const _: () = assert!(size_of::<TransposeParams>() == 64 && align_of::<TransposeParams>() == 8);
const _: () = assert!(size_of::<ColumnParams>() == 40 && size_of::<CopyParams>() == 24 && size_of::<SpinParams>() == 8);
const _: () = assert!(size_of::<ElementsParams>() == 672 && size_of::<Axis>() == 40);
const _: () = assert!(size_of::<VectorTileParams>() == 848 && size_of::<Fold>() == 40);
const _: () = assert!(size_of::<StackedTileParams>() == 744);
const _: () = assert!(size_of::<FieldsParams>() == 784 && size_of::<PatchParams>() == 152);
const _: () = assert!(size_of::<RowsParams>() == 712);
const _: () = assert!(size_of::<PackedParams>() == 1672 && size_of::<PackedSide>() == 424 && size_of::<Digit>() == 24);
const _: () = assert!(size_of::<SquareParams>() == 48 && size_of::<LinesParams>() == 216);
