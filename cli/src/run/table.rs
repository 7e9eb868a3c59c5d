//! Tables: rows of text for whichever format shows them.

use super::columns::{self, Headed, Value};
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
