//! Page-locked memory of the host, and copies through it.
//!
//! A device has one pool of page-locked memory, of which buffers and the slots of the staging
//! engine are made. Memory that is dropped while a copy uses it stays parked until the copy has
//! run.

mod parked;
mod pool;
mod shelf;
mod staging;

pub(crate) use parked::{Lent, Parked};
pub use pool::PinnedMemory;
pub(crate) use pool::{HostBlock, HostPool};
pub use staging::Route;
#[cfg(feature = "pipeline")]
pub(crate) use staging::copy_past_caches;
pub(crate) use staging::{Direction, Staging};
