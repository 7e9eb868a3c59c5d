//! `warpstride model RUN.json`: predicts the times of a run that was measured, beside them.

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::error::counted;
use warpstride::roofline::model::{Bound, DeviceModel, Prediction};
use warpstride::roofline::record::{Group, Record};

use super::bench::again;
use super::compare::Kernel;
use super::output::Output;
use super::{args, refuse, require, runs, terminal};
use crate::run::table::Table;

/// Cases of the table: those whose times are furthest from the predicted ones.
const SHOWN: usize = 10;
/// The part of a ceiling from which on the memory bounds a case.
const AT_THE_MEMORY: f64 = 0.85;

/// A case with its measured and its predicted time.
struct Case {
    name: String,
    measured_ms: f64,
    predicted_ms: f64,
    bound: Bound,
    /// True if the measured time says that the memory bounds it.
    at_the_memory: bool,
}

impl Case {
    /// The predicted time over the measured one.
    fn ratio(&self) -> f64 {
        self.predicted_ms / self.measured_ms
    }

    fn error(&self) -> f64 {
        (self.ratio() - 1.0).abs()
    }
}

pub(super) fn run(args: &args::Model, output: &Output) -> Result<()> {
    let run = runs::read(&args.run)?;
    let path = terminal::path(&args.run);
    let Some(device) = args.model.or_else(|| DeviceModel::of(&run.device.name)) else {
        let name = &run.device.name;
        refuse!(InvalidArgument, "{path} was measured on {name}, of which there is no model; pass one with --model")
    };
    let timed = || run.cases.iter().filter(|case| case.ms.is_some());
    let progress = output.progress(timed().count());
    let mut cases = Vec::new();
    for record in timed() {
        progress.doing(&record.name);
        cases.extend(predicted(record, &device));
        progress.step();
    }
    drop(progress);
    require!(
        !cases.is_empty(),
        InvalidArgument,
        "{path} has no case that the model predicts; name a run of permutes or of compare on a GPU"
    );
    cases.sort_by(|a, b| b.error().total_cmp(&a.error()));
    let left_out = timed().count() - cases.len();
    output.result(&text(&cases, left_out, &device), document(&cases, left_out, &device))
}

/// Predicts the time of a case, if it is one whose launch can be made again.
fn predicted(record: &Record, device: &DeviceModel) -> Option<Case> {
    let ms = record.ms.as_ref().filter(|ms| ms.median.is_finite() && ms.median > 0.0)?;
    let prediction = prediction(record, device)?;
    Some(Case {
        name: record.name.clone(),
        measured_ms: ms.median,
        predicted_ms: prediction.ms,
        bound: prediction.bound,
        at_the_memory: record.fraction_of_ceiling.is_some_and(|fraction| fraction >= AT_THE_MEMORY),
    })
}

/// The predicted time of a case; `None` if the record does not tell the launch, or no model knows
/// it.
fn prediction(record: &Record, device: &DeviceModel) -> Option<Prediction> {
    let subject = &record.subject;
    // A case that cannot be made again here is left out.
    if let (Group::Transpose, Some(kernel)) = (subject.group, subject.variant.as_deref().and_then(Kernel::named)) {
        let (work, launches) = kernel.work(subject).ok()??;
        return device.predict(&work, launches).ok();
    }
    let works = again::work(record).ok()??.ok()?;
    let (first, later) = works.split_first()?;
    let first = device.predict(first, 1).ok()?;
    // The ramp of a later launch is hidden behind the launch before. One that the model refuses is
    // as small as the time between two launches.
    let later_ms =
        |work| device.predict(work, 1).map_or(device.launch_us, |later| 1e3 * later.ms - device.ramp_us) / 1e3;
    Some(Prediction { ms: first.ms + later.iter().map(later_ms).sum::<f64>(), ..first })
}

/// The median of the errors, and the part of the cases within 25 %.
fn errors(cases: &[Case]) -> (f64, f64) {
    let within = cases.iter().filter(|case| case.error() <= 0.25).count();
    (cases[cases.len() / 2].error(), within as f64 / cases.len() as f64)
}

/// Counts the cases that the memory bounds: those for which the model says so, and all.
fn bound_right(cases: &[Case]) -> Option<(usize, usize)> {
    let known = || cases.iter().filter(|case| case.at_the_memory);
    let right = known().filter(|case| case.bound == Bound::Memory).count();
    (known().count() > 0).then(|| (right, known().count()))
}

fn text(cases: &[Case], left_out: usize, device: &DeviceModel) -> String {
    let (median, within) = errors(cases);
    let mut text = format!(
        "{} by the model of {}: median error {:.1} %, {:.1} % within 25 %\n",
        counted(cases.len(), "case"),
        device.name,
        100.0 * median,
        100.0 * within
    );
    if let Some((right, known)) = bound_right(cases) {
        text += &format!(
            "Bound by the memory at {:.0} % of its ceiling or more: {known}; the model says so of {right}.\n",
            100.0 * AT_THE_MEMORY
        );
        let below = cases.len() - known;
        let by_memory = cases.iter().filter(|case| !case.at_the_memory && case.bound == Bound::Memory).count();
        text += &format!("Below that: {below}, of which the model says of {by_memory} that the memory bounds them.\n");
    }
    if left_out > 0 {
        text += &format!("Not predicted: {left_out}, whose launch the record does not tell or no model knows.\n");
    }
    let mut table = Table::new(&["predicted/measured", "measured ms", "predicted ms", "bound by", "case"]);
    for case in cases.iter().take(SHOWN) {
        let [measured, predicted] = [case.measured_ms, case.predicted_ms].map(|ms| format!("{ms:.4}"));
        let ratio = format!("{:.2}", case.ratio());
        table.add_row([ratio, measured, predicted, case.bound.name().into(), case.name.clone()]);
    }
    text + &format!("The largest errors\n{table}\n")
}

fn document(cases: &[Case], left_out: usize, device: &DeviceModel) -> Value {
    let (median, within) = errors(cases);
    let rows: Vec<Value> = cases
        .iter()
        .map(|case| {
            json!({
                "name": case.name, "measured_ms": case.measured_ms, "predicted_ms": case.predicted_ms,
                "ratio": case.ratio(), "bound": case.bound.name(), "at_the_memory": case.at_the_memory,
            })
        })
        .collect();
    json!({
        "model": device.name, "median_error": median, "within_a_quarter": within,
        "bound_right": bound_right(cases).map(|(right, known)| right as f64 / known as f64),
        "left_out": left_out, "cases": rows,
    })
}
