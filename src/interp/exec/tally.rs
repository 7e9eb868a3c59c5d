//! Counts instruction by instruction; a launch's counters are their sums.

use super::block::Launch;
use super::memory::Addresses;
use crate::counters::{Counters, GlobalCounters, SharedCounters};
use crate::interp::code::Site;
use crate::interp::report::{InstructionReport, Report, WarpAccess};
use crate::interp::vocabulary::{AccessKind, Space};

/// Bytes that a launch may print; CUDA's buffer has as many.
pub(super) const MAX_PRINTED: usize = 1 << 20;

/// What the blocks of a launch did, or those that one host thread ran.
#[derive(Debug)]
pub(super) struct Totals {
    /// One for each of the code's sites.
    pub(super) tallies: Vec<Tally>,
    pub(super) warp_instructions: u64,
    pub(super) thread_instructions: u64,
    /// What blocks printed, each with its number.
    printed: Vec<(u64, Vec<u8>)>,
    /// Bytes of it.
    printed_bytes: usize,
}

/// The least and the greatest value that a look at memory saw: alike for any lanes that wait for
/// one thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    least: u64,
    greatest: u64,
}

impl Seen {
    pub(super) const NOTHING: Self = Self { least: u64::MAX, greatest: 0 };

    pub(super) fn add(&mut self, value: u64) {
        (self.least, self.greatest) = (self.least.min(value), self.greatest.max(value));
    }
}

/// How a warp executed an instruction in its block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Executed {
    /// What it saw last, if it looks for changes of memory.
    pub(super) seen: Seen,
    /// How many times.
    pub(super) times: u64,
    /// Active lanes, summed over those.
    pub(super) lanes: u64,
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
    /// The fewest sectors that those could have had, as [`crate::interp::model::coalesce::ideal_sectors`] says.
    pub(crate) ideal_sectors: u64,
    /// Its accesses to shared memory.
    pub(crate) shared: SharedCounters,
    /// The fewest wavefronts that those could have had, as [`crate::interp::model::banks::ideal_wavefronts`] says, or of
    /// atomics [`crate::interp::model::atomics::ideal_wavefronts`].
    pub(crate) ideal_wavefronts: u64,
    /// The loads of the loop that it is in shared memory, if it is an atomic and one.
    pub(crate) loop_loads: SharedCounters,
    pub(super) worst_global: Worst,
    pub(super) worst_shared: Worst,
}

/// The worst access so far, the first of several.
#[derive(Debug, Clone, Default)]
pub(super) struct Worst {
    /// Excess and all that it took; 0 before the first access.
    rank: u64,
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
    /// Keeps the access that `sample` gives if it is worse than those before: it takes more in `excess` of the ideal, or as
    /// much and more in all. Both are sectors or wavefronts.
    #[inline(always)]
    pub(super) fn note(&mut self, taken: u32, excess: u32, sample: impl FnOnce() -> Sample) {
        let rank = u64::from(excess) << 32 | u64::from(taken);
        if rank > self.rank {
            self.keep(rank, sample);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep(&mut self, rank: u64, sample: impl FnOnce() -> Sample) {
        *self = Self { rank, access: Some(Box::new(sample())) };
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
        Self {
            tallies: vec![Tally::default(); sites],
            warp_instructions: 0,
            thread_instructions: 0,
            printed: Vec::new(),
            printed_bytes: 0,
        }
    }

    /// Adds what a block printed, behind those before it.
    pub(super) fn print(&mut self, block: u64, text: Vec<u8>) {
        // What is behind this much of one thread's blocks is behind it in the launch's.
        if !text.is_empty() && self.printed_bytes <= MAX_PRINTED {
            self.printed_bytes += text.len();
            self.printed.push((block, text));
        }
    }

    /// Adds what other blocks did. The result does not depend on who ran which blocks.
    pub(super) fn merge(&mut self, other: Self) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.printed.extend(other.printed);
        for (tally, other) in self.tallies.iter_mut().zip(other.tallies) {
            tally.executions += other.executions;
            tally.lanes += other.lanes;
            tally.global += other.global;
            tally.ideal_sectors += other.ideal_sectors;
            tally.shared += other.shared;
            tally.loop_loads += other.loop_loads;
            tally.ideal_wavefronts += other.ideal_wavefronts;
            tally.worst_global.merge(other.worst_global);
            tally.worst_shared.merge(other.worst_shared);
        }
    }

    /// What the blocks up to this one printed. Later ones may have run or not.
    pub(super) fn printed_until(mut self, block: u64) -> String {
        self.printed.retain(|(number, _)| *number <= block);
        in_order(self.printed)
    }

    /// What is told of it.
    pub(super) fn report(self, launch: &Launch) -> Report {
        let sites = &launch.code.sites;
        Report {
            counters: counters(sites, &self.tallies),
            warp_instructions: self.warp_instructions,
            thread_instructions: self.thread_instructions,
            printed: in_order(self.printed),
            findings: Vec::new(),
            more_findings: 0,
            instructions: sites
                .iter()
                .zip(self.tallies)
                .map(|(site, tally)| instruction(launch, site, tally))
                .collect(),
        }
    }
}

/// What blocks printed, as one text: as much as there is room for.
fn in_order(mut printed: Vec<(u64, Vec<u8>)>) -> String {
    printed.sort_by_key(|(block, _)| *block);
    let mut all: Vec<u8> = printed.into_iter().flat_map(|(_, text)| text).take(MAX_PRINTED + 1).collect();
    if all.len() > MAX_PRINTED {
        all.truncate(MAX_PRINTED);
        all.extend(b"\n(what the kernel printed beyond this is lost)\n");
    }
    String::from_utf8_lossy(&all).into_owned()
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
    let (origin, listing) = (&launch.code.origins[site.pc as usize], &launch.kernel.source.listing);
    let access = |worst: Worst, space| {
        let (excess, taken) = ((worst.rank >> 32) as u32, worst.rank as u32);
        let Sample { block, warp, execution, bytes, lanes, addresses } = *worst.access?;
        let active = |lane: usize| (lanes >> lane & 1 == 1).then_some(addresses[lane]);
        let (block, addresses) = (launch.block(block), std::array::from_fn(active));
        Some(WarpAccess { block, warp, execution, kind: site.kind, space, bytes, taken, excess, addresses })
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
        ideal_wavefronts: tally.ideal_wavefronts,
        worst_global: access(tally.worst_global, Space::Global),
        worst_shared: access(tally.worst_shared, Space::Shared),
    }
}
