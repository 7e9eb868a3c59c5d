//! Measures drawn permutes, each beside a copy: `warpstride bench permute --random SEED,N`.

use crate::export::{json, text};
use crate::run::Run;
use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::element::{DType, Element};
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target};
use warpstride::roofline::measure::{Rotation, has_times};
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::random_permutes::{Case, Sizes, cases};
use warpstride::roofline::record::{Group, Record, Subject};
use warpstride::view::{View, ViewMut};

use super::outcome::Outcome;
use super::permute::copy;
use super::score::{Score, Scored};
use crate::cold_runs::ColdRuns;
use crate::output::Output;
use crate::runs::Kept;
use crate::verify::counted;
use crate::{args, by_width, ensure_room, open, peaks, reference};

/// Bytes of a sector, the least that memory delivers.
const SECTOR: u64 = 32;

/// The permutes of a seed, or a part of them.
pub(super) struct Drawn {
    pub(super) random: args::Random,
    pub(super) part: Option<args::Part>,
}

impl Drawn {
    fn cases(&self, sizes: Sizes) -> Vec<Case> {
        let args::Random { seed, count } = self.random;
        let args::Part { number, of } = self.part.unwrap_or(args::Part { number: 1, of: 1 });
        let mut cases = cases(seed, number * count / of, sizes);
        cases.drain(..(number - 1) * count / of);
        cases
    }

    /// Prints those that a GPU measures, as the files of `cases.json`'s form.
    pub(super) fn print(&self, output: &Output) -> Result<()> {
        let cases = self.cases(Sizes::TIMED);
        let lines = cases.iter().map(serde_json::to_string).collect::<serde_json::Result<Vec<_>>>()?;
        output.result(&format!("[\n  {}\n]\n", lines.join(",\n  ")), json!({ "cases": cases }))
    }

    /// Measures them.
    pub(super) fn run(&self, args: &args::Bench, samples: usize, backend: Backend, output: &Output) -> Result<()> {
        let kept = Kept::new(args.save.as_deref(), args.compare.as_deref())?;
        let device = open(backend, output)?;
        kept.check_device(&device)?;
        let (timed, date) = (has_times(&device), jiff::Timestamp::now().to_string());
        let ceilings = if timed { Some(peaks::known(&device, output)?) } else { None };
        let ceilings = ceilings.map(|kept| (kept.peaks, kept.date));
        let cases = self.cases(if timed { Sizes::TIMED } else { Sizes::COUNTED });
        let bench = Bench::new(&device, &cases, samples, ceilings.as_ref().map(|(peaks, _)| peaks))?;
        let progress = output.progress_with_rate(cases.len() as u64);
        let (mut records, mut scored) = (Vec::new(), Vec::new());
        for case in &cases {
            progress.doing(&case.name);
            let (record, strategy, touched) = bench.record(case)?;
            let fraction = record.fraction_of_copy;
            scored.push(Scored { name: case.name.clone(), kind: case.kind, strategy, touched, fraction });
            records.push(record);
            progress.step();
        }
        drop(progress);
        let run = Run::new(&device, date, ceilings, records);
        let (mut shown, mut document) = (text::run(&run), json::document(&run)?);
        if let Some(Value::Array(cases)) = document.get_mut("cases") {
            for (case, Scored { kind, strategy, touched, .. }) in cases.iter_mut().zip(&scored) {
                (case["kind"], case["strategy"], case["touched"]) = (json!(kind), json!(strategy), json!(touched));
            }
        }
        let score = Score::of(&scored).filter(|_| timed);
        shown += &score.as_ref().map_or(String::new(), ToString::to_string);
        Score::add_to(score.as_ref(), &mut document);
        kept.finish(&run, shown, document, output)
    }
}

/// Holds a record against a copy of the bytes that its case touches: elements that lie apart come
/// with the rest of their sectors. The measured copy is of the result's bytes, and its speed counts
/// for as many bytes as are touched.
fn held(record: Record, touched: u64) -> Record {
    let more = touched as f64 / record.subject.bytes as f64;
    Record { fraction_of_copy: record.fraction_of_copy.map(|fraction| fraction * more), ..record }
}

/// What all cases share.
struct Bench<'a> {
    device: &'a Device,
    samples: usize,
    peaks: Option<&'a Peaks>,
    /// The elements of the longest array, of which the others take the first. No byte is 0: what a
    /// kernel leaves out is seen in a result that was filled with zeros.
    bits: Vec<u64>,
}

impl<'a> Bench<'a> {
    fn new(device: &'a Device, cases: &[Case], samples: usize, peaks: Option<&'a Peaks>) -> Result<Self> {
        let longest = cases.iter().map(|case| case.storage_len() * case.dtype.width()).max().unwrap_or(0);
        // A whole number of the widest elements.
        let mut bits = reference::random::<u64>(longest.next_multiple_of(DType::C128.width()) / size_of::<u64>())?;
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(&mut bits);
        bytes.par_chunks_mut(1 << 20).for_each(|part| part.iter_mut().for_each(|byte| *byte = (*byte).max(1)));
        Ok(Self { device, samples, peaks, bits })
    }

    /// Verifies and times a case: its record, the strategy that took it, and the bytes of the
    /// sectors that it touches.
    fn record(&self, case: &Case) -> Result<(Record, &'static str, u64)> {
        let source = case.source()?;
        let (align, width, target) = (Align::ALLOCATION, case.dtype.width(), Target::of(self.device));
        let plan = PermutePlan::new(&source, align, &Layout::row_major(source.shape())?, align, width, target)?;
        let explanation = plan.explain();
        let strategy = explanation.verdicts.iter().find(|verdict| verdict.takes).map_or("none", |first| first.strategy);
        let bytes = (case.len() * width) as u64;
        let read = match &explanation.walk {
            Some(walk) if case.leaves_out() => bytes.max(walk.read_sectors * SECTOR),
            _ => bytes,
        };
        let touched = read + bytes;
        let subject = Subject::new(Group::Permute, "permute", case.dtype, &case.shape, [bytes; 2]);
        let subject = Subject { axes: Some(case.axes.clone()), steps: case.steps.clone(), ..subject };
        let mut outcome = by_width!(case.dtype, T => self.outcome::<T>(case, &source))?;
        outcome.kernel = plan.entry();
        Ok((held(outcome.record(subject, self.samples, self.peaks), touched), strategy, touched))
    }

    fn outcome<T: Element + Pod + Send + Sync>(&self, case: &Case, source: &Layout) -> Result<Outcome> {
        let device = self.device;
        let (len, elements) = (case.len(), &bytemuck::cast_slice::<u64, T>(&self.bits)[..case.storage_len()]);
        let bytes = [size_of_val(elements), len * size_of::<T>()];
        let rotation = Rotation::new(device, &bytes);
        // The expected elements and those that came back; the sources and results of the rotation.
        ensure_room(Rotation::padded(bytes[0]), 2, &[(device, rotation.arrays(2))])?;
        let is_cold = rotation.is_cold();
        let mut runs = ColdRuns::new(rotation, elements, len)?;
        let mut launch = |array: View<'_, T>, result: ViewMut<'_, T>| {
            let stream = array.device().default_stream();
            let source = case.source_of(array)?;
            let result = result.split_axis(0, source.shape())?;
            ops::copy_into(source, result, stream)
        };
        // The first run writes to the zeros of the first set.
        let counters = counted(device, || runs.run(&mut launch))?;
        let (result, expected) = (runs.first()?, reference::in_c_order(elements, source)?);
        let [result, expected] = [&result, &expected].map(|elements| bytemuck::cast_slice::<T, u8>(elements));
        let verified = result.par_chunks(1 << 20).eq(expected.par_chunks(1 << 20));
        let mut timing = None;
        if verified && is_cold {
            let copy = runs.time(self.samples, |array, result| copy(array.slice(0, ..result.len(), 1)?, result))?;
            let copy = copy.gbps(2 * bytes[1] as u64);
            timing = Some((runs.time(self.samples, launch)?, copy));
        }
        Ok(Outcome { kernel: None, verified, counters, timing, launch_us: None })
    }
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
