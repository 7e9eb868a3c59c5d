//! Converts elements while it moves them: casts, affine maps and the normalisation of images.

pub(super) mod affine;
pub(super) mod cast;
pub(super) mod normalize;
