//! Counts accesses for each instruction; a launch's counters are the sums.

use super::block::Launch;
use super::memory::Addresses;
use crate::counters::{Counters, InstructionCounters};
use crate::gpu::check::Finding;
use crate::gpu::code::Site;
use crate::gpu::isa::Op;
use crate::gpu::report::{InstructionReport, Report, WarpAccess};
use crate::gpu::vocabulary::Space;

/// The most bytes that a launch may print, as in CUDA's buffer.
pub(super) const MAX_PRINTED: usize = 1 << 20;

/// The counts of a launch's blocks, or of those that one host thread ran.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// One for each of the code's sites.
    pub(super) tallies: Vec<Tally>,
    pub(super) warp_instructions: u64,
    pub(super) thread_instructions: u64,
    /// The text that each block printed, with the block's number.
    printed: Vec<(u64, Vec<u8>)>,
    /// The length of that text in bytes.
    printed_bytes: usize,
    /// The first findings, and the number of further ones.
    pub(super) findings: Vec<Finding>,
    pub(super) more_findings: u64,
}

/// The least and the greatest value that a look at memory saw. It does not depend on the lanes, if
/// all of them wait for the same value.
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
    /// The values that it last saw, if it looks for changes of memory.
    pub(super) seen: Seen,
    /// The number of executions.
    pub(super) times: u64,
    /// Active lanes, summed over the executions.
    pub(super) lanes: u64,
}

/// The counts of one instruction that accesses memory. With generic addresses it may access several
/// spaces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// The number of times that a warp executed it.
    pub(crate) executions: u64,
    /// Active lanes, summed over the executions.
    pub(crate) lanes: u64,
    /// Its counters.
    pub(crate) counted: InstructionCounters,
    /// The lines of the L1 cache that its requests looked up.
    pub(super) cache_lines: u64,
    pub(super) worst_global: Worst,
    pub(super) worst_shared: Worst,
}

/// The worst access so far; among equals, the first.
#[derive(Debug, Clone, Default)]
pub(super) struct Worst {
    /// The excess in the upper half, the cost in the lower half; 0 before the first access.
    rank: u64,
    access: Option<Box<Sample>>,
}

/// A copy of an access.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// The block's number, counted with x fastest.
    pub(super) block: u64,
    pub(super) warp: u32,
    /// The number of this execution by its warp, from 1.
    pub(super) execution: u64,
    /// Bytes that each lane accesses.
    pub(super) bytes: u32,
    pub(super) lanes: u32,
    /// The addresses; those of inactive lanes mean nothing.
    pub(super) addresses: Addresses,
}

impl Worst {
    /// Keeps the access that `sample` returns if it is worse than the earlier ones: its excess over
    /// the ideal is larger, or equal with a larger cost. Both count sectors or wavefronts.
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

    /// Takes the other's access if it is worse, or as bad but from an earlier block.
    fn merge(&mut self, other: Self) {
        let block = |worst: &Self| worst.access.as_ref().map_or(u64::MAX, |access| access.block);
        if other.rank > self.rank || other.rank == self.rank && block(&other) < block(self) {
            *self = other;
        }
    }
}

impl Totals {
    /// Empty counts for code of `sites` sites.
    pub(super) fn new(sites: usize) -> Self {
        Self { tallies: vec![Tally::default(); sites], ..Self::default() }
    }

    /// Adds the text that a block printed after that of earlier blocks.
    pub(super) fn print(&mut self, block: u64, text: Vec<u8>) {
        // Text past this limit among one thread's blocks is also past it in the whole launch.
        if !text.is_empty() && self.printed_bytes <= MAX_PRINTED {
            self.printed_bytes += text.len();
            self.printed.push((block, text));
        }
    }

    /// Adds the counts of other blocks. The result does not depend on which thread ran which
    /// blocks.
    pub(super) fn merge(&mut self, other: Self) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.printed.extend(other.printed);
        // Findings come from one host thread only: with checkers there is only one.
        self.findings.extend(other.findings);
        self.more_findings += other.more_findings;
        for (tally, other) in self.tallies.iter_mut().zip(other.tallies) {
            tally.executions += other.executions;
            tally.lanes += other.lanes;
            tally.counted += other.counted;
            tally.cache_lines += other.cache_lines;
            tally.worst_global.merge(other.worst_global);
            tally.worst_shared.merge(other.worst_shared);
        }
    }

    /// The text printed by the blocks up to this one. Later blocks may or may not have run.
    pub(super) fn printed_until(mut self, block: u64) -> String {
        self.printed.retain(|(number, _)| *number <= block);
        in_order(self.printed)
    }

    /// Makes the report.
    pub(super) fn report(self, launch: &Launch) -> Report {
        // The read of a copy stands for both its halves.
        let is_row = |site: &Site| launch.code.instructions[site.pc as usize].op != Op::CopyWrite;
        let rows = launch.code.sites.iter().zip(self.tallies).filter(|(site, _)| is_row(site));
        let instructions: Vec<_> = rows.map(|(site, tally)| instruction(launch, site, tally)).collect();
        Report {
            counters: instructions.iter().fold(Counters::default(), |sum, row| sum + row.counters()),
            warp_instructions: self.warp_instructions,
            thread_instructions: self.thread_instructions,
            shared_bytes: launch.shared_bytes(),
            has_local_memory: launch.code.most_local() > 0,
            printed: in_order(self.printed),
            instructions,
            findings: self.findings,
            more_findings: self.more_findings,
            ..Report::default()
        }
    }
}

/// Joins the text of the blocks, up to the limit.
fn in_order(mut printed: Vec<(u64, Vec<u8>)>) -> String {
    printed.sort_by_key(|(block, _)| *block);
    let mut all: Vec<u8> = printed.into_iter().flat_map(|(_, text)| text).take(MAX_PRINTED + 1).collect();
    if all.len() > MAX_PRINTED {
        all.truncate(MAX_PRINTED);
        all.extend(b"\n(what the kernel printed beyond this is lost)\n");
    }
    String::from_utf8_lossy(&all).into_owned()
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
        round: site.round,
        executions: tally.executions,
        thread_executions: tally.lanes,
        counted: tally.counted,
        cache_lines: tally.cache_lines,
        worst_global: access(tally.worst_global, Space::Global),
        worst_shared: access(tally.worst_shared, Space::Shared),
    }
}
