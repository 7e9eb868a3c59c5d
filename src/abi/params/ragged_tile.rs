//! Transposes whose rows start and end anywhere; their parameters are those of `vector_tile`.

/// Micro-tiles that one thread of `ragged_tile` moves, by the elements' width in bytes.
pub const fn ragged_tile_squares(width: u32) -> u32 {
    if width < 16 { 1 } else { 2 }
}
/// Most axes that number the rows of a matrix of `ragged_tile`, or its columns.
pub const TILE_AXES: usize = 5;
/// Returns whether the rows of a micro-tile of `ragged_tile` may have two indices of the outer axis,
/// by the elements' width in bytes. Micro-tiles of narrower elements have so many rows that a table
/// of all rows and columns costs less; it allows any axes.
pub const fn ragged_tile_folds(width: u32) -> bool {
    width >= 4
}
/// Rows of micro-tiles of the halo that a tile of `ragged_tile` shares with the one above if rows
/// of the destination start between sectors: a micro-tile is half a sector high.
pub const RAGGED_MARGIN: u32 = 2;
