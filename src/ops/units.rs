//! Sizes that NVIDIA's hardware fixes, in bytes unless the name says otherwise.

/// A vector: the widest access of a thread.
pub(super) const VECTOR: usize = 16;
/// A sector: the least that moves between the L2 cache and memory.
pub(super) const SECTOR: usize = 32;
/// A line of the L2 cache: four sectors.
pub(super) const LINE: usize = 128;
/// The bytes that the 32 banks of shared memory serve at once: a word of 4 bytes from each.
pub(super) const BANKS: usize = 128;
/// A word: the width of a bank of shared memory.
pub(super) const WORD: usize = 4;
/// Threads of a warp.
pub(super) const WARP: usize = crate::launch_shape::WARP as usize;
