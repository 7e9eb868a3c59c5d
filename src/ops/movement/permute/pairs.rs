//! Moves several pairs of a source and a destination, whose layouts are alike, in one launch.

use std::fmt;

use super::PermutePlan;
use super::launch::{Launch as OfOne, Recipe};
use crate::abi::{
    COPY, COPY_PAIRS, CopyPairsParams, CopyParams, Divisor, ELEMENTS, ELEMENTS_PAIRS, ElementsPairsParams,
    ElementsParams, EntryId, PAIRS, PAIRS_AXES, PATCH, PATCH_PAIRS, Pair, PatchPairsParams, PatchParams, SMALL_TILE,
    SMALL_TILE_PAIRS, STAGGERED, STAGGERED_PAIRS, TransposePairsParams, TransposeParams,
};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::{Result, require};
use crate::launch_shape::MAX_GRID_YZ;
use crate::ops::Align;
use crate::ops::operand::{check_aligned, check_apart};
use crate::ops::plan::{AnyStep, Step, placed};

/// A plan that several pairs of storages share, with one launch for all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairsPlan {
    /// The plan of one pair.
    one: PermutePlan,
    pairs: usize,
    launch: Launch,
}

/// The launch, by the parameters of its kernel.
#[derive(Debug, Clone, Copy)]
enum Launch {
    Copy(Step<CopyPairsParams>),
    Elements(Step<ElementsPairsParams>),
    Patch(Step<PatchPairsParams>),
    Transpose(Step<TransposePairsParams>),
}

impl PairsPlan {
    /// Most pairs of a launch.
    pub(crate) const MOST: usize = PAIRS;

    /// Plans a launch for so many pairs, at most [`PairsPlan::MOST`], that each move as this plan
    /// says; `None` if its kernel moves one pair only.
    pub(crate) fn of(one: &PermutePlan, pairs: usize) -> Option<Self> {
        let work = one.work.as_ref()?;
        let entry = entry_of_pairs(work)?;
        let mut shape = work.step().shape();
        let images = shape.grid[2];
        shape.grid[2] = images.checked_mul(u32::try_from(pairs).ok()?).filter(|&layers| layers <= MAX_GRID_YZ)?;
        let others = NO_OTHERS;
        let launch = match work {
            OfOne::Copy(Step { params, .. }) => {
                Launch::Copy(Step { entry, shape, params: CopyPairsParams { first: *params, others } })
            }
            OfOne::Elements(step) => {
                let ElementsParams { src, dst, len, rank, axes } = step.params.params(&one.layouts());
                let axes = *axes.first_chunk::<PAIRS_AXES>().filter(|_| rank <= PAIRS_AXES as u64)?;
                let params = ElementsPairsParams { first: Pair { src, dst }, len, rank, axes, others };
                Launch::Elements(Step { entry, shape, params })
            }
            OfOne::Patch(Step { params, .. }) => {
                let images = Divisor::narrow(images.into());
                Launch::Patch(Step { entry, shape, params: PatchPairsParams { first: *params, images, others } })
            }
            OfOne::Matrix(Step { params, .. }) => {
                Launch::Transpose(Step { entry, shape, params: TransposePairsParams { first: *params, others } })
            }
            _ => return None,
        };
        Some(Self { one: *one, pairs, launch })
    }

    fn step(&self) -> &dyn AnyStep<[Pair; PAIRS]> {
        match &self.launch {
            Launch::Copy(step) => step,
            Launch::Elements(step) => step,
            Launch::Patch(step) => step,
            Launch::Transpose(step) => step,
        }
    }

    /// Queues the copies between storages at these addresses: of a source, and of a destination.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::launch_raw`]; `InvalidArgument` also for another number of pairs.
    ///
    /// # Safety
    ///
    /// As [`PermutePlan::launch_raw`] for each pair. No two pairs write the same element, and none
    /// reads what another one writes.
    pub(crate) unsafe fn launch_raw(&self, device: &Device, pairs: &[[u64; 2]], stream: StreamHandle) -> Result<()> {
        let planned = self.pairs;
        require!(
            pairs.len() == planned,
            InvalidArgument,
            "the launch was planned for {planned} pairs and got {}; give as many",
            pairs.len()
        );
        let [src_align, dst_align] = self.one.aligns.map(Align::bytes);
        let [from, to] = self.one.reach;
        let mut all = [Pair { src: 0, dst: 0 }; PAIRS];
        for (pair, &[src, dst]) in all.iter_mut().zip(pairs) {
            check_aligned(&[("source", src, src_align), ("destination", dst, dst_align)])?;
            check_apart(from.at(src), to.at(dst))?;
            *pair = Pair { src, dst };
        }
        // SAFETY: the grid has blocks for these pairs alone. For each, the kernel writes exactly
        // the elements of the planned destination and reads those of the source, in accesses that
        // the alignments allow. The rest as the caller promises.
        unsafe { self.step().queue(device, all, stream) }
    }
}

/// Returns the kernel for pairs that does as this launch of one pair, if there is one.
fn entry_of_pairs(work: &OfOne) -> Option<EntryId> {
    let one = match work {
        OfOne::Copy(step) => step.entry,
        OfOne::Elements(step) => step.entry,
        OfOne::Patch(step) => step.entry,
        OfOne::Matrix(step) => step.entry,
        _ => return None,
    };
    let families = [
        (COPY, COPY_PAIRS),
        (ELEMENTS, ELEMENTS_PAIRS),
        (PATCH, PATCH_PAIRS),
        (SMALL_TILE, SMALL_TILE_PAIRS),
        (STAGGERED, STAGGERED_PAIRS),
    ];
    families.into_iter().find(|(family, _)| family.has(one))?.1.find(one.key())
}

/// The pairs after the first one before they have addresses.
const NO_OTHERS: [Pair; PAIRS - 1] = [Pair { src: 0, dst: 0 }; PAIRS - 1];

/// Returns the first pair and the others, each with the starts of the planned layouts added.
fn started(starts: Pair, pairs: [Pair; PAIRS]) -> (Pair, [Pair; PAIRS - 1]) {
    let [first, others @ ..] =
        pairs.map(|Pair { src, dst }| Pair { src: src.wrapping_add(starts.src), dst: dst.wrapping_add(starts.dst) });
    (first, others)
}

placed! {
    CopyPairsParams: |own, pairs: [Pair; PAIRS]| {
        let CopyParams { src, dst, .. } = own.first;
        let (Pair { src, dst }, others) = started(Pair { src, dst }, pairs);
        Self { first: CopyParams { src, dst, ..own.first }, others }
    };
    ElementsPairsParams: |own, pairs: [Pair; PAIRS]| {
        let (first, others) = started(own.first, pairs);
        Self { first, others, ..own }
    };
    PatchPairsParams: |own, pairs: [Pair; PAIRS]| {
        let PatchParams { src, dst, .. } = own.first;
        let (Pair { src, dst }, others) = started(Pair { src, dst }, pairs);
        Self { first: PatchParams { src, dst, ..own.first }, others, ..own }
    };
    TransposePairsParams: |own, pairs: [Pair; PAIRS]| {
        let TransposeParams { src, dst, .. } = own.first;
        let (Pair { src, dst }, others) = started(Pair { src, dst }, pairs);
        Self { first: TransposeParams { src, dst, ..own.first }, others }
    };
}

impl fmt::Display for PairsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.step();
        write!(f, "{}: {} pairs, {}, each as {}", step.entry(), self.pairs, step.shape(), self.one)
    }
}
