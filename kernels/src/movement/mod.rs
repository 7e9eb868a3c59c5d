//! Kernels that move elements unchanged, generic over element width and index arithmetic.

mod boxes;
mod column_loop;
mod copy;
mod elements;
mod fields;
mod fields_quads;
pub(crate) mod gathered;
mod in_place;
mod naive;
pub(crate) mod packed_quads;
mod packed_tiles;
mod patch;
mod quad_side;
mod ragged_lines;
mod ragged_tile;
mod rows;
mod rows_by_index;
mod small_tile;
mod tile;
pub(crate) mod vector_tile;

pub use boxes::boxes;
pub use column_loop::column_loop;
pub use copy::copy;
pub use elements::elements;
pub use fields::{deinterleave, deinterleave_steps, interleave, interleave_steps};
pub use fields_quads::{deinterleave_quads, interleave_quads};
pub use in_place::{permute_lines, spill_lines, swap_tiles};
pub use naive::naive;
pub use packed_quads::packed_quads;
pub use patch::patch;
pub use ragged_tile::ragged_tile;
pub use rows::rows;
pub use rows_by_index::rows_by_index;
pub use small_tile::small_tile;
pub use tile::tile;
pub use vector_tile::vector_tile;
