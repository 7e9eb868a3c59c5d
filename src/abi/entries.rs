//! The entries, their families, and the shape of a launch.

use core::fmt;

use super::*;

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
    COPY_HINTED(CopyParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        [] ["copy_b128_hinted"];
    ROWS(RowsParams): /// Runs of bytes that start anywhere on either side.
        ["rows"] ["rows_wide"];
    ELEMENTS(ElementsParams): /// Any layout to any layout, element by element, in the destination's order.
        ["elements_b8" "elements_b16" "elements_b32" "elements_b64" "elements_b128"]
        ["elements_b8_wide" "elements_b16_wide" "elements_b32_wide" "elements_b64_wide" "elements_b128_wide"];
    ELEMENTS_HINTED(ElementsParams): /// The same by eviction policies, of 16 bytes alone: what is stored goes first, and what is loaded last.
        ["elements_b128_hinted"] ["elements_b128_wide_hinted"];
    PATCH(PatchParams): /// Small arrays of any layout, element by element, in patches. Narrow only: what does not fit is not small.
        ["patch_b8" "patch_b16" "patch_b32" "patch_b64" "patch_b128"] [];
    SMALL_TILE(TransposeParams): /// Single matrices whose rows start on 16 bytes and hold whole quads, on both sides. Narrow only, as above.
        ["small_tile_b8" "small_tile_b16" "small_tile_b32" "small_tile_b64" "small_tile_b128"] [];
    VECTOR_TILE(VectorTileParams): /// Transposes whose rows start on 16 bytes and hold whole quads, on both sides.
        ["vector_tile_b8" "vector_tile_b16" "vector_tile_b32" "vector_tile_b64" "vector_tile_b128"]
        ["vector_tile_b8_wide" "vector_tile_b16_wide" "vector_tile_b32_wide" "vector_tile_b64_wide" "vector_tile_b128_wide"];
    VECTOR_TILE_HINTED(VectorTileParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        ["vector_tile_b8_hinted" "vector_tile_b16_hinted" "vector_tile_b32_hinted" "vector_tile_b64_hinted" "vector_tile_b128_hinted"]
        ["vector_tile_b8_wide_hinted" "vector_tile_b16_wide_hinted" "vector_tile_b32_wide_hinted" "vector_tile_b64_wide_hinted" "vector_tile_b128_wide_hinted"];
    RAGGED_TILE(VectorTileParams): /// Transposes whose rows start and end anywhere.
        ["ragged_tile_b8" "ragged_tile_b16" "ragged_tile_b32" "ragged_tile_b64" "ragged_tile_b128"]
        ["ragged_tile_b8_wide" "ragged_tile_b16_wide" "ragged_tile_b32_wide" "ragged_tile_b64_wide" "ragged_tile_b128_wide"];
    RAGGED_TILE_HINTED(VectorTileParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        ["ragged_tile_b8_hinted" "ragged_tile_b16_hinted" "ragged_tile_b32_hinted" "ragged_tile_b64_hinted" "ragged_tile_b128_hinted"]
        ["ragged_tile_b8_wide_hinted" "ragged_tile_b16_wide_hinted" "ragged_tile_b32_wide_hinted" "ragged_tile_b64_wide_hinted" "ragged_tile_b128_wide_hinted"];
    STACKED_TILE(StackedTileParams): /// [`VECTOR_TILE`] of batches of small matrices. Those of 16-byte elements are for tiles, `packed` and `elements`.
        ["stacked_tile_b8" "stacked_tile_b16" "stacked_tile_b32" "stacked_tile_b64"]
        ["stacked_tile_b8_wide" "stacked_tile_b16_wide" "stacked_tile_b32_wide" "stacked_tile_b64_wide"];
    STACKED_TILE_HINTED(StackedTileParams): /// The same by eviction policies: what is stored goes first, and what is loaded last. Narrow only.
        ["stacked_tile_b8_hinted" "stacked_tile_b16_hinted" "stacked_tile_b32_hinted" "stacked_tile_b64_hinted"] [];
    DEINTERLEAVE(FieldsParams): /// Packed structs of few fields to planes. Fields of 16 bytes are for tiles.
        ["deinterleave_b8" "deinterleave_b16" "deinterleave_b32" "deinterleave_b64"]
        ["deinterleave_b8_wide" "deinterleave_b16_wide" "deinterleave_b32_wide" "deinterleave_b64_wide"];
    INTERLEAVE(FieldsParams): /// Planes to packed structs of few fields.
        ["interleave_b8" "interleave_b16" "interleave_b32" "interleave_b64"]
        ["interleave_b8_wide" "interleave_b16_wide" "interleave_b32_wide" "interleave_b64_wide"];
    DEINTERLEAVE_QUADS(FieldsParams): /// [`DEINTERLEAVE`] by 16 bytes a lane, where images and planes start on them; 64-bit, as the following.
        [] ["deinterleave_quads_b8" "deinterleave_quads_b16" "deinterleave_quads_b32" "deinterleave_quads_b64"];
    DEINTERLEAVE_QUADS_HINTED(FieldsParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        [] ["deinterleave_quads_b8_hinted" "deinterleave_quads_b16_hinted" "deinterleave_quads_b32_hinted" "deinterleave_quads_b64_hinted"];
    INTERLEAVE_QUADS(FieldsParams): /// [`INTERLEAVE`] by 16 bytes a lane.
        [] ["interleave_quads_b8" "interleave_quads_b16" "interleave_quads_b32" "interleave_quads_b64"];
    INTERLEAVE_QUADS_HINTED(FieldsParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        [] ["interleave_quads_b8_hinted" "interleave_quads_b16_hinted" "interleave_quads_b32_hinted" "interleave_quads_b64_hinted"];
    PACKED(PackedParams): /// Tiles of several axes, each side of which is moved in its own runs.
        ["packed_b8" "packed_b16" "packed_b32" "packed_b64" "packed_b128"]
        ["packed_b8_wide" "packed_b16_wide" "packed_b32_wide" "packed_b64_wide" "packed_b128_wide"];
    PACKED_HINTED(PackedParams): /// The same by eviction policies: what is stored goes first, and what is loaded last. Narrow only.
        ["packed_b8_hinted" "packed_b16_hinted" "packed_b32_hinted" "packed_b64_hinted" "packed_b128_hinted"] [];
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
    MUL_HINTED(ElementwiseParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        [] ["mul_f16_hinted" "mul_bf16_hinted" "mul_f32_hinted" "mul_f64_hinted"];
    ADD(ElementwiseParams): /// The sum of two arrays.
        [] ["add_f16" "add_bf16" "add_f32" "add_f64"];
    ADD_HINTED(ElementwiseParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        [] ["add_f16_hinted" "add_bf16_hinted" "add_f32_hinted" "add_f64_hinted"];
    TRIAD(ElementwiseParams): /// An array and a scaled one.
        [] ["triad_f16" "triad_bf16" "triad_f32" "triad_f64"];
    TRIAD_HINTED(ElementwiseParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        [] ["triad_f16_hinted" "triad_bf16_hinted" "triad_f32_hinted" "triad_f64_hinted"];
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
    PROBE_COPY_HINTED(ProbeParams): /// The same by eviction policies: what is stored goes first, and what is loaded last.
        [] ["probe_copy_x1_hinted" "probe_copy_x2_hinted" "probe_copy_x4_hinted" "probe_copy_x8_hinted"];
    SPIN(SpinParams): /// The gate that measurements queue behind.
        [] ["spin"];
}
