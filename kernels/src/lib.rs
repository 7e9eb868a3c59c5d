//! The entry points of warpstride's kernels, which [`abi`]'s table lists. Their bodies are in
//! [`movement`], [`arithmetic`], [`conversion`] and [`probe`], one file for a family or for several
//! that share a body. Bodies build on [`thread`], which has operations that Rust lacks and the
//! units that a thread moves; on [`block`], which has what threads share; and on [`index`], which
//! turns numbers into offsets.
#![no_std]
#![feature(abi_ptx, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx)]
// Shuffles must be intrinsics, see `thread`, and `core` has none of them; the toolchain is pinned.
#![expect(internal_features)]

#[path = "../../src/abi.rs"]
pub mod abi;
pub mod arithmetic;
pub mod block;
pub mod conversion;
pub mod index;
pub mod movement;
pub mod probe;
pub mod thread;

// Everything that lines of the table name: parameters, bodies, and values of axes.
use abi::params::*;
use arithmetic::*;
use block::{Padded, Plain, Staggered};
use conversion::*;
use index::{Narrow, Wide};
use movement::*;
use probe::*;
use thread::cache::{Hinted, Unhinted};
use thread::number::{Bf16, F16, Number};
use thread::quad::Lanes;
use thread::{B8, B16, B32, B64, B128, Word};

/// No body panics, but `no_std` requires a handler.
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
                // SAFETY: the bodies require what this entry requires.
                unsafe { body(params) }
            }
        };
    };
}

/// Returns the value of an axis under the axis' name.
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
