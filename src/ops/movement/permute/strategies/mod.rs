//! The strategies, a file or a folder each: a function that offers a launch for a task and
//! estimates its time, or says why it declines.

pub(super) mod boxes;
pub(super) mod elements;
pub(super) mod fields;
pub(super) mod quads;
pub(super) mod rows;
pub(super) mod small;
pub(super) mod tile;

use super::launch::{self, Decline, Launch, Layouts, at_least, at_most, found};
use super::task::{Task, Widened};
use crate::ops::choose::{Considered, Offer};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::plan::Step;
use crate::ops::units::power_of_two;

/// Returns the time of a launch relative to that of a copy: the costs of its layout, each by its
/// weight.
fn estimate<const COSTS: usize>(weights: &[f64; COSTS], costs: [f64; COSTS]) -> f64 {
    weights.iter().zip(costs).map(|(weight, cost)| weight * cost).sum()
}

/// Returns the base-2 logarithm of a width, by which the policy has its constants.
pub(super) fn width_log2(width: usize) -> usize {
    width.trailing_zeros() as usize
}
