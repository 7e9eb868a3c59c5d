//! A run as a JSON document, and back.

use serde_json::{Map, Value};

use super::older::upgraded;
use crate::run::Run;
use warpstride::counters::table;
use warpstride::error::{Error, ErrorKind, Result};
use warpstride::roofline::measure::Clocks;
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::{Record, SCHEMA};

/// The oldest schema that is read.
const OLDEST: u64 = 1;
/// The greatest whole number that is read: JSON's numbers are exact up to it.
const COUNTED: u64 = 1 << 53;
/// The times, speeds and parts that are read are less than this, as those of charts are.
const MEASURED: f64 = 1e12;
/// The times and speeds that are read and divide others are no less than this. The result of a
/// division is finite then.
const DIVIDES: f64 = 1e-9;

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("this run has no JSON: {error}"))
}

/// Returns the document of a run: its members, and its records as `cases`.
///
/// # Errors
///
/// `InvalidArgument` where a number of the run is not finite.
pub(crate) fn document(run: &Run) -> Result<Map<String, Value>> {
    match serde_json::to_value(run).map_err(failed)? {
        Value::Object(document) => Ok(document),
        other => Err(failed(format_args!("{other} is not an object"))),
    }
}

/// Returns the document of a run with a line for each of its records: what is kept of it.
///
/// # Errors
///
/// As [`document`].
pub(crate) fn lines(run: &Run) -> Result<String> {
    let mut document = document(run)?;
    let cases = document.remove("cases").map_or(Vec::new(), |cases| cases.as_array().cloned().unwrap_or_default());
    let members = document.iter().map(|(name, value)| format!("  {}: {value},\n", Value::from(&**name)));
    let cases: Vec<String> = cases.iter().map(|case| format!("\n    {case}")).collect();
    Ok(format!("{{\n{}  \"cases\": [{}\n  ]\n}}\n", members.collect::<String>(), cases.join(",")))
}

/// Returns the document of a run of one operation. The members of its record also stand beside
/// those of the run, where scripts find them.
///
/// # Errors
///
/// As [`document`].
pub(crate) fn document_of_one(run: &Run) -> Result<Map<String, Value>> {
    let mut document = document(run)?;
    if let Some(Value::Object(case)) = document["cases"].get(0).cloned() {
        document.extend(case);
    }
    Ok(document)
}

/// Reads a run from a document of this crate's command line: of `bench`, or of `compare`.
///
/// # Errors
///
/// `Io` where the text is not such a document, or has another schema.
pub(crate) fn read(text: &[u8]) -> Result<Run> {
    let refused = |why: String| Error::new(ErrorKind::Io, why);
    let is_none = |why: serde_json::Error| refused(format!("does not hold a run of `warpstride --json bench`: {why}"));
    let document: Value = serde_json::from_slice(text).map_err(is_none)?;
    let schema = document.get("schema").and_then(Value::as_u64);
    if let Some(schema) = schema.filter(|schema| !(OLDEST..=SCHEMA.into()).contains(schema)) {
        return Err(refused(format!(
            "has schema {schema}, and this version reads {OLDEST} to {SCHEMA}; measure it anew"
        )));
    }
    let is_of_peers = schema.is_none() && document.get("environment").is_some();
    if is_of_peers {
        let why = "is a record of `scripts/compare-peers`, which compares permutes with other libraries and is not a run; give \
                   a document of `warpstride --json bench`";
        return Err(refused(why.into()));
    }
    let run: Run = serde_json::from_value(upgraded(document)).map_err(is_none)?;
    if let Some(figure) = run.cases.iter().find_map(uncountable) {
        return Err(refused(format!("has a counter that no launch reaches: {figure}; is the file whole?")));
    }
    match out_of_range_of_run(&run).or_else(|| run.cases.iter().find_map(out_of_range)) {
        None => Ok(run),
        Some(figure) => Err(refused(format!("has a figure out of range: {figure}; is the file whole?"))),
    }
}

/// A counter, or the least that it could be, that no launch reaches: sums of those overflow.
fn uncountable(record: &Record) -> Option<String> {
    let counters = record.counters?;
    table::counters().find_map(|counter| {
        let most = counter.of(&counters).max(counter.least(&counters).unwrap_or_default());
        (most > COUNTED).then(|| format!("{} {most} of `{}`", counter.name(), record.name))
    })
}

/// A figure of a case that no measurement gives. Reports divide by some of them.
fn out_of_range(record: &Record) -> Option<String> {
    let count = counts(record).into_iter().find(|&(_, count, most)| count > most.min(COUNTED));
    let count = count.map(|(member, count, _)| format!("{member} {count}"));
    let figure = count.or_else(|| measured(record).into_iter().find_map(wrong));
    figure.or_else(|| wrong_clocks(record.clocks?)).map(|figure| format!("{figure} of `{}`", record.name))
}

/// A figure of the run itself that no measurement gives.
fn out_of_range_of_run(run: &Run) -> Option<String> {
    let ceilings = || run.peaks.iter().flat_map(ceilings).find_map(wrong);
    run.clocks.and_then(wrong_clocks).or_else(ceilings)
}

/// A member and its value, where no measurement gives such a one.
fn wrong((member, value, is_divisor): (&str, f64, bool)) -> Option<String> {
    let least = if is_divisor { DIVIDES } else { 0.0 };
    (!(least..MEASURED).contains(&value)).then(|| format!("{member} {value:?}"))
}

/// A clock that stands still, by which reports divide.
fn wrong_clocks(clocks: Clocks) -> Option<String> {
    (clocks.sm_mhz == 0).then(|| "clocks.sm_mhz 0".into())
}

/// The ceilings of a run, all of which divide speeds.
fn ceilings(peaks: &Peaks) -> Vec<(&'static str, f64, bool)> {
    let all = [
        ("peaks.read.gbps", peaks.read.gbps),
        ("peaks.write.gbps", peaks.write.gbps),
        ("peaks.copy.gbps", peaks.copy.gbps),
        ("peaks.memcpy", peaks.memcpy),
    ];
    let sizes = peaks.sizes.iter().flat_map(|warm| {
        [("peaks.sizes.read", warm.read), ("peaks.sizes.write", warm.write), ("peaks.sizes.copy", warm.copy)]
    });
    let nominal = peaks.nominal.map(|gbps| ("peaks.nominal", gbps));
    all.into_iter().chain(nominal).chain(sizes).map(|(member, gbps)| (member, gbps, true)).collect()
}

/// The whole numbers of a case, each with the most that it can be.
fn counts(record: &Record) -> Vec<(&'static str, u64, u64)> {
    let subject = &record.subject;
    let extents = subject.shape.iter().map(|&extent| ("shape", extent));
    let extents = extents.chain(record.counted_shape.iter().flatten().map(|&extent| ("counted_shape", extent)));
    let all = [("bytes", subject.bytes, COUNTED), ("read", subject.read, subject.bytes)].into_iter();
    all.chain([("written", subject.written, subject.bytes)])
        .chain(extents.map(|(member, extent)| (member, extent as u64, COUNTED)))
        .chain(subject.step.map(|step| ("step", step as u64, COUNTED)))
        .chain(record.launches.map(|launches| ("launches", launches, COUNTED)))
        .chain(record.drawn.as_ref().map(|drawn| ("touched", drawn.touched, COUNTED)))
        .collect()
}

/// The times, speeds and parts of a case, each with whether it divides others.
fn measured(record: &Record) -> Vec<(&'static str, f64, bool)> {
    let of = |member, value: Option<f64>, is_divisor| value.map(|value| (member, value, is_divisor));
    let ms = record.ms;
    let all = [
        of("ms.median", ms.map(|ms| ms.median), true),
        of("ms.p10", ms.map(|ms| ms.p10), false),
        of("ms.p25", ms.map(|ms| ms.p25), false),
        of("ms.p75", ms.map(|ms| ms.p75), false),
        of("ms.p90", ms.map(|ms| ms.p90), false),
        of("gbps", record.gbps, false),
        of("copy_gbps", record.copy_gbps, true),
        of("fraction_of_copy", record.fraction_of_copy, false),
        of("fraction_of_ceiling", record.fraction_of_ceiling, false),
        of("fraction_of_nominal", record.fraction_of_nominal, false),
        of("launch_us", record.launch_us, false),
        of("predicted.ms", record.predicted.map(|predicted| predicted.ms), false),
    ];
    let samples = record.samples_ms.iter().flatten().map(|&ms| ("samples_ms", ms, false));
    all.into_iter().flatten().chain(samples).collect()
}
