//! The columns of a record, in tables and in comma-separated values.

use warpstride::counters::Counters;
use warpstride::roofline::record::Record;

use super::table::{times, verified};
use Value::{Count, Multiple, Number, Part, Verified, Words};

/// The value of a record, if it has one.
type Of = fn(&Record) -> Option<Value>;

/// A column in one of the two: its heading there, and the value.
pub(crate) type Headed = (&'static str, Of);

/// A column: where it is shown, and the value.
struct Column {
    /// Its heading in tables.
    heading: Option<&'static str>,
    /// Its name in comma-separated values.
    name: Option<&'static str>,
    of: Of,
}

/// A value, which tables round.
pub(crate) enum Value {
    Words(String),
    /// A result was found right, or wrong.
    Verified(bool),
    Count(u64),
    /// A number, and the digits behind its point in tables.
    Number(f64, usize),
    /// A part of 1, in tables in percent.
    Part(f64),
    /// A multiple of something ideal.
    Multiple(f64),
}

/// The name of the case: the first column of a report.
pub(crate) const CASE: Headed = ("case", |record| Some(Words(record.name.clone())));
/// The kernel that the caller chose for a transpose: the first column of a comparison of kernels.
pub(crate) const VARIANT: Headed = ("variant", |record| Some(Words(record.subject.variant.clone()?)));

/// The columns, behind the first one of a table; a new column is a line here.
const COLUMNS: [Column; 35] = [
    csv("group", |record| Some(Words(record.subject.group.title().to_lowercase()))),
    csv("case", CASE.1),
    csv("op", |record| Some(Words(record.subject.op.clone()))),
    csv("dtype", |record| Some(Words(record.subject.dtype?.name().into()))),
    csv("shape", |record| Some(Words(listed(&record.subject.shape)))),
    csv("axes", |record| Some(Words(listed(record.subject.axes.as_deref()?)))),
    csv("from", |record| Some(Words(record.subject.from?.name().into()))),
    // Every table has it.
    table("kernel", |record| Some(Words(record.kernel.clone().unwrap_or("-".into())))),
    csv("kernel", |record| Some(Words(record.kernel.clone()?))),
    both("verified", "verified", |record| Some(Verified(record.verified?))),
    csv("read_bytes", |record| Some(Count(record.subject.read))),
    csv("written_bytes", |record| Some(Count(record.subject.written))),
    both("ms", "median_ms", |record| Some(Number(record.ms?.median, 4))),
    both("p10", "p10_ms", |record| Some(Number(record.ms?.p10, 4))),
    csv("p25_ms", |record| Some(Number(record.ms?.p25, 4))),
    csv("p75_ms", |record| Some(Number(record.ms?.p75, 4))),
    both("p90", "p90_ms", |record| Some(Number(record.ms?.p90, 4))),
    both("GB/s", "gbps", |record| Some(Number(record.gbps?, 1))),
    table("of copy", |record| Some(Part(record.fraction_of_copy?))),
    both("of ceiling", "fraction_of_ceiling", |record| Some(Part(record.fraction_of_ceiling?))),
    both("of nominal", "fraction_of_nominal", |record| Some(Part(record.fraction_of_nominal?))),
    table("us/launch", |record| Some(Number(record.launch_us?, 2))),
    csv("gapless", |record| Some(Words(record.gapless?.to_string()))),
    both("discarded", "discarded", |record| Some(Count(record.discarded? as u64))),
    csv("throttled", |record| Some(Words(record.ms.map(|_| record.is_throttled())?.to_string()))),
    table("doubts", |record| Some(Words(record.doubt()?.into()))),
    both("predicted ms", "predicted_ms", |record| Some(Number(record.predicted?.ms, 4))),
    table("bound by", |record| Some(Words(record.predicted?.bound.name().into()))),
    csv("load_sectors_per_request", |record| Some(Number(record.counters?.global_load.sectors_per_request()?, 2))),
    csv("store_sectors_per_request", |record| Some(Number(record.counters?.global_store.sectors_per_request()?, 2))),
    both("load sectors/ideal", "load_sectors_over_ideal", |record| Some(Multiple(record.load_sectors_over_ideal()?))),
    both("store sectors/ideal", "store_sectors_over_ideal", |record| {
        Some(Multiple(record.store_sectors_over_ideal()?))
    }),
    table("load sectors/request", |record| Some(Number(without_ideal(record)?.global_load.sectors_per_request()?, 2))),
    table("store sectors/request", |record| {
        Some(Number(without_ideal(record)?.global_store.sectors_per_request()?, 2))
    }),
    both("bank conflicts", "bank_conflicts", |record| Some(Count(record.counters?.bank_conflicts()))),
];

const fn both(heading: &'static str, name: &'static str, of: Of) -> Column {
    Column { heading: Some(heading), name: Some(name), of }
}

/// A column of tables alone.
const fn table(heading: &'static str, of: Of) -> Column {
    Column { heading: Some(heading), name: None, of }
}

/// A column of comma-separated values alone.
const fn csv(name: &'static str, of: Of) -> Column {
    Column { heading: None, name: Some(name), of }
}

/// The columns of tables behind the first.
pub(crate) fn of_tables() -> impl Iterator<Item = Headed> {
    COLUMNS.iter().filter_map(|column| Some((column.heading?, column.of)))
}

/// The columns of comma-separated values.
pub(crate) fn of_csv() -> impl Iterator<Item = Headed> {
    COLUMNS.iter().filter_map(|column| Some((column.name?, column.of)))
}

impl Value {
    /// The cell of a table.
    pub(crate) fn rounded(self) -> String {
        match self {
            Words(words) => words,
            Verified(is_right) => verified(is_right),
            Count(count) => count.to_string(),
            Number(number, digits) => format!("{number:.digits$}"),
            Part(part) => format!("{:.1} %", 100.0 * part),
            Multiple(multiple) => times(multiple),
        }
    }

    /// The field of comma-separated values.
    pub(crate) fn whole(self) -> String {
        match self {
            Words(words) => words,
            Verified(is_right) => is_right.to_string(),
            Count(count) => count.to_string(),
            Number(number, _) | Part(number) | Multiple(number) => number.to_string(),
        }
    }
}

/// Returns a record's counters if they have no ideal, as in documents of earlier versions.
fn without_ideal(record: &Record) -> Option<Counters> {
    record.counters.filter(|counters| counters.ideal.sectors() == 0)
}

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
