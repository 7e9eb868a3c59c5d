//! What a launch did, in all and instruction by instruction.

use std::ops::Deref;

use super::check::Finding;
use super::stop::{AccessKind, Space};
use crate::counters::{Counters, GlobalCounters, SharedCounters};

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
    /// The kernel's instructions that access memory, in the order of the PTX, those included that no warp came to. Loads of
    /// parameters are none where their address is written in the instruction: the hardware has them in its constant cache.
    pub instructions: Vec<InstructionReport>,
    /// What the checkers found, block by block; see [`Config::checks`](super::Config).
    pub findings: Vec<Finding>,
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
    /// The fewest sectors that each access to global memory could have had, summed.
    pub ideal_sectors: u64,
    /// Its accesses to shared memory.
    pub shared: SharedCounters,
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
    /// The active lanes, a bit each.
    pub lanes: u32,
    /// For each lane its address, or in shared memory the offset from its beginning; 0 for lanes that were not active.
    pub addresses: [u64; 32],
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
