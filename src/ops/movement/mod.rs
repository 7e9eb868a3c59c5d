//! Moves from any layout to any other: permutes, transposes, transposes in place, and rows by index.

pub mod gather;
pub mod in_place;
pub mod permute;
pub mod transpose;
