//! Tables: the columns of a record, and rows of text for whichever format shows them.

use warpstride::roofline::record::Record;

/// A table as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// The number of leading columns that hold words and are left-aligned; the others hold figures.
    pub(crate) words: usize,
    /// The headings.
    pub(crate) header: Vec<&'static str>,
    /// The rows, with a cell for each heading.
    pub(crate) rows: Vec<Vec<String>>,
}

/// A column of the table of records: its heading, and its cell of a record, if it has one.
pub(crate) struct Column {
    heading: &'static str,
    cell: fn(&Record) -> Option<String>,
}

/// The name of the case: the first column of a report.
pub(crate) const CASE: Column = Column { heading: "case", cell: |record| Some(record.name.clone()) };
/// The kernel that the caller chose for a transpose: the first column of a comparison of kernels.
pub(crate) const VARIANT: Column = Column { heading: "variant", cell: |record| record.subject.variant.clone() };

/// The columns behind the first. A column without a cell is left out; a new column is a line here.
const COLUMNS: [Column; 19] = [
    Column { heading: "kernel", cell: |record| Some(record.kernel.clone().unwrap_or("-".into())) },
    Column { heading: "verified", cell: |record| Some(if record.verified? { "yes" } else { "NO" }.into()) },
    Column { heading: "ms", cell: |record| Some(format!("{:.4}", record.ms?.median)) },
    Column { heading: "p10", cell: |record| Some(format!("{:.4}", record.ms?.p10)) },
    Column { heading: "p90", cell: |record| Some(format!("{:.4}", record.ms?.p90)) },
    Column { heading: "GB/s", cell: |record| Some(format!("{:.1}", record.gbps?)) },
    Column { heading: "of copy", cell: |record| percent(record.fraction_of_copy) },
    Column { heading: "of ceiling", cell: |record| percent(record.fraction_of_ceiling) },
    Column { heading: "of nominal", cell: |record| percent(record.fraction_of_nominal) },
    Column { heading: "us/launch", cell: |record| Some(format!("{:.2}", record.launch_us?)) },
    Column { heading: "discarded", cell: |record| Some(record.discarded?.to_string()) },
    Column { heading: "doubts", cell: |record| Some(record.doubt()?.into()) },
    Column { heading: "predicted ms", cell: |record| Some(format!("{:.4}", record.predicted?.ms)) },
    Column { heading: "bound by", cell: |record| Some(record.predicted?.bound.name().into()) },
    Column { heading: "load sectors/ideal", cell: |record| Some(times(record.load_sectors_over_ideal()?)) },
    Column { heading: "store sectors/ideal", cell: |record| Some(times(record.store_sectors_over_ideal()?)) },
    // Of documents of earlier versions, which have no ideal.
    Column {
        heading: "load sectors/request",
        cell: |record| {
            let counters = record.counters.filter(|counters| counters.ideal.sectors() == 0)?;
            Some(format!("{:.2}", counters.global_load.sectors_per_request()?))
        },
    },
    Column {
        heading: "store sectors/request",
        cell: |record| {
            let counters = record.counters.filter(|counters| counters.ideal.sectors() == 0)?;
            Some(format!("{:.2}", counters.global_store.sectors_per_request()?))
        },
    },
    Column { heading: "bank conflicts", cell: |record| Some(record.counters?.bank_conflicts().to_string()) },
];

fn percent(part: Option<f64>) -> Option<String> {
    Some(format!("{:.1} %", 100.0 * part?))
}

impl Table {
    /// A table without rows, whose first column holds words.
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { words: 1, header: header.into(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn add_row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table of some records, whose first column is [`CASE`] or [`VARIANT`]: with speeds where
    /// there are times, with counters where somebody counted.
    pub(crate) fn of<'r>(first: Column, records: impl IntoIterator<Item = &'r Record>) -> Self {
        let records: Vec<&Record> = records.into_iter().collect();
        let columns: Vec<Column> = [first].into_iter().chain(COLUMNS).collect();
        let has_cell = |column: &&Column| records.iter().any(|record| (column.cell)(record).is_some());
        let columns: Vec<&Column> = columns.iter().filter(has_cell).collect();
        let cell = |column: &&Column, record: &Record| (column.cell)(record).unwrap_or("-".into());
        let row = |record: &&Record| columns.iter().map(|column| cell(column, record)).collect();
        // The first column, and the kernel.
        Self {
            words: 2,
            header: columns.iter().map(|column| column.heading).collect(),
            rows: records.iter().map(row).collect(),
        }
    }
}

/// A multiple in a table: `8.00x`.
pub(crate) fn times(value: f64) -> String {
    format!("{value:.2}x")
}

/// A number in a table; `-` where there is none.
pub(crate) fn number(value: Option<f64>, digits: usize, unit: &str) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}{unit}"))
}
