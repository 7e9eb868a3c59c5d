//! A plan to read, as a database prints a query plan: what is moved, how, why so, and what that should cost.

use std::fmt;
#[cfg(feature = "interp")]
use std::sync::Arc;

use super::PermutePlan;
#[cfg(feature = "interp")]
use crate::counters::GlobalCounters;
#[cfg(feature = "interp")]
use crate::device::Device;
#[cfg(feature = "interp")]
use crate::driver::soft::Soft;
use crate::error::{Result, counted};
use crate::launch_shape::MAX_GRID_YZ;
use crate::layout::Layout;
#[cfg(feature = "interp")]
use crate::memory::DeviceBuffer;
use crate::ops::canonical::{Axis, Canonical};
use crate::ops::plan::PlannedAxis;
use crate::ops::units::SECTOR as SECTOR_BYTES;
use crate::ops::{Align, Target};

/// Bytes of a sector.
const SECTOR: u64 = SECTOR_BYTES as u64;

/// Most blocks that are run to learn what all of them ask for.
#[cfg(feature = "interp")]
const MOST_BLOCKS: u64 = 256;

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
    /// Elements of the storages, and how those are aligned.
    storages: [(usize, Align); 2],
}

/// What one side must move, everything once, whatever the kernel: the traffic with memory where caches lose nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes of the elements.
    pub bytes: u64,
    /// Sectors of 32 bytes that they lie in. Where rows begin at different places within a sector, their mean is counted.
    pub sectors: u64,
}

/// What the plan's kernel asks the L1 cache for. Sectors that several requests touch are counted for each: far more of them than
/// of [`Traffic`] say that warps do not take neighbours together.
#[cfg(feature = "interp")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requested {
    /// To read the source.
    pub load: GlobalCounters,
    /// To write the destination.
    pub store: GlobalCounters,
    /// Whether every block was counted; else they are within a few per cent.
    pub exact: bool,
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
        let storages = [(src.storage_len(), src_align), (dst.storage_len(), dst_align)];
        Ok(Self { plan, width, axes, source, destination, storages })
    }

    /// What the plan's kernel asks of memory: the software GPU runs it, without the arrays, and counts. Of more than 256 blocks it
    /// runs so many, spread over the grid.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where no GPU has so many blocks, `OutOfMemory` where a storage has more than 2^40 bytes.
    #[cfg(feature = "interp")]
    pub fn requested(&self) -> Result<Requested> {
        let Some(shape) = self.plan.shape() else {
            let none = GlobalCounters::default();
            return Ok(Requested { load: none, store: none, exact: true });
        };
        let device = Device::with_driver(Arc::new(Soft::counting(MOST_BLOCKS)))?;
        let storage = |(len, align): (usize, Align)| -> Result<(DeviceBuffer<u8>, u64)> {
            // From an address that is a multiple of the alignment and of no more.
            let start = align.bytes() % Align::ALLOCATION.bytes();
            let storage = device.alloc(len.saturating_mul(self.width).saturating_add(start as usize))?;
            let address = storage.address() + start;
            Ok((storage, address))
        };
        let [src, dst] = self.storages;
        let ((_source, src), (_destination, dst)) = (storage(src)?, storage(dst)?);
        let stream = device.default_stream();
        // SAFETY: both storages are live until the stream is waited for, as long as the layouts say and aligned so.
        unsafe { self.plan.launch(&device, src, dst, stream.handle()) }?;
        stream.synchronize()?;
        let counted = device.counters()?.unwrap_or_default();
        let blocks: u64 = shape.grid.iter().map(|&extent| u64::from(extent)).product();
        let all = |counted: GlobalCounters| {
            let part =
                |count: u64| (u128::from(count) * u128::from(blocks) / u128::from(blocks.min(MOST_BLOCKS))) as u64;
            let GlobalCounters { instructions, requests, sectors } = counted;
            GlobalCounters { instructions: part(instructions), requests: part(requests), sectors: part(sectors) }
        };
        let (load, store) = (all(counted.global_load), all(counted.global_store));
        Ok(Requested { load, store, exact: blocks <= MOST_BLOCKS })
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
            "{elements} of {} along {}, in elements (and bytes):",
            counted(self.width, "byte"),
            counted(self.axes.len(), "axis"),
            elements = counted(elements, "element")
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
            writeln!(f, "launch   {}", shape)?;
            if shape.grid[1] > MAX_GRID_YZ {
                writeln!(
                    f,
                    "refused  no GPU has more than {MAX_GRID_YZ} blocks in y; move the arrays in parts (split_at)"
                )?;
            }
        }
        for (what, side) in [("read", self.source), ("written", self.destination)] {
            writeln!(
                f,
                "{what:8} {} in {} of {SECTOR}, each once",
                counted(side.bytes, "byte"),
                counted(side.sectors, "sector")
            )?;
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
