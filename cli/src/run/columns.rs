//! The columns of a record, in tables and in comma-separated values.

use warpstride::roofline::record::Record;

use super::table::{times, verified};
use Value::{Count, Multiple, Number, Part, Verified, Words};

/// The value of a record, if it has one.
type Of = fn(&Record) -> Option<Value>;

/// A column in one of the two: its heading there, and the value.
pub(crate) type Headed = (&'static str, Of);

/// A column: its heading in tables, its name in comma-separated values, and the value. Where it is
/// not shown, it has no name.
type Column = (&'static str, &'static str, Of);

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
    ("", "group", |record| Some(Words(record.subject.group.title().to_lowercase()))),
    ("", "case", CASE.1),
    ("", "op", |record| Some(Words(record.subject.op.clone()))),
    ("", "dtype", |record| Some(Words(record.subject.dtype?.name().into()))),
    ("", "shape", |record| Some(Words(listed(&record.subject.shape)))),
    ("", "axes", |record| Some(Words(listed(record.subject.axes.as_deref()?)))),
    ("", "from", |record| Some(Words(record.subject.from?.name().into()))),
    // Every table has it.
    ("kernel", "", |record| Some(Words(record.kernel.clone().unwrap_or("-".into())))),
    ("", "kernel", |record| Some(Words(record.kernel.clone()?))),
    ("verified", "verified", |record| Some(Verified(record.verified?))),
    ("", "read_bytes", |record| Some(Count(record.subject.read))),
    ("", "written_bytes", |record| Some(Count(record.subject.written))),
    ("ms", "median_ms", |record| Some(Number(record.ms?.median, 4))),
    ("p10", "p10_ms", |record| Some(Number(record.ms?.p10, 4))),
    ("", "p25_ms", |record| Some(Number(record.ms?.p25, 4))),
    ("", "p75_ms", |record| Some(Number(record.ms?.p75, 4))),
    ("p90", "p90_ms", |record| Some(Number(record.ms?.p90, 4))),
    ("GB/s", "gbps", |record| Some(Number(record.gbps?, 1))),
    ("of copy", "", |record| Some(Part(record.fraction_of_copy?))),
    ("of ceiling", "fraction_of_ceiling", |record| Some(Part(record.fraction_of_ceiling?))),
    ("of nominal", "fraction_of_nominal", |record| Some(Part(record.fraction_of_nominal?))),
    ("us/launch", "", |record| Some(Number(record.launch_us?, 2))),
    ("", "gapless", |record| Some(Words(record.gapless?.to_string()))),
    ("discarded", "discarded", |record| Some(Count(record.discarded? as u64))),
    ("", "throttled", |record| Some(Words(record.ms.map(|_| record.is_throttled())?.to_string()))),
    ("doubts", "", |record| Some(Words(record.doubt()?.into()))),
    ("predicted ms", "predicted_ms", |record| Some(Number(record.predicted?.ms, 4))),
    ("bound by", "", |record| Some(Words(record.predicted?.bound.name().into()))),
    ("", "load_sectors_per_request", |record| Some(Number(record.counters?.global_load.sectors_per_request()?, 2))),
    ("", "store_sectors_per_request", |record| Some(Number(record.counters?.global_store.sectors_per_request()?, 2))),
    ("load sectors/ideal", "load_sectors_over_ideal", |record| Some(Multiple(record.load_sectors_over_ideal()?))),
    ("store sectors/ideal", "store_sectors_over_ideal", |record| Some(Multiple(record.store_sectors_over_ideal()?))),
    // Of documents of earlier versions, which have no ideal.
    ("load sectors/request", "", |record| {
        let counters = record.counters.filter(|counters| counters.ideal.sectors() == 0)?;
        Some(Number(counters.global_load.sectors_per_request()?, 2))
    }),
    ("store sectors/request", "", |record| {
        let counters = record.counters.filter(|counters| counters.ideal.sectors() == 0)?;
        Some(Number(counters.global_store.sectors_per_request()?, 2))
    }),
    ("bank conflicts", "bank_conflicts", |record| Some(Count(record.counters?.bank_conflicts()))),
];

/// The columns of tables behind the first.
pub(crate) fn of_tables() -> impl Iterator<Item = Headed> {
    COLUMNS.iter().map(|&(heading, _, of)| (heading, of)).filter(|(heading, _)| !heading.is_empty())
}

/// The columns of comma-separated values.
pub(crate) fn of_csv() -> impl Iterator<Item = Headed> {
    COLUMNS.iter().map(|&(_, name, of)| (name, of)).filter(|(name, _)| !name.is_empty())
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

fn listed(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
