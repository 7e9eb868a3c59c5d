//! The records of a run as comma-separated values: numbers as they are, and nothing where there is
//! none.

use crate::run::Run;
use warpstride::error::{Error, ErrorKind, Result};
use warpstride::roofline::record::Record;

/// A column: its heading and its field of a record.
type Column = (&'static str, fn(&Record) -> Option<String>);

/// All columns; a new one is a line here.
const COLUMNS: [Column; 28] = [
    ("group", |record| Some(record.subject.group.title().to_lowercase())),
    ("case", |record| Some(record.name.clone())),
    ("op", |record| Some(record.subject.op.clone())),
    ("dtype", |record| Some(record.subject.dtype?.name().into())),
    ("shape", |record| Some(listed(&record.subject.shape))),
    ("axes", |record| record.subject.axes.as_deref().map(listed)),
    ("from", |record| Some(record.subject.from?.name().into())),
    ("kernel", |record| record.kernel.clone()),
    ("verified", |record| Some(record.verified?.to_string())),
    ("read_bytes", |record| Some(record.subject.read.to_string())),
    ("written_bytes", |record| Some(record.subject.written.to_string())),
    ("median_ms", |record| Some(record.ms?.median.to_string())),
    ("p10_ms", |record| Some(record.ms?.p10.to_string())),
    ("p25_ms", |record| Some(record.ms?.p25.to_string())),
    ("p75_ms", |record| Some(record.ms?.p75.to_string())),
    ("p90_ms", |record| Some(record.ms?.p90.to_string())),
    ("gbps", |record| Some(record.gbps?.to_string())),
    ("fraction_of_ceiling", |record| Some(record.fraction_of_ceiling?.to_string())),
    ("fraction_of_nominal", |record| Some(record.fraction_of_nominal?.to_string())),
    ("gapless", |record| Some(record.gapless?.to_string())),
    ("discarded", |record| Some(record.discarded?.to_string())),
    ("throttled", |record| record.ms.map(|_| record.is_throttled().to_string())),
    ("predicted_ms", |record| Some(record.predicted?.ms.to_string())),
    ("load_sectors_per_request", |record| Some(record.counters?.global_load.sectors_per_request()?.to_string())),
    ("store_sectors_per_request", |record| Some(record.counters?.global_store.sectors_per_request()?.to_string())),
    ("load_sectors_over_ideal", |record| Some(record.load_sectors_over_ideal()?.to_string())),
    ("store_sectors_over_ideal", |record| Some(record.store_sectors_over_ideal()?.to_string())),
    ("bank_conflicts", |record| Some(record.counters?.bank_conflicts().to_string())),
];

/// A heading, and a row for each record.
///
/// # Errors
///
/// `Io` where the table cannot be made.
pub(crate) fn csv(run: &Run) -> Result<Vec<u8>> {
    let failed =
        |error: &dyn std::fmt::Display| Error::new(ErrorKind::Io, format!("the table cannot be made: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.map(|(heading, _)| heading)).map_err(|error| failed(&error))?;
    for record in &run.cases {
        let fields = COLUMNS.map(|(_, field)| field(record).unwrap_or_default());
        writer.write_record(fields).map_err(|error| failed(&error))?;
    }
    writer.into_inner().map_err(|error| failed(&error))
}

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
