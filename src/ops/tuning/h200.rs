//! The H200's policy: the rule's, with what was measured in its place.

use super::measured::Measured;
use super::{Tuning, rule};
use crate::ops::Target;

/// The driver's figures for an H200 SXM with 141 GB: 4.9 TB/s for 132 multiprocessors.
const TARGET: Target = {
    let mut target = Target::new((9, 0));
    target.bandwidth_per_multiprocessor = 37_000_000_000;
    target.l2_bytes = 60 << 20;
    target
};

pub(super) const H200: Measured = Measured { gpu: "an NVIDIA H200", target: TARGET, tuning: TUNING };

const TUNING: Tuning = Tuning {
    // Copies of blocks of 1024 were slower, so that permutes were faster than they.
    copy_block: 256,
    ..rule::of(TARGET)
};
