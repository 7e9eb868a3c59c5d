//! `warpstride bench permute --random SEED,N` and `--file FILE`: many permutes, each beside a copy.

use crate::export::{json, text};
use crate::run::Score;
use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::error::counted;
use warpstride::ops::{Align, PermutePlan, Plan, SECTOR, Target};
use warpstride::roofline::measure::{Rotation, has_times};
use warpstride::roofline::record::{Drawn, Record};

use super::SMALL;
use super::conversion::between;
use super::drawn::{Case, Sizes, cases};
use super::listed::{Listed, Task, tasks};
use super::measure::{Bench, Work};
use super::measure_plan;
use crate::output::Output;
use crate::{args, by_width, ensure_room, peaks, reference};

/// The source of the permutes.
pub(super) enum Source {
    /// A seed, or a part of its permutes.
    Drawn(args::Random, Option<args::Part>),
    /// A file.
    List(Vec<Listed>),
}

impl Source {
    /// The permutes that a device measures: small ones where they are only counted.
    fn tasks(&self, timed: bool) -> Result<Vec<Task>> {
        let sizes = if timed { Sizes::TIMED } else { Sizes::COUNTED };
        match self {
            Self::Drawn(random, part) => {
                let listed: Vec<Listed> = drawn(*random, *part, sizes).into_iter().map(Into::into).collect();
                tasks(&listed, usize::MAX)
            }
            Self::List(listed) => tasks(listed, if timed { usize::MAX } else { SMALL }),
        }
    }
}

/// The permutes of a seed, or a part of them.
fn drawn(args::Random { seed, count }: args::Random, part: Option<args::Part>, sizes: Sizes) -> Vec<Case> {
    let args::Part { number, of } = part.unwrap_or(args::Part { number: 1, of: 1 });
    let mut cases = cases(seed, number * count / of, sizes);
    cases.drain(..(number - 1) * count / of);
    cases
}

/// Prints the permutes that a GPU measures, as the files of `cases.json`'s form.
pub(super) fn print(random: args::Random, part: Option<args::Part>, output: &Output) -> Result<()> {
    let cases: Vec<Value> = drawn(random, part, Sizes::TIMED).iter().map(described).collect();
    let lines: Vec<String> = cases.iter().map(ToString::to_string).collect();
    output.file(&format!("[\n  {}\n]\n", lines.join(",\n  ")), json!({ "cases": cases }))
}

/// Measures the permutes of a list.
pub(super) fn run(
    args: &args::Bench,
    source: &Source,
    measures: bool,
    samples: usize,
    backend: Backend,
    output: &Output,
) -> Result<()> {
    // The bar is of all cases, and none has its own.
    let quiet = Output::new(false, true, false);
    let mut bench = Bench::open(args, None, samples, peaks::known, (backend, output))?;
    bench.output = &quiet;
    let timed = has_times(&bench.device);
    let tasks = source.tasks(timed)?;
    bench.kept.ensure_same_cases(tasks.iter().map(|task| &*task.name))?;
    let bits = bits(&tasks)?;
    let progress = output.progress_with_rate(tasks.len() as u64);
    let (mut records, mut losses) = (Vec::new(), Vec::new());
    for task in &tasks {
        progress.doing(&task.name);
        if measures {
            let [from, to] = task.layouts()?;
            losses.push(measure_plan(&bench.device, [&from, &to], task.dtype().width())?);
        }
        records.push(record(task, &bits, &bench)?);
        progress.step();
    }
    drop(progress);
    let mut run = bench.run(records);
    let is_scored = timed && !run.cases.is_empty();
    let score = if is_scored { Score::of(&run.cases) } else { Score::default() }.with_losses(&losses);
    let mut shown = text::run(&run);
    if let Score { score: Some(score), lowest: Some(lowest), .. } = score {
        let cases = counted(run.cases.len(), "case");
        shown += &format!(
            "score: {score:.3} of the copy's speed, the geometric mean of {cases}; the lowest has {lowest:.3}\n"
        );
    }
    if let Some(loss) = score.loss_of_choice {
        shown +=
            &format!("choice: the planned kernels take {loss:.3} times as long as the fastest, the geometric mean\n");
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
fn bits(tasks: &[Task]) -> Result<Vec<u64>> {
    let longest = tasks.iter().map(|task| task.storage_lens()[0] * task.dtype().width()).max().unwrap_or(0);
    ensure_room(longest, 1, &[])?;
    // A whole number of the widest elements.
    let mut bits = reference::random::<u64>(longest.next_multiple_of(DType::C128.width()) / size_of::<u64>())?;
    let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut bits);
    bytes.par_chunks_mut(1 << 20).for_each(|part| part.iter_mut().for_each(|byte| *byte = (*byte).max(1)));
    Ok(bits)
}

/// Measures a permute beside a copy, with the strategy that takes it and the bytes of the sectors
/// that it reads and writes. The samples of hundreds of permutes are left out.
fn record(task: &Task, bits: &[u64], bench: &Bench<'_>) -> Result<Record> {
    let (dtype, [source, result]) = (task.dtype(), task.layouts()?);
    let (align, width, target) = (Align::ALLOCATION, dtype.width(), Target::of(&bench.device));
    let explanation = PermutePlan::new(&source, align, &result, align, width, target)?.explain();
    let strategy = explanation.verdicts.iter().find(|verdict| verdict.takes).map_or("none", |first| first.strategy);
    let bytes = task.subject.read;
    // A side whose elements lie apart comes with the rest of their sectors.
    let sectors = explanation.walk.map_or([0; 2], |walk| [walk.read_sectors, walk.written_sectors]);
    let touched = [&source, &result].into_iter().zip(sectors).map(|(side, sectors)| {
        if side.storage_len() > side.len() { bytes.max(sectors * SECTOR as u64) } else { bytes }
    });
    let touched = touched.sum();
    let record =
        bench.record(task.subject.clone(), || by_width!(dtype, T => prepared::<T>(task, bits, &bench.device)))?;
    let drawn = Drawn { kind: task.kind.clone(), strategy: strategy.into(), touched };
    Ok(Record { name: task.name.clone(), drawn: Some(drawn), samples_ms: None, ..held(record, touched) })
}

/// Puts the array of a permute on the device.
fn prepared<'w, T: Element + Pod>(task: &'w Task, bits: &[u64], device: &Device) -> Result<Box<dyn Work + 'w>> {
    let lens = task.storage_lens();
    let elements = &bytemuck::cast_slice::<u64, T>(bits)[..lens[0]];
    let bytes = lens.map(|len| len * size_of::<T>());
    let rotation = Rotation::new(device, &bytes);
    // The expected elements and those that came back; the sources and results of the rotation.
    ensure_room(Rotation::padded(bytes[0].max(bytes[1])), 2, &[(device, rotation.arrays(2))])?;
    let layouts = task.layouts()?;
    between(rotation, elements, &layouts, |array| task.source(array), |array| task.result(array))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpstride::roofline::record::{Group, Subject};

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
