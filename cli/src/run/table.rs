//! Tables: rows of text for whichever format shows them.

use super::columns::{self, Headed, Value};
use super::compare::{Change, THRESHOLD, Verdict};
use super::figures::thousands;
use warpstride::error::counted;
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::Record;

/// A column of a table of `R`s: its heading, and the cell of one.
pub(crate) type Column<'c, R> = (&'static str, &'c dyn Fn(&R) -> String);

/// A table as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// The number of leading columns that hold words and are left-aligned; the others hold figures.
    pub(crate) words: usize,
    /// The headings.
    pub(crate) header: Vec<String>,
    /// The rows, with a cell for each heading.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows, whose first column holds words.
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { words: 1, header: header.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn add_row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table of some records, whose first column is [`CASE`](columns::CASE) or
    /// [`VARIANT`](columns::VARIANT): with speeds where there are times, with counters where
    /// a record has them. It leaves out a column without a cell.
    pub(crate) fn of<'r>(first: Headed, records: impl IntoIterator<Item = &'r Record>) -> Self {
        let records: Vec<&Record> = records.into_iter().collect();
        let columns = [first].into_iter().chain(columns::of_tables());
        let has_cell = |(_, cell): &Headed| records.iter().any(|record| cell(record).is_some());
        let columns: Vec<Headed> = columns.filter(has_cell).collect();
        let cell = |(_, cell): &Headed, record: &Record| cell(record).map_or("-".into(), Value::rounded);
        let row = |record: &&Record| columns.iter().map(|column| cell(column, record)).collect();
        // The first column, and the kernel.
        Self {
            words: 2,
            header: columns.iter().map(|(heading, _)| heading.to_string()).collect(),
            rows: records.iter().map(row).collect(),
        }
    }

    /// The table of some rows, whose first `words` columns hold words.
    pub(crate) fn by<R>(words: usize, columns: &[Column<'_, R>], rows: &[R]) -> Self {
        let row = |row: &R| columns.iter().map(|(_, cell)| cell(row)).collect();
        Self {
            words,
            header: columns.iter().map(|(heading, _)| heading.to_string()).collect(),
            rows: rows.iter().map(row).collect(),
        }
    }
}

/// The ceilings: each with its name, how it is launched, its GB/s, and the part of nominal.
pub(crate) fn ceilings(peaks: &Peaks) -> Vec<[String; 4]> {
    let measured = [
        ("read", peaks.read.shape.to_string(), peaks.read.gbps),
        ("write", peaks.write.shape.to_string(), peaks.write.gbps),
        ("copy", peaks.copy.shape.to_string(), peaks.copy.gbps),
        ("memcpy", "by the driver".into(), peaks.memcpy),
    ];
    let nominal = number(peaks.nominal, 1, "");
    let mut rows = vec![["nominal".into(), "by the device's attributes".into(), nominal, String::new()]];
    rows.extend(
        measured.map(|(name, how, gbps)| {
            [name.into(), how, format!("{gbps:.1}"), percent(peaks.fraction_of_nominal(gbps))]
        }),
    );
    rows
}

/// The ceilings in a line.
pub(crate) fn ceilings_line(peaks: &Peaks) -> String {
    let whole = |gbps: f64| thousands(gbps.round() as u64);
    let [read, write, copy] = [&peaks.read, &peaks.write, &peaks.copy].map(|best| whole(best.gbps));
    let nominal = peaks.nominal.map_or(String::new(), |nominal| format!("; the data sheet has {}", whole(nominal)));
    format!(
        "Ceilings in GB/s: read {read}, write {write}, copy {copy} (cudaMemcpy reaches {}{nominal}).",
        whole(peaks.memcpy)
    )
}

/// Says for a table whether a result is right.
pub(crate) fn verified(is_right: bool) -> String {
    if is_right { "yes" } else { "NO" }.into()
}

/// Formats a part of 1 for a table, in percent.
pub(crate) fn percent(part: Option<f64>) -> String {
    number(part.map(|part| 100.0 * part), 1, " %")
}

/// A multiple in a table: `8.00x`.
pub(crate) fn times(value: f64) -> String {
    format!("{value:.2}x")
}

/// Formats a number for a table; a missing one is `-`.
pub(crate) fn number(value: Option<f64>, digits: usize, unit: &str) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}{unit}"))
}

/// The differences between two runs, those that changed first, and the meaning of the table's
/// words.
pub(crate) fn changes(changes: &[Change]) -> (Table, String) {
    if changes.iter().any(|change| change.now_of_copy.is_some()) {
        return beside_copies(changes);
    }
    let is_timed = changes.iter().any(|change| change.before_ms.or(change.now_ms).is_some());
    let mut table = Table::new(if is_timed {
        &["case", "before ms", "now ms", "change", "verdict"]
    } else {
        &["case", "verdict", "counters"]
    });
    for change in changes {
        let Change { name, before_ms, now_ms, difference, .. } = change;
        if !is_timed {
            table.add_row([name, &verdict(change), difference.as_deref().unwrap_or("-")]);
            continue;
        }
        let slower = before_ms.zip(*now_ms).map(|(before, now)| now / before);
        table.add_row([name, &number(*before_ms, 4, ""), &number(*now_ms, 4, ""), &by(slower), &verdict(change)]);
    }
    if !is_timed {
        let is_equal = changes.iter().all(|change| change.verdict == Verdict::Same);
        let found = if is_equal { "All counters are equal." } else { "same: every counter is equal." };
        return (table, found.into());
    }
    let words = format!(
        "faster, slower: the middle halves of the samples do not overlap, and the medians differ by more than {:.0} %. \
         throttled, gaps: times of either run that decide nothing.",
        100.0 * THRESHOLD
    );
    (table, words)
}

/// The differences between two runs of many permutes: those that have any, and the number of the
/// others.
fn beside_copies(changes: &[Change]) -> (Table, String) {
    let mut table = Table::new(&["case", "strategy and kernel", "before of copy", "now of copy", "change", "verdict"]);
    table.words = 2;
    for change in changes.iter().filter(|change| change.is_news()) {
        let Change { name, before_of_copy, now_of_copy, choice, .. } = change;
        let faster = before_of_copy.zip(*now_of_copy).map(|(before, now)| now / before);
        let choice = choice.as_deref().unwrap_or("-");
        table.add_row([name, choice, &percent(*before_of_copy), &percent(*now_of_copy), &by(faster), &verdict(change)]);
    }
    let news = table.rows.len();
    let others =
        format!("{} of {} did as before, by the same kernel.", changes.len() - news, counted(changes.len(), "case"));
    let words = format!(
        "{others}\nfaster, slower: the middle halves of the samples do not overlap beside the copies, and the medians \
         differ by more than {:.0} %. throttled, gaps: times of either run that decide nothing.",
        100.0 * THRESHOLD
    );
    (table, words)
}

fn verdict(Change { verdict, doubt, .. }: &Change) -> String {
    doubt.map_or(verdict.name(), |doubt| format!("{} ({doubt})", verdict.name()))
}

/// A ratio as a change in percent.
fn by(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{:+.1} %", 100.0 * (ratio - 1.0)))
}
