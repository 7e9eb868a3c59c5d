//! `warpstride bench permute --random SEED,N`: drawn permutes, each beside a copy.

use crate::export::{json, text};
use crate::run::Score;
use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::error::counted;
use warpstride::layout::Layout;
use warpstride::ops::{Align, PermutePlan, Plan, SECTOR, Target};
use warpstride::roofline::measure::{Rotation, has_times};
use warpstride::roofline::record::{Drawn, Group, Record, Subject};

use super::conversion::in_c_order;
use super::drawn::{Case, Sizes, cases};
use super::measure::{Bench, Work};
use crate::output::Output;
use crate::{args, by_width, ensure_room, peaks, reference};

/// The permutes of a seed, or a part of them.
fn listed(args::Random { seed, count }: args::Random, part: Option<args::Part>, sizes: Sizes) -> Vec<Case> {
    let args::Part { number, of } = part.unwrap_or(args::Part { number: 1, of: 1 });
    let mut cases = cases(seed, number * count / of, sizes);
    cases.drain(..(number - 1) * count / of);
    cases
}

/// Prints the permutes that a GPU measures, as the files of `cases.json`'s form.
pub(super) fn print(random: args::Random, part: Option<args::Part>, output: &Output) -> Result<()> {
    let cases: Vec<Value> = listed(random, part, Sizes::TIMED).iter().map(described).collect();
    let lines: Vec<String> = cases.iter().map(ToString::to_string).collect();
    output.result(&format!("[\n  {}\n]\n", lines.join(",\n  ")), json!({ "cases": cases }))
}

/// Measures the permutes of a seed, or a part of them.
pub(super) fn run(
    args: &args::Bench,
    (random, part): (args::Random, Option<args::Part>),
    samples: usize,
    backend: Backend,
    output: &Output,
) -> Result<()> {
    // The bar is of all cases, and none has its own.
    let quiet = Output::new(false, true, false);
    let mut bench = Bench::open(args, None, samples, peaks::known, (backend, output))?;
    bench.output = &quiet;
    let timed = has_times(&bench.device);
    let cases = listed(random, part, if timed { Sizes::TIMED } else { Sizes::COUNTED });
    let bits = bits(&cases)?;
    let progress = output.progress_with_rate(cases.len() as u64);
    let mut records = Vec::new();
    for case in &cases {
        progress.doing(&case.name);
        records.push(record(case, &bits, &bench)?);
        progress.step();
    }
    drop(progress);
    let mut run = bench.run(records);
    let score = if timed && !run.cases.is_empty() { Score::of(&run.cases) } else { Score::default() };
    let mut shown = text::run(&run);
    if let Score { score: Some(score), lowest: Some(lowest) } = score {
        let cases = counted(run.cases.len(), "case");
        shown += &format!(
            "score: {score:.3} of the copy's speed, the geometric mean of {cases}; the lowest has {lowest:.3}\n"
        );
    }
    run.score = Some(score);
    bench.kept.finish(&run, shown, json::document(&run)?, output)
}

/// Describes a case as `cases.json` does, with its kind and its steps.
fn described(case: &Case) -> Value {
    let Case { name, kind, dtype, shape, axes, steps } = case;
    let mut document =
        json!({ "name": name, "kind": kind.name(), "dtype": dtype.name(), "shape": shape, "axes": axes });
    if let Some(steps) = steps {
        document["steps"] = json!(steps);
    }
    document
}

/// Holds a record against a copy of the bytes that its case touches: elements that lie apart come
/// with the rest of their sectors. The measured copy is of the result's bytes, and its speed counts
/// for as many bytes as are touched.
fn held(record: Record, touched: u64) -> Record {
    let more = touched as f64 / record.subject.bytes as f64;
    Record { fraction_of_copy: record.fraction_of_copy.map(|fraction| fraction * more), ..record }
}

/// Draws the elements of the longest array, of which the others take the first. No byte is 0: an
/// element that a kernel leaves out is seen in a result that was filled with zeros.
fn bits(cases: &[Case]) -> Result<Vec<u64>> {
    let longest = cases.iter().map(|case| case.storage_len() * case.dtype.width()).max().unwrap_or(0);
    // A whole number of the widest elements.
    let mut bits = reference::random::<u64>(longest.next_multiple_of(DType::C128.width()) / size_of::<u64>())?;
    let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut bits);
    bytes.par_chunks_mut(1 << 20).for_each(|part| part.iter_mut().for_each(|byte| *byte = (*byte).max(1)));
    Ok(bits)
}

/// Measures a case beside a copy, with the strategy that takes it and the bytes of the sectors that
/// it reads and writes.
fn record(case: &Case, bits: &[u64], bench: &Bench<'_>) -> Result<Record> {
    let (Case { dtype, shape, axes, steps, .. }, source) = (case, case.source()?);
    let (align, width, target) = (Align::ALLOCATION, dtype.width(), Target::of(&bench.device));
    let plan = PermutePlan::new(&source, align, &Layout::row_major(source.shape())?, align, width, target)?;
    let explanation = plan.explain();
    let strategy = explanation.verdicts.iter().find(|verdict| verdict.takes).map_or("none", |first| first.strategy);
    let bytes = (case.len() * width) as u64;
    let read = match &explanation.walk {
        Some(walk) if case.leaves_out() => bytes.max(walk.read_sectors * SECTOR as u64),
        _ => bytes,
    };
    let touched = read + bytes;
    let subject = Subject::new(Group::Permute, "permute", *dtype, shape, [bytes; 2]);
    let subject = Subject { axes: Some(axes.clone()), steps: steps.clone(), ..subject };
    let record = bench.record(subject, || by_width!(dtype, T => prepared::<T>(case, &source, bits, &bench.device)))?;
    let drawn = Drawn { kind: case.kind.name(), strategy: strategy.into(), touched };
    Ok(Record { drawn: Some(drawn), ..held(record, touched) })
}

/// Puts the view `source` of a case on the device.
fn prepared<'w, T: Element + Pod>(
    case: &'w Case,
    source: &Layout,
    bits: &[u64],
    device: &Device,
) -> Result<Box<dyn Work + 'w>> {
    let elements = &bytemuck::cast_slice::<u64, T>(bits)[..case.storage_len()];
    let bytes = [size_of_val(elements), case.len() * size_of::<T>()];
    let rotation = Rotation::new(device, &bytes);
    // The expected elements and those that came back; the sources and results of the rotation.
    ensure_room(Rotation::padded(bytes[0]), 2, &[(device, rotation.arrays(2))])?;
    in_c_order(rotation, elements, source, |array| case.source_of(array))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_touched_bytes_takes_its_part_of_the_measured_speed() {
        let subject = Subject::new(Group::Permute, "permute", DType::F32, &[64], [256; 2]);
        let record = Record::new(subject, None, true);
        let timed =
            Record { gbps: Some(600.0), copy_gbps: Some(1000.0), fraction_of_copy: Some(0.6), ..record.clone() };
        // Every second element: 512 bytes are read, and 256 are written.
        let stepped = held(timed.clone(), 768);
        assert_eq!((stepped.gbps, stepped.copy_gbps), (Some(600.0), Some(1000.0)), "these were measured");
        assert!((stepped.fraction_of_copy.expect("timed") - 0.9).abs() < 1e-12);
        assert_eq!(held(timed.clone(), 512), timed);
        assert_eq!(held(record.clone(), 768), record);
    }
}
