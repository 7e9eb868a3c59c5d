//! What a launch did, in all and instruction by instruction, and drawings of single accesses.

mod draw;
mod rows;
mod svg;

use std::ops::Deref;

use super::check::Finding;
use super::vocabulary::{AccessKind, Space};
use crate::counters::{Counters, GlobalCounters, SharedCounters};
use crate::error::counted;

/// What a launch did. Its counters can be read as if they were its own: `report.shared_load.bank_conflicts`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Report {
    /// What it did to memory, in all.
    pub counters: Counters,
    /// Instructions that warps executed, whether or not their guard held anywhere.
    pub warp_instructions: u64,
    /// The same, times the lanes that were active.
    pub thread_instructions: u64,
    /// What `printf` in the kernel printed, block after block; beyond 1 MiB it ends in a note.
    pub printed: String,
    /// The kernel's instructions that access memory, in the order of the PTX, those included that no warp came to. Loads of
    /// parameters are none where their address is written in the instruction: the hardware has them in its constant cache.
    pub instructions: Vec<InstructionReport>,
    /// What the checkers found, block by block; see [`Config::checks`](super::Config). Of many the first
    /// [`MAX_FINDINGS`](super::check::MAX_FINDINGS).
    pub findings: Vec<Finding>,
    /// How many they found besides, up to four million.
    pub more_findings: u64,
}

/// What one instruction that accesses memory did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InstructionReport {
    /// Line of the PTX, from 1.
    pub line: u32,
    /// The instruction as written.
    pub instruction: String,
    /// File and line that it was compiled from, such as `transpose.rs:44`, where the PTX tells.
    pub source: Option<String>,
    /// What it does to memory.
    pub kind: AccessKind,
    /// How many times a warp executed it with at least one active lane.
    pub executions: u64,
    /// Lanes that were active, summed over the executions.
    pub thread_executions: u64,
    /// Its accesses to global memory. An address of no space may have led it to several spaces.
    pub global: GlobalCounters,
    /// Of each of them the fewest sectors that it could have had, summed:
    /// [`ideal_sectors`](super::model::coalesce::ideal_sectors).
    pub ideal_sectors: u64,
    /// Its accesses to shared memory.
    pub shared: SharedCounters,
    /// Of each of them the fewest wavefronts that it could have had, summed: those of
    /// [`banks`](super::model::banks::ideal_wavefronts), or of [`atomics`](super::model::atomics::ideal_wavefronts).
    pub ideal_wavefronts: u64,
    /// Of an atomic that the hardware has no instruction for in shared memory, the loads of the loop that takes its place:
    /// part of the launch's loads.
    pub loop_loads: SharedCounters,
    /// Of its accesses to global memory the one with the most sectors beyond the ideal ones, and of several the first.
    pub worst_global: Option<WarpAccess>,
    /// Of its accesses to shared memory the one with the most bank conflicts, and of several the first.
    pub worst_shared: Option<WarpAccess>,
}

/// One access: the addresses that the lanes of one warp had when it executed one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WarpAccess {
    /// `blockIdx` in x, y, z.
    pub block: [u32; 3],
    /// The warp's number in its block.
    pub warp: u32,
    /// The how many-th time it was that this warp executed the instruction, from 1.
    pub execution: u64,
    /// What was done.
    pub kind: AccessKind,
    /// Where: global or shared memory.
    pub space: Space,
    /// Bytes that each lane accessed.
    pub bytes: u32,
    /// Sectors or wavefronts that it took.
    pub taken: u32,
    /// How many of them an ideal access would not take: of wavefronts, the bank conflicts.
    pub excess: u32,
    /// For each lane its address, or in shared memory the offset from its beginning; `None` for lanes that were not active.
    pub addresses: [Option<u64>; 32],
}

impl Report {
    /// The first instruction, in the order of the PTX, whose text contains `text`: an opcode such as `ld.shared`, or more
    /// where that is not enough.
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

impl InstructionReport {
    /// Active lanes of an execution, on average: 32 where no branch, guard or ragged block took any away. `None` where it was
    /// not executed.
    pub fn active_lanes(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.thread_executions as f64 / self.executions as f64)
    }
}

impl WarpAccess {
    /// Who did what: the first line of a drawing.
    fn heading(&self) -> String {
        let [x, y, z] = self.block;
        let lanes = self.lanes().count_ones();
        let (verb, s) = match self.kind {
            AccessKind::Load => ("load", if lanes == 1 { "s" } else { "" }),
            AccessKind::Store => ("store", if lanes == 1 { "s" } else { "" }),
            AccessKind::Atomic | AccessKind::Reduction => ("update", if lanes == 1 { "s" } else { "" }),
        };
        let each = if lanes == 1 { "" } else { " each" };
        let (lanes, bytes) = (counted(lanes, "lane"), counted(self.width(), "byte"));
        let (warp, execution) = (self.warp, self.execution);
        format!("block ({x}, {y}, {z}), warp {warp}, execution {execution}: {lanes} {verb}{s} {bytes}{each}")
    }

    /// What that takes of the memory system: the second line.
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
        // Each lane's update is one of its own; lanes that load or store one address share it.
        let pieces = if self.kind.is_update() { self.lanes().count_ones() } else { self.pieces(u32::MAX).len() as u32 };
        let (moved, used) = (32 * taken, pieces * self.width());
        let share = (1000.0 * f64::from(used) / f64::from(moved.max(1))).round() / 10.0;
        format!("{verdict}: {used} of {moved} asked for, {share} %", moved = counted(moved, "byte"))
    }
}
