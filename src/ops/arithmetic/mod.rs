//! Arithmetic at the speed of the memory: element by element, and along one axis or all.

pub mod elementwise;
pub mod reduce;
pub mod reduce_axis;
pub mod rowwise;
