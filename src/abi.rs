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
#[path = "abi/divisor.rs"]
mod divisor;
#[path = "abi/entries.rs"]
mod entries;
#[path = "abi/gaps.rs"]
mod gaps;
#[path = "abi/movement.rs"]
mod movement;
#[path = "abi/table.rs"]
mod table;

pub use affine::*;
pub use arithmetic::*;
pub use axis::*;
pub use conversion::*;
pub use divisor::*;
pub use entries::*;
pub use movement::*;
pub(crate) use table::{families, suffix};
