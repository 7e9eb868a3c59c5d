//! Streams and events.
//!
//! Work on one stream runs in the order in which it was queued. Work on different streams runs in
//! any order that waits and events allow. Buffers keep that order right without help: see
//! [`crate::memory`].

mod graph;

pub use crate::context::{Event, Stream};
pub use graph::Graph;
