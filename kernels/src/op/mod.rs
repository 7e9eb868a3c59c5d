//! The bodies, one operation a file, generic over element width and index arithmetic.

mod column_loop;
mod copy;
mod elements;
mod fields;
mod in_place;
mod naive;
mod packed;
mod patch;
mod ragged_tile;
mod rows;
mod small_tile;
mod spin;
mod stacked_tile;
mod tile;
mod vector_tile;

pub use column_loop::column_loop;
pub use copy::copy;
pub use elements::elements;
pub use fields::{deinterleave, interleave};
pub use in_place::{permute_lines, spill_lines, swap_tiles};
pub use naive::naive;
pub use packed::packed;
pub use patch::patch;
pub use ragged_tile::ragged_tile;
pub use rows::rows;
pub use small_tile::small_tile;
pub use spin::spin;
pub use stacked_tile::stacked_tile;
pub use tile::tile;
pub use vector_tile::vector_tile;
