//! Counts instruction by instruction; a launch's counters are their sums.

use super::block::Launch;
use super::memory::Addresses;
use crate::counters::{Counters, GlobalCounters, SharedCounters};
use crate::interp::check::Finding;
use crate::interp::code::Site;
use crate::interp::report::{InstructionReport, Report, WarpAccess};
use crate::interp::stop::{AccessKind, Space};

/// What the blocks of a launch did, or those that one host thread ran.
#[derive(Debug)]
pub(super) struct Totals {
    /// One for each of the code's sites.
    pub(super) tallies: Vec<Tally>,
    pub(super) warp_instructions: u64,
    pub(super) thread_instructions: u64,
}

/// What one instruction that accesses memory did. A generic address may have led it to several spaces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Times that a warp executed it.
    pub(crate) executions: u64,
    /// Active lanes, summed over the executions.
    pub(crate) lanes: u64,
    /// Its accesses to global memory.
    pub(crate) global: GlobalCounters,
    /// The fewest sectors that those could have had.
    pub(crate) ideal_sectors: u64,
    /// Its accesses to shared memory.
    pub(crate) shared: SharedCounters,
    /// The loads of the loop that it is in shared memory, if it is an atomic and one.
    pub(crate) loop_loads: SharedCounters,
    pub(super) worst_global: Worst,
    pub(super) worst_shared: Worst,
}

/// The worst access so far, the first of several.
#[derive(Debug, Clone, Default)]
pub(super) struct Worst {
    /// 0 before the first access.
    rank: u32,
    access: Option<Box<Sample>>,
}

/// An access as it was.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// The block's number, counted with x fastest.
    pub(super) block: u64,
    pub(super) warp: u32,
    /// The how many-th of its warp, from 1.
    pub(super) execution: u64,
    /// Bytes of each lane.
    pub(super) bytes: u32,
    pub(super) lanes: u32,
    /// Of inactive lanes, anything.
    pub(super) addresses: Addresses,
}

impl Worst {
    /// Keeps the access that `sample` gives if it is worse than those before: it takes more beyond the ideal, or as much
    /// and more in all. `taken` and `ideal` are sectors or wavefronts, at most 64.
    #[inline(always)]
    pub(super) fn note(&mut self, taken: u32, ideal: u32, sample: impl FnOnce() -> Sample) {
        let rank = taken.saturating_sub(ideal) << 8 | taken;
        if rank > self.rank {
            self.keep(rank, sample());
        }
    }

    #[cold]
    fn keep(&mut self, rank: u32, sample: Sample) {
        *self = Self { rank, access: Some(Box::new(sample)) };
    }

    /// Takes the other's access if it is worse, or as bad and of an earlier block.
    fn merge(&mut self, other: Self) {
        let block = |worst: &Self| worst.access.as_ref().map_or(u64::MAX, |access| access.block);
        if other.rank > self.rank || other.rank == self.rank && block(&other) < block(self) {
            *self = other;
        }
    }
}

impl Totals {
    /// Nothing done yet by code of so many sites.
    pub(super) fn new(sites: usize) -> Self {
        Self { tallies: vec![Tally::default(); sites], warp_instructions: 0, thread_instructions: 0 }
    }

    /// Adds what other blocks did. The result does not depend on who ran which blocks.
    pub(super) fn merge(&mut self, other: Self) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        for (tally, other) in self.tallies.iter_mut().zip(other.tallies) {
            tally.executions += other.executions;
            tally.lanes += other.lanes;
            tally.global += other.global;
            tally.ideal_sectors += other.ideal_sectors;
            tally.shared += other.shared;
            tally.loop_loads += other.loop_loads;
            tally.worst_global.merge(other.worst_global);
            tally.worst_shared.merge(other.worst_shared);
        }
    }

    /// What is told of it.
    pub(super) fn report(self, launch: &Launch, findings: Vec<Finding>) -> Report {
        let sites = &launch.code.sites;
        Report {
            counters: counters(sites, &self.tallies),
            warp_instructions: self.warp_instructions,
            thread_instructions: self.thread_instructions,
            findings,
            instructions: sites
                .iter()
                .zip(self.tallies)
                .map(|(site, tally)| instruction(launch, site, tally))
                .collect(),
        }
    }
}

/// What all instructions did together.
fn counters(sites: &[Site], tallies: &[Tally]) -> Counters {
    let mut total = Counters::default();
    for (site, tally) in sites.iter().zip(tallies) {
        let (global, shared) = match site.kind {
            AccessKind::Load => (&mut total.global_load, &mut total.shared_load),
            AccessKind::Store => (&mut total.global_store, &mut total.shared_store),
            AccessKind::Atomic => (&mut total.global_atomic, &mut total.shared_atomic),
            // Shared memory has no reductions.
            AccessKind::Reduction => (&mut total.global_reduction, &mut total.shared_atomic),
        };
        *global += tally.global;
        *shared += tally.shared;
        total.shared_load += tally.loop_loads;
    }
    total
}

fn instruction(launch: &Launch, site: &Site, tally: Tally) -> InstructionReport {
    let (origin, listing) = (&launch.code.origins[site.pc as usize], &launch.kernel.listing);
    let access = |worst: Worst, space| {
        let Sample { block, warp, execution, bytes, lanes, addresses } = *worst.access?;
        let active = |lane: usize| if lanes >> lane & 1 == 1 { addresses[lane] } else { 0 };
        let (block, addresses) = (launch.block(block), std::array::from_fn(active));
        Some(WarpAccess { block, warp, execution, kind: site.kind, space, bytes, lanes, addresses })
    };
    InstructionReport {
        line: origin.span.line,
        instruction: listing.line(origin.span),
        source: origin.source.and_then(|source| listing.source(source)),
        kind: site.kind,
        executions: tally.executions,
        thread_executions: tally.lanes,
        global: tally.global,
        ideal_sectors: tally.ideal_sectors,
        shared: tally.shared,
        loop_loads: tally.loop_loads,
        worst_global: access(tally.worst_global, Space::Global),
        worst_shared: access(tally.worst_shared, Space::Shared),
    }
}
