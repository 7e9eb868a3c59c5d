//! Allocators of device memory for buffers.
//!
//! [`Allocate`] is the trait. [`Caching`] is the allocator of devices: it keeps freed memory
//! for the next request. [`DriverMemory`] keeps nothing. [`Limit`], [`Statistics`], [`Logged`] and
//! [`HoldBack`] wrap an allocator, and can be stacked;
//! [`Device::with_allocator`](crate::Device::with_allocator) opens a device over any of them.

mod adaptors;
mod allocate;
mod caching;
mod driver_memory;
mod upstream;

#[doc(hidden)]
pub use adaptors::{COLUMNS, LOST};
pub use adaptors::{HoldBack, Limit, Logged, Statistics};
pub use allocate::{Allocate, Block, BlockState, BlockView, Figures, Lane, Request, SegmentView, Snapshot};
pub use caching::Caching;
pub use driver_memory::DriverMemory;

#[cfg(test)]
mod tests;
