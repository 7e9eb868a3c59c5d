//! The outcome of measuring an operation, and the record of it.

use warpstride::counters::Counters;
use warpstride::roofline::measure::Timing;
use warpstride::roofline::peak::Peaks;
use warpstride::roofline::record::{Record, Subject};

/// An operation was verified, and where time means something, timed.
pub(super) struct Outcome {
    pub(super) kernel: Option<&'static str>,
    pub(super) verified: bool,
    pub(super) counters: Option<Counters>,
    /// Times of the operation, and GB/s of a copy of the array in the same run.
    pub(super) timing: Option<(Timing, f64)>,
    /// For small arrays: microseconds from launch to launch.
    pub(super) launch_us: Option<f64>,
}

impl Outcome {
    /// Its record.
    pub(super) fn record(self, subject: Subject, samples: usize, peaks: Option<&Peaks>) -> Record {
        let Self { kernel, verified, counters, timing, launch_us } = self;
        let record = Record { samples, counters, launch_us, ..Record::new(subject, kernel, verified) };
        match timing {
            Some((timing, copy)) => record.timed(&timing, Some(copy), peaks),
            None => record,
        }
    }
}
