//! The contract between host and kernels: which kernels there are, their parameters, and the
//! constants of their launches, in one place.
//!
//! This file is compiled three times: into the crate, into `kernels/` (device code, `no_std`) and
//! into `build.rs`, which checks the parameters of every compiled entry against [`ENTRIES`]. So it
//! uses nothing but `core`.
//!
//! An entry takes one struct by value, so its PTX has one parameter whose size and alignment are
//! the struct's.

#[path = "abi/affine.rs"]
mod affine;
#[path = "abi/divisor.rs"]
mod divisor;
#[path = "abi/dtype.rs"]
mod dtype;
#[path = "abi/entries.rs"]
mod entries;
#[path = "abi/gaps.rs"]
mod gaps;
#[path = "abi/parts.rs"]
mod parts;
#[path = "abi/table.rs"]
mod table;

pub use affine::*;
pub use divisor::*;
pub use dtype::*;
pub use entries::*;
pub use parts::*;
pub use table::params::{self, *};
pub(crate) use table::{families, suffix};
