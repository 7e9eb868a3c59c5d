//! Shows the accesses of each line of the source: tables and documents.

use std::path::Path;

use crate::run::table::{Table, times};
use serde_json::{Value, json};
use warpstride::counters::{Counters, over_ideal};
use warpstride::interp::{LineReport, Report};

use super::instructions::{self, end};
use super::source::shown;

/// Characters of a place in another file than the kernel's; of longer ones the end is shown.
const ELSEWHERE: usize = 18;

/// A figure of a line: its heading, and the figure, if the line has it.
pub(super) type Column = (&'static str, fn(&LineReport) -> Option<String>);

const EXECUTIONS: Column = ("executions", |line| Some(line.executions.to_string()));
const LANES: Column = ("lanes", |line| Some(format!("{:.2}", line.active_lanes()?)));
const REQUESTS: Column = ("requests", |line| is_global(line).then(|| line.counters.global().requests.to_string()));
const CONFLICTS: Column = ("conflicts", |line| is_shared(line).then(|| line.counters.bank_conflicts().to_string()));
// If one line does both, their sum tells little.
const LOADS: Column = ("loads", |line| {
    let counters = both_ways(line)?;
    over_ideal(counters.global_load.sectors, counters.ideal.global_load).map(times)
});
const STORES: Column = ("stores", |line| {
    let counters = both_ways(line)?;
    over_ideal(counters.global_store.sectors, counters.ideal.global_store).map(times)
});

/// The columns of a table.
const IN_TABLE: [Column; 10] = [
    EXECUTIONS,
    LANES,
    REQUESTS,
    ("sectors", |line| is_global(line).then(|| line.counters.global().sectors.to_string())),
    ("/ideal", |line| sectors_over_ideal(line).map(times)),
    LOADS,
    STORES,
    ("wavefronts", |line| is_shared(line).then(|| line.counters.shared().wavefronts.to_string())),
    ("/ideal", |line| wavefronts_over_ideal(line).map(times)),
    CONFLICTS,
];

/// The columns beside the source, which needs the room.
pub(super) const BESIDE_SOURCE: [Column; 8] = [
    EXECUTIONS,
    LANES,
    REQUESTS,
    ("sectors/ideal", |line| sectors_over_ideal(line).map(times)),
    LOADS,
    STORES,
    ("wavefronts/ideal", |line| wavefronts_over_ideal(line).map(times)),
    CONFLICTS,
];

/// The headings of the columns that a narrow terminal has no room for, the first ones first.
pub(super) const LEFT_OUT: [&str; 6] = ["lanes", "executions", "requests", "loads", "stores", "conflicts"];

fn is_global(line: &LineReport) -> bool {
    line.counters.global().requests > 0
}

fn is_shared(line: &LineReport) -> bool {
    line.counters.shared().wavefronts > 0
}

fn both_ways(line: &LineReport) -> Option<&Counters> {
    let counters = &line.counters;
    (counters.global_load.requests > 0 && counters.global_store.requests > 0).then_some(counters)
}

fn sectors_over_ideal(line: &LineReport) -> Option<f64> {
    over_ideal(line.counters.global().sectors, line.counters.ideal.sectors())
}

fn wavefronts_over_ideal(line: &LineReport) -> Option<f64> {
    over_ideal(line.counters.shared().wavefronts, line.counters.ideal.wavefronts())
}

/// Those of the columns that any of the lines has.
pub(super) fn used<'l>(columns: &[Column], lines: impl Iterator<Item = &'l LineReport> + Clone) -> Vec<Column> {
    columns.iter().copied().filter(|(_, cell)| lines.clone().any(|line| cell(line).is_some())).collect()
}

/// The part of the launch's sectors, or of its wavefronts if that is more, that a line takes beyond
/// the ideal.
pub(super) fn heat(line: &LineReport, launch: &Counters) -> f64 {
    let part = |taken: u64, ideal: u64, all: u64| taken.saturating_sub(ideal) as f64 / all.max(1) as f64;
    let Counters { ideal, .. } = line.counters;
    let (global, shared) = (line.counters.global(), line.counters.shared());
    part(global.sectors, ideal.sectors(), launch.global().sectors).max(part(
        shared.wavefronts,
        ideal.wavefronts(),
        launch.shared().wavefronts,
    ))
}

/// The lines of a launch, with those of the kernel's own file first.
pub(super) fn sorted(report: &Report, main: Option<&str>) -> Vec<LineReport> {
    let mut lines = report.lines();
    lines.sort_by_key(|line| Some(line.file.as_str()) != main);
    lines
}

/// The table, and what a report has besides; `main` is the kernel's own file.
pub(super) fn text(report: &Report, main: &str, nsight: bool) -> String {
    let lines = sorted(report, Some(main));
    let rest: Vec<_> = report.instructions.iter().filter(|instruction| instruction.source_line().is_none()).collect();
    let mut text = String::new();
    if !lines.is_empty() {
        text += &format!("\nLine by line, {}\n{}\n", shown(main), table(&lines, main));
        text += "/ideal: against the sectors or wavefronts that lanes x bytes fill, or those taken if they are fewer\n";
    }
    if !rest.is_empty() && !lines.is_empty() {
        text += "\nInstructions without a line\n";
    }
    text + &instructions::tables(&rest) + &instructions::footer(report, nsight)
}

fn table(lines: &[LineReport], main: &str) -> Table {
    let columns = used(&IN_TABLE, lines.iter());
    let folder = Path::new(main).parent();
    let header: Vec<&str> = ["line"].into_iter().chain(columns.iter().map(|(heading, _)| *heading)).collect();
    let mut table = Table::new(&header);
    for line in lines {
        let place = if line.file == main {
            line.line.to_string()
        } else {
            // Beside the kernel's own file, or somewhere else.
            let file = folder.and_then(|folder| Path::new(&line.file).strip_prefix(folder).ok()?.to_str());
            end(&format!("{}:{}", shown(file.unwrap_or(&line.file)), line.line), ELSEWHERE)
        };
        let cells = columns.iter().map(|(_, cell)| cell(line).unwrap_or("-".into()));
        table.add_row([place].into_iter().chain(cells));
    }
    table
}

/// Returns the document's part on a line.
pub(super) fn json(line: &LineReport, launch: &Counters) -> Value {
    let mut value = json!(line);
    value["active_lanes"] = json!(line.active_lanes());
    value["sectors_over_ideal"] = json!(sectors_over_ideal(line));
    value["wavefronts_over_ideal"] = json!(wavefronts_over_ideal(line));
    value["heat"] = json!(heat(line, launch));
    value
}
