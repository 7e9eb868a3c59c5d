//! Explains a plan: what it moves, how and why, and which memory traffic to expect.

#[cfg(feature = "interp")]
use std::sync::Arc;

use super::PermutePlan;
#[cfg(feature = "interp")]
use crate::counters::{Counters, GlobalCounters};
#[cfg(feature = "interp")]
use crate::device::Device;
#[cfg(feature = "interp")]
use crate::driver::soft::{Launched, Soft};
#[cfg(feature = "interp")]
use crate::error::Result;
use crate::layout::walk::Axis;
#[cfg(feature = "interp")]
use crate::memory::DeviceBuffer;
use crate::ops::choose::verdicts;
use crate::ops::plan::{Explanation, PlannedAxis, Verdict, Walk};
use crate::ops::sectors::sectors;
#[cfg(feature = "interp")]
use crate::ops::{Align, Plan};

/// The software GPU runs at most this number of blocks to count the requests of the whole grid.
#[cfg(feature = "interp")]
const MOST_BLOCKS: u64 = 256;

/// Explains a plan, with the verdict of every strategy that was asked.
pub(super) fn explanation(plan: &PermutePlan) -> Explanation {
    let canonical = &plan.canonical;
    let (width, walks) = (canonical.width, if canonical.is_empty() { &[] } else { canonical.axes() });
    let axes = walks.iter().map(|&Axis { extent, src, dst }| PlannedAxis {
        extent,
        source_stride: src,
        destination_stride: dst,
    });
    // Broadcast elements are read once.
    let source = walks.iter().filter(|axis| axis.src != 0).map(|axis| axis.extent as u64).product::<u64>();
    let side = |stride: fn(&Axis) -> isize| sectors(walks.iter().map(|axis| (axis.extent, stride(axis))), width);
    let if_any = |figure: u64| if canonical.is_empty() { 0 } else { figure };
    let [read_sectors, written_sectors] = [side(|axis| axis.src), side(|axis| axis.dst)].map(if_any);
    let walk = Some(Walk { width, axes: axes.collect(), read_sectors, written_sectors });
    let read = if_any(source * width as u64);
    let measured = plan.way().map(|way| Verdict::of(way.name(), Ok(plan.reason)));
    let asked = if canonical.is_empty() { Vec::new() } else { verdicts(&plan.task()) };
    let verdicts = measured.into_iter().chain(asked).collect();
    let reason = match canonical.is_empty() {
        true => plan.reason.into(),
        false => format!("class {:?}: {}", plan.task().class(), plan.reason),
    };
    Explanation { walk, verdicts, ..Explanation::of(plan, reason, read, plan.bytes()) }
}

/// The requests of a plan's kernel to the L1 cache. A sector counts once for each request that
/// touches it. A count far above that of the [`Walk`] means that the lanes of a warp do not access
/// neighbours together.
#[cfg(feature = "interp")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requested {
    /// Requests that read the source.
    pub load: GlobalCounters,
    /// Requests that write the destination.
    pub store: GlobalCounters,
    /// True if every block was counted. Otherwise the counts are within a few per cent.
    pub exact: bool,
}

#[cfg(feature = "interp")]
impl PermutePlan {
    /// Counts the memory requests of the plan's kernel. The software GPU runs the kernel without
    /// the arrays. If the grid has more than 256 blocks, it runs 256 of them, spread over the grid.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the grid exceeds what any GPU allows; `OutOfMemory` if a side spans
    /// more than 2^40 bytes.
    pub fn requested(&self) -> Result<Requested> {
        let Some(shape) = self.shape() else {
            let none = GlobalCounters::default();
            return Ok(Requested { load: none, store: none, exact: true });
        };
        let counted = self
            .counted(MOST_BLOCKS)?
            .into_iter()
            .fold(Counters::default(), |sum, launched| sum + launched.report.counters);
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

    /// Returns the launches of the plan, of which at most `most_blocks` blocks each were counted,
    /// without the arrays. Each block takes its own share of the work: no counter in memory hands
    /// out more.
    ///
    /// # Errors
    ///
    /// As those of [`PermutePlan::requested`].
    #[doc(hidden)]
    pub fn counted(&self, most_blocks: u64) -> Result<Vec<Launched>> {
        let soft = Arc::new(Soft::counting(most_blocks));
        let device = Device::with_driver(soft.clone())?;
        let storage = |bytes: usize, align: Align| -> Result<(DeviceBuffer<u8>, u64)> {
            let storage = device.alloc(bytes.saturating_add(align.lead()))?;
            let address = storage.address() + align.lead() as u64;
            Ok((storage, address))
        };
        // Each side's storage ends with its last element.
        let [source, destination] = self.reach;
        let [src_align, dst_align] = self.aligns;
        let ((_source, src), (_destination, dst)) =
            (storage(source.end, src_align)?, storage(destination.end, dst_align)?);
        let stream = device.default_stream();
        // SAFETY: both storages live until the stream is synchronised, reach to the last element
        // and are aligned as planned; nothing else uses them.
        unsafe { self.launch_raw(&device, src, dst, stream.handle()) }?;
        stream.synchronize()?;
        Ok(soft.take_launches())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::ops::{Align, Plan, Target};

    #[test]
    fn nothing_is_explained_as_nothing() {
        let layout = Layout::row_major(&[0, 4]).unwrap();
        let target = Target::new((9, 0));
        let align = Align::ALLOCATION;
        let explanation = PermutePlan::new(&layout, align, &layout, align, 1, target).unwrap().explain();
        let walk = explanation.walk.unwrap();
        assert_eq!((walk.axes.len(), walk.read_sectors, walk.written_sectors), (0, 0, 0));
        assert_eq!((explanation.read, explanation.written, explanation.verdicts.len()), (0, 0, 0));
    }
}
