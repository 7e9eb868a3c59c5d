//! The state spaces of the software GPU.

pub mod global;

pub use global::{Allocation, Memory, Nearest, Snapshot};
