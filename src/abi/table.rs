//! The table of kernels, with a line per family.
//!
//! A line has the family's name, the start of its entries' names, their parameter, the axes along
//! which it is instantiated, and the body. There is an entry for each combination of the axes'
//! values, and for each of several lists of axes that `and` joins. A combination that these leave
//! out is a gap, which an `except` names with its reason. Entries and gaps together are all
//! combinations of width, index and hint for the axes that a line has, which a test checks. Each
//! value adds its suffix to the entry's name. The axes are `W`, the width of elements; `I`, the
//! arithmetic of indices; `C`, the hints to the L2 cache; `T`, a type of numbers; `S` and `D`, the
//! types of source and destination; `N`, channels; and `X`, the vectors that a thread moves.
//!
//! `kernels/src/lib.rs` makes the entries from it, with code for a body and types or constants for
//! axes; `entries` makes the host's data. So this file has no code itself.

/// The parameters of families and the constants of their launches, in files with the names of the
/// bodies' files in `kernels/src`.
pub mod params {
    mod accesses;
    mod affine;
    mod affine_quads;
    mod affine_tile;
    mod binary;
    mod boxes;
    mod cast;
    mod column_loop;
    mod copy;
    mod elements;
    mod elementwise;
    mod fields;
    mod in_place;
    mod normalize;
    mod packed_quads;
    mod pairs;
    mod patch;
    mod ragged_tile;
    mod reduce;
    mod reduce_axis;
    mod rows;
    mod rows_by_index;
    mod row_parts;
    mod rowwise;
    mod small_tile;
    mod spin;
    mod tile;
    mod vector_tile;

    pub use self::accesses::*;
    pub use self::affine::*;
    pub use self::affine_quads::*;
    pub use self::affine_tile::*;
    pub use self::binary::*;
    pub use self::boxes::*;
    pub use self::cast::*;
    pub use self::column_loop::*;
    pub use self::copy::*;
    pub use self::elements::*;
    pub use self::elementwise::*;
    pub use self::fields::*;
    pub use self::in_place::*;
    pub use self::normalize::*;
    pub use self::packed_quads::*;
    pub use self::pairs::*;
    pub use self::patch::*;
    pub use self::ragged_tile::*;
    pub use self::reduce::*;
    pub use self::reduce_axis::*;
    pub use self::row_parts::*;
    pub use self::rows::*;
    pub use self::rows_by_index::*;
    pub use self::rowwise::*;
    pub use self::small_tile::*;
    pub use self::spin::*;
    pub use self::tile::*;
    pub use self::vector_tile::*;
}

/// Hands the table to a macro.
macro_rules! families {
    ($then:ident) => {
        $then! {
            /// Contiguous bytes, aligned to 16 bytes on both sides. 64-bit arithmetic throughout.
            COPY copy_b128(CopyParams) for type C in [Unhinted Hinted]
                = copy::<C>;
            /// Runs of bytes that start anywhere on either side.
            ROWS rows(RowsParams) for type I in [Narrow Wide]
                except C in [Hinted] because "the entry is left out to keep the PTX small"
                = rows::<I>;
            /// Any layout to any layout, element by element, in the destination's order.
            ELEMENTS elements(ElementsParams)
                for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide], type C in [Unhinted]
                and type W in [B128], type I in [Narrow Wide], type C in [Hinted]
                except W in [B8 B16 B32 B64], C in [Hinted]
                    because "where accesses lie apart, half a sector waits in the cache for the other half"
                = elements::<W, I, C, { elements_per_thread(W::BYTES) as usize }>;
            /// Small arrays of any layout, element by element, in patches.
            PATCH patch(PatchParams) for type W in [B8 B16 B32 B64 B128]
                except I in [Wide] because "an array beyond narrow indices is not small"
                = patch::<W>;
            /// One column a launch: how a transpose looks when written as a loop of copies.
            COLUMN_LOOP column_loop(ColumnParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = column_loop::<W, I>;
            /// One element a thread step, read along rows and written along columns.
            NAIVE naive(TransposeParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = naive::<W, I>;
            /// Through a `TILE` x `TILE` tile in shared memory: coalesced, but its columns share
            /// banks.
            TILED tiled(TransposeParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = tile::<W, I, Plain>;
            /// `tiled` with every tile row padded by one bank, so that columns do not conflict.
            PADDED padded(TransposeParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = tile::<W, I, Padded>;
            /// `tiled` with the column exclusive-ored by the row: no conflict and no padding.
            STAGGERED staggered(TransposeParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = tile::<W, I, Staggered>;
            /// Transposes of single matrices whose rows are whole aligned vectors on both sides.
            SMALL_TILE small_tile(TransposeParams) for type W in [B8 B16 B32 B64 B128]
                except I in [Wide] because "an array beyond narrow indices is not small"
                = small_tile::<W, { W::COUNT }>;
            /// Exchanges tiles of a square matrix across the diagonal and transposes them.
            SWAP_TILES swap_tiles(SquareParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = swap_tiles::<W, I>;
            /// Permutes within each row, or within each column, through panels in shared memory.
            PERMUTE_LINES permute_lines(LinesParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = permute_lines::<W, I>;
            /// The same for rows or columns that are too long: one launch writes panels to scratch
            /// memory, a second one back.
            SPILL_LINES spill_lines(LinesParams) for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide]
                = spill_lines::<W, I>;
            /// Keeps a stream busy, so that measured work queues behind it.
            SPIN spin(SpinParams)
                = spin;
            /// Transposes whose rows are whole aligned vectors on both sides.
            VECTOR_TILE vector_tile(VectorTileParams)
                for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide], type C in [Unhinted Hinted]
                = vector_tile::<W, I, C, { W::COUNT }, { vector_tile_squares(W::BYTES) as usize }, { tile_quads(W::BYTES, vector_tile_squares(W::BYTES)) }>;
            /// Transposes whose rows start and end anywhere.
            RAGGED_TILE ragged_tile(VectorTileParams)
                for type W in [B8 B16 B32 B64 B128], type I in [Narrow Wide], type C in [Unhinted]
                and type W in [B8 B16 B32 B64 B128], type I in [Narrow], type C in [Hinted]
                except I in [Wide], C in [Hinted] because "the entry is left out to keep the PTX small"
                = ragged_tile::<W, I, C, { W::COUNT }, { ragged_tile_squares(W::BYTES) as usize }, { tile_quads(W::BYTES, ragged_tile_squares(W::BYTES)) }>;
            /// Packed structs of few fields to planes.
            DEINTERLEAVE deinterleave(FieldsParams) for type W in [B8 B16 B32 B64], type I in [Narrow Wide]
                except W in [B128] because "tiles move fields of 16 bytes"
                = deinterleave::<W, I, { deinterleave_steps(W::BYTES) }>;
            /// Planes to packed structs of few fields.
            INTERLEAVE interleave(FieldsParams) for type W in [B8 B16 B32 B64], type I in [Narrow Wide]
                except W in [B128] because "tiles move fields of 16 bytes"
                = interleave::<W, I, { interleave_steps(W::BYTES) }>;
            /// [`DEINTERLEAVE`] by 16 bytes a lane, for images and planes that start on 16 bytes;
            /// 64-bit arithmetic.
            DEINTERLEAVE_QUADS deinterleave_quads(FieldsParams) for type W in [B8 B16 B32 B64], type C in [Unhinted Hinted]
                except W in [B128] because "tiles move fields of 16 bytes"
                = deinterleave_quads::<W, C>;
            /// [`INTERLEAVE`] by 16 bytes a lane.
            INTERLEAVE_QUADS interleave_quads(FieldsParams) for type W in [B8 B16 B32 B64], type C in [Unhinted Hinted]
                except W in [B128] because "tiles move fields of 16 bytes"
                = interleave_quads::<W, C>;
            /// Tiles of several axes, by vectors.
            PACKED_QUADS packed_quads(PackedQuadsParams)
                for type W in [B8 B16 B32 B64 B128], type C in [Unhinted Hinted]
                except I in [Wide] because "boxes moves arrays beyond narrow indices"
                = packed_quads::<W, C>;
            /// Boxes of any axes, which lie in shared memory as in the source.
            BOXES boxes(BoxesParams)
                for type W in [B8 B16 B32 B64 B128], type C in [Unhinted Hinted]
                except I in [Wide] because "the offsets within a box are narrow, and those of boxes are wide"
                = boxes::<W, C, { W::COUNT }, { granule(W::BYTES) }>;
            /// [`COPY`] of several pairs of a source and a destination.
            COPY_PAIRS copy_pairs(CopyPairsParams)
                except C in [Hinted] because "pairs are small"
                = copy_pairs;
            /// [`ELEMENTS`] of several pairs, along few axes.
            ELEMENTS_PAIRS elements_pairs(ElementsPairsParams) for type W in [B8 B16 B32 B64 B128]
                except I in [Wide] because "pairs are small"
                except C in [Hinted] because "pairs are small"
                = elements_pairs::<W, { elements_per_thread(W::BYTES) as usize }>;
            /// [`PATCH`] of several pairs.
            PATCH_PAIRS patch_pairs(PatchPairsParams) for type W in [B8 B16 B32 B64 B128]
                except I in [Wide] because "an array beyond narrow indices is not small"
                = patch_pairs::<W>;
            /// [`STAGGERED`] of several pairs.
            STAGGERED_PAIRS staggered_pairs(TransposePairsParams) for type W in [B8 B16 B32 B64]
                except I in [Wide] because "pairs are small"
                except W in [B128] because "small_tile moves all elements of 16 bytes that fill a tile"
                = staggered_pairs::<W>;
            /// [`SMALL_TILE`] of several pairs.
            SMALL_TILE_PAIRS small_tile_pairs(TransposePairsParams) for type W in [B8 B16 B32 B64 B128]
                except I in [Wide] because "an array beyond narrow indices is not small"
                = small_tile_pairs::<W, { W::COUNT }>;
            /// Bytes of a pattern.
            FILL fill_b128(FillParams)
                = fill;
            /// A scaled array.
            MUL mul(ElementwiseParams) for type T in [F16 Bf16 f32 f64], type C in [Unhinted Hinted]
                = elementwise::<T, Mul, C>;
            /// The sum of an array and a scaled one.
            TRIAD triad(ElementwiseParams) for type T in [F16 Bf16 f32 f64], type C in [Unhinted Hinted]
                = elementwise::<T, Triad, C>;
            /// Adds an array and a scaled one to the destination.
            NSTREAM nstream(ElementwiseParams) for type T in [F16 Bf16 f32 f64]
                except C in [Hinted] because "hints gain it nothing"
                = elementwise::<T, NStream, Unhinted>;
            /// Adds a scaled array to the destination.
            AXPY axpy(ElementwiseParams) for type T in [F16 Bf16 f32 f64]
                except C in [Hinted] because "hints to its loads alone gain, which no entry has"
                = elementwise::<T, Axpy, Unhinted>;
            /// Operations of two operands of any layouts. 64-bit arithmetic throughout.
            BINARY binary(BinaryParams) for type T in [F16 Bf16 f32 f64], type C in [Unhinted Hinted]
                = binary::<T, C>;
            /// Singles after a number of fused products and sums: arithmetic of any intensity.
            ITERATE iterate(IterateParams)
                = iterate;
            /// Sums of elements.
            SUM sum(ReduceParams) for type T in [F16 Bf16 f32 f64]
                except T in [u8 i8 u16 i16 u32 i32 u64 i64] because "the kernels along an axis reduce all integers too"
                = reduce::<T, Sum>;
            /// Sums of products.
            DOT dot(ReduceParams) for type T in [F16 Bf16 f32 f64]
                = reduce::<T, Dot>;
            /// Least elements.
            MIN min(ReduceParams) for type T in [F16 Bf16 f32 f64]
                except T in [u8 i8 u16 i16 u32 i32 u64 i64] because "the kernels along an axis reduce all integers too"
                = reduce::<T, Min>;
            /// Greatest elements.
            MAX max(ReduceParams) for type T in [F16 Bf16 f32 f64]
                except T in [u8 i8 u16 i16 u32 i32 u64 i64] because "the kernels along an axis reduce all integers too"
                = reduce::<T, Max>;
            /// Images to normalised planes.
            NORMALIZE normalize(NormalizeParams)
                for const N in [1 2 3 4], type T in [F16 Bf16 f32]
                except T in [f64] because "a cast makes planes of f64 from planes of f32"
                = normalize::<T, N, { N * <T as Number>::Word::COUNT }>;
            /// Scaled, shifted and converted transposes whose rows are whole aligned vectors on
            /// both sides.
            AFFINE_TILE affine_tile(AffineTileParams)
                for type S in [u8 F16 Bf16 f32], type D in [F16 Bf16 f32]
                and type S in [f64], type D in [f64]
                except S in [u8 F16 Bf16 f32], D in [f64] because "doubles are computed from doubles: cast before"
                except S in [f64], D in [F16 Bf16 f32] because "doubles are computed to doubles: cast after"
                = affine_tile::<S, D, { <S as Scalar>::Word::COUNT }, { <D as Number>::Word::COUNT }, { vector_tile_squares(<S as Scalar>::Word::BYTES) as usize }, { tile_quads(<S as Scalar>::Word::BYTES, vector_tile_squares(<S as Scalar>::Word::BYTES)) }>;
            /// [`PACKED_QUADS`] with a type for each side: scaled, shifted and converted. The type
            /// of the source is a parameter.
            AFFINE_QUADS affine_quads(AffineQuadsParams) for type T in [F16 Bf16 f32]
                except T in [f64] because "doubles are computed from doubles, by an entry of their own"
                = affine_quads::<T>;
            /// [`AFFINE_QUADS`] for doubles.
            AFFINE_QUADS_F64 affine_quads_f64(AffineQuadsParams)
                = affine_quads_f64;
            /// Any layout to any layout, scaled, shifted and converted element by element, in the
            /// destination's order. Their types are parameters.
            AFFINE_ELEMENTS affine_elements(AffineElementsParams) for type I in [Narrow Wide]
                = affine_elements::<I>;
            /// [`AFFINE_ELEMENTS`] for doubles.
            AFFINE_ELEMENTS_F64 affine_elements_f64(AffineElementsParams) for type I in [Narrow Wide]
                = affine_elements_f64::<I>;
            /// Numbers to another type.
            CAST cast(CastParams)
                for type S in [u8], type D in [u16 F16 Bf16 u32 f32 u64 f64]
                and type S in [i8], type D in [u16 F16 Bf16 u32 f32 u64 f64]
                and type S in [u16], type D in [u8 F16 Bf16 u32 f32 u64 f64]
                and type S in [i16], type D in [F16 Bf16 u32 f32 u64 f64]
                and type S in [F16], type D in [u8 i8 u16 i16 Bf16 u32 i32 f32 u64 i64 f64]
                and type S in [Bf16], type D in [u8 i8 u16 i16 F16 u32 i32 f32 u64 i64 f64]
                and type S in [u32], type D in [u8 u16 F16 Bf16 f32 u64 f64]
                and type S in [i32], type D in [F16 Bf16 f32 u64 f64]
                and type S in [f32], type D in [u8 i8 u16 i16 F16 Bf16 u32 i32 u64 i64 f64]
                and type S in [u64], type D in [u8 u16 F16 Bf16 u32 f32 f64]
                and type S in [i64], type D in [F16 Bf16 f32 f64]
                and type S in [f64], type D in [u8 i8 u16 i16 F16 Bf16 u32 i32 f32 u64 i64]
                except S in [F16], D in [F16] because "equal types have equal bits"
                except S in [Bf16], D in [Bf16] because "equal types have equal bits"
                except S in [f32], D in [f32] because "equal types have equal bits"
                except S in [f64], D in [f64] because "equal types have equal bits"
                except S in [u8 i8], D in [u8] because "integers of one width have equal bits"
                except S in [u16 i16], D in [u16] because "integers of one width have equal bits"
                except S in [u32 i32], D in [u32] because "integers of one width have equal bits"
                except S in [u64 i64], D in [u64] because "integers of one width have equal bits"
                except S in [i16 i32 i64], D in [u8] because "the unsigned source gives the same low bits"
                except S in [i32 i64], D in [u16] because "the unsigned source gives the same low bits"
                except S in [i64], D in [u32] because "the unsigned source gives the same low bits"
                except S in [u8 i8 u16 i16 u32 i32 u64 i64], D in [i8 i16 i32 i64]
                    because "the unsigned result has the same bits"
                = cast::<S, D>;
            /// Takes rows by their indices, in the widest words to which all rows are aligned.
            GATHER gather(IndexedRowsParams) for type W in [B8 B16 B32 B64 B128]
                = rows_by_index::<W, false>;
            /// Puts rows by their indices.
            SCATTER scatter(IndexedRowsParams) for type W in [B8 B16 B32 B64 B128]
                = rows_by_index::<W, true>;
            /// Sums along the last axis.
            SUM_ROWS sum_rows(ReduceRowsParams) for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64]
                except T in [i64] because "sums of u64 have the same bits"
                = reduce_rows::<T, Sum>;
            /// Sums along another axis, or of parts.
            SUM_COLUMNS sum_columns(ReduceColumnsParams) for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64]
                except T in [i64] because "sums of u64 have the same bits"
                = reduce_columns::<T, Sum, { column_lanes::<<T as Number>::Word>() }>;
            /// Least elements along the last axis.
            MIN_ROWS min_rows(ReduceRowsParams)
                for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64 i64]
                = reduce_rows::<T, Min>;
            /// Least elements along another axis, or of parts.
            MIN_COLUMNS min_columns(ReduceColumnsParams)
                for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64 i64]
                = reduce_columns::<T, Min, { column_lanes::<<T as Number>::Word>() }>;
            /// Greatest elements along the last axis.
            MAX_ROWS max_rows(ReduceRowsParams)
                for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64 i64]
                = reduce_rows::<T, Max>;
            /// Greatest elements along another axis, or of parts.
            MAX_COLUMNS max_columns(ReduceColumnsParams)
                for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64 i64]
                = reduce_columns::<T, Max, { column_lanes::<<T as Number>::Word>() }>;
            /// Indices of the greatest elements along the last axis.
            ARGMAX_ROWS argmax_rows(ReduceRowsParams)
                for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64 i64]
                = reduce_rows::<T, ArgMax>;
            /// Indices of the greatest elements along another axis, or of parts.
            ARGMAX_COLUMNS argmax_columns(ReduceColumnsParams)
                for type T in [F16 Bf16 f32 f64 u8 i8 u16 i16 u32 i32 u64 i64]
                = reduce_columns::<T, ArgMax, { column_lanes::<<T as Number>::Word>() }>;
            /// Softmax of rows.
            SOFTMAX softmax(RowwiseParams) for type T in [F16 Bf16 f32 f64]
                = softmax::<T>;
            /// Mean and variance of rows.
            MEAN_VARIANCE mean_variance(RowwiseParams) for type T in [F16 Bf16 f32 f64]
                = mean_variance::<T>;
            /// Softmax of long rows, which several blocks share and wait for.
            SOFTMAX_PARTS softmax_parts(RowPartsParams) for type T in [F16 Bf16 f32 f64]
                = softmax_parts::<T>;
            /// Moments of parts of long rows.
            MOMENTS_OF_PARTS moments_of_parts(RowPartsParams) for type T in [F16 Bf16 f32 f64]
                = moments_of_parts::<T>;
            /// Mean and variance of long rows from the moments of their parts.
            JOIN_MOMENTS join_moments(RowPartsParams) for type T in [f32 f64]
                = join_moments::<T>;
            /// Loads and nothing else.
            PROBE_READ probe_read(ProbeParams) for const X in [1 2 4 8]
                = probe_read::<X>;
            /// Stores and nothing else.
            PROBE_WRITE probe_write(ProbeParams) for const X in [1 2 4 8]
                = probe_write::<X>;
            /// Loads, and stores the same amount.
            PROBE_COPY probe_copy(ProbeParams) for const X in [1 2 4 8], type C in [Unhinted Hinted]
                = probe_copy::<C, X>;
        }
    };
}

pub(crate) use families;

/// The suffix that a value of an axis adds to the names of its entries.
macro_rules! suffix {
    (W B8) => {
        "_b8"
    };
    (W B16) => {
        "_b16"
    };
    (W B32) => {
        "_b32"
    };
    (W B64) => {
        "_b64"
    };
    (W B128) => {
        "_b128"
    };
    (I Narrow) => {
        ""
    };
    (I Wide) => {
        "_wide"
    };
    (C Unhinted) => {
        ""
    };
    (C Hinted) => {
        "_hinted"
    };
    (N $channels:literal) => {
        concat!("_", $channels)
    };
    (X $steps:literal) => {
        concat!("_x", $steps)
    };
    ($axis:ident F16) => {
        "_f16"
    };
    ($axis:ident Bf16) => {
        "_bf16"
    };
    ($axis:ident $type:ident) => {
        concat!("_", stringify!($type))
    };
}

pub(crate) use suffix;
