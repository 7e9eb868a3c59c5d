//! Parameters of the kernels that scale, shift and convert elements on their way to another layout.

use super::{Axis, DType, Divisor, ElementsParams, MAX_AXES};

/// The number by which a parameter names an element type; `None` of a type that the kernels do not
/// know. They read all that have a number, and write all of these but bytes.
pub const fn affine_type(dtype: DType) -> Option<u64> {
    Some(match dtype {
        DType::U8 => AFFINE_U8,
        DType::F16 => AFFINE_F16,
        DType::Bf16 => AFFINE_BF16,
        DType::F32 => AFFINE_F32,
        DType::F64 => AFFINE_F64,
        _ => return None,
    })
}

/// The number of [`DType::U8`].
pub const AFFINE_U8: u64 = 0;
/// The number of [`DType::F16`].
pub const AFFINE_F16: u64 = 1;
/// The number of [`DType::Bf16`].
pub const AFFINE_BF16: u64 = 2;
/// The number of [`DType::F32`].
pub const AFFINE_F32: u64 = 3;
/// The number of [`DType::F64`], which maps to itself alone.
pub const AFFINE_F64: u64 = 4;

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
    /// The [`affine_type`] of the source.
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
    /// The [`affine_type`] of the source.
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
