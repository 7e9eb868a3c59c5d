//! The bodies, one operation a file, generic over element width and index arithmetic.

mod column_loop;
mod copy;
mod in_place;
mod naive;
mod spin;
mod tile;

pub use column_loop::column_loop;
pub use copy::copy;
pub use in_place::{permute_lines, spill_lines, swap_tiles};
pub use naive::naive;
pub use spin::spin;
pub use tile::tile;
