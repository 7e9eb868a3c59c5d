//! The state spaces of the software GPU.

mod allocation;
pub(crate) mod cells;
pub mod global;
pub(crate) mod space;
pub(crate) mod written;

pub use allocation::Allocation;
pub use global::{Memory, Nearest, Snapshot};
