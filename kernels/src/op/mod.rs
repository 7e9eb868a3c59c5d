//! The bodies, one operation a file, generic over element width and index arithmetic.

mod column_loop;
mod copy;
mod elements;
mod fields;
mod in_place;
mod naive;
mod packed;
mod rows;
mod spin;
mod tile;

pub use column_loop::column_loop;
pub use copy::copy;
pub use elements::elements;
pub use fields::{deinterleave, interleave};
pub use in_place::{permute_lines, spill_lines, swap_tiles};
pub use naive::naive;
pub use packed::packed;
pub use rows::rows;
pub use spin::spin;
pub use tile::tile;
mod vector_tile;
pub use vector_tile::{ragged_tile, vector_tile};
