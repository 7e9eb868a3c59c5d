//! Streams and events.
