//! A plan to read, as a database prints a query plan: what is moved, how, why so, and what that should cost.

#![forbid(unsafe_code)]

use std::fmt;

use super::PermutePlan;
use super::canonical::{Axis, Canonical};
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::copy::Shape;
use crate::ops::{Align, Target};

/// Bytes of a sector, the least that moves between the L2 cache and memory.
const SECTOR: u64 = 32;

/// A plan, with what its choice was made from and what it should move.
///
/// ```
/// use warpstride::layout::Layout;
/// use warpstride::ops::{Align, Explanation, Target};
///
/// let source = Layout::row_major(&[1024, 3])?.t();
/// let result = Layout::row_major(&[3, 1024])?;
/// let target = Target { compute_capability: (9, 0) };
/// let explanation = Explanation::new(&source, Align::ALLOCATION, &result, Align::ALLOCATION, 4, target)?;
/// assert_eq!((explanation.axes.len(), explanation.source.sectors), (2, 384));
/// println!("{explanation}");
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The plan.
    pub plan: PermutePlan,
    /// Bytes of an element.
    pub width: usize,
    /// The fewest axes that move the same elements, the destination's shortest stride first.
    pub axes: Vec<PlannedAxis>,
    /// What is read.
    pub source: Traffic,
    /// What is written.
    pub destination: Traffic,
}

/// An axis along which both sides walk; strides in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedAxis {
    /// Number of indices, at least 2.
    pub extent: usize,
    /// Of the source: negative where it runs backwards, 0 where it is broadcast.
    pub source_stride: isize,
    /// Of the destination.
    pub destination_stride: isize,
}

/// What one side should move, everything once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes of the elements.
    pub bytes: u64,
    /// Sectors of 32 bytes that they lie in: as many as a kernel moves whose warps take neighbours together. Where rows begin
    /// at different places within a sector, their mean is counted.
    pub sectors: u64,
}

impl Explanation {
    /// Explains the plan that [`PermutePlan::new`] makes of the same arguments.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::new`].
    pub fn new(
        src: &Layout,
        src_align: Align,
        dst: &Layout,
        dst_align: Align,
        width: usize,
        target: Target,
    ) -> Result<Self> {
        let plan = PermutePlan::new(src, src_align, dst, dst_align, width, target)?;
        let (mut axes, [mut source, mut destination]) = (Vec::new(), [Traffic::default(); 2]);
        if !src.is_empty() {
            let canonical = Canonical::new(src, dst, width);
            axes.extend(canonical.axes().iter().map(|&Axis { extent, src, dst }| PlannedAxis {
                extent,
                source_stride: src,
                destination_stride: dst,
            }));
            source = traffic(axes.iter().map(|axis| (axis.extent, axis.source_stride)), width);
            destination = traffic(axes.iter().map(|axis| (axis.extent, axis.destination_stride)), width);
        }
        Ok(Self { plan, width, axes, source, destination })
    }
}

/// What a walk along axes of these extents and strides touches, from a sector's boundary on.
fn traffic(axes: impl Iterator<Item = (usize, isize)>, width: usize) -> Traffic {
    let width = width as u64;
    // A broadcast reads the same element again.
    let mut axes: Vec<(u64, u64)> = axes
        .filter(|&(_, stride)| stride != 0)
        .map(|(extent, stride)| (extent as u64, stride.unsigned_abs() as u64 * width))
        .collect();
    axes.sort_unstable_by_key(|&(_, stride)| stride);
    let elements: u64 = axes.iter().map(|(extent, _)| extent).product();
    // From the first to the last byte of a run of elements, between any two of which there is no room for a whole sector.
    let mut run = width;
    let mut axes = axes.into_iter().peekable();
    while let Some((extent, stride)) = axes.next_if(|&(_, stride)| stride < run + SECTOR) {
        run += (extent - 1) * stride;
    }
    // Runs begin at every multiple of `step` within a sector in turn, and so touch one more than they fill in some of the
    // cases.
    let step = 1 << axes.clone().fold(SECTOR, |bits, (_, stride)| bits | stride).trailing_zeros();
    let runs: u64 = axes.map(|(extent, _)| extent).product();
    let sectors = u128::from(runs) * u128::from(run.next_multiple_of(step) + SECTOR - step) / u128::from(SECTOR);
    Traffic { bytes: elements * width, sectors: u64::try_from(sectors).unwrap_or(u64::MAX) }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements = self.plan.bytes() / self.width as u64;
        writeln!(
            f,
            "{elements} elements of {} bytes along {} axes, in elements (and bytes):",
            self.width,
            self.axes.len()
        )?;
        writeln!(f, "{:>6} {:>12} {:>32} {:>32}", "axis", "extent", "source stride", "destination stride")?;
        let stride = |stride: isize| format!("{stride} ({})", stride as i128 * self.width as i128);
        for (index, axis) in self.axes.iter().enumerate() {
            let (source, destination) = (stride(axis.source_stride), stride(axis.destination_stride));
            writeln!(f, "{index:>6} {:>12} {source:>32} {destination:>32}", axis.extent)?;
        }
        writeln!(f, "kernel   {}", self.plan.entry().unwrap_or("none"))?;
        writeln!(f, "because  {}", self.plan.reason())?;
        if let Some(shape) = self.plan.shape() {
            writeln!(f, "launch   {}", Shape(&shape))?;
        }
        for (what, side) in [("read", self.source), ("written", self.destination)] {
            writeln!(f, "{what:8} {} bytes in {} sectors of {SECTOR}", side.bytes, side.sectors)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sectors by going to every byte of every element, from the start of a sector on.
    fn counted(axes: &[(usize, isize)], width: usize) -> u64 {
        let mut places = vec![0_i64];
        for &(extent, stride) in axes {
            let step = stride as i64 * width as i64;
            places =
                places.iter().flat_map(|place| (0..extent as i64).map(move |index| place + index * step)).collect();
        }
        let sectors = places.iter().flat_map(|place| (0..width as i64).map(move |byte| (place + byte).div_euclid(32)));
        sectors.collect::<std::collections::BTreeSet<_>>().len() as u64
    }

    #[test]
    fn sectors_are_those_that_the_elements_lie_in() {
        for (axes, width) in [
            (vec![(1024, 1)], 4),
            (vec![(1024, 3), (3, 1)], 4),
            (vec![(100, 2)], 8),
            (vec![(64, 64), (16, 1)], 4),
            (vec![(64, 100)], 16),
            (vec![(32, 1), (16, 0), (8, 64)], 2),
            (vec![(5, 4096), (7, 96), (3, 1)], 1),
        ] {
            let traffic = traffic(axes.iter().copied(), width);
            assert_eq!(traffic.sectors, counted(&axes, width), "{axes:?} of {width} bytes");
        }
        // Rows of 64 bytes, 100 bytes apart, begin at every multiple of 4 in turn, and are exact in the mean.
        let axes = [(800, 25), (16, 1)];
        assert_eq!(traffic(axes.into_iter(), 4).sectors, counted(&axes, 4));
    }

    #[test]
    fn nothing_is_explained_as_nothing() {
        let layout = Layout::row_major(&[0, 4]).unwrap();
        let target = Target { compute_capability: (9, 0) };
        let explanation = Explanation::new(&layout, Align::ALLOCATION, &layout, Align::ALLOCATION, 1, target).unwrap();
        assert_eq!(
            (explanation.axes.len(), explanation.source, explanation.destination.sectors),
            (0, Traffic::default(), 0)
        );
    }
}
