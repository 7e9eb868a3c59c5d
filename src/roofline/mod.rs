//! How far an operation is from what the device can do.

pub mod clocks;
pub mod measure;
pub mod model;
pub mod peak;
