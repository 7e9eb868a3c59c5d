//! Tiles of several axes that are scaled, shifted and converted.

use crate::abi::{AffineValues, PackedQuadsParams, params};

/// Bits of a place in shared memory that are its address. The channel of the element there is
/// above them.
pub const CHANNEL_SHIFT: u32 = 18;

params! {
    /// Parameters of `affine_quads`: as `packed_quads`, with another type on each side.
    ///
    /// Dynamic shared memory has a table of factors and offsets behind the tile: a pair of values
    /// of the arithmetic's type for each channel of the tile. Along the axis of channels, the
    /// destination's distances in shared memory have `1 << CHANNEL_SHIFT` more for each index.
    /// Entries of the tables of lines and of cells have 4 bytes.
    pub struct AffineQuadsParams {
        /// The tiles.
        pub quads: PackedQuadsParams,
        /// The `affine_type` of the source.
        pub src_type: u64,
        /// The start of the table of factors and offsets in dynamic shared memory.
        pub pairs: u64,
        /// Channels of a tile: 1 if all elements share one factor and one offset.
        pub chunk: u64,
        /// Channels of all tiles.
        pub channels: u64,
        /// The values. Block `b` has the channels from `b / inner % channels` times `chunk` on.
        pub values: AffineValues,
    }
}
