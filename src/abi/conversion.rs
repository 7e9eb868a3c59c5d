//! Parameters of the kernels that make other numbers of what they move, and of those that take rows by their indices.

use super::{Divisor, Span};

/// Threads in a block of `normalize`.
pub const NORMALIZE_BLOCK: u32 = 512;
/// Quads of each plane that one thread of `normalize` writes.
pub const NORMALIZE_STEPS: u32 = 1;
/// Threads in a block of the casts: one side of them has fewer bytes than a copy has, and small blocks, which end one by one, keep
/// memory busier (on an H100 f32 to f16 3060 GB/s against 2965 of 1024 threads, and back 2944 against 2859).
pub const CAST_BLOCK: u32 = 256;
/// Threads in a block of `gather` and `scatter`.
pub const INDEXED_BLOCK: u32 = 256;
/// Words that one thread of `gather` or `scatter` moves, so that as many loads are in flight.
pub const INDEXED_PER_THREAD: u32 = 4;
/// Most channels of an image of `normalize`.
pub const MAX_CHANNELS: usize = 4;

/// Parameters of `normalize`: images of interleaved bytes to planes, `dst[n, c, p] = fma(src[n, p, c], factors[c], offsets[c])`
/// in single precision, rounded once more where the planes are of halves.
///
/// Block `(x, y, z)` has chunk `x` of image `r = z * gridDim.y + y`, or where planes are split, of plane `r` of all images: as many
/// pixels as its threads hold in [`NORMALIZE_STEPS`] quads of a plane each.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormalizeParams {
    /// Device address of the first byte of the first image.
    pub src: u64,
    /// Device address of the first element of the first plane.
    pub dst: u64,
    /// Images.
    pub images: u64,
    /// Pixels of an image.
    pub pixels: u64,
    /// 1 where all planes start on 16 bytes and hold whole quads, and all pixels that make one start on as many bytes as divide
    /// both theirs and 16.
    pub aligned: u64,
    /// 1 where a block writes one plane, of those that are aligned, and 0 where it writes all of an image. Memory likes to be written in
    /// one place, and what is read once more comes from the L2 cache.
    pub split: u64,
    /// The bits of the factors, as `f32`.
    pub factors: [u32; MAX_CHANNELS],
    /// The bits of the offsets, as `f32`.
    pub offsets: [u32; MAX_CHANNELS],
}

/// Parameters of the casts: `dst[i] = src[i] as T`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CastParams {
    /// Device address of the first element to read.
    pub src: u64,
    /// Device address of the first element to write.
    pub dst: u64,
    /// The elements; a quad is one of the side with the wider elements, and starts on 16 bytes there. On the other side as many
    /// elements start on as many bytes as they have.
    pub span: Span,
}

/// Parameters of `gather`, `dst[k] = src[indices[k]]`, and of `scatter`, `dst[indices[k]] = src[k]`: rows of words without gaps. A
/// row whose index is none of the rows' is left out.
///
/// Block `b` (x first, then y) moves [`INDEXED_PER_THREAD`] runs of [`INDEXED_BLOCK`] words, a lane one of each.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedRowsParams {
    /// Device address of the first row of the source, a multiple of a word.
    pub src: u64,
    /// Device address of the first row of the destination, a multiple of a word.
    pub dst: u64,
    /// Device address of the first index.
    pub indices: u64,
    /// 1 where indices have 8 bytes, 0 where they have 4.
    pub long: u64,
    /// Rows of the side that indices are of.
    pub rows: u64,
    /// Words of a row, for [`Index::Wide`](super::Index::Wide).
    pub words: Divisor,
    /// Words to move: those of a row times the indices.
    pub len: u64,
}

const _: () = assert!(size_of::<IndexedRowsParams>() == 72);
const _: () = assert!(size_of::<NormalizeParams>() == 80 && size_of::<CastParams>() == 40);
