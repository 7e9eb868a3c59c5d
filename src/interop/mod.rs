//! Operations on buffers and streams of other crates, by their own types.
//!
//! What a raw entry point of [`ops`](crate::ops) takes on trust is checked here or follows from the
//! types: that the memory is there, that nothing else uses it meanwhile, and that the stream is of
//! the same device.

pub mod cudarc;
