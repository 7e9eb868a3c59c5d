//! Transposes whose rows start and end anywhere; their parameters are those of `vector_tile`.

/// The same for `ragged_tile`.
pub const fn ragged_tile_squares(width: u32) -> u32 {
    if width < 16 { 1 } else { 2 }
}
/// Whether the rows of a square of `ragged_tile` may be on two indices of the outer axis, by the
/// elements' width in bytes. Squares of narrow elements have so many rows that finding each costs
/// an H100 more than is gained.
pub const fn ragged_tile_folds(width: u32) -> bool {
    width >= 4
}
/// Rows of squares that a tile of `ragged_tile` shares with the one above where rows of the
/// destination start off sectors: a square is half a sector high.
pub const RAGGED_MARGIN: u32 = 2;
