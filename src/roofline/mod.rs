//! How far an operation is from what the device can do.

pub mod measure;
