//! Runs, records, comparisons and any table as text for a terminal.

use std::fmt;

use comfy_table::{CellAlignment, LineStyle, TableStyle};

use super::NO_TIMES;
use super::fit::{self, Fitted, Fold};
use crate::run::Run;
use crate::run::about;
use crate::run::answer::{Answer, Row};
use crate::run::columns::CASE;
use crate::run::compare::Change;
use crate::run::pipelines;
use crate::run::table::{self, Table, ceilings_line, number, percent};
use crate::run::transfers::Transfers;
use crate::terminal;
use warpstride::error::{counted, printable_line};
use warpstride::roofline::record::{Milliseconds, Record};

/// Lines across, around the header and below the last row.
const STYLE: TableStyle = {
    let line = LineStyle::none().fill('─').junction('─');
    TableStyle::new().top_border(line).header_separator(line).bottom_border(line)
};

/// The table as it fits the terminal. In the alternate form, names stay whole where that is
/// possible.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folds: &[Fold] = if f.alternate() { &[Fold::Words, Fold::Names] } else { &[Fold::Names] };
        let Fitted { words, header, rows, left_out, is_narrow } = fit::fitted(self, terminal::width(), folds);
        let mut table = comfy_table::Table::new();
        table.load_style(STYLE).set_header(header);
        table.add_rows(rows);
        for (at, column) in table.column_iter_mut().enumerate() {
            if at >= words {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if is_narrow {
                column.set_padding((0, 1));
            }
        }
        table.fmt(f)?;
        if left_out.is_empty() {
            return Ok(());
        }
        write!(f, "\nThe terminal has no room for these columns: {}.", left_out.join(", "))
    }
}

/// The heading of the run, the cases furthest from their ceilings, and a table for each group.
pub(crate) fn run(run: &Run) -> String {
    let mut text = about::lead(run).map_or(String::new(), |lead| format!("{lead}\n"));
    text += &heading(run);
    text += &Answer::of(run).map_or(String::new(), |found| answer(&found));
    for group in run.groups() {
        text += &format!("\n{}\n{}\n", group.title(), Table::of(CASE, run.group(group)));
    }
    if let Some(transfers) = &run.transfers {
        text += &self::transfers(transfers);
    }
    if let Some(all) = &run.pipeline {
        text += &format!("\nPipeline\n{}\n{}\n", all.heading(), all.table());
        text += &format!("{}\n", pipelines::WORDS);
    }
    if !run.has_times() {
        text += &format!("{NO_TIMES}\n");
    }
    text + &foot(run)
}

/// The device and its ceilings.
pub(crate) fn heading(run: &Run) -> String {
    let ceilings = run.peaks.as_ref().map_or(String::new(), |peaks| plain(&ceilings_line(peaks)) + "\n");
    format!("{}\n{ceilings}", printable_line(&run.heading()))
}

/// Words for a terminal, whose readers search for spaces.
fn plain(text: &str) -> String {
    printable_line(text).replace('\u{a0}', " ")
}

fn answer(answer: &Answer<'_>) -> String {
    let mut text = format!("\n{}\n", answer.title());
    let lines = [Some(answer.summary()), answer.coverage(), Some(answer.intro())];
    text.extend(lines.into_iter().flatten().map(|line| plain(&line) + "\n"));
    for entry in &answer.entries {
        text += &format!("\n{}\n", entry.cause());
        for case in entry.shown() {
            text += &plain(&format!("  {}, {}: {}", case.place(), case.record.name, case.figures()));
            text.push('\n');
        }
        text.extend(entry.more().into_iter().chain(entry.whose()).map(|line| format!("  {line}\n")));
        text.extend(entry.rows().iter().map(row));
    }
    text
}

/// A line of an entry, with the lists below it.
fn row(Row { label, text, steps, stalls, command }: &Row) -> String {
    let mut row = format!("  {label:<8}  {}\n", plain(text));
    let mut command = command.as_ref().map(|command| format!("    {}\n", printable_line(command)));
    for (number, step) in (1..).zip(*steps) {
        row += &format!("    {number}. {}\n", plain(step));
        row.extend(command.take().map(|command| format!("   {command}")));
    }
    row.extend(command);
    row.extend(stalls.iter().map(|stall| format!("       - {}\n", plain(stall))));
    row
}

/// The build and the device.
fn foot(run: &Run) -> String {
    let lines = about::foot(run).into_iter().map(|(label, text)| format!("  {label}: {}\n", printable_line(&text)));
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{}\n{lines}", about::FOOT) }
}

/// The tables of the copies between host and device.
fn transfers(transfers: &Transfers) -> String {
    let threads = counted(transfers.threads, "thread");
    format!(
        "\nTransfers\n{}\n{}\n{}\n{} The host has {threads}.\n",
        transfers.table(),
        transfers.pinning_table(),
        transfers.frames_table(),
        transfers.link_line(),
    )
}

/// One record in some lines; `run` has the device and the ceilings.
pub(crate) fn record(run: &Run, record: &Record) -> String {
    let subject = &record.subject;
    let from = subject.from.map_or(String::new(), |from| format!("{from} to "));
    let dtype = subject.dtype.map_or(String::new(), |dtype| dtype.to_string());
    let axes = subject.axes.as_ref().map_or(String::new(), |axes| format!(", axes {axes:?}"));
    let spread = subject.spread.as_ref().map_or(String::new(), |spread| format!(", {spread},"));
    let (op, shape, device) = (&subject.op, &subject.shape, &run.device.name);
    let kernel = match (&record.kernel, &subject.spread) {
        (Some(kernel), _) => kernel,
        (None, Some(spread)) if spread.engine.is_some() => "a process for each GPU",
        (None, Some(_)) => "a kernel for each copy",
        (None, None) => "nothing to launch",
    };
    let verified = if record.verified == Some(false) { "WRONG" } else { "verified" };
    let policy =
        run.policy.as_ref().map_or(String::new(), |policy| format!("plans choose kernels by thresholds: {policy}\n"));
    let text = format!("{op} {shape:?} {from}{dtype}{axes}{spread} on {device}\n{kernel}, {verified}\n{policy}");
    text + &figures(run, record)
}

/// Returns the times and counters of a record, in some lines.
pub(crate) fn figures(run: &Run, record: &Record) -> String {
    let mut text = String::new();
    if let Some(ms) = record.ms {
        text += &times(run, record, ms);
    }
    if let Some(us) = record.launch_us {
        let what = if record.subject.spread.is_some() { "exchange to exchange" } else { "launch to launch" };
        text += &format!("{us:.2} us from {what}, one behind the other\n");
    }
    if let Some(counters) = &record.counters {
        text += &format!(
            "sectors/ideal: {} loaded, {} stored; sectors/request: {} loaded, {} stored; bank conflicts: {}\n",
            number(record.load_sectors_over_ideal(), 2, "x"),
            number(record.store_sectors_over_ideal(), 2, "x"),
            number(counters.global_load.sectors_per_request(), 2, ""),
            number(counters.global_store.sectors_per_request(), 2, ""),
            counters.bank_conflicts(),
        );
    }
    if run.device.kind == "soft" {
        text += &format!("{NO_TIMES}\n");
    }
    text
}

/// The lines about a record's times.
fn times(run: &Run, record: &Record, Milliseconds { median, p10, p90, .. }: Milliseconds) -> String {
    let (gbps, part) = (number(record.gbps, 1, ""), percent(record.fraction_of_copy));
    let compared = match &record.subject.spread {
        Some(spread) => {
            let beside = if spread.engine.is_some() { "an all-to-all" } else { "a flat push" };
            format!("{gbps} GB/s of the busiest GPU over its link, {part} of {beside} of as many bytes")
        }
        None => format!("{gbps} GB/s, {part} of copy"),
    };
    let cache = if record.cold == Some(false) { "a warm" } else { "a cold" };
    let mut text =
        format!("{median:.4} ms ({p10:.4} to {p90:.4} from p10 to p90), {compared}; each with {cache} L2 cache\n");
    if record.fraction_of_ceiling.is_some() {
        text += &format!(
            "{} of the ceiling of these reads and writes (of {}), ",
            percent(record.fraction_of_ceiling),
            run.ceilings_date.as_deref().unwrap_or("an unknown date")
        );
        text += &match record.fraction_of_nominal {
            Some(part) => format!("{:.1} % of nominal\n", 100.0 * part),
            None => "faster than the memory alone: the L2 cache holds a part of the bytes\n".into(),
        };
    }
    if let Some(discarded) = record.discarded.filter(|&discarded| discarded > 0) {
        text += &format!("{} of a throttled device were discarded.\n", counted(discarded, "sample"));
    }
    if record.is_throttled() {
        text += "The device is throttled: these times say little.\n";
    }
    text
}

/// The differences between two runs, as a table and the meaning of its words.
pub(crate) fn changes(changes: &[Change]) -> String {
    let (table, words) = table::changes(changes);
    format!("{table}\n{words}\n")
}
