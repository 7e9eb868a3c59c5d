//! Copies between the host and a device.

pub(crate) mod staging;

pub use staging::Route;
