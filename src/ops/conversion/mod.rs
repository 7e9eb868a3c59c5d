//! Moves that convert on the way: casts, affine maps and the normalisation of images.

pub mod affine;
pub mod cast;
pub mod normalize;
