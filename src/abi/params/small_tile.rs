//! Transposes of single small matrices.

/// Micro-tiles along a row of a tile of `small_tile`: rows of 512 bytes.
pub const SMALL_TILE_ACROSS: u32 = 32;
/// Micro-tiles along a column of such a tile, one a thread.
pub const SMALL_TILE_DOWN: u32 = 4;
