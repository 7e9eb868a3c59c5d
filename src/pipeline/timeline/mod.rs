//! When each stage of a pipeline ran, on one axis.
//!
//! Stages on the device are timed by events, stages on the host by its clock. The two meet in one
//! event that the pipeline waits for before its first batch: the host then knows the device's time
//! to within the duration of that wait.

mod recorder;

pub(super) use recorder::{Marks, Recorder};

use crate::names::named;

named! {
    /// Returns its name in lower case.
    #[doc(hidden)]
    name;

    /// The part of the machine on which a span ran.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
    pub enum Track {
        /// A thread of the host that makes batches.
        Source = "source",
        /// The copies to the device.
        Upload = "upload",
        /// The work on the device.
        Work = "work",
        /// The copies to the host.
        Download = "download",
        /// A thread of the host that takes results.
        Sink = "sink",
    }
}

impl Track {
    /// All tracks, in the order in which a batch passes them.
    #[doc(hidden)]
    pub const ALL: [Self; 5] = [Self::Source, Self::Upload, Self::Work, Self::Download, Self::Sink];

    /// Returns whether it is on the device.
    const fn is_on_device(self) -> bool {
        matches!(self, Self::Upload | Self::Work | Self::Download)
    }
}

/// One stage of one batch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Span {
    /// The name of the stage: `cpu_to_gpu`, `gpu_to_cpu`, or the program's own.
    pub name: &'static str,
    /// The track that it ran on.
    pub track: Track,
    /// The number of the batch.
    pub batch: u64,
    /// The start, in microseconds since the pipeline began.
    pub start_us: f64,
    /// The end, in microseconds since the pipeline began.
    pub end_us: f64,
}

/// The stages of the last batches of a run.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Timeline {
    /// The spans, by their starts.
    pub spans: Vec<Span>,
}

impl Timeline {
    /// Returns the microseconds from the first start to the last end.
    fn length_us(&self) -> f64 {
        let start = self.spans.iter().map(|span| span.start_us).fold(f64::INFINITY, f64::min);
        let end = self.spans.iter().map(|span| span.end_us).fold(f64::NEG_INFINITY, f64::max);
        (end - start).max(0.0)
    }

    /// Returns the part of the time in which a track had work, from 0 to 1.
    pub fn busy(&self, track: Track) -> f64 {
        self.part(|on| on == track, 1)
    }

    /// Returns the part of the time in which at least two of uploads, work and downloads ran, from
    /// 0 to 1.
    pub fn overlap(&self) -> f64 {
        self.part(Track::is_on_device, 2)
    }

    /// Returns the part of the time in which the device had nothing to do, from 0 to 1.
    pub fn idle(&self) -> f64 {
        1.0 - self.part(Track::is_on_device, 1)
    }

    /// Returns the part of the time in which at least `least` of the chosen tracks have work.
    fn part(&self, chosen: impl Fn(Track) -> bool, least: usize) -> f64 {
        let length = self.length_us();
        if length <= 0.0 {
            return 0.0;
        }
        // Starts and ends in order, with the number of spans that run on each track.
        let spans = self.spans.iter().filter(|span| chosen(span.track));
        let mut steps: Vec<_> =
            spans.flat_map(|span| [(span.start_us, span.track, 1), (span.end_us, span.track, -1)]).collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut running = [0_i64; Track::ALL.len()];
        let (mut last, mut sum) = (0.0, 0.0);
        for (at, track, step) in steps {
            if running.iter().filter(|&&spans| spans > 0).count() >= least {
                sum += at - last;
            }
            running[track as usize] += step;
            last = at;
        }
        sum / length
    }
}

#[cfg(test)]
mod tests;
