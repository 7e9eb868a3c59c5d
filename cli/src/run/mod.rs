//! Runs, as the command line measures, compares and shows them.

pub(crate) mod about;
pub(crate) mod answer;
mod causes;
pub(crate) mod columns;
pub(crate) mod compare;
mod counting;
pub(crate) mod figures;
mod index;
mod launches;
pub(crate) mod pipelines;
pub(crate) mod reasons;
pub(crate) mod table;
pub(crate) mod transfers;

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use warpstride::device::Device;
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::Record;
use warpstride::roofline::run;

use pipelines::Pipelines;
use transfers::Transfers;

/// A run of the library, and the copies and pipelines that were measured beside its records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The records, and where they were measured.
    #[serde(flatten)]
    pub(crate) records: run::Run,
    /// The copies between host and device; `None` if none were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transfers: Option<Transfers>,
    /// The runs of a pipeline; `None` if none were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pipeline: Option<Pipelines>,
    /// The score of drawn permutes; `None` if the run has none. It is not read from documents.
    #[serde(flatten, skip_deserializing)]
    pub(crate) score: Option<Score>,
}

/// The speed of drawn permutes beside a copy. Both are `None` where nothing was timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Score {
    /// The geometric mean of their `fraction_of_copy`. A case that was not timed, because it was
    /// wrong, counts as 0: otherwise a kernel could raise the score by a wrong result.
    pub(crate) score: Option<f64>,
    /// The least of them.
    pub(crate) lowest: Option<f64>,
    /// How many times as long the kernels take that are planned without measurements as the
    /// fastest: the geometric mean. `None` if no plans were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loss_of_choice: Option<f64>,
}

impl Score {
    /// Scores records, of which there is one at least.
    pub(crate) fn of(records: &[Record]) -> Self {
        let fractions = || records.iter().map(|record| record.fraction_of_copy.unwrap_or(0.0));
        let lowest = Some(fractions().fold(f64::INFINITY, f64::min));
        Self { score: Some(geometric_mean(fractions())), lowest, loss_of_choice: None }
    }

    /// Adds the losses of plans that were measured.
    pub(crate) fn with_losses(self, losses: &[f64]) -> Self {
        let mean = (!losses.is_empty()).then(|| geometric_mean(losses.iter().copied()));
        Self { loss_of_choice: mean, ..self }
    }
}

pub(crate) fn geometric_mean(of: impl ExactSizeIterator<Item = f64>) -> f64 {
    let len = of.len() as f64;
    (of.map(f64::ln).sum::<f64>() / len).exp()
}

impl Deref for Run {
    type Target = run::Run;

    fn deref(&self) -> &run::Run {
        &self.records
    }
}

impl Run {
    /// Makes a run of records alone, as [`run::Run::new`] does.
    pub(crate) fn new(device: &Device, date: String, ceilings: Option<(Peaks, String)>, cases: Vec<Record>) -> Self {
        Self { records: run::Run::new(device, date, ceilings, cases), transfers: None, pipeline: None, score: None }
    }

    /// The title of its reports.
    pub(crate) fn title(&self) -> String {
        format!("warpstride on {}", self.device.name)
    }

    /// Returns whether anything was timed.
    pub(crate) fn has_times(&self) -> bool {
        self.records.has_times()
            || self.transfers.iter().flat_map(|transfers| &transfers.copies).any(|copy| copy.ms.is_some())
            || self.pipeline.iter().flat_map(|all| &all.runs).any(|run| run.seconds.is_some())
    }

    /// Returns the names of the cases whose results were wrong.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let copies = self.transfers.iter().flat_map(Transfers::wrong);
        self.records.wrong().into_iter().chain(copies).chain(self.pipeline.iter().flat_map(Pipelines::wrong)).collect()
    }
}

#[cfg(test)]
mod tests;
