//! Parameters of the kernels that scale, shift and convert elements on their way to another layout.

use super::{Axis, Divisor, ElementsParams, MAX_AXES, Scalar};

/// Types that these kernels know, in the order of a family's entries: all are read, and all but bytes are written. A parameter
/// names one by its place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AffineType {
    /// Unsigned, 8 bits.
    U8,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision: to itself alone.
    F64,
}

impl AffineType {
    /// The same among all types.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::U8 => Scalar::U8,
            Self::F16 => Scalar::F16,
            Self::Bf16 => Scalar::Bf16,
            Self::F32 => Scalar::F32,
            Self::F64 => Scalar::F64,
        }
    }

    /// Bytes of one.
    pub const fn width(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Threads in a block of `affine_padded`.
pub const AFFINE_PADDED_BLOCK: u32 = 256;
/// Rows and columns of its tiles.
pub const AFFINE_PADDED_SIDE: u32 = 64;

/// The factor and the offset of an element `x`, which becomes `fma(x, factor, offset)`.
///
/// Numbers, of elements or of images, belong to channel `number / inner % channels`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffineValues {
    /// The bits of the factor as a double, where all elements have one.
    pub factor: u64,
    /// The bits of the offset as a double, where all elements have one.
    pub offset: u64,
    /// Device address of the factor of channel 0, an `f32`; 0 where all elements have one.
    pub factors: u64,
    /// Device address of the offset of channel 0, an `f32`.
    pub offsets: u64,
    /// Values from those of a channel to those of the next: 1, or -1 where the last channel comes first.
    pub step: i64,
    /// Numbers that follow each other and are of one channel; for the entry's arithmetic.
    pub inner: Divisor,
    /// Channels; for the entry's arithmetic.
    pub channels: Divisor,
}

/// Parameters of `affine_elements`: as `elements`, with another type on each side.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffineElementsParams {
    /// What is moved where; a thread has as many elements as those of four bytes.
    pub elements: ElementsParams,
    /// The [`AffineType`] of the source.
    pub src_type: u64,
    /// That of the destination.
    pub dst_type: u64,
    /// Of the elements by their numbers.
    pub values: AffineValues,
}

/// Parameters of `affine_tile` and `affine_padded`: a batch of transposes, `dst[c, r] = fma(src[r, c], factor, offset)`,
/// contiguous along `c` in the source and along `r` in the destination. All divisors are for wide arithmetic.
///
/// Of `affine_tile`, both addresses and the pitches and batch strides on both sides are multiples of 16 bytes, and so are `cols`
/// elements of the source and `rows` of the destination. Of `affine_padded`, they are multiples of an element.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffineTileParams {
    /// Device address of the first source element.
    pub src: u64,
    /// Device address of the first destination element.
    pub dst: u64,
    /// Rows of `src`.
    pub rows: u64,
    /// Columns of `src`.
    pub cols: u64,
    /// Elements from one row of the source to the next; signed.
    pub src_pitch: i64,
    /// Elements from one row of the destination to the next, which is a column of the source; signed.
    pub dst_pitch: i64,
    /// Of `affine_tile`: base-2 logarithm of the rectangles along a row of a tile, of which it has as many as `vector_tile` has
    /// squares of the source's width. A rectangle has a quad of the source's elements along a row, and one of the destination's
    /// along a column.
    pub across_log2: u64,
    /// Tiles along a row of the source.
    pub tiles_across: Divisor,
    /// Tiles along a column of the source.
    pub tiles_down: Divisor,
    /// 1 where those along a column are numbered first, 0 where those along a row are.
    pub down_first: u64,
    /// The [`AffineType`] of the source.
    pub src_type: u64,
    /// That of the destination.
    pub dst_type: u64,
    /// Of the images by their numbers.
    pub values: AffineValues,
    /// 1 where rows are channels, so that a row's number is added to its image's channel.
    pub along_rows: u64,
    /// 1 where columns are channels.
    pub along_cols: u64,
    /// Axes of the batch.
    pub rank: u64,
    /// The batch, the first axis numbered fastest.
    pub axes: [Axis; MAX_AXES],
}

const _: () = assert!(size_of::<AffineValues>() == 88 && size_of::<AffineElementsParams>() == 776);
const _: () = assert!(size_of::<AffineTileParams>() == 880);
