//! Operations on buffers and streams of other crates, by their own types.
//!
//! A raw entry point of [`ops`](crate::ops) takes things on trust that are checked here or follow
//! from the types: that the memory is there, that nothing else uses it meanwhile, and that the
//! stream is of the same device.

pub mod cudarc;
