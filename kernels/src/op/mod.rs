//! The bodies, one operation a file, generic over element width and index arithmetic.

mod column_loop;
mod copy;
mod elements;
mod elementwise;
mod fields;
mod in_place;
mod naive;
mod normalize;
mod packed;
mod patch;
mod probe;
mod ragged_tile;
mod reduce;
mod rows;
mod small_tile;
mod spin;
mod tile;
mod vector_tile;

pub use column_loop::column_loop;
pub use copy::copy;
pub use elements::elements;
pub use elementwise::{Add, Axpy, Mul, NStream, Triad, elementwise, fill};
pub use fields::{deinterleave, interleave};
pub use in_place::{permute_lines, spill_lines, swap_tiles};
pub use naive::naive;
pub use normalize::normalize;
pub use packed::packed;
pub use patch::patch;
pub use probe::{copy as probe_copy, read as probe_read, write as probe_write};
pub use ragged_tile::ragged_tile;
pub use reduce::{Dot, Max, Min, Sum, reduce};
pub use rows::rows;
pub use small_tile::small_tile;
pub use spin::spin;
pub use tile::tile;
pub use vector_tile::vector_tile;
