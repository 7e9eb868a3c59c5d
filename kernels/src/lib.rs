//! The kernels of warpstride: entry points only. Bodies are in [`op`]. What they speak through is in [`thread`] and [`block`],
//! which have what Rust has no word for; [`index`] and [`axes`], which lead from numbers to places; [`quad`] and [`matrix`],
//! which have what a thread moves at a time; [`cache`], which says how long that is to stay near.
#![no_std]
#![feature(abi_ptx, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx)]
// Shuffles have to be intrinsics, see `thread`, and `core` has none of them; the toolchain is pinned.
#![expect(internal_features)]

#[path = "../../src/abi.rs"]
pub mod abi;
pub mod axes;
pub mod block;
pub mod cache;
pub mod grain;
pub mod group;
pub mod index;
pub mod matrix;
pub mod number;
pub mod op;
pub mod quad;
pub mod span;
pub mod thread;

use abi::{
    AffineElementsParams, AffineTileParams, CastParams, ColumnParams, CopyParams, ElementsParams, ElementwiseParams,
    FieldsParams, FillParams, IndexedRowsParams, LinesParams, NormalizeParams, PackedParams, PatchParams, ProbeParams,
    ReduceColumnsParams, ReduceParams, ReduceRowsParams, RowsParams, RowwiseParams, SpinParams, SquareParams,
    StackedTileParams, TransposeParams, VectorTileParams,
};
use block::{Padded, Plain, Staggered};
use cache::{Hinted, Unhinted};
use index::{Narrow, Wide};
use number::{Bf16, F16};
use op::{
    affine_tile, cast, column_loop, copy, deinterleave, deinterleave_quads, elements, elementwise, fill, interleave,
    interleave_quads, mean_variance, naive, normalize, packed, patch, permute_lines, probe_copy, probe_read,
    probe_write, ragged_tile, reduce, reduce_columns, reduce_rows, rows_by_index, small_tile, softmax, spill_lines,
    stacked_tile, swap_tiles, tile, vector_tile,
};
use thread::{B8, B16, B32, B64, B128};

/// A body that never panics has no use for this, but `no_std` asks for it.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// `name = body;`: an entry of that name that runs `body` on its one parameter.
macro_rules! entries {
    ($params:ty: $($name:ident = $body:expr;)*) => {$(
        /// See the family of this name in [`abi`].
        ///
        /// # Safety
        ///
        /// The addresses, lengths and strides describe allocated device memory, which no other thread writes, and the
        /// launch has the block and grid that [`abi`] gives for the parameters.
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $name(params: $params) {
            let body: unsafe fn($params) = $body;
            // SAFETY: the bodies ask for what this entry asks for.
            unsafe { body(params) }
        }
    )*};
}

entries! { CopyParams:
    copy_b128 = copy::<Unhinted>;
    copy_b128_hinted = copy::<Hinted>;
}

entries! { RowsParams:
    rows = op::rows::<Narrow>;
    rows_wide = op::rows::<Wide>;
}

entries! { ElementsParams:
    elements_b8 = elements::<B8, Narrow, Unhinted, 4>;
    elements_b16 = elements::<B16, Narrow, Unhinted, 4>;
    elements_b32 = elements::<B32, Narrow, Unhinted, 4>;
    elements_b64 = elements::<B64, Narrow, Unhinted, 4>;
    elements_b128 = elements::<B128, Narrow, Unhinted, 1>;
    elements_b8_wide = elements::<B8, Wide, Unhinted, 4>;
    elements_b16_wide = elements::<B16, Wide, Unhinted, 4>;
    elements_b32_wide = elements::<B32, Wide, Unhinted, 4>;
    elements_b64_wide = elements::<B64, Wide, Unhinted, 4>;
    elements_b128_wide = elements::<B128, Wide, Unhinted, 1>;
    elements_b128_hinted = elements::<B128, Narrow, Hinted, 1>;
    elements_b128_wide_hinted = elements::<B128, Wide, Hinted, 1>;
}

entries! { PatchParams:
    patch_b8 = patch::<B8>;
    patch_b16 = patch::<B16>;
    patch_b32 = patch::<B32>;
    patch_b64 = patch::<B64>;
    patch_b128 = patch::<B128>;
}

entries! { ColumnParams:
    column_loop_b8 = column_loop::<B8, Narrow>;
    column_loop_b16 = column_loop::<B16, Narrow>;
    column_loop_b32 = column_loop::<B32, Narrow>;
    column_loop_b64 = column_loop::<B64, Narrow>;
    column_loop_b128 = column_loop::<B128, Narrow>;
    column_loop_b8_wide = column_loop::<B8, Wide>;
    column_loop_b16_wide = column_loop::<B16, Wide>;
    column_loop_b32_wide = column_loop::<B32, Wide>;
    column_loop_b64_wide = column_loop::<B64, Wide>;
    column_loop_b128_wide = column_loop::<B128, Wide>;
}

entries! { TransposeParams:
    naive_b8 = naive::<B8, Narrow>;
    naive_b16 = naive::<B16, Narrow>;
    naive_b32 = naive::<B32, Narrow>;
    naive_b64 = naive::<B64, Narrow>;
    naive_b128 = naive::<B128, Narrow>;
    naive_b8_wide = naive::<B8, Wide>;
    naive_b16_wide = naive::<B16, Wide>;
    naive_b32_wide = naive::<B32, Wide>;
    naive_b64_wide = naive::<B64, Wide>;
    naive_b128_wide = naive::<B128, Wide>;
}

entries! { TransposeParams:
    tiled_b8 = tile::<B8, Narrow, Plain>;
    tiled_b16 = tile::<B16, Narrow, Plain>;
    tiled_b32 = tile::<B32, Narrow, Plain>;
    tiled_b64 = tile::<B64, Narrow, Plain>;
    tiled_b128 = tile::<B128, Narrow, Plain>;
    tiled_b8_wide = tile::<B8, Wide, Plain>;
    tiled_b16_wide = tile::<B16, Wide, Plain>;
    tiled_b32_wide = tile::<B32, Wide, Plain>;
    tiled_b64_wide = tile::<B64, Wide, Plain>;
    tiled_b128_wide = tile::<B128, Wide, Plain>;
}

entries! { TransposeParams:
    padded_b8 = tile::<B8, Narrow, Padded>;
    padded_b16 = tile::<B16, Narrow, Padded>;
    padded_b32 = tile::<B32, Narrow, Padded>;
    padded_b64 = tile::<B64, Narrow, Padded>;
    padded_b128 = tile::<B128, Narrow, Padded>;
    padded_b8_wide = tile::<B8, Wide, Padded>;
    padded_b16_wide = tile::<B16, Wide, Padded>;
    padded_b32_wide = tile::<B32, Wide, Padded>;
    padded_b64_wide = tile::<B64, Wide, Padded>;
    padded_b128_wide = tile::<B128, Wide, Padded>;
}

entries! { TransposeParams:
    staggered_b8 = tile::<B8, Narrow, Staggered>;
    staggered_b16 = tile::<B16, Narrow, Staggered>;
    staggered_b32 = tile::<B32, Narrow, Staggered>;
    staggered_b64 = tile::<B64, Narrow, Staggered>;
    staggered_b128 = tile::<B128, Narrow, Staggered>;
    staggered_b8_wide = tile::<B8, Wide, Staggered>;
    staggered_b16_wide = tile::<B16, Wide, Staggered>;
    staggered_b32_wide = tile::<B32, Wide, Staggered>;
    staggered_b64_wide = tile::<B64, Wide, Staggered>;
    staggered_b128_wide = tile::<B128, Wide, Staggered>;
}

entries! { TransposeParams:
    small_tile_b8 = small_tile::<B8, 16>;
    small_tile_b16 = small_tile::<B16, 8>;
    small_tile_b32 = small_tile::<B32, 4>;
    small_tile_b64 = small_tile::<B64, 2>;
    small_tile_b128 = small_tile::<B128, 1>;
}

entries! { SquareParams:
    swap_tiles_b8 = swap_tiles::<B8, Narrow>;
    swap_tiles_b16 = swap_tiles::<B16, Narrow>;
    swap_tiles_b32 = swap_tiles::<B32, Narrow>;
    swap_tiles_b64 = swap_tiles::<B64, Narrow>;
    swap_tiles_b128 = swap_tiles::<B128, Narrow>;
    swap_tiles_b8_wide = swap_tiles::<B8, Wide>;
    swap_tiles_b16_wide = swap_tiles::<B16, Wide>;
    swap_tiles_b32_wide = swap_tiles::<B32, Wide>;
    swap_tiles_b64_wide = swap_tiles::<B64, Wide>;
    swap_tiles_b128_wide = swap_tiles::<B128, Wide>;
}

entries! { LinesParams:
    permute_lines_b8 = permute_lines::<B8, Narrow>;
    permute_lines_b16 = permute_lines::<B16, Narrow>;
    permute_lines_b32 = permute_lines::<B32, Narrow>;
    permute_lines_b64 = permute_lines::<B64, Narrow>;
    permute_lines_b128 = permute_lines::<B128, Narrow>;
    permute_lines_b8_wide = permute_lines::<B8, Wide>;
    permute_lines_b16_wide = permute_lines::<B16, Wide>;
    permute_lines_b32_wide = permute_lines::<B32, Wide>;
    permute_lines_b64_wide = permute_lines::<B64, Wide>;
    permute_lines_b128_wide = permute_lines::<B128, Wide>;
}

entries! { LinesParams:
    spill_lines_b8 = spill_lines::<B8, Narrow>;
    spill_lines_b16 = spill_lines::<B16, Narrow>;
    spill_lines_b32 = spill_lines::<B32, Narrow>;
    spill_lines_b64 = spill_lines::<B64, Narrow>;
    spill_lines_b128 = spill_lines::<B128, Narrow>;
    spill_lines_b8_wide = spill_lines::<B8, Wide>;
    spill_lines_b16_wide = spill_lines::<B16, Wide>;
    spill_lines_b32_wide = spill_lines::<B32, Wide>;
    spill_lines_b64_wide = spill_lines::<B64, Wide>;
    spill_lines_b128_wide = spill_lines::<B128, Wide>;
}

entries! { StackedTileParams:
    stacked_tile_b8 = stacked_tile::<B8, Narrow, Unhinted, 16, 1, 2048>;
    stacked_tile_b16 = stacked_tile::<B16, Narrow, Unhinted, 8, 2, 2048>;
    stacked_tile_b32 = stacked_tile::<B32, Narrow, Unhinted, 4, 2, 1024>;
    stacked_tile_b64 = stacked_tile::<B64, Narrow, Unhinted, 2, 4, 1024>;
    stacked_tile_b8_wide = stacked_tile::<B8, Wide, Unhinted, 16, 1, 2048>;
    stacked_tile_b16_wide = stacked_tile::<B16, Wide, Unhinted, 8, 2, 2048>;
    stacked_tile_b32_wide = stacked_tile::<B32, Wide, Unhinted, 4, 2, 1024>;
    stacked_tile_b64_wide = stacked_tile::<B64, Wide, Unhinted, 2, 4, 1024>;
    stacked_tile_b8_hinted = stacked_tile::<B8, Narrow, Hinted, 16, 1, 2048>;
    stacked_tile_b16_hinted = stacked_tile::<B16, Narrow, Hinted, 8, 2, 2048>;
    stacked_tile_b32_hinted = stacked_tile::<B32, Narrow, Hinted, 4, 2, 1024>;
    stacked_tile_b64_hinted = stacked_tile::<B64, Narrow, Hinted, 2, 4, 1024>;
}

entries! { SpinParams:
    spin = op::spin;
}

entries! { VectorTileParams:
    vector_tile_b8 = vector_tile::<B8, Narrow, Unhinted, 16, 1, 2048>;
    vector_tile_b16 = vector_tile::<B16, Narrow, Unhinted, 8, 2, 2048>;
    vector_tile_b32 = vector_tile::<B32, Narrow, Unhinted, 4, 2, 1024>;
    vector_tile_b64 = vector_tile::<B64, Narrow, Unhinted, 2, 4, 1024>;
    vector_tile_b128 = vector_tile::<B128, Narrow, Unhinted, 1, 8, 1024>;
    vector_tile_b8_wide = vector_tile::<B8, Wide, Unhinted, 16, 1, 2048>;
    vector_tile_b16_wide = vector_tile::<B16, Wide, Unhinted, 8, 2, 2048>;
    vector_tile_b32_wide = vector_tile::<B32, Wide, Unhinted, 4, 2, 1024>;
    vector_tile_b64_wide = vector_tile::<B64, Wide, Unhinted, 2, 4, 1024>;
    vector_tile_b128_wide = vector_tile::<B128, Wide, Unhinted, 1, 8, 1024>;
    vector_tile_b8_hinted = vector_tile::<B8, Narrow, Hinted, 16, 1, 2048>;
    vector_tile_b16_hinted = vector_tile::<B16, Narrow, Hinted, 8, 2, 2048>;
    vector_tile_b32_hinted = vector_tile::<B32, Narrow, Hinted, 4, 2, 1024>;
    vector_tile_b64_hinted = vector_tile::<B64, Narrow, Hinted, 2, 4, 1024>;
    vector_tile_b128_hinted = vector_tile::<B128, Narrow, Hinted, 1, 8, 1024>;
    vector_tile_b8_wide_hinted = vector_tile::<B8, Wide, Hinted, 16, 1, 2048>;
    vector_tile_b16_wide_hinted = vector_tile::<B16, Wide, Hinted, 8, 2, 2048>;
    vector_tile_b32_wide_hinted = vector_tile::<B32, Wide, Hinted, 4, 2, 1024>;
    vector_tile_b64_wide_hinted = vector_tile::<B64, Wide, Hinted, 2, 4, 1024>;
    vector_tile_b128_wide_hinted = vector_tile::<B128, Wide, Hinted, 1, 8, 1024>;
}

entries! { VectorTileParams:
    ragged_tile_b8 = ragged_tile::<B8, Narrow, Unhinted, 16, 1, 2048>;
    ragged_tile_b16 = ragged_tile::<B16, Narrow, Unhinted, 8, 1, 1024>;
    ragged_tile_b32 = ragged_tile::<B32, Narrow, Unhinted, 4, 1, 512>;
    ragged_tile_b64 = ragged_tile::<B64, Narrow, Unhinted, 2, 1, 256>;
    ragged_tile_b128 = ragged_tile::<B128, Narrow, Unhinted, 1, 2, 256>;
    ragged_tile_b8_wide = ragged_tile::<B8, Wide, Unhinted, 16, 1, 2048>;
    ragged_tile_b16_wide = ragged_tile::<B16, Wide, Unhinted, 8, 1, 1024>;
    ragged_tile_b32_wide = ragged_tile::<B32, Wide, Unhinted, 4, 1, 512>;
    ragged_tile_b64_wide = ragged_tile::<B64, Wide, Unhinted, 2, 1, 256>;
    ragged_tile_b128_wide = ragged_tile::<B128, Wide, Unhinted, 1, 2, 256>;
    ragged_tile_b8_hinted = ragged_tile::<B8, Narrow, Hinted, 16, 1, 2048>;
    ragged_tile_b16_hinted = ragged_tile::<B16, Narrow, Hinted, 8, 1, 1024>;
    ragged_tile_b32_hinted = ragged_tile::<B32, Narrow, Hinted, 4, 1, 512>;
    ragged_tile_b64_hinted = ragged_tile::<B64, Narrow, Hinted, 2, 1, 256>;
    ragged_tile_b128_hinted = ragged_tile::<B128, Narrow, Hinted, 1, 2, 256>;
    ragged_tile_b8_wide_hinted = ragged_tile::<B8, Wide, Hinted, 16, 1, 2048>;
    ragged_tile_b16_wide_hinted = ragged_tile::<B16, Wide, Hinted, 8, 1, 1024>;
    ragged_tile_b32_wide_hinted = ragged_tile::<B32, Wide, Hinted, 4, 1, 512>;
    ragged_tile_b64_wide_hinted = ragged_tile::<B64, Wide, Hinted, 2, 1, 256>;
    ragged_tile_b128_wide_hinted = ragged_tile::<B128, Wide, Hinted, 1, 2, 256>;
}

entries! { FieldsParams:
    deinterleave_b8 = deinterleave::<B8, Narrow, 16>;
    deinterleave_b16 = deinterleave::<B16, Narrow, 16>;
    deinterleave_b32 = deinterleave::<B32, Narrow, 16>;
    deinterleave_b64 = deinterleave::<B64, Narrow, 8>;
    deinterleave_b8_wide = deinterleave::<B8, Wide, 16>;
    deinterleave_b16_wide = deinterleave::<B16, Wide, 16>;
    deinterleave_b32_wide = deinterleave::<B32, Wide, 16>;
    deinterleave_b64_wide = deinterleave::<B64, Wide, 8>;
    interleave_b8 = interleave::<B8, Narrow, 8>;
    interleave_b16 = interleave::<B16, Narrow, 8>;
    interleave_b32 = interleave::<B32, Narrow, 16>;
    interleave_b64 = interleave::<B64, Narrow, 8>;
    interleave_b8_wide = interleave::<B8, Wide, 8>;
    interleave_b16_wide = interleave::<B16, Wide, 8>;
    interleave_b32_wide = interleave::<B32, Wide, 16>;
    interleave_b64_wide = interleave::<B64, Wide, 8>;
}

entries! { FieldsParams:
    deinterleave_quads_b8 = deinterleave_quads::<B8, Unhinted>;
    deinterleave_quads_b16 = deinterleave_quads::<B16, Unhinted>;
    deinterleave_quads_b32 = deinterleave_quads::<B32, Unhinted>;
    deinterleave_quads_b64 = deinterleave_quads::<B64, Unhinted>;
    deinterleave_quads_b8_hinted = deinterleave_quads::<B8, Hinted>;
    deinterleave_quads_b16_hinted = deinterleave_quads::<B16, Hinted>;
    deinterleave_quads_b32_hinted = deinterleave_quads::<B32, Hinted>;
    deinterleave_quads_b64_hinted = deinterleave_quads::<B64, Hinted>;
    interleave_quads_b8 = interleave_quads::<B8, Unhinted>;
    interleave_quads_b16 = interleave_quads::<B16, Unhinted>;
    interleave_quads_b32 = interleave_quads::<B32, Unhinted>;
    interleave_quads_b64 = interleave_quads::<B64, Unhinted>;
    interleave_quads_b8_hinted = interleave_quads::<B8, Hinted>;
    interleave_quads_b16_hinted = interleave_quads::<B16, Hinted>;
    interleave_quads_b32_hinted = interleave_quads::<B32, Hinted>;
    interleave_quads_b64_hinted = interleave_quads::<B64, Hinted>;
}

entries! { PackedParams:
    packed_b8 = packed::<B8, Narrow, Unhinted>;
    packed_b16 = packed::<B16, Narrow, Unhinted>;
    packed_b32 = packed::<B32, Narrow, Unhinted>;
    packed_b64 = packed::<B64, Narrow, Unhinted>;
    packed_b128 = packed::<B128, Narrow, Unhinted>;
    packed_b8_wide = packed::<B8, Wide, Unhinted>;
    packed_b16_wide = packed::<B16, Wide, Unhinted>;
    packed_b32_wide = packed::<B32, Wide, Unhinted>;
    packed_b64_wide = packed::<B64, Wide, Unhinted>;
    packed_b128_wide = packed::<B128, Wide, Unhinted>;
    packed_b8_hinted = packed::<B8, Narrow, Hinted>;
    packed_b16_hinted = packed::<B16, Narrow, Hinted>;
    packed_b32_hinted = packed::<B32, Narrow, Hinted>;
    packed_b64_hinted = packed::<B64, Narrow, Hinted>;
    packed_b128_hinted = packed::<B128, Narrow, Hinted>;
}

entries! { FillParams:
    fill_b128 = fill;
}

entries! { ElementwiseParams:
    mul_f16 = elementwise::<F16, op::Mul, Unhinted>;
    mul_bf16 = elementwise::<Bf16, op::Mul, Unhinted>;
    mul_f32 = elementwise::<f32, op::Mul, Unhinted>;
    mul_f64 = elementwise::<f64, op::Mul, Unhinted>;
    mul_f16_hinted = elementwise::<F16, op::Mul, Hinted>;
    mul_bf16_hinted = elementwise::<Bf16, op::Mul, Hinted>;
    mul_f32_hinted = elementwise::<f32, op::Mul, Hinted>;
    mul_f64_hinted = elementwise::<f64, op::Mul, Hinted>;
}

entries! { ElementwiseParams:
    add_f16 = elementwise::<F16, op::Add, Unhinted>;
    add_bf16 = elementwise::<Bf16, op::Add, Unhinted>;
    add_f32 = elementwise::<f32, op::Add, Unhinted>;
    add_f64 = elementwise::<f64, op::Add, Unhinted>;
    add_f16_hinted = elementwise::<F16, op::Add, Hinted>;
    add_bf16_hinted = elementwise::<Bf16, op::Add, Hinted>;
    add_f32_hinted = elementwise::<f32, op::Add, Hinted>;
    add_f64_hinted = elementwise::<f64, op::Add, Hinted>;
}

entries! { ElementwiseParams:
    triad_f16 = elementwise::<F16, op::Triad, Unhinted>;
    triad_bf16 = elementwise::<Bf16, op::Triad, Unhinted>;
    triad_f32 = elementwise::<f32, op::Triad, Unhinted>;
    triad_f64 = elementwise::<f64, op::Triad, Unhinted>;
    triad_f16_hinted = elementwise::<F16, op::Triad, Hinted>;
    triad_bf16_hinted = elementwise::<Bf16, op::Triad, Hinted>;
    triad_f32_hinted = elementwise::<f32, op::Triad, Hinted>;
    triad_f64_hinted = elementwise::<f64, op::Triad, Hinted>;
}

entries! { ElementwiseParams:
    nstream_f16 = elementwise::<F16, op::NStream, Unhinted>;
    nstream_bf16 = elementwise::<Bf16, op::NStream, Unhinted>;
    nstream_f32 = elementwise::<f32, op::NStream, Unhinted>;
    nstream_f64 = elementwise::<f64, op::NStream, Unhinted>;
}

entries! { ElementwiseParams:
    axpy_f16 = elementwise::<F16, op::Axpy, Unhinted>;
    axpy_bf16 = elementwise::<Bf16, op::Axpy, Unhinted>;
    axpy_f32 = elementwise::<f32, op::Axpy, Unhinted>;
    axpy_f64 = elementwise::<f64, op::Axpy, Unhinted>;
}

entries! { ReduceParams:
    sum_f16 = reduce::<F16, op::Sum>;
    sum_bf16 = reduce::<Bf16, op::Sum>;
    sum_f32 = reduce::<f32, op::Sum>;
    sum_f64 = reduce::<f64, op::Sum>;
}

entries! { ReduceParams:
    dot_f16 = reduce::<F16, op::Dot>;
    dot_bf16 = reduce::<Bf16, op::Dot>;
    dot_f32 = reduce::<f32, op::Dot>;
    dot_f64 = reduce::<f64, op::Dot>;
}

entries! { ReduceParams:
    min_f16 = reduce::<F16, op::Min>;
    min_bf16 = reduce::<Bf16, op::Min>;
    min_f32 = reduce::<f32, op::Min>;
    min_f64 = reduce::<f64, op::Min>;
}

entries! { ReduceParams:
    max_f16 = reduce::<F16, op::Max>;
    max_bf16 = reduce::<Bf16, op::Max>;
    max_f32 = reduce::<f32, op::Max>;
    max_f64 = reduce::<f64, op::Max>;
}

entries! { NormalizeParams:
    normalize_1_f16 = normalize::<F16, 1, 8>;
    normalize_1_bf16 = normalize::<Bf16, 1, 8>;
    normalize_1_f32 = normalize::<f32, 1, 4>;
    normalize_2_f16 = normalize::<F16, 2, 16>;
    normalize_2_bf16 = normalize::<Bf16, 2, 16>;
    normalize_2_f32 = normalize::<f32, 2, 8>;
    normalize_3_f16 = normalize::<F16, 3, 24>;
    normalize_3_bf16 = normalize::<Bf16, 3, 24>;
    normalize_3_f32 = normalize::<f32, 3, 12>;
    normalize_4_f16 = normalize::<F16, 4, 32>;
    normalize_4_bf16 = normalize::<Bf16, 4, 32>;
    normalize_4_f32 = normalize::<f32, 4, 16>;
}

entries! { AffineTileParams:
    affine_tile_u8_f16 = affine_tile::<u8, F16, 16, 8, 1, 2048>;
    affine_tile_u8_bf16 = affine_tile::<u8, Bf16, 16, 8, 1, 2048>;
    affine_tile_u8_f32 = affine_tile::<u8, f32, 16, 4, 1, 2048>;
    affine_tile_f16_f16 = affine_tile::<F16, F16, 8, 8, 2, 2048>;
    affine_tile_f16_bf16 = affine_tile::<F16, Bf16, 8, 8, 2, 2048>;
    affine_tile_f16_f32 = affine_tile::<F16, f32, 8, 4, 2, 2048>;
    affine_tile_bf16_f16 = affine_tile::<Bf16, F16, 8, 8, 2, 2048>;
    affine_tile_bf16_bf16 = affine_tile::<Bf16, Bf16, 8, 8, 2, 2048>;
    affine_tile_bf16_f32 = affine_tile::<Bf16, f32, 8, 4, 2, 2048>;
    affine_tile_f32_f16 = affine_tile::<f32, F16, 4, 8, 2, 1024>;
    affine_tile_f32_bf16 = affine_tile::<f32, Bf16, 4, 8, 2, 1024>;
    affine_tile_f32_f32 = affine_tile::<f32, f32, 4, 4, 2, 1024>;
    affine_tile_f64_f64 = affine_tile::<f64, f64, 2, 2, 4, 1024>;
    affine_padded = op::affine_padded;
    affine_padded_f64 = op::affine_padded_f64;
}

entries! { AffineElementsParams:
    affine_elements = op::affine_elements::<Narrow>;
    affine_elements_wide = op::affine_elements::<Wide>;
    affine_elements_f64 = op::affine_elements_f64::<Narrow>;
    affine_elements_f64_wide = op::affine_elements_f64::<Wide>;
}

entries! { CastParams:
    cast_u8_u16 = cast::<u8, u16>;
    cast_u8_f16 = cast::<u8, F16>;
    cast_u8_bf16 = cast::<u8, Bf16>;
    cast_u8_u32 = cast::<u8, u32>;
    cast_u8_f32 = cast::<u8, f32>;
    cast_u8_u64 = cast::<u8, u64>;
    cast_u8_f64 = cast::<u8, f64>;
}

entries! { CastParams:
    cast_i8_u16 = cast::<i8, u16>;
    cast_i8_f16 = cast::<i8, F16>;
    cast_i8_bf16 = cast::<i8, Bf16>;
    cast_i8_u32 = cast::<i8, u32>;
    cast_i8_f32 = cast::<i8, f32>;
    cast_i8_u64 = cast::<i8, u64>;
    cast_i8_f64 = cast::<i8, f64>;
}

entries! { CastParams:
    cast_u16_u8 = cast::<u16, u8>;
    cast_u16_f16 = cast::<u16, F16>;
    cast_u16_bf16 = cast::<u16, Bf16>;
    cast_u16_u32 = cast::<u16, u32>;
    cast_u16_f32 = cast::<u16, f32>;
    cast_u16_u64 = cast::<u16, u64>;
    cast_u16_f64 = cast::<u16, f64>;
}

entries! { CastParams:
    cast_i16_f16 = cast::<i16, F16>;
    cast_i16_bf16 = cast::<i16, Bf16>;
    cast_i16_u32 = cast::<i16, u32>;
    cast_i16_f32 = cast::<i16, f32>;
    cast_i16_u64 = cast::<i16, u64>;
    cast_i16_f64 = cast::<i16, f64>;
}

entries! { CastParams:
    cast_f16_u8 = cast::<F16, u8>;
    cast_f16_i8 = cast::<F16, i8>;
    cast_f16_u16 = cast::<F16, u16>;
    cast_f16_i16 = cast::<F16, i16>;
    cast_f16_bf16 = cast::<F16, Bf16>;
    cast_f16_u32 = cast::<F16, u32>;
    cast_f16_i32 = cast::<F16, i32>;
    cast_f16_f32 = cast::<F16, f32>;
    cast_f16_u64 = cast::<F16, u64>;
    cast_f16_i64 = cast::<F16, i64>;
    cast_f16_f64 = cast::<F16, f64>;
}

entries! { CastParams:
    cast_bf16_u8 = cast::<Bf16, u8>;
    cast_bf16_i8 = cast::<Bf16, i8>;
    cast_bf16_u16 = cast::<Bf16, u16>;
    cast_bf16_i16 = cast::<Bf16, i16>;
    cast_bf16_f16 = cast::<Bf16, F16>;
    cast_bf16_u32 = cast::<Bf16, u32>;
    cast_bf16_i32 = cast::<Bf16, i32>;
    cast_bf16_f32 = cast::<Bf16, f32>;
    cast_bf16_u64 = cast::<Bf16, u64>;
    cast_bf16_i64 = cast::<Bf16, i64>;
    cast_bf16_f64 = cast::<Bf16, f64>;
}

entries! { CastParams:
    cast_u32_u8 = cast::<u32, u8>;
    cast_u32_u16 = cast::<u32, u16>;
    cast_u32_f16 = cast::<u32, F16>;
    cast_u32_bf16 = cast::<u32, Bf16>;
    cast_u32_f32 = cast::<u32, f32>;
    cast_u32_u64 = cast::<u32, u64>;
    cast_u32_f64 = cast::<u32, f64>;
}

entries! { CastParams:
    cast_i32_f16 = cast::<i32, F16>;
    cast_i32_bf16 = cast::<i32, Bf16>;
    cast_i32_f32 = cast::<i32, f32>;
    cast_i32_u64 = cast::<i32, u64>;
    cast_i32_f64 = cast::<i32, f64>;
}

entries! { CastParams:
    cast_f32_u8 = cast::<f32, u8>;
    cast_f32_i8 = cast::<f32, i8>;
    cast_f32_u16 = cast::<f32, u16>;
    cast_f32_i16 = cast::<f32, i16>;
    cast_f32_f16 = cast::<f32, F16>;
    cast_f32_bf16 = cast::<f32, Bf16>;
    cast_f32_u32 = cast::<f32, u32>;
    cast_f32_i32 = cast::<f32, i32>;
    cast_f32_u64 = cast::<f32, u64>;
    cast_f32_i64 = cast::<f32, i64>;
    cast_f32_f64 = cast::<f32, f64>;
}

entries! { CastParams:
    cast_u64_u8 = cast::<u64, u8>;
    cast_u64_u16 = cast::<u64, u16>;
    cast_u64_f16 = cast::<u64, F16>;
    cast_u64_bf16 = cast::<u64, Bf16>;
    cast_u64_u32 = cast::<u64, u32>;
    cast_u64_f32 = cast::<u64, f32>;
    cast_u64_f64 = cast::<u64, f64>;
}

entries! { CastParams:
    cast_i64_f16 = cast::<i64, F16>;
    cast_i64_bf16 = cast::<i64, Bf16>;
    cast_i64_f32 = cast::<i64, f32>;
    cast_i64_f64 = cast::<i64, f64>;
}

entries! { CastParams:
    cast_f64_u8 = cast::<f64, u8>;
    cast_f64_i8 = cast::<f64, i8>;
    cast_f64_u16 = cast::<f64, u16>;
    cast_f64_i16 = cast::<f64, i16>;
    cast_f64_f16 = cast::<f64, F16>;
    cast_f64_bf16 = cast::<f64, Bf16>;
    cast_f64_u32 = cast::<f64, u32>;
    cast_f64_i32 = cast::<f64, i32>;
    cast_f64_f32 = cast::<f64, f32>;
    cast_f64_u64 = cast::<f64, u64>;
    cast_f64_i64 = cast::<f64, i64>;
}

entries! { IndexedRowsParams:
    gather_b8 = rows_by_index::<B8, false>;
    gather_b16 = rows_by_index::<B16, false>;
    gather_b32 = rows_by_index::<B32, false>;
    gather_b64 = rows_by_index::<B64, false>;
    gather_b128 = rows_by_index::<B128, false>;
}

entries! { IndexedRowsParams:
    scatter_b8 = rows_by_index::<B8, true>;
    scatter_b16 = rows_by_index::<B16, true>;
    scatter_b32 = rows_by_index::<B32, true>;
    scatter_b64 = rows_by_index::<B64, true>;
    scatter_b128 = rows_by_index::<B128, true>;
}

entries! { ReduceRowsParams:
    sum_rows_f16 = reduce_rows::<F16, op::Sum>;
    sum_rows_bf16 = reduce_rows::<Bf16, op::Sum>;
    sum_rows_f32 = reduce_rows::<f32, op::Sum>;
    sum_rows_f64 = reduce_rows::<f64, op::Sum>;
}

entries! { ReduceColumnsParams:
    sum_columns_f16 = reduce_columns::<F16, op::Sum>;
    sum_columns_bf16 = reduce_columns::<Bf16, op::Sum>;
    sum_columns_f32 = reduce_columns::<f32, op::Sum>;
    sum_columns_f64 = reduce_columns::<f64, op::Sum>;
}

entries! { ReduceRowsParams:
    min_rows_f16 = reduce_rows::<F16, op::Min>;
    min_rows_bf16 = reduce_rows::<Bf16, op::Min>;
    min_rows_f32 = reduce_rows::<f32, op::Min>;
    min_rows_f64 = reduce_rows::<f64, op::Min>;
}

entries! { ReduceColumnsParams:
    min_columns_f16 = reduce_columns::<F16, op::Min>;
    min_columns_bf16 = reduce_columns::<Bf16, op::Min>;
    min_columns_f32 = reduce_columns::<f32, op::Min>;
    min_columns_f64 = reduce_columns::<f64, op::Min>;
}

entries! { ReduceRowsParams:
    max_rows_f16 = reduce_rows::<F16, op::Max>;
    max_rows_bf16 = reduce_rows::<Bf16, op::Max>;
    max_rows_f32 = reduce_rows::<f32, op::Max>;
    max_rows_f64 = reduce_rows::<f64, op::Max>;
}

entries! { ReduceColumnsParams:
    max_columns_f16 = reduce_columns::<F16, op::Max>;
    max_columns_bf16 = reduce_columns::<Bf16, op::Max>;
    max_columns_f32 = reduce_columns::<f32, op::Max>;
    max_columns_f64 = reduce_columns::<f64, op::Max>;
}

entries! { ReduceRowsParams:
    argmax_rows_f16 = reduce_rows::<F16, op::ArgMax>;
    argmax_rows_bf16 = reduce_rows::<Bf16, op::ArgMax>;
    argmax_rows_f32 = reduce_rows::<f32, op::ArgMax>;
    argmax_rows_f64 = reduce_rows::<f64, op::ArgMax>;
}

entries! { ReduceColumnsParams:
    argmax_columns_f16 = reduce_columns::<F16, op::ArgMax>;
    argmax_columns_bf16 = reduce_columns::<Bf16, op::ArgMax>;
    argmax_columns_f32 = reduce_columns::<f32, op::ArgMax>;
    argmax_columns_f64 = reduce_columns::<f64, op::ArgMax>;
}

entries! { RowwiseParams:
    softmax_f16 = softmax::<F16>;
    softmax_bf16 = softmax::<Bf16>;
    softmax_f32 = softmax::<f32>;
    softmax_f64 = softmax::<f64>;
}

entries! { RowwiseParams:
    mean_variance_f16 = mean_variance::<F16>;
    mean_variance_bf16 = mean_variance::<Bf16>;
    mean_variance_f32 = mean_variance::<f32>;
    mean_variance_f64 = mean_variance::<f64>;
}

entries! { ProbeParams:
    probe_read_x1 = probe_read::<1>;
    probe_read_x2 = probe_read::<2>;
    probe_read_x4 = probe_read::<4>;
    probe_read_x8 = probe_read::<8>;
    probe_write_x1 = probe_write::<1>;
    probe_write_x2 = probe_write::<2>;
    probe_write_x4 = probe_write::<4>;
    probe_write_x8 = probe_write::<8>;
    probe_copy_x1 = probe_copy::<Unhinted, 1>;
    probe_copy_x2 = probe_copy::<Unhinted, 2>;
    probe_copy_x4 = probe_copy::<Unhinted, 4>;
    probe_copy_x8 = probe_copy::<Unhinted, 8>;
    probe_copy_x1_hinted = probe_copy::<Hinted, 1>;
    probe_copy_x2_hinted = probe_copy::<Hinted, 2>;
    probe_copy_x4_hinted = probe_copy::<Hinted, 4>;
    probe_copy_x8_hinted = probe_copy::<Hinted, 8>;
}
