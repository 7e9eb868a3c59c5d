//! The GPUs that were measured, a file each.

use super::{Tuning, h100, h200};
use crate::ops::Target;

/// The policy that measurements on one GPU gave.
#[derive(Debug)]
pub(super) struct Measured {
    /// The GPU, with an article.
    pub(super) gpu: &'static str,
    /// Its figures.
    pub(super) target: Target,
    pub(super) tuning: Tuning,
}

/// The H100 comes first: a target of its capability without figures gets its policy.
pub(super) static MEASURED: [Measured; 2] = [h100::H100, h200::H200];

/// The part by which the figures of equal GPUs may differ: their memory's clocks do.
const TOLERANCE: u64 = 10;

impl Measured {
    /// Returns the row of the GPU with these figures.
    pub(super) fn find(target: Target) -> Option<&'static Self> {
        MEASURED.iter().find(|row| row.is_of(target))
    }

    /// Returns whether a target has this GPU's figures, as far as it has figures.
    fn is_of(&self, target: Target) -> bool {
        let is_near = |own: u64, other: u64| other == 0 || own.abs_diff(other) <= own / TOLERANCE;
        self.target.compute_capability == target.compute_capability
            && is_near(self.target.bandwidth_per_multiprocessor, target.bandwidth_per_multiprocessor)
            && is_near(self.target.l2_bytes, target.l2_bytes)
    }
}
