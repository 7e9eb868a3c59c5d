//! `warpstride bench permute --random SEED,N`: permutes of drawn arrays, each beside a copy.

use anyhow::Result;
use serde_json::json;
use warpstride::device::Backend;
use warpstride::element::DType;
use warpstride::random::SplitMix64;
use warpstride::roofline::export::{json, text};
use warpstride::roofline::measure::has_times;
use warpstride::roofline::record::Record;
use warpstride::roofline::run::Run;

use super::permute::Moved;
use super::{Measured, shrink};
use crate::cli::output::Output;
use crate::cli::runs::Kept;
use crate::cli::{args, open, peaks};

/// Bytes of a drawn array, at most, on a GPU: some more than an L2 cache has.
const BYTES: usize = 64 << 20;
/// The same on the software GPU.
const COUNTED_BYTES: usize = 1 << 20;
/// A type of each width: permutes go by width.
const TYPES: [DType; 5] = [DType::U8, DType::F16, DType::F32, DType::F64, DType::C128];

pub(super) fn run(
    args: &args::Bench,
    args::Random { seed, count }: args::Random,
    samples: usize,
    backend: Backend,
    output: &Output,
) -> Result<()> {
    let kept = Kept::new(args.save.as_deref(), args.compare.as_deref())?;
    let device = open(backend, output)?;
    kept.check_device(&device)?;
    let (timed, date) = (has_times(&device), jiff::Timestamp::now().to_string());
    let ceilings = if timed { Some(peaks::known(&device, output)?) } else { None };
    let ceilings = ceilings.map(|kept| (kept.peaks, kept.date));
    let (mut draws, mut cases) = (Draws(SplitMix64(seed)), Vec::<Record>::new());
    while cases.len() < count {
        let (dtype, mut shape, axes) = draws.case();
        if !timed {
            shrink(&mut shape, COUNTED_BYTES / dtype.width());
        }
        let permute = Moved { op: "permute", dtype, shape: &shape, axes: Some(&axes) };
        let subject = permute.subject()?;
        // A run has one record of each case.
        if cases.iter().all(|case| case.subject != subject) {
            let outcome = permute.outcome(&device, samples, output)?;
            cases.push(outcome.record(subject, samples, ceilings.as_ref().map(|(peaks, _)| peaks)));
        }
    }
    let score = score(&cases);
    let run = Run::new(&device, date, ceilings, cases);
    let (mut shown, mut document) = (text::run(&run), json::document(&run)?);
    document.insert("score".into(), json!(score));
    if let Some(score) = score {
        shown += &format!("score: {score:.3} of the copy's speed, the geometric mean of all cases\n");
    }
    kept.finish(&run, shown, document, output)
}

/// The geometric mean of the parts of a copy's speed; `None` where a case has no time.
fn score(cases: &[Record]) -> Option<f64> {
    let logarithms = cases.iter().map(|case| case.fraction_of_copy.map(f64::ln)).sum::<Option<f64>>()?;
    Some((logarithms / cases.len() as f64).exp())
}

/// Draws from a seed, the same on every machine.
struct Draws(SplitMix64);

impl Draws {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    /// Puts elements in any order.
    fn shuffle<T>(&mut self, elements: &mut [T]) {
        // Fisher and Yates.
        for at in (1..elements.len()).rev() {
            elements.swap(at, self.below(at + 1));
        }
    }

    /// An array of 2 to 5 axes, with at most [`BYTES`] and at least two thirds of them, and its
    /// axes in another order. Short extents are as likely as long ones: their logarithms are drawn.
    fn case(&mut self) -> (DType, Vec<usize>, Vec<usize>) {
        let (dtype, rank) = (TYPES[self.below(TYPES.len())], 2 + self.below(4));
        let (mut shape, mut left) = (Vec::with_capacity(rank), BYTES / dtype.width());
        for others in (1..rank).rev() {
            // The others have 2 indices at least.
            let most_log2 = left.ilog2() as usize - others;
            let log2 = self.below((2 * most_log2).div_ceil(others + 1).min(most_log2));
            let extent = (1 << log2) + 1 + self.below(1 << log2);
            shape.push(extent);
            left /= extent;
        }
        shape.push(left);
        self.shuffle(&mut shape);
        let mut axes: Vec<usize> = (0..rank).collect();
        while axes.is_sorted() {
            self.shuffle(&mut axes);
        }
        (dtype, shape, axes)
    }
}
