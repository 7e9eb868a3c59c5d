//! Kernels for measurements.

mod accesses;
mod spin;

pub use accesses::{copy as probe_copy, read as probe_read, write as probe_write};
pub use spin::spin;
