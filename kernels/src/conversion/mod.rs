//! Kernels that convert elements while they move them.

mod affine;
mod affine_quads;
mod affine_tile;
mod cast;
mod normalize;

pub use affine::{affine_elements, affine_elements_f64};
pub use affine_quads::{affine_quads, affine_quads_f64};
pub use affine_tile::affine_tile;
pub use cast::{Scalar, cast};
pub use normalize::normalize;
