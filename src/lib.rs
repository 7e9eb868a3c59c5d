//! Transposes, permutes and copies on NVIDIA GPUs at the speed of the memory, and a software GPU that runs the same PTX
//! where there is none.

// In dependency order, by levels: a module imports from its own level and those above (`tests/it/architecture.rs` has the
// levels, and checks).
pub mod error;
pub mod abi;
pub mod counters;
pub mod element;
pub mod layout;
pub mod ptx;
#[cfg(feature = "interp")]
pub mod interp;
pub mod driver;
pub mod stream;
pub mod device;
mod launch;
pub mod memory;
pub mod view;
pub mod ops;
pub mod roofline;

pub use error::{Error, ErrorKind, Result};

/// The README's code is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
