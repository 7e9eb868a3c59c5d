//! Counts the sectors that a walk over elements touches.

use crate::layout::MAX_RANK;
use crate::ops::units::wide::SECTOR;

/// Counts the sectors that a walk along axes of these extents and strides touches, if it starts at
/// a sector's boundary.
pub(in crate::ops) fn sectors(axes: impl Iterator<Item = (usize, isize)>, width: usize) -> u64 {
    let width = width as u64;
    // A broadcast reads the same element again.
    let walked = axes
        .filter(|&(_, stride)| stride != 0)
        .map(|(extent, stride)| (extent as u64, stride.unsigned_abs() as u64 * width));
    let mut axes = [(0, 0); MAX_RANK];
    let rank = axes.iter_mut().zip(walked).map(|(to, axis)| *to = axis).count();
    axes[..rank].sort_unstable_by_key(|&(_, stride)| stride);
    // `run` is the bytes from the first to the last element of a run in which no gap holds a whole
    // sector.
    let mut run = width;
    let mut axes = axes[..rank].iter().copied().peekable();
    while let Some((extent, stride)) = axes.next_if(|&(_, stride)| stride < run + SECTOR) {
        run += (extent - 1) * stride;
    }
    // The starts of the runs cycle through the multiples of `step` within a sector, so some runs
    // touch one sector more than they fill.
    let step = 1 << axes.clone().fold(SECTOR, |bits, (_, stride)| bits | stride).trailing_zeros();
    let runs: u64 = axes.map(|(extent, _)| extent).product();
    let sectors = u128::from(runs) * u128::from(run.next_multiple_of(step) + SECTOR - step) / u128::from(SECTOR);
    u64::try_from(sectors).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
