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
mod tests {
    use super::*;
    use crate::counters::InstructionCounters;
    use crate::gpu::vocabulary::AccessKind;

    /// An instruction that no warp reached.
    fn instruction(line: u32, source: Option<&str>) -> InstructionReport {
        InstructionReport {
            line,
            instruction: "ld.global.f32 %f1, [%rd1]".into(),
            source: source.map(Into::into),
            kind: AccessKind::Load,
            round: None,
            cache_lines: 0,
            executions: 0,
            thread_executions: 0,
            counted: InstructionCounters::default(),
            worst_global: None,
            worst_shared: None,
        }
    }

    fn places(lines: &[LineReport]) -> Vec<(&str, u32)> {
        lines.iter().map(|line| (line.file.as_str(), line.line)).collect()
    }

    #[test]
    fn lines_are_in_order_within_files_and_files_as_in_the_ptx() {
        let sources = ["k.cu:12", "k.cu:3", "lib/a.cuh:5", "k.cu:100", "C:/a:b.cuh:2", "lib/a.cuh:4"];
        // A copy of a line may stand before it in the PTX, and two of its instructions in one line.
        let placed = (3..).zip(sources).chain([(1, "k.cu:3"), (1, "k.cu:3")]);
        let instructions = placed.map(|(at, source)| instruction(at, Some(source)));
        let report = Report { instructions: instructions.collect(), ..Report::default() };
        let expected =
            [("k.cu", 3), ("k.cu", 12), ("k.cu", 100), ("lib/a.cuh", 4), ("lib/a.cuh", 5), ("C:/a:b.cuh", 2)];
        let lines = report.lines();
        assert_eq!((places(&lines), &lines[0].ptx_lines[..]), (expected.into(), &[1, 4][..]));
    }

    #[test]
    fn what_has_no_line_has_no_row() {
        let none = [None, Some("k.cu"), Some("k.cu:0"), Some("C:/k.cu")]
            .map(|source| InstructionReport { executions: 1, ..instruction(1, source) });
        assert_eq!(Report { instructions: none.into(), ..Report::default() }.lines(), []);
        assert_eq!(Report::default().lines(), []);
    }

    #[test]
    fn a_line_that_no_warp_reached_has_no_mean() {
        let report = Report { instructions: vec![instruction(4, Some("k.cu:9"))], ..Report::default() };
        let [line] = &report.lines()[..] else { panic!("{:?}", report.lines()) };
        assert_eq!((line.executions, line.active_lanes(), line.counters), (0, None, Counters::default()));
    }
}
