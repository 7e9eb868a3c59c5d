//! How much memory the allocator keeps, and in which pieces. `docs/adr/0012-caching-allocator.md`
//! has the reasons, and the figures that these numbers come from.

use super::arena::Kind;

/// The unit of all blocks, in bytes: the alignment of their addresses.
pub(super) const GRANULE: u64 = 256;

/// The unit of all segments, in bytes: the pages of a GPU's memory.
pub(super) const PAGE: u64 = 2 << 20;

/// The most bytes to have reserved while more is taken, if free segments can be given back.
pub(super) fn limit(peak_active: u64) -> u64 {
    peak_active.saturating_add(peak_active / 16).saturating_add(PAGE)
}

/// The bytes of a chunk. It grows with what is in use, so that there are never many chunks, nor
/// much that the last one leaves unused.
pub(super) fn chunk(peak_active: u64) -> u64 {
    (peak_active / 64).next_multiple_of(PAGE).clamp(PAGE, 32 * PAGE)
}

/// The kind of segment for a block.
pub(super) fn kind(bytes: u64, peak_active: u64) -> Kind {
    if bytes >= (chunk(peak_active) / 2).max(2 * PAGE) { Kind::Whole } else { Kind::Chunk }
}

/// The most bytes of a free block that a request may get.
pub(super) fn snug(kind: Kind, bytes: u64) -> u64 {
    match kind {
        Kind::Chunk => u64::MAX,
        Kind::Whole => bytes.saturating_add(bytes / 32),
    }
}
