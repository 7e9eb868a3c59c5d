//! Runs, as the command line measures, compares and shows them.

pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod pipelines;
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transfers: Option<Transfers>,
    /// The runs of a pipeline; `None` if none were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pipeline: Option<Pipelines>,
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
        Self { records: run::Run::new(device, date, ceilings, cases), transfers: None, pipeline: None }
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
