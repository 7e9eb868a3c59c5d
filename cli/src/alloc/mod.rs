//! `warpstride alloc`: what the allocator of buffers costs, in time and in memory.

pub(super) mod bench;
mod log;
mod play;
pub(super) mod replay;
#[cfg(test)]
mod tests;
