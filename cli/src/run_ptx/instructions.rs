//! Shows the accesses of each instruction: tables, their columns' names in Nsight Compute, and the
//! worst accesses.

use std::cmp::Reverse;

use serde_json::{Value, json};
use warpstride::counters::{SharedCounters, over_ideal, table};
use warpstride::interp::{InstructionReport, Report};

use crate::run::table::{Table, number};
use crate::terminal;
use warpstride::error::counted;

/// The columns' names in Nsight Compute, of loads.
fn metrics() -> [(&'static str, String); 9] {
    let counter = |name| table::counter(name).expect("the table of counters has it");
    let metric = |name| counter(name).metric();
    let ideal = |name| counter(name).ideal_metric().expect("it has an ideal");
    [
        ("executions", format!("{}, {}", metric("global_load.instructions"), metric("shared_load.instructions"))),
        ("lanes", "thread_inst_executed_true / inst_executed".into()),
        ("requests", metric("global_load.requests")),
        ("sectors", metric("global_load.sectors")),
        ("ideal sectors", ideal("global_load.sectors")),
        ("sectors/request", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio".into()),
        ("wavefronts", metric("shared_load.wavefronts")),
        ("ideal wavefronts", ideal("shared_load.wavefronts")),
        ("conflicts", metric("shared_load.bank_conflicts")),
    ]
}

/// Characters of a place in a source, of an instruction beside one, and of an instruction alone;
/// longer ones are cut, so that tables have about 120 columns.
const SOURCE: usize = 16;
const BESIDE_SOURCE: usize = 20;
const ALONE: usize = 43;

/// A column: its header, and the figure of an instruction.
type Column = (&'static str, fn(&InstructionReport) -> String);

const ACCESS: [Column; 2] = [
    ("executions", |instruction| instruction.executions.to_string()),
    ("lanes", |instruction| number(instruction.active_lanes(), 2, "")),
];
const GLOBAL: [Column; 5] = [
    ("requests", |instruction| instruction.global.requests.to_string()),
    ("sectors", |instruction| instruction.global.sectors.to_string()),
    ("ideal", |instruction| instruction.ideal_sectors.to_string()),
    ("/request", |instruction| number(instruction.global.sectors_per_request(), 2, "")),
    ("/ideal", |instruction| number(over_ideal(instruction.global.sectors, instruction.ideal_sectors), 2, "x")),
];
const SHARED: [Column; 4] = [
    ("wavefronts", |instruction| instruction.shared.wavefronts.to_string()),
    ("ideal", |instruction| instruction.ideal_wavefronts.to_string()),
    ("/ideal", |instruction| number(over_ideal(instruction.shared.wavefronts, instruction.ideal_wavefronts), 2, "x")),
    ("conflicts", |instruction| instruction.shared.bank_conflicts.to_string()),
];

/// The tables and the drawings.
pub(super) fn text(report: &Report, nsight: bool) -> String {
    tables(&report.instructions.iter().collect::<Vec<_>>()) + &footer(report, nsight)
}

/// A table for each memory that these instructions access.
pub(super) fn tables(instructions: &[&InstructionReport]) -> String {
    let mut text = String::new();
    let rows = |wanted: fn(&InstructionReport) -> bool| {
        instructions.iter().copied().filter(|row| wanted(row)).collect::<Vec<_>>()
    };
    for (title, columns, rows) in [
        ("Global memory, instruction by instruction", &GLOBAL[..], rows(is_global)),
        ("Shared memory, instruction by instruction", &SHARED, rows(is_shared)),
        ("Instructions that came to neither", &[], rows(|row| !is_global(row) && !is_shared(row))),
    ] {
        if !rows.is_empty() {
            text += &format!("\n{title}\n{}\n", table(&rows, columns));
        }
    }
    text
}

/// Returns the text behind the tables: the loops of atomics, the columns' names in Nsight Compute
/// if they are wanted, and the worst accesses.
pub(super) fn footer(report: &Report, nsight: bool) -> String {
    let (mut text, columns) = (String::new(), terminal::width().unwrap_or(usize::MAX));
    let rows = |wanted: fn(&InstructionReport) -> bool| report.instructions.iter().filter(move |row| wanted(row));
    let loops = report.instructions.iter().fold(SharedCounters::default(), |sum, row| sum + row.loop_loads);
    if let SharedCounters { instructions: loads @ 1.., wavefronts, bank_conflicts } = loops {
        text += &format!(
            "\nAtomics that are loops in shared memory load besides: {loads}, {wavefronts}, \
             {bank_conflicts}\n",
            loads = counted(loads, "load"),
            wavefronts = counted(wavefronts, "wavefront"),
            bank_conflicts = counted(bank_conflicts, "conflict")
        );
    }
    if nsight {
        text += "\nIn Nsight Compute (for ld: st in stores, atom in atomics, red if their result is unused):\n";
        metrics().iter().for_each(|(column, metric)| text += &format!("  {column:16}  {metric}\n"));
    }
    // An access that wastes nothing is not drawn.
    let wasted = |row: &&InstructionReport| row.global.sectors.saturating_sub(row.ideal_sectors);
    let worst_global = rows(is_global).filter(|row| wasted(row) > 0).min_by_key(|row| Reverse(wasted(row)));
    let conflicts = |row: &&InstructionReport| row.shared.bank_conflicts;
    let worst_shared = rows(is_shared).filter(|row| conflicts(row) > 0).min_by_key(|row| Reverse(conflicts(row)));
    for (title, worst) in [
        ("The worst access to global memory", worst_global.map(|row| (row, &row.worst_global))),
        ("The worst access to shared memory", worst_shared.map(|row| (row, &row.worst_shared))),
    ] {
        if let Some((row, Some(access))) = worst {
            text += &format!("\n{title}\n{}\n{}", row.title(), access.draw_within(columns));
        }
    }
    text
}

/// Returns the document's part on an instruction.
pub(super) fn json(instruction: &InstructionReport) -> Value {
    let mut value = json!(instruction);
    value["active_lanes"] = json!(instruction.active_lanes());
    value["sectors_per_request"] = json!(instruction.global.sectors_per_request());
    value["sectors_over_ideal"] = json!(over_ideal(instruction.global.sectors, instruction.ideal_sectors));
    value["wavefronts_over_ideal"] = json!(over_ideal(instruction.shared.wavefronts, instruction.ideal_wavefronts));
    value
}

pub(super) fn metrics_json() -> Value {
    metrics().into_iter().map(|(column, metric)| (column.replace([' ', '/'], "_"), Value::from(metric))).collect()
}

fn is_global(row: &InstructionReport) -> bool {
    row.global.requests > 0
}

fn is_shared(row: &InstructionReport) -> bool {
    row.shared.wavefronts > 0
}

fn table(rows: &[&InstructionReport], columns: &[Column]) -> Table {
    let columns: Vec<&Column> = ACCESS.iter().chain(columns).collect();
    let sources = rows.iter().any(|row| row.source.is_some());
    let mut header = vec!["line", "instruction"];
    header.extend(sources.then_some("source"));
    let words = header.len();
    header.extend(columns.iter().map(|(name, _)| *name));
    let mut table = Table { words, ..Table::new(&header) };
    for row in rows {
        let mut cells =
            vec![row.line.to_string(), beginning(&row.instruction, if sources { BESIDE_SOURCE } else { ALONE })];
        cells.extend(sources.then(|| end(row.source.as_deref().unwrap_or("-"), SOURCE)));
        cells.extend(columns.iter().map(|(_, figure)| figure(row)));
        table.add_row(cells);
    }
    table
}

/// At most `most` characters: the first ones.
fn beginning(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// At most `most` characters: the last ones.
pub(super) fn end(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    ['…'].into_iter().chain(text.chars().skip(count + 1 - most)).collect()
}
