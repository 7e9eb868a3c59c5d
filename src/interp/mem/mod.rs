//! The state spaces of the software GPU.

pub(crate) mod cells;
pub mod global;
pub(crate) mod space;
pub(crate) mod written;

pub use global::{Allocation, Memory, Nearest, Snapshot};
