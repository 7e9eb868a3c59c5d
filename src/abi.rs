//! The contract between host and kernels: parameter structs, tile constants and entry names, in one place.
//!
//! This file is compiled three times: into the crate, into `kernels/` (device code, `no_std`) and into `build.rs`, which
//! checks the parameters of every compiled entry against [`ENTRIES`]. So it uses nothing but `core`.
//!
//! An entry takes one struct by value, so its PTX has one parameter whose size and alignment are the struct's.

#[path = "abi/affine.rs"]
mod affine;
#[path = "abi/arithmetic.rs"]
mod arithmetic;
#[path = "abi/axis.rs"]
mod axis;
#[path = "abi/conversion.rs"]
mod conversion;

pub use affine::*;
pub use arithmetic::*;
pub use axis::*;
pub use conversion::*;

use core::fmt;

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
/// Rows of squares that a tile of `ragged_tile` shares with the one above: a square is half a sector high.
pub const RAGGED_MARGIN: u32 = 2;
/// Squares along a row of a tile of `small_tile`: rows of 512 bytes.
pub const SMALL_TILE_ACROSS: u32 = 32;
/// Squares along a column of such a tile, each a thread's.
pub const SMALL_TILE_DOWN: u32 = 4;
/// An image of `stacked_tile` has more quads than these: of fewer, two could have one place in shared memory.
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
/// Runs that a thread of `packed` looks up at once, so that as many loads are in flight.
pub const PACKED_STEPS: u32 = 8;
/// Runs of the destination that it gathers words of at once.
pub const PACKED_STORES: u32 = 4;
/// Most axes of a run of `packed`, and most that runs are numbered along.
pub const PACKED_AXES: usize = 6;
/// Threads in a block of `permute_lines` and `spill_lines`.
pub const LINES_BLOCK: u32 = 512;
/// Bytes of the largest panel that `permute_lines` takes: all the shared memory that a block has without asking for more.
pub const LINES_SHARED: u32 = 48 << 10;
/// Largest grid extent in x that CUDA allows.
pub const MAX_GRID_X: u32 = i32::MAX as u32;
/// Largest grid extent in y and z that CUDA allows.
pub const MAX_GRID_YZ: u32 = 65_535;

/// Parameters of the transposes: `dst[c, r] = src[r, c]` for `r < rows`, `c < cols`.
///
/// Strides are in elements and signed; `src` and `dst` are the addresses of element `[0, 0]`. The tile of a block is
/// `(blockIdx.z * gridDim.y + blockIdx.y, blockIdx.x)` in rows and columns of `src`, because only x may exceed
/// [`MAX_GRID_YZ`].
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

/// Division by a number known before the launch, as a multiplication (Granlund and Montgomery 1994):
/// `n / value = mulhi(2 * n, multiplier) >> shift`, where `shift = ceil(log2(value))`.
///
/// Narrow: `multiplier = ceil(2^(31 + shift) / value)` for `n < 2^31`, by a 32-bit `mulhi`. Wide:
/// `ceil(2^(63 + shift) / value)` for `n < 2^63`, by a 64-bit one. Of 31 (63) bits the multiplier fits a word, which of 32
/// (64) it would not.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Divisor {
    /// What is divided by; at least 1.
    pub value: u64,
    /// The reciprocal.
    pub multiplier: u64,
    /// Bits that the product is shifted by.
    pub shift: u64,
}

impl Divisor {
    /// For [`Index::Narrow`]: divides numbers below 2^31 by a `value` from 1 to 2^31.
    pub const fn narrow(value: u64) -> Self {
        Self::of_bits(value, 31)
    }

    /// For [`Index::Wide`]: divides numbers below 2^63 by a `value` from 1 to 2^63.
    pub const fn wide(value: u64) -> Self {
        Self::of_bits(value, 63)
    }

    const fn of_bits(value: u64, bits: u32) -> Self {
        let shift = value.next_power_of_two().trailing_zeros();
        // A plan has many divisors, and a division of 64 bits takes a host a third of the time of one of 128.
        let multiplier = if bits + shift < 64 {
            (1u64 << (bits + shift)).div_ceil(value)
        } else {
            (1u128 << (bits + shift)).div_ceil(value as u128) as u64
        };
        Self { value, multiplier, shift: shift as u64 }
    }
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
    /// index, `inner` is a multiple of a quad's elements.
    pub src_rows: Fold,
    /// Where the columns of the source lie in the destination.
    pub dst_rows: Fold,
    /// Base-2 logarithm of the squares along a row of a tile; a square has a quad of elements in each direction. A tile has as
    /// many squares as the entry was compiled with, a power of two, and the others lie along a column: of `ragged_tile` more
    /// than [`RAGGED_MARGIN`], or no row would be its own.
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
/// many squares as `vector_tile` of the same width, and room for `1 << across_log2` by `1 << down_log2` of each image, which is
/// more than [`STACKED_QUADS`]. Block `b` has tile `b % stacks` along the stacked axis, of index `b / stacks` of the batch.
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
/// bytes, or one element if that is more: packed images and planes start at whole ones. Block `b` has chunk `b % chunks` of
/// image `b / chunks`.
///
/// A chunk is moved by [`FIELDS_THREADS`] threads, each of which holds as many granules as its entry was compiled with, and one of
/// the elements that fill no granule. So `run * fields` is at most the granules that they hold, and `fields` times the
/// elements of a granule but one at most the threads; the rest would be left out.
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
    /// Granules of a field in a chunk: a multiple of 32, so that a warp stays in one plane. Narrow in every entry.
    pub run: Divisor,
    /// Chunks of an image.
    pub chunks: Divisor,
    /// Packed granules in shared memory from one that is left free to the next: `fields << group_log2`, and at least 16, for
    /// there is room for no more free ones. Narrow in every entry.
    pub group: Divisor,
    /// Base-2 logarithm of the granules of a field in a group.
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

/// Shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Blocks in x, y, z; each at least 1.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z; each at least 1.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
}

/// One kernel entry as the host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the PTX.
    pub name: &'static str,
    /// Bytes of its one parameter.
    pub param_bytes: usize,
    /// Alignment of its one parameter, in bytes.
    pub param_align: usize,
    /// Compute capability that it needs, major and minor.
    pub capability: (u32, u32),
}

/// One of [`ENTRIES`], by its place there: what a plan keeps, and a launch needs no search for. Displayed as the entry's
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryId(usize);

impl EntryId {
    /// The entry of this name. Evaluated by the compiler: a name that is not there does not build.
    const fn named(name: &[u8]) -> Self {
        let mut place = 0;
        while !same(ENTRIES[place].name.as_bytes(), name) {
            place += 1;
        }
        Self(place)
    }

    /// The entry that does the same with hints to the L2 cache, where there is one and a device of this compute capability has
    /// it; else itself.
    pub fn hinted(self, capability: (u32, u32)) -> Self {
        let hinted = HINTED[self.0];
        if capability >= hinted.entry().capability { hinted } else { self }
    }

    /// Its place in [`ENTRIES`].
    pub const fn place(self) -> usize {
        self.0
    }

    /// The entry.
    pub const fn entry(self) -> &'static Entry {
        &ENTRIES[self.0]
    }

    /// Its name in the PTX.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether two names are equal, for constants: `==` is not one.
const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut equal = one.len() == other.len();
    let mut at = 0;
    while equal && at < one.len() {
        equal = one[at] == other[at];
        at += 1;
    }
    equal
}

/// The least compute capability that an entry needs: what the kernels are compiled for.
pub const OLDEST: (u32, u32) = (7, 5);

/// What the name of an entry with hints to the L2 cache ends in; before it is the name of the entry without.
const HINT: &[u8] = b"_hinted";

/// The name before [`HINT`], of an entry with hints.
const fn unhinted(name: &[u8]) -> Option<&[u8]> {
    match name.split_last_chunk::<{ HINT.len() }>() {
        Some((before, end)) if same(end, HINT) => Some(before),
        _ => None,
    }
}

/// For each of [`ENTRIES`] the one with hints, or itself.
static HINTED: [EntryId; ENTRIES.len()] = {
    let mut hinted = [EntryId(0); ENTRIES.len()];
    let mut place = 0;
    while place < ENTRIES.len() {
        hinted[place] = EntryId(place);
        place += 1;
    }
    while place > 0 {
        place -= 1;
        if let Some(name) = unhinted(ENTRIES[place].name.as_bytes()) {
            hinted[EntryId::named(name).0] = EntryId(place);
        }
    }
    hinted
};

/// Index arithmetic of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// Offsets fit in 31 bits: the common case, and the faster one.
    Narrow,
    /// Offsets of 2^31 elements and more.
    Wide,
}

/// Element widths in bytes that every kernel comes in.
pub const WIDTHS: [usize; 5] = [1, 2, 4, 8, 16];

macro_rules! entries {
    ($($family:ident($params:ty): $(#[$doc:meta])* [$($narrow:literal)*] [$($wide:literal)*];)*) => {
        $($(#[$doc])* pub const $family: Family = Family {
            narrow: &[$(EntryId::named($narrow.as_bytes())),*],
            wide: &[$(EntryId::named($wide.as_bytes())),*],
        };)*
        /// Every entry of the module, with the parameter that the host passes.
        pub const ENTRIES: &[Entry] = &[
            $($(entry::<$params>($narrow),)* $(entry::<$params>($wide),)*)*
        ];
    };
}

const fn entry<P>(name: &'static str) -> Entry {
    // PTX has eviction policies from `sm_80` on.
    let capability = if unhinted(name.as_bytes()).is_some() { (8, 0) } else { OLDEST };
    Entry { name, param_bytes: size_of::<P>(), param_align: align_of::<P>(), capability }
}

/// The entries of one kernel, by element width in the order of [`WIDTHS`] unless the family says otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    narrow: &'static [EntryId],
    wide: &'static [EntryId],
}

impl Family {
    /// The entry for elements of `width` bytes, or `None` where the family has none.
    pub fn entry(&self, width: usize, index: Index) -> Option<EntryId> {
        let position = WIDTHS.iter().position(|&known| known == width)?;
        match index {
            Index::Narrow => self.narrow.get(position).copied(),
            Index::Wide => self.wide.get(position).copied(),
        }
    }

    /// The entry for numbers of a type, in a family that has them; its arithmetic is 64-bit.
    pub const fn number(&self, number: NumberType) -> EntryId {
        self.wide[number as usize]
    }

    /// The entry at a place, in a family that is by neither width nor number.
    pub const fn at(&self, place: usize, index: Index) -> EntryId {
        match index {
            Index::Narrow => self.narrow[place],
            Index::Wide => self.wide[place],
        }
    }

    /// The entries, in a family whose arithmetic is 64-bit.
    pub const fn entries(&self) -> &'static [EntryId] {
        self.wide
    }
}

entries! {
    COPY(CopyParams): /// Contiguous bytes that start on 16 on both sides. Its arithmetic is 64-bit throughout, so it is only `Wide`.
        [] ["copy_b128"];
    ROWS(RowsParams): /// Runs of bytes that start anywhere on either side.
        ["rows"] ["rows_wide"];
    ELEMENTS(ElementsParams): /// Any layout to any layout, element by element, in the destination's order.
        ["elements_b8" "elements_b16" "elements_b32" "elements_b64" "elements_b128"]
        ["elements_b8_wide" "elements_b16_wide" "elements_b32_wide" "elements_b64_wide" "elements_b128_wide"];
    ELEMENTS_HINTED(ElementsParams): /// The same by eviction policies, of 16 bytes alone: what is loaded and stored goes first.
        ["elements_b128_hinted"] ["elements_b128_wide_hinted"];
    PATCH(PatchParams): /// Small arrays of any layout, element by element, in patches. Narrow only: what does not fit is not small.
        ["patch_b8" "patch_b16" "patch_b32" "patch_b64" "patch_b128"] [];
    SMALL_TILE(TransposeParams): /// Single matrices whose rows start on 16 bytes and hold whole quads, on both sides. Narrow only, as above.
        ["small_tile_b8" "small_tile_b16" "small_tile_b32" "small_tile_b64" "small_tile_b128"] [];
    VECTOR_TILE(VectorTileParams): /// Transposes whose rows start on 16 bytes and hold whole quads, on both sides.
        ["vector_tile_b8" "vector_tile_b16" "vector_tile_b32" "vector_tile_b64" "vector_tile_b128"]
        ["vector_tile_b8_wide" "vector_tile_b16_wide" "vector_tile_b32_wide" "vector_tile_b64_wide" "vector_tile_b128_wide"];
    VECTOR_TILE_HINTED(VectorTileParams): /// The same by eviction policies: what is stored goes first, and what is loaded last, but of bytes first.
        ["vector_tile_b8_hinted" "vector_tile_b16_hinted" "vector_tile_b32_hinted" "vector_tile_b64_hinted" "vector_tile_b128_hinted"]
        ["vector_tile_b8_wide_hinted" "vector_tile_b16_wide_hinted" "vector_tile_b32_wide_hinted" "vector_tile_b64_wide_hinted" "vector_tile_b128_wide_hinted"];
    RAGGED_TILE(VectorTileParams): /// Transposes whose rows start and end anywhere.
        ["ragged_tile_b8" "ragged_tile_b16" "ragged_tile_b32" "ragged_tile_b64" "ragged_tile_b128"]
        ["ragged_tile_b8_wide" "ragged_tile_b16_wide" "ragged_tile_b32_wide" "ragged_tile_b64_wide" "ragged_tile_b128_wide"];
    STACKED_TILE(StackedTileParams): /// The same of batches of small matrices. Those of 16-byte elements are for tiles, `packed` and `elements`.
        ["stacked_tile_b8" "stacked_tile_b16" "stacked_tile_b32" "stacked_tile_b64"]
        ["stacked_tile_b8_wide" "stacked_tile_b16_wide" "stacked_tile_b32_wide" "stacked_tile_b64_wide"];
    DEINTERLEAVE(FieldsParams): /// Packed structs of few fields to planes. Fields of 16 bytes are for tiles.
        ["deinterleave_b8" "deinterleave_b16" "deinterleave_b32" "deinterleave_b64"]
        ["deinterleave_b8_wide" "deinterleave_b16_wide" "deinterleave_b32_wide" "deinterleave_b64_wide"];
    INTERLEAVE(FieldsParams): /// Planes to packed structs of few fields.
        ["interleave_b8" "interleave_b16" "interleave_b32" "interleave_b64"]
        ["interleave_b8_wide" "interleave_b16_wide" "interleave_b32_wide" "interleave_b64_wide"];
    PACKED(PackedParams): /// Tiles of several axes, each side of which is moved in its own runs.
        ["packed_b8" "packed_b16" "packed_b32" "packed_b64" "packed_b128"]
        ["packed_b8_wide" "packed_b16_wide" "packed_b32_wide" "packed_b64_wide" "packed_b128_wide"];
    COLUMN_LOOP(ColumnParams): /// One column a launch: how a transpose looks when written as a loop of copies.
        ["column_loop_b8" "column_loop_b16" "column_loop_b32" "column_loop_b64" "column_loop_b128"]
        ["column_loop_b8_wide" "column_loop_b16_wide" "column_loop_b32_wide" "column_loop_b64_wide" "column_loop_b128_wide"];
    NAIVE(TransposeParams): /// One element a thread step, read along rows and written along columns.
        ["naive_b8" "naive_b16" "naive_b32" "naive_b64" "naive_b128"]
        ["naive_b8_wide" "naive_b16_wide" "naive_b32_wide" "naive_b64_wide" "naive_b128_wide"];
    TILED(TransposeParams): /// Through a `TILE` x `TILE` tile in shared memory: coalesced, but its columns share banks.
        ["tiled_b8" "tiled_b16" "tiled_b32" "tiled_b64" "tiled_b128"]
        ["tiled_b8_wide" "tiled_b16_wide" "tiled_b32_wide" "tiled_b64_wide" "tiled_b128_wide"];
    PADDED(TransposeParams): /// `tiled` with every tile row padded by one bank, so that columns meet no conflict.
        ["padded_b8" "padded_b16" "padded_b32" "padded_b64" "padded_b128"]
        ["padded_b8_wide" "padded_b16_wide" "padded_b32_wide" "padded_b64_wide" "padded_b128_wide"];
    STAGGERED(TransposeParams): /// `tiled` with the column exclusive-ored by the row: no conflict and no padding.
        ["staggered_b8" "staggered_b16" "staggered_b32" "staggered_b64" "staggered_b128"]
        ["staggered_b8_wide" "staggered_b16_wide" "staggered_b32_wide" "staggered_b64_wide" "staggered_b128_wide"];
    SWAP_TILES(SquareParams): /// Tiles of a square matrix exchanged across the diagonal, and turned on the way.
        ["swap_tiles_b8" "swap_tiles_b16" "swap_tiles_b32" "swap_tiles_b64" "swap_tiles_b128"]
        ["swap_tiles_b8_wide" "swap_tiles_b16_wide" "swap_tiles_b32_wide" "swap_tiles_b64_wide" "swap_tiles_b128_wide"];
    PERMUTE_LINES(LinesParams): /// Rows or columns permuted each in itself, panels of them through shared memory.
        ["permute_lines_b8" "permute_lines_b16" "permute_lines_b32" "permute_lines_b64" "permute_lines_b128"]
        ["permute_lines_b8_wide" "permute_lines_b16_wide" "permute_lines_b32_wide" "permute_lines_b64_wide" "permute_lines_b128_wide"];
    SPILL_LINES(LinesParams): /// The same for lines that are too long: a launch writes panels to scratch memory, a second one back.
        ["spill_lines_b8" "spill_lines_b16" "spill_lines_b32" "spill_lines_b64" "spill_lines_b128"]
        ["spill_lines_b8_wide" "spill_lines_b16_wide" "spill_lines_b32_wide" "spill_lines_b64_wide" "spill_lines_b128_wide"];
    FILL(FillParams): /// Bytes of a pattern.
        [] ["fill_b128"];
    MUL(ElementwiseParams): /// A scaled array; this and the following by [`NumberType`].
        [] ["mul_f16" "mul_bf16" "mul_f32" "mul_f64"];
    ADD(ElementwiseParams): /// The sum of two arrays.
        [] ["add_f16" "add_bf16" "add_f32" "add_f64"];
    TRIAD(ElementwiseParams): /// An array and a scaled one.
        [] ["triad_f16" "triad_bf16" "triad_f32" "triad_f64"];
    NSTREAM(ElementwiseParams): /// What was there, an array and a scaled one.
        [] ["nstream_f16" "nstream_bf16" "nstream_f32" "nstream_f64"];
    AXPY(ElementwiseParams): /// What was there and a scaled array.
        [] ["axpy_f16" "axpy_bf16" "axpy_f32" "axpy_f64"];
    SUM(ReduceParams): /// Sums of elements.
        [] ["sum_f16" "sum_bf16" "sum_f32" "sum_f64"];
    DOT(ReduceParams): /// Sums of products.
        [] ["dot_f16" "dot_bf16" "dot_f32" "dot_f64"];
    MIN(ReduceParams): /// Least elements.
        [] ["min_f16" "min_bf16" "min_f32" "min_f64"];
    MAX(ReduceParams): /// Greatest elements.
        [] ["max_f16" "max_bf16" "max_f32" "max_f64"];
    NORMALIZE(NormalizeParams): /// Images to normalised planes, by channels from 1 to [`MAX_CHANNELS`] and then by [`NumberType`] up to `F32`.
        [] ["normalize_1_f16" "normalize_1_bf16" "normalize_1_f32" "normalize_2_f16" "normalize_2_bf16" "normalize_2_f32"
            "normalize_3_f16" "normalize_3_bf16" "normalize_3_f32" "normalize_4_f16" "normalize_4_bf16" "normalize_4_f32"];
    CAST(CastParams): /// Numbers to another type, by the source's and then by the destination's; but for integers of one width, which are
        /// bits, integers that become narrower are named unsigned, and so are all that others become.
        [] ["cast_u8_u16" "cast_u8_f16" "cast_u8_bf16" "cast_u8_u32" "cast_u8_f32" "cast_u8_u64" "cast_u8_f64"
            "cast_i8_u16" "cast_i8_f16" "cast_i8_bf16" "cast_i8_u32" "cast_i8_f32" "cast_i8_u64" "cast_i8_f64"
            "cast_u16_u8" "cast_u16_f16" "cast_u16_bf16" "cast_u16_u32" "cast_u16_f32" "cast_u16_u64" "cast_u16_f64"
            "cast_i16_f16" "cast_i16_bf16" "cast_i16_u32" "cast_i16_f32" "cast_i16_u64" "cast_i16_f64"
            "cast_f16_u8" "cast_f16_i8" "cast_f16_u16" "cast_f16_i16" "cast_f16_bf16" "cast_f16_u32" "cast_f16_i32" "cast_f16_f32" "cast_f16_u64" "cast_f16_i64" "cast_f16_f64"
            "cast_bf16_u8" "cast_bf16_i8" "cast_bf16_u16" "cast_bf16_i16" "cast_bf16_f16" "cast_bf16_u32" "cast_bf16_i32" "cast_bf16_f32" "cast_bf16_u64" "cast_bf16_i64" "cast_bf16_f64"
            "cast_u32_u8" "cast_u32_u16" "cast_u32_f16" "cast_u32_bf16" "cast_u32_f32" "cast_u32_u64" "cast_u32_f64"
            "cast_i32_f16" "cast_i32_bf16" "cast_i32_f32" "cast_i32_u64" "cast_i32_f64"
            "cast_f32_u8" "cast_f32_i8" "cast_f32_u16" "cast_f32_i16" "cast_f32_f16" "cast_f32_bf16" "cast_f32_u32" "cast_f32_i32" "cast_f32_u64" "cast_f32_i64" "cast_f32_f64"
            "cast_u64_u8" "cast_u64_u16" "cast_u64_f16" "cast_u64_bf16" "cast_u64_u32" "cast_u64_f32" "cast_u64_f64"
            "cast_i64_f16" "cast_i64_bf16" "cast_i64_f32" "cast_i64_f64"
            "cast_f64_u8" "cast_f64_i8" "cast_f64_u16" "cast_f64_i16" "cast_f64_f16" "cast_f64_bf16" "cast_f64_u32" "cast_f64_i32" "cast_f64_f32" "cast_f64_u64" "cast_f64_i64"];
    AFFINE_TILE(AffineTileParams): /// Scaled, shifted and converted transposes whose rows start on 16 bytes and hold whole quads, on both sides, by
        /// [`AffineType`] of the source and then of the destination.
        [] ["affine_tile_u8_f16" "affine_tile_u8_bf16" "affine_tile_u8_f32"
            "affine_tile_f16_f16" "affine_tile_f16_bf16" "affine_tile_f16_f32"
            "affine_tile_bf16_f16" "affine_tile_bf16_bf16" "affine_tile_bf16_f32"
            "affine_tile_f32_f16" "affine_tile_f32_bf16" "affine_tile_f32_f32"
            "affine_tile_f64_f64"];
    AFFINE_PADDED(AffineTileParams): /// The same whose rows start and end anywhere. Their types are parameters, but for doubles.
        [] ["affine_padded" "affine_padded_f64"];
    AFFINE_ELEMENTS(AffineElementsParams): /// The same of any layout to any layout, element by element, in the destination's order.
        ["affine_elements" "affine_elements_f64"] ["affine_elements_wide" "affine_elements_f64_wide"];
    GATHER(IndexedRowsParams): /// Rows taken by their indices, in words as wide as all rows start on and hold.
        [] ["gather_b8" "gather_b16" "gather_b32" "gather_b64" "gather_b128"];
    SCATTER(IndexedRowsParams): /// Rows put by their indices.
        [] ["scatter_b8" "scatter_b16" "scatter_b32" "scatter_b64" "scatter_b128"];
    SUM_ROWS(ReduceRowsParams): /// Sums along the last axis.
        [] ["sum_rows_f16" "sum_rows_bf16" "sum_rows_f32" "sum_rows_f64"];
    MIN_ROWS(ReduceRowsParams): /// Least elements along the last axis.
        [] ["min_rows_f16" "min_rows_bf16" "min_rows_f32" "min_rows_f64"];
    MAX_ROWS(ReduceRowsParams): /// Greatest elements along the last axis.
        [] ["max_rows_f16" "max_rows_bf16" "max_rows_f32" "max_rows_f64"];
    ARGMAX_ROWS(ReduceRowsParams): /// Places of the greatest elements along the last axis.
        [] ["argmax_rows_f16" "argmax_rows_bf16" "argmax_rows_f32" "argmax_rows_f64"];
    SUM_COLUMNS(ReduceColumnsParams): /// Sums along another axis, or of parts.
        [] ["sum_columns_f16" "sum_columns_bf16" "sum_columns_f32" "sum_columns_f64"];
    MIN_COLUMNS(ReduceColumnsParams): /// Least elements along another axis, or of parts.
        [] ["min_columns_f16" "min_columns_bf16" "min_columns_f32" "min_columns_f64"];
    MAX_COLUMNS(ReduceColumnsParams): /// Greatest elements along another axis, or of parts.
        [] ["max_columns_f16" "max_columns_bf16" "max_columns_f32" "max_columns_f64"];
    ARGMAX_COLUMNS(ReduceColumnsParams): /// Places of the greatest elements along another axis, or of parts.
        [] ["argmax_columns_f16" "argmax_columns_bf16" "argmax_columns_f32" "argmax_columns_f64"];
    SOFTMAX(RowwiseParams): /// Rows of positive numbers whose sum is 1.
        [] ["softmax_f16" "softmax_bf16" "softmax_f32" "softmax_f64"];
    MEAN_VARIANCE(RowwiseParams): /// Mean and variance of rows.
        [] ["mean_variance_f16" "mean_variance_bf16" "mean_variance_f32" "mean_variance_f64"];
    PROBE_READ(ProbeParams): /// Loads and nothing else; this and the following by [`PROBE_STEPS`].
        [] ["probe_read_x1" "probe_read_x2" "probe_read_x4" "probe_read_x8"];
    PROBE_WRITE(ProbeParams): /// Stores and nothing else.
        [] ["probe_write_x1" "probe_write_x2" "probe_write_x4" "probe_write_x8"];
    PROBE_COPY(ProbeParams): /// Loads, and as many stores.
        [] ["probe_copy_x1" "probe_copy_x2" "probe_copy_x4" "probe_copy_x8"];
    SPIN(SpinParams): /// The gate that measurements queue behind.
        [] ["spin"];
}

// The sizes that the PTX was compiled with; a change of a struct changes the kernels, and must not go unseen.
const _: () = assert!(size_of::<TransposeParams>() == 64 && align_of::<TransposeParams>() == 8);
const _: () = assert!(size_of::<ColumnParams>() == 40 && size_of::<CopyParams>() == 24 && size_of::<SpinParams>() == 8);
const _: () = assert!(size_of::<ElementsParams>() == 672 && size_of::<Axis>() == 40 && size_of::<Divisor>() == 24);
const _: () = assert!(size_of::<VectorTileParams>() == 840 && size_of::<Fold>() == 40);
const _: () = assert!(size_of::<StackedTileParams>() == 744);
const _: () = assert!(size_of::<FieldsParams>() == 784 && size_of::<PatchParams>() == 152);
const _: () = assert!(size_of::<RowsParams>() == 712);
const _: () = assert!(size_of::<PackedParams>() == 1672 && size_of::<PackedSide>() == 424 && size_of::<Digit>() == 24);
const _: () = assert!(size_of::<SquareParams>() == 48 && size_of::<LinesParams>() == 216);

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(n: u32, by: &Divisor) -> u64 {
        let product = u64::from(n << 1) * by.multiplier;
        product >> 32 >> by.shift
    }

    fn wide(n: u64, by: &Divisor) -> u64 {
        let product = u128::from(n << 1) * u128::from(by.multiplier);
        (product >> 64) as u64 >> by.shift
    }

    /// Numbers of up to `bits` bits in which bounds are most likely to lie: those around powers of two, and random ones.
    fn numbers(bits: u32) -> impl Iterator<Item = u64> + Clone {
        let around = (0..=bits).flat_map(|power| [(1u64 << power) - 1, 1 << power, (1 << power) + 1]);
        let random = (1u64..200).map(move |i| {
            let bits_of_it = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bits_of_it >> (64 - bits as u64 + i % u64::from(bits))
        });
        around.chain(random)
    }

    #[test]
    fn narrow_divisions_are_exact() {
        for value in numbers(31).filter(|value| (1..=1 << 31).contains(value)) {
            let divisor = Divisor::narrow(value);
            assert!(divisor.multiplier <= u64::from(u32::MAX) && divisor.shift < 32, "{divisor:?}");
            let multiples = numbers(31).flat_map(|n| [n, n / value * value, (n / value * value).wrapping_sub(1)]);
            for n in multiples.filter(|&n| n < 1 << 31) {
                assert_eq!(narrow(n as u32, &divisor), n / value, "{n} / {value}");
            }
        }
    }

    #[test]
    fn wide_divisions_are_exact() {
        for value in numbers(63).filter(|value| (1..=1 << 63).contains(value)) {
            let divisor = Divisor::wide(value);
            assert!(divisor.shift < 64, "{divisor:?}");
            let multiples = numbers(63).flat_map(|n| [n, n / value * value, (n / value * value).wrapping_sub(1)]);
            for n in multiples.filter(|&n| n < 1 << 63) {
                assert_eq!(wide(n, &divisor), n / value, "{n} / {value}");
            }
        }
    }
}
