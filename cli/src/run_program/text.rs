//! The report of a program as text.

use std::collections::BTreeMap;

use warpstride::counters::over_ideal;
use warpstride::error::counted;

use super::super::kernel_names;
use super::super::run::table::{Table, times};
use super::reports::{Instruction, Kernel, Process, Transfer};

/// The most rows of the table of kernels; those with the most launches are shown.
const MOST_KERNELS: usize = 40;
/// The most lines of the table of a kernel; those with the most sectors and wavefronts are shown.
const MOST_LINES: usize = 20;

/// Returns the report of all processes.
pub(super) fn text(processes: &[&Process], with_lines: bool) -> String {
    let mut text = String::new();
    for process in processes {
        text += &of_process(process, with_lines);
    }
    text + &summary(processes) + "\n"
}

/// Says how many findings there are in all: `0 findings in 3 launches of 1 kernel`.
pub(super) fn summary(processes: &[&Process]) -> String {
    let sum = |of: fn(&Process) -> u64| processes.iter().map(|process| of(process)).sum::<u64>();
    let kernels = sum(|process| process.kernels.len() as u64);
    format!(
        "{} in {} of {}",
        counted(sum(Process::faults), "finding"),
        counted(sum(Process::launches), "launch"),
        counted(kernels, "kernel")
    )
}

fn of_process(process: &Process, with_lines: bool) -> String {
    let gpus = process.gpus.first().map_or(String::new(), |model| format!(" ({model})"));
    let mut text = format!(
        "\n{}, process {}, on {}{gpus}\n",
        process.title(),
        process.id,
        counted(process.gpus.len(), "software GPU")
    );
    if !process.kernels.is_empty() {
        text += &format!("{}\n", kernels(&process.kernels));
        text += &left_out(process.kernels.len(), MOST_KERNELS, "kernels");
        text += &predictions(&process.kernels);
    }
    if with_lines {
        for kernel in process.kernels.iter().filter(|kernel| !kernel.instructions.is_empty()) {
            text += &format!("{}\n{}\n", kernel.short(), lines(kernel));
        }
    }
    if !process.memory.transfers.is_empty() {
        text += &format!("{}\n", transfers(&process.memory.transfers));
    }
    text += &sentences(process);
    for kernel in &process.kernels {
        for found in kernel.found() {
            text += &format!("{}\n", found.text);
        }
        text += &kernel.more().map_or(String::new(), |more| more + "\n");
    }
    for found in process.found_by_itself() {
        text += &format!("{}\n", found.text);
    }
    text + &process.more().map_or(String::new(), |more| more + "\n")
}

/// The counters of each kernel over all its launches.
fn kernels(kernels: &[Kernel]) -> Table {
    let shape = |[x, y, z]: [u32; 3]| match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x},{y}"),
        _ => format!("{x},{y},{z}"),
    };
    let mut header =
        vec!["kernel", "launches", "grid", "block", "load sectors", "/ideal", "store sectors", "/ideal", "conflicts"];
    let is_predicted = kernels.iter().any(|kernel| kernel.model.is_some());
    if is_predicted {
        header.extend(["model ms", "bound"]);
    }
    let mut table = Table::new(&header);
    let mut shown: Vec<&Kernel> = kernels.iter().collect();
    shown.sort_by_key(|kernel| std::cmp::Reverse(kernel.launches));
    for kernel in shown.into_iter().take(MOST_KERNELS) {
        let counters = &kernel.counters;
        let others = if kernel.has_other_shapes { " ..." } else { "" };
        let ratio = |taken, ideal| over_ideal(taken, ideal).map_or("-".into(), times);
        let mut row = vec![
            kernel.short(),
            kernel.launches.to_string(),
            shape(kernel.grid) + others,
            shape(kernel.block) + others,
            counters.global_load.sectors.to_string(),
            ratio(counters.global_load.sectors, counters.ideal.global_load),
            counters.global_store.sectors.to_string(),
            ratio(counters.global_store.sectors, counters.ideal.global_store),
            (counters.shared_load.bank_conflicts + counters.shared_store.bank_conflicts).to_string(),
        ];
        if is_predicted {
            let model = kernel.model.as_ref();
            row.push(model.and_then(|model| model.ms).map_or("-".into(), |ms| format!("{ms:.4}")));
            row.push(model.and_then(|model| model.bound.clone()).unwrap_or("-".into()));
        }
        table.add_row(row);
    }
    table
}

fn left_out(count: usize, most: usize, what: &str) -> String {
    if count > most { format!("and {} more {what}; the JSON document has all\n", count - most) } else { String::new() }
}

/// Says why launches have no predicted time.
fn predictions(kernels: &[Kernel]) -> String {
    let reasons = kernels.iter().filter_map(|kernel| {
        let why_not = kernel.model.as_ref()?.why_not.as_ref()?;
        Some(format!("{}: {why_not}\n", kernel.short()))
    });
    reasons.collect()
}

/// The accesses of a kernel by line of the source, or of the PTX where that names no source.
fn lines(kernel: &Kernel) -> Table {
    let mut lines: BTreeMap<String, Vec<&Instruction>> = BTreeMap::new();
    for row in kernel.instructions.iter().filter(|row| row.executions > 0) {
        let line = match &row.source {
            Some(source) => source.clone(),
            None => format!("PTX line {}: {}", row.line, row.instruction),
        };
        lines.entry(kernel_names::readable(&line)).or_default().push(row);
    }
    let mut table = Table::new(&["line", "executions", "sectors", "/ideal", "wavefronts", "conflicts"]);
    let mut lines: Vec<_> = lines.into_iter().collect();
    let sum = |rows: &[&Instruction], of: fn(&Instruction) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    let cost = |rows: &[&Instruction]| sum(rows, |row| row.counters.global.sectors + row.counters.shared.wavefronts);
    lines.sort_by_key(|(_, rows)| std::cmp::Reverse(cost(rows)));
    for (line, rows) in lines.into_iter().take(MOST_LINES) {
        let sectors = sum(&rows, |row| row.counters.global.sectors);
        table.add_row([
            line,
            sum(&rows, |row| row.executions).to_string(),
            sectors.to_string(),
            over_ideal(sectors, sum(&rows, |row| row.counters.ideal_sectors)).map_or("-".into(), times),
            sum(&rows, |row| row.counters.shared.wavefronts).to_string(),
            sum(&rows, |row| row.counters.shared.bank_conflicts).to_string(),
        ]);
    }
    table
}

fn transfers(transfers: &[Transfer]) -> Table {
    let mut table = Table::new(&["copies", "calls", "bytes"]);
    for Transfer { way, pageable, calls, bytes } in transfers {
        let memory = if *pageable { ", pageable" } else { "" };
        table.add_row([format!("{}{memory}", way.replace('_', " ")), calls.to_string(), bytes.to_string()]);
    }
    table
}

/// Returns further facts about a process, a line each.
fn sentences(process: &Process) -> String {
    let mut text = String::new();
    let mut say = |sentence: String| text += &(sentence + "\n");
    if process.memory.hidden_waits > 0 {
        let copies = match process.memory.hidden_waits {
            1 => "1 asynchronous copy".into(),
            count => format!("{count} asynchronous copies"),
        };
        say(format!("{copies} made the host wait, because a side is pageable memory; page-lock it"));
    }
    if let Some(leaks) = process.memory.leaks.as_ref().filter(|leaks| leaks.count > 0) {
        say(leaks.sentence());
    }
    if let Some(unread) = process.memory.unread.as_ref().filter(|unread| unread.bytes > 0) {
        say(unread.sentence());
    }
    for failure in process.unsupported() {
        say(format!("{} is not supported: {}", failure.function, failure.why));
    }
    for failure in process.failures.iter().filter(|failure| !failure.is_unsupported() && !failure.is_finding()) {
        let name = failure.name.as_deref().unwrap_or("an unknown code");
        let times = if failure.count == 1 { String::new() } else { format!(", {}", counted(failure.count, "time")) };
        let why = if process.is_of_stop(failure) { "a launch before it stopped" } else { &failure.why };
        say(format!("{} returned {name}{times}: {why}", failure.function));
    }
    if !process.ended {
        say("the process was ended from outside, or left by _exit; the report is of its last launches".into());
    }
    text
}
