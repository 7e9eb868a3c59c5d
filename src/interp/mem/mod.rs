//! The state spaces of the software GPU.

pub(crate) mod cells;
pub mod global;
pub(crate) mod space;

pub use global::{Allocation, Memory, Nearest, Snapshot};
