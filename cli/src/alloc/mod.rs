//! `warpstride alloc`: what the allocator of buffers costs, in time and in memory.

pub(super) mod bench;
pub(super) mod replay;
