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
use crate::device::Estimated;
use crate::ops::choose::{Considered, Costs, Offer};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::plan::Step;
use crate::ops::units::power_of_two;

/// Returns the offer of a kernel for elements of this width, which has `times` these costs.
fn weighed<const COSTS: usize>(
    task: &Task<'_>,
    reason: &'static str,
    (kernel, width): (Estimated, usize),
    times: f64,
    costs: [f64; COSTS],
) -> Offer {
    let weights = task.permutes().estimates.weights;
    debug_assert_eq!(weights.of_kernel(kernel, 0).len(), COSTS, "{kernel:?} has a weight for each cost");
    let costs = Costs::new((kernel, width), task.traffic(), costs.map(|cost| times * cost));
    Offer { reason, time: costs.time(weights), costs: Some(costs) }
}

/// Returns the base-2 logarithm of a width, by which the policy has its constants.
pub(super) fn width_log2(width: usize) -> usize {
    width.trailing_zeros() as usize
}
