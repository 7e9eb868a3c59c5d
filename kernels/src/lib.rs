//! The kernels of warpstride: entry points only, which [`abi`]'s table lists. Bodies are in [`op`].
//! What they speak through is in [`thread`] and [`block`], which have what Rust has no word for;
//! [`index`] and [`axes`], which lead from numbers to places; [`quad`] and [`matrix`], which have
//! what a thread moves at a time; [`cache`], which says how long that is to stay near.
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
    StackedTileParams, TransposeParams, VectorTileParams, elements_per_thread, ragged_tile_squares, tile_quads,
    vector_tile_squares,
};
use block::{Padded, Plain, Staggered};
use cache::{Hinted, Unhinted};
use index::{Narrow, Wide};
use number::{Bf16, F16, Number};
use op::{
    Scalar, affine_tile, cast, column_loop, copy, deinterleave, deinterleave_quads, deinterleave_steps, elements,
    elementwise, fill, interleave, interleave_quads, interleave_steps, mean_variance, naive, normalize, packed, patch,
    permute_lines, probe_copy, probe_read, probe_write, ragged_tile, reduce, reduce_columns, reduce_rows,
    rows_by_index, small_tile, softmax, spill_lines, stacked_tile, swap_tiles, tile, vector_tile,
};
use quad::Lanes;
use thread::{B8, B16, B32, B64, B128, Word};

/// A body that never panics has no use for this, but `no_std` asks for it.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// The entries of the table's families, the last axis outermost.
macro_rules! entries {
    ($($(#[$doc:meta])* $family:ident $stem:ident($params:ident)
        $(for $($($kind:tt $axis:ident in $values:tt),+)and+)?
        $(except $($gap:ident in $without:tt),+ because $reason:literal)* = $body:expr;)*) => {$(
        entries! { @family [$stem $params { $body }] $($([$($kind $axis $values)+])+)? }
    )*};
    (@family $entry:tt) => { entries! { @entry $entry [] } };
    (@family $entry:tt $([$($kind:tt $axis:ident $values:tt)+])+) => {
        $(entries! { @reversed $entry [] $([$kind $axis $values])+ })+
    };
    (@reversed $entry:tt [$($axes:tt)*] $axis:tt $($rest:tt)*) => {
        entries! { @reversed $entry [$axis $($axes)*] $($rest)* }
    };
    (@reversed $entry:tt $axes:tt) => { entries! { @axes $entry [] $axes } };
    (@axes $entry:tt $chosen:tt []) => { entries! { @entry $entry $chosen } };
    (@axes $entry:tt $chosen:tt [[$kind:tt $axis:ident [$($value:tt)*]] $($rest:tt)*]) => {
        entries! { @each $entry $chosen $kind $axis [$($value)*] [$($rest)*] }
    };
    (@each $entry:tt $chosen:tt $kind:tt $axis:ident [$($value:tt)*] $rest:tt) => {
        $(entries! { @choose $entry $chosen [$kind $axis $value] $rest })*
    };
    (@choose $entry:tt [$($chosen:tt)*] $choice:tt $rest:tt) => {
        entries! { @axes $entry [$choice $($chosen)*] $rest }
    };
    (@entry [$stem:ident $params:ident { $body:expr }] [$([$kind:tt $axis:ident $value:tt])*]) => {
        const _: () = {
            $(choose! { $kind $axis $value })*
            /// See the family of this name in [`abi`].
            ///
            /// # Safety
            ///
            /// The addresses, lengths and strides describe allocated device memory, which no other
            /// thread writes, and the launch has the block and grid that [`abi`] gives for the
            /// parameters.
            #[unsafe(export_name = concat!(stringify!($stem) $(, abi::suffix!($axis $value))*))]
            pub unsafe extern "ptx-kernel" fn entry(params: $params) {
                let body: unsafe fn($params) = $body;
                // SAFETY: the bodies ask for what this entry asks for.
                unsafe { body(params) }
            }
        };
    };
}

/// The value of an axis under the axis' name.
macro_rules! choose {
    (type $axis:ident $value:ident) => {
        #[allow(dead_code)]
        type $axis = $value;
    };
    (const $axis:ident $value:literal) => {
        const $axis: usize = $value;
    };
}

abi::families! { entries }
