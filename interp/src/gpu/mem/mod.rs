//! The state spaces of the software GPU.

mod allocation;
pub(crate) mod cells;
mod global;
pub(crate) mod space;
mod touched;
pub(crate) mod written;

pub(crate) use allocation::Allocation;
pub(crate) use global::Snapshot;
pub use global::{Memory, Nearest};
pub(crate) use touched::Touched;
