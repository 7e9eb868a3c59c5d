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
use crate::device::{Estimated, MOST_COSTS};
use crate::ops::choose::{Considered, Costs, Offer};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::plan::Step;
use crate::ops::units::power_of_two;

/// Returns the offer of a kernel for elements of this width, whose time is `least` times the sum of
/// the costs, each by its weight.
fn weighed<const COSTS: usize>(
    task: &Task<'_>,
    reason: &'static str,
    (kernel, width): (Estimated, usize),
    least: f64,
    costs: [f64; COSTS],
) -> Offer {
    let width_log2 = width_log2(width);
    let weights = task.permutes().estimates.weights.of_kernel(kernel, width_log2);
    debug_assert_eq!(weights.len(), COSTS, "{kernel:?} has a weight for each cost");
    let time = least * weights.iter().zip(costs).map(|(weight, cost)| weight * cost).sum::<f64>();
    let mut all = [0.0; MOST_COSTS];
    all.iter_mut().zip(costs).for_each(|(all, cost)| *all = least * cost);
    Offer { reason, time, costs: Some(Costs { kernel, width_log2, costs: all }) }
}

/// Returns the base-2 logarithm of a width, by which the policy has its constants.
pub(super) fn width_log2(width: usize) -> usize {
    width.trailing_zeros() as usize
}
