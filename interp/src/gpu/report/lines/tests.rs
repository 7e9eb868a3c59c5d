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
    let expected = [("k.cu", 3), ("k.cu", 12), ("k.cu", 100), ("lib/a.cuh", 4), ("lib/a.cuh", 5), ("C:/a:b.cuh", 2)];
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
