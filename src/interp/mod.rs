//! The software GPU: runs PTX on the host and counts what the hardware counts.
//!
//! parse (text to tree, spans kept) -> lower (tree to flat code, reconvergence points) -> exec (warps of 32 lanes).
//! Nothing here knows of CUDA or of a driver.

#![deny(unsafe_code)]

pub mod mem;
pub mod model;

pub use mem::Memory;
