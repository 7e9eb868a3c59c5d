//! The report of a launch: its counters in all, for each instruction and for each line of the
//! source, and drawings of single accesses.

mod draw;
mod lines;
mod rows;
mod svg;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

pub use lines::LineReport;

use super::check::Finding;
use super::mem::Touched;
use super::vocabulary::{AccessKind, Space};
use crate::counters::{Counters, InstructionCounters};
use crate::error::counted;

/// The report of a launch. It dereferences to its counters: `report.shared_load.bank_conflicts`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Report {
    /// The memory counters of the whole launch.
    pub counters: Counters,
    /// Instructions of the PTX that warps executed. One counts even if its guard held in no lane.
    pub warp_instructions: u64,
    /// The same instructions, each counted once for every active lane.
    pub thread_instructions: u64,
    /// Shared memory of a block in bytes, static and dynamic.
    pub shared_bytes: u64,
    /// The output of `printf` in the kernel, block after block. It ends in a note if it exceeds 1
    /// MiB.
    pub printed: String,
    /// The kernel's instructions that access memory, in the order of the PTX, even if no warp
    /// reached them. Loads of parameters are left out if the instruction contains their address:
    /// the hardware reads those from its constant cache.
    pub instructions: Vec<InstructionReport>,
    /// The bytes of global memory that the launch touched; `None` unless
    /// [`Config::footprint`](super::Config) asks for them.
    pub footprint: Option<Footprint>,
    /// The sectors that hold the footprint: loaded, and stored, each whole or in part.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub touched_sectors: Option<[u64; 2]>,
    /// The bytes of the footprint.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub touched: Option<Arc<Touched>>,
    /// True if threads have local memory.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub has_local_memory: bool,
    /// The findings of the checkers, block by block, at most the first
    /// [`MAX_FINDINGS`](super::check::MAX_FINDINGS); see [`Config::checks`](super::Config).
    pub findings: Vec<Finding>,
    /// The number of further findings, up to four million.
    pub more_findings: u64,
}

/// The bytes of global memory that a launch cannot avoid to move: each byte counts once if it is
/// loaded and once if it is stored, however often that happens. Atomics load and store.
///
/// A cache may serve a second load of a byte, so the sectors that [`Counters`] counts may hold more
/// bytes. GB/s by a footprint is what benchmarks of memory call effective bandwidth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Footprint {
    /// Distinct bytes that were loaded.
    pub read: u64,
    /// Distinct bytes that were stored.
    pub written: u64,
}

/// The report of one instruction that accesses memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InstructionReport {
    /// Line of the PTX, from 1.
    pub line: u32,
    /// The instruction as written.
    pub instruction: String,
    /// File and line that it was compiled from, such as `transpose.rs:44`, if the PTX has them; the
    /// file alone if the PTX has line 0, which compilers give to instructions that no line asked
    /// for.
    pub source: Option<String>,
    /// Its effect on memory.
    pub kind: AccessKind,
    /// The round that it is part of, if a warp waits for its result. Loads of one round are in
    /// flight together.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub round: Option<u32>,
    /// The number of times that a warp executed it with at least one active lane.
    pub executions: u64,
    /// Active lanes, summed over the executions.
    pub thread_executions: u64,
    /// Its counters, to which it dereferences: `instruction.global.sectors`.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub counted: InstructionCounters,
    /// Lines of 128 bytes in global memory that it touched, summed over its requests.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cache_lines: u64,
    /// The access to global memory that exceeds its ideal sectors by most; among equals, the first.
    pub worst_global: Option<WarpAccess>,
    /// The access to shared memory with the most bank conflicts; among equals, the first.
    pub worst_shared: Option<WarpAccess>,
}

/// One access: the addresses of the lanes of one warp when it executed one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WarpAccess {
    /// `blockIdx` in x, y, z.
    pub block: [u32; 3],
    /// The warp's number in its block.
    pub warp: u32,
    /// How often this warp had executed the instruction, this time included: from 1.
    pub execution: u64,
    /// The kind of access.
    pub kind: AccessKind,
    /// Global or shared memory.
    pub space: Space,
    /// Bytes that each lane accessed.
    pub bytes: u32,
    /// Sectors or wavefronts that the access took.
    pub taken: u32,
    /// Sectors or wavefronts beyond those of an ideal access. For wavefronts, these are the bank
    /// conflicts.
    pub excess: u32,
    /// The address of each lane; for shared memory, its offset from the beginning. `None` for
    /// inactive lanes.
    pub addresses: [Option<u64>; 32],
}

impl Report {
    /// Returns how often warps waited for loads from global memory, summed over the warps. They
    /// wait once for loads that are in flight together.
    #[doc(hidden)]
    pub fn rounds(&self) -> u64 {
        let mut rounds = BTreeMap::new();
        for instruction in &self.instructions {
            if let Some(round) = instruction.round {
                // A generic load may lead to shared memory, for which nothing waits long.
                let most = rounds.entry(round).or_insert(0);
                *most = instruction.counted.global.requests.max(*most);
            }
        }
        rounds.values().sum()
    }

    /// Returns the lines of 128 bytes in global memory that requests touched, summed over the
    /// requests: those of loads, and of all others.
    #[doc(hidden)]
    pub fn cache_lines(&self) -> [u64; 2] {
        let sum = |is_load: bool| {
            let of = self.instructions.iter().filter(|row| (row.kind == AccessKind::Load) == is_load);
            of.map(|row| row.cache_lines).sum()
        };
        [sum(true), sum(false)]
    }

    /// Finds the first instruction, in the order of the PTX, whose text contains `text`: an opcode
    /// such as `ld.shared`, or a longer part of the line.
    pub fn instruction(&self, text: &str) -> Option<&InstructionReport> {
        self.instructions.iter().find(|instruction| instruction.instruction.contains(text))
    }
}

impl Deref for Report {
    type Target = Counters;

    fn deref(&self) -> &Counters {
        &self.counters
    }
}

impl Deref for InstructionReport {
    type Target = InstructionCounters;

    fn deref(&self) -> &InstructionCounters {
        &self.counted
    }
}

impl InstructionReport {
    /// The mean number of active lanes of an execution: 32 unless a branch, a guard or an
    /// incomplete warp removed some. `None` if the instruction never executed.
    pub fn active_lanes(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.thread_executions as f64 / self.executions as f64)
    }

    /// Its accesses as a part of the launch's counters: those of all instructions add up to
    /// [`Report::counters`].
    pub fn counters(&self) -> Counters {
        self.counted.of_launch(self.kind.operation())
    }

    /// The title of a drawing: the line of the source where the PTX has that, the line of the PTX,
    /// and the instruction.
    pub fn title(&self) -> String {
        let Self { line, instruction, source, .. } = self;
        match source {
            Some(source) => format!("{source} (PTX line {line}): {instruction}"),
            None => format!("PTX line {line}: {instruction}"),
        }
    }
}

impl WarpAccess {
    /// The first line of a drawing: the place of the access and its lanes.
    fn heading(&self) -> String {
        let [x, y, z] = self.block;
        let lanes = self.lanes().count_ones();
        let (verb, [s, each]) = (self.kind.verb(), if lanes == 1 { ["s", ""] } else { ["", " each"] });
        let (lanes, bytes) = (counted(lanes, "lane"), counted(self.width(), "byte"));
        let (warp, execution) = (self.warp, self.execution);
        format!("block ({x}, {y}, {z}), warp {warp}, execution {execution}: {lanes} {verb}{s} {bytes}{each}")
    }

    /// The second line of a drawing: the cost of the access in the memory system.
    fn cost(&self) -> String {
        if self.space == Space::Shared {
            let wavefronts = counted(self.taken, "wavefront");
            if self.excess == 0 {
                return format!("{wavefronts}: no bank conflict");
            }
            let ideal = self.taken - self.excess;
            return format!("{wavefronts} where {ideal} would do: {}", counted(self.excess, "bank conflict"));
        }
        let (taken, ideal) = (self.taken, self.taken - self.excess);
        let sectors = counted(taken, "sector");
        let verdict = if taken > ideal { format!("{sectors} where {ideal} would do") } else { sectors.to_string() };
        // Each lane's update counts by itself; lanes that load or store the same address share it.
        let pieces = if self.kind.is_update() { self.lanes().count_ones() } else { self.pieces(u32::MAX).len() as u32 };
        let (moved, used) = (32 * taken, pieces * self.width());
        let share = (1000.0 * f64::from(used) / f64::from(moved.max(1))).round() / 10.0;
        format!("{verdict}: {used} of {moved} asked for, {share} %", moved = counted(moved, "byte"))
    }
}
