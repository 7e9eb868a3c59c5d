//! Sizes that NVIDIA's hardware fixes, in bytes unless the name says otherwise.

/// Bytes of a vector: the widest access of a thread.
pub(crate) const VECTOR: usize = 16;
/// The bytes of a sector: the least that moves between the L2 cache and memory.
pub const SECTOR: usize = crate::counters::SECTOR_BYTES as usize;
/// Bytes of a line of the L2 cache: four sectors.
pub(crate) const LINE: usize = 128;
/// The bytes that the 32 banks of shared memory serve at once: a word from each.
pub(crate) const BANK_ROW: usize = WARP * WORD;
/// Bytes of a word: the width of a bank of shared memory.
pub(crate) const WORD: usize = 4;
/// Threads of a warp.
pub(crate) const WARP: usize = crate::launch_shape::WARP as usize;

/// Returns the largest power of two that divides this bitwise or of byte counts.
pub(crate) fn power_of_two(bits: usize) -> usize {
    bits & bits.wrapping_neg()
}

/// The same sizes for plans that count in 64 bits.
pub(crate) mod wide {
    use crate::ops::units;

    /// Bytes of a vector.
    pub(crate) const VECTOR: u64 = units::VECTOR as u64;
    /// Bytes of a sector.
    pub(crate) const SECTOR: u64 = units::SECTOR as u64;
}
