//! Single small matrices.

/// Squares along a row of a tile of `small_tile`: rows of 512 bytes.
pub const SMALL_TILE_ACROSS: u32 = 32;
/// Squares along a column of such a tile, each a thread's.
pub const SMALL_TILE_DOWN: u32 = 4;
