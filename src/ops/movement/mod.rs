//! Moves elements between layouts: permutes, transposes, transposes in place, and rows by index.

pub(super) mod gather;
pub(super) mod in_place;
pub(super) mod packing;
pub(super) mod permute;
pub(super) mod transpose;
