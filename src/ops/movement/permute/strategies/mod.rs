//! The strategies, a file each: a function that takes a task or says why it declines.

pub(super) mod boxes;
pub(super) mod copy;
pub(super) mod elements;
pub(super) mod fields;
mod matrices;
pub(super) mod packed;
pub(super) mod patch;
pub(super) mod ragged_tile;
pub(super) mod rows;
pub(super) mod small_matrix;
pub(super) mod stacked;
pub(super) mod tile;
pub(super) mod vector_tile;

use super::strategy::{Considered, Decline, Launch, at_least, at_most, found};
use super::task::{Task, Widened, power_of_two};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::plan::Step;
