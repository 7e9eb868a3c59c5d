//! The report by source line: sums over the instructions that were compiled from one line.

use std::collections::{BTreeMap, HashMap};

use super::{InstructionReport, Report};
use crate::counters::Counters;

/// The report of one line of the source: the sums over the instructions that were compiled from it
/// and access memory, such as the copies that unrolling a loop makes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LineReport {
    /// The file, as the PTX names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The lines of the PTX that hold these instructions, in ascending order.
    pub ptx_lines: Vec<u32>,
    /// The number of times that a warp executed one of them with at least one active lane.
    pub executions: u64,
    /// Active lanes, summed over the executions.
    pub thread_executions: u64,
    /// The line's part of the launch's counters.
    pub counters: Counters,
}

impl Report {
    /// Sums the instructions by the line of the source that they were compiled from. Compilers note
    /// these lines if they are asked to: `nvcc -lineinfo`, `clang -gline-tables-only`.
    ///
    /// Files follow each other as in the PTX, and the lines of a file in ascending order. A line
    /// whose instructions no warp reached has a report of zeros. A line that accesses no memory has
    /// none. Instructions without a line ([`InstructionReport::source_line`]) are left out.
    pub fn lines(&self) -> Vec<LineReport> {
        let (mut files, mut lines) = (HashMap::new(), BTreeMap::new());
        for instruction in &self.instructions {
            let Some((file, line)) = instruction.source_line() else { continue };
            let next = files.len();
            let number = *files.entry(file).or_insert(next);
            lines.entry((number, line)).or_insert_with(|| LineReport::new(file, line)).add(instruction);
        }
        let mut lines: Vec<LineReport> = lines.into_values().collect();
        for line in &mut lines {
            // The instructions of a function come before or after those of its callers.
            line.ptx_lines.sort_unstable();
            line.ptx_lines.dedup();
        }
        lines
    }
}

impl InstructionReport {
    /// Returns the file and the line that it was compiled from: the two parts of
    /// [`source`](Self::source). `None` if the PTX has no line for it, or line 0.
    pub fn source_line(&self) -> Option<(&str, u32)> {
        let (file, line) = self.source.as_deref()?.rsplit_once(':')?;
        Some((file, line.parse().ok().filter(|&line| line > 0)?))
    }
}

impl LineReport {
    fn new(file: &str, line: u32) -> Self {
        let (file, counters) = (file.to_owned(), Counters::default());
        Self { file, line, ptx_lines: Vec::new(), executions: 0, thread_executions: 0, counters }
    }

    fn add(&mut self, instruction: &InstructionReport) {
        self.ptx_lines.push(instruction.line);
        self.executions += instruction.executions;
        self.thread_executions += instruction.thread_executions;
        self.counters += instruction.counters();
    }

    /// The mean number of active lanes of an execution: 32 unless a branch, a guard or an
    /// incomplete warp removed some. `None` if no warp reached the line.
    pub fn active_lanes(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.thread_executions as f64 / self.executions as f64)
    }
}

#[cfg(test)]
mod tests;
