//! Runs, records, comparisons and any table as text for a terminal.

use std::fmt;

use comfy_table::{CellAlignment, LineStyle, TableStyle};

use super::NO_TIMES;
use super::fit::{self, Fitted};
use crate::run::Run;
use crate::run::columns::CASE;
use crate::run::compare::{Change, THRESHOLD, Verdict};
use crate::run::pipelines;
use crate::run::table::{Table, number, percent};
use crate::run::transfers::Transfers;
use crate::terminal;
use warpstride::error::{counted, printable_line};
use warpstride::roofline::record::{Milliseconds, Record};

/// Lines across, around the header and below the last row.
const STYLE: TableStyle = {
    let line = LineStyle::none().fill('─').junction('─');
    TableStyle::new().top_border(line).header_separator(line).bottom_border(line)
};

/// The table as it fits the terminal.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fitted { words, header, rows, left_out, is_narrow } = fit::fitted(self, terminal::width());
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

/// The heading of the run, and a table for each group.
pub(crate) fn run(run: &Run) -> String {
    let mut text = format!("{}\n", printable_line(&run.heading()));
    for group in run.groups() {
        text += &format!("\n{}\n{}\n", group.title(), Table::of(CASE, run.group(group)));
    }
    if let Some(transfers) = &run.transfers {
        text += &self::transfers(transfers);
    }
    if let Some(all) = &run.pipeline {
        text += &format!("\nPipeline\n{}\n{}\n", all.heading(), all.table());
        text += &if run.has_times() { format!("{}\n", pipelines::WORDS) } else { String::new() };
    }
    if !run.has_times() {
        text += &format!("{NO_TIMES}\n");
    }
    text
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
    let (op, shape, device) = (&subject.op, &subject.shape, &run.device.name);
    let kernel = record.kernel.as_deref().unwrap_or("nothing to launch");
    let verified = if record.verified == Some(false) { "WRONG" } else { "verified" };
    let policy = run.policy.as_ref().map_or(String::new(), |policy| format!("policy: {policy}\n"));
    let text = format!("{op} {shape:?} {from}{dtype}{axes} on {device}\n{kernel}, {verified}\n{policy}");
    text + &figures(run, record)
}

/// Returns the times and counters of a record, in some lines.
pub(crate) fn figures(run: &Run, record: &Record) -> String {
    let mut text = String::new();
    if let Some(ms) = record.ms {
        text += &times(run, record, ms);
    }
    if let Some(us) = record.launch_us {
        text += &format!("{us:.2} us from launch to launch, one behind the other\n");
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
    let mut text = format!(
        "{median:.4} ms ({p10:.4} to {p90:.4} from p10 to p90), {} GB/s, {} of copy; each with a cold L2 cache\n",
        number(record.gbps, 1, ""),
        percent(record.fraction_of_copy),
    );
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
    if changes.iter().any(|change| change.now_of_copy.is_some()) {
        return beside_copies(changes);
    }
    let is_timed = changes.iter().any(|change| change.before_ms.or(change.now_ms).is_some());
    let mut table = Table::new(if is_timed {
        &["case", "before ms", "now ms", "change", "verdict"]
    } else {
        &["case", "verdict", "counters"]
    });
    for Change { name, before_ms, now_ms, verdict, doubt, difference, .. } in changes {
        let verdict = doubt.map_or(verdict.name(), |doubt| format!("{} ({doubt})", verdict.name()));
        if !is_timed {
            table.add_row([name, &verdict, difference.as_deref().unwrap_or("-")]);
            continue;
        }
        let change = before_ms.zip(*now_ms).map(|(before, now)| 100.0 * (now / before - 1.0));
        let change = change.map_or("-".into(), |percent| format!("{percent:+.1} %"));
        table.add_row([name, &number(*before_ms, 4, ""), &number(*now_ms, 4, ""), &change, &verdict]);
    }
    if !is_timed {
        let is_equal = changes.iter().all(|change| change.verdict == Verdict::Same);
        let found = if is_equal { "All counters are equal." } else { "same: every counter is equal." };
        return format!("{table}\n{found}\n");
    }
    format!(
        "{table}\nfaster, slower: the middle halves of the samples do not overlap, and the medians differ by more than {:.0} %. \
         throttled, gaps: times of either run that decide nothing.\n",
        100.0 * THRESHOLD
    )
}

/// The differences between two runs of many permutes: those that have any, and the number of the
/// others.
fn beside_copies(changes: &[Change]) -> String {
    let mut table = Table::new(&["case", "before of copy", "now of copy", "change", "verdict", "strategy and kernel"]);
    for change in changes.iter().filter(|change| change.is_news()) {
        let Change { name, before_of_copy, now_of_copy, verdict, doubt, choice, .. } = change;
        let verdict = doubt.map_or(verdict.name(), |doubt| format!("{} ({doubt})", verdict.name()));
        let speed = before_of_copy.zip(*now_of_copy).map(|(before, now)| 100.0 * (now / before - 1.0));
        let speed = speed.map_or("-".into(), |percent| format!("{percent:+.1} %"));
        let choice = choice.as_deref().unwrap_or("-");
        table.add_row([name, &percent(*before_of_copy), &percent(*now_of_copy), &speed, &verdict, choice]);
    }
    let news = table.rows.len();
    let others =
        format!("{} of {} did as before, by the same kernel.", changes.len() - news, counted(changes.len(), "case"));
    format!(
        "{table}\n{others}\nfaster, slower: the middle halves of the samples do not overlap beside the copies, and the medians \
         differ by more than {:.0} %. throttled, gaps: times of either run that decide nothing.\n",
        100.0 * THRESHOLD
    )
}
