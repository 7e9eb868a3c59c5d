//! The strategies, a file each: a function that offers a launch for a task and estimates its time,
//! or says why it declines.

pub(super) mod elements;
pub(super) mod images;
pub(super) mod quads;
pub(super) mod tiles;

pub(super) use self::images::Images;
use super::launch::Launch;
use super::task::Task;
use crate::abi::{AffineValues, Divisor};
use crate::layout::walk::Axis;
use crate::ops::choose::{Considered, Offer};
use crate::ops::plan::{Decline, Step};
use crate::ops::tuning::{Maps, Tuning};

/// The quantity that distinguishes images from the work of the other strategies.
pub(super) const WITH_LAUNCH: &str = "channels whose values are launch parameters";

/// Returns the offer of a strategy that takes this part of the target's estimates, relative to the
/// least that the layouts allow.
fn offer(task: &Task, reason: &'static str, time: impl FnOnce(&Maps) -> f64) -> Offer {
    let time = task.traffic() * time(&Tuning::of(task.target).arithmetic.maps);
    Offer { reason, time, costs: None }
}

/// Returns the values that all launches share: the number of elements, or of images, that follow
/// each other with one channel, and the number of channels, at least 1.
fn channels(axes: &[Axis], channel: Option<usize>, reversed: bool, divisor: fn(u64) -> Divisor) -> AffineValues {
    let (inner, count) =
        channel.map_or((1, 1), |at| (axes[..at].iter().map(|axis| axis.extent).product::<usize>(), axes[at].extent));
    let [inner, channels] = [inner, count].map(|number| divisor(number as u64));
    let step = if reversed { -1 } else { 1 };
    AffineValues { factor: 0, offset: 0, factors: 0, offsets: 0, step, inner, channels }
}
