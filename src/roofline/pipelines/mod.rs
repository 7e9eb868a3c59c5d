//! Measurements of pipelines: frames from a source on the host through the device to a sink, held
//! against the slower of link and compute.

#[cfg(feature = "pipeline")]
mod bound;
#[cfg(feature = "pipeline")]
mod measure;
#[cfg(feature = "pipeline")]
mod workload;

#[cfg(feature = "pipeline")]
pub use measure::{Case, Job, Sink, Source, batches_held, bound_of, measure, stages, timeline};
#[cfg(feature = "pipeline")]
pub use workload::{Workload, steps};

use super::table::{Table, number};
use crate::element::DType;
use crate::error::counted;

/// The tracks of a timeline, in the order in which a batch passes them.
pub const TRACKS: [&str; 5] = ["source", "upload", "work", "download", "sink"];

/// The runs of one workload, measured together.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pipelines {
    /// Where frames come from: `random` or `images`, or `reused` where the host makes none.
    pub source: String,
    /// The threads that make frames.
    pub threads: usize,
    /// Channels, height and width of a frame.
    pub shape: [usize; 3],
    /// Type of the elements that go to the device; results are `f32`.
    pub dtype: DType,
    /// Bytes of a frame that go to the device.
    pub input_bytes: u64,
    /// Bytes of a frame's results.
    pub output_bytes: u64,
    /// The steps of the model for each element.
    pub steps: u32,
    /// Floating-point operations for each byte that the model reads or writes.
    pub intensity: f64,
    /// The runs, one for each batch size and mode.
    pub runs: Vec<PipelineRun>,
}

/// What a run is held against: rates of stages alone, at one batch size.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bound {
    /// Frames a second that the copies alone allow: page-locked uploads of a batch's input and
    /// downloads of its output, on two streams at once, several batches in flight.
    pub link: f64,
    /// Frames a second that the work alone allows, by events.
    pub compute: f64,
}

impl Bound {
    /// The lower of the two rates.
    pub fn frames_per_second(&self) -> f64 {
        self.link.min(self.compute)
    }

    /// The name of the slower part.
    pub fn name(&self) -> &'static str {
        if self.link <= self.compute { "link" } else { "compute" }
    }
}

/// One run: a mode and a batch size. Rates and seconds are `None` on the software GPU.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PipelineRun {
    /// The mode's name.
    pub mode: String,
    /// Frames of a batch.
    pub batch: usize,
    /// Batches that are on their way at most.
    pub slots: usize,
    /// Frames of the run; the last batch may be smaller.
    pub frames: u64,
    /// Whether the results of a batch were those of a CPU; checked before the run was timed.
    pub verified: bool,
    /// Calls to the driver that can make the host wait, for each batch behind the first ones;
    /// `None` if there is one batch.
    pub waits_per_batch: Option<f64>,
    /// Page-locked bytes of the host while the run went on.
    pub host_bytes: u64,
    /// Seconds from the first wait for a batch until the last was taken.
    pub seconds: Option<f64>,
    /// Frames a second.
    pub frames_per_second: Option<f64>,
    /// What the rate is held against.
    pub bound: Option<Bound>,
    /// The part of the bound that the run reaches.
    pub fraction_of_bound: Option<f64>,
    /// Frames a second that the source's threads make while they are at work.
    pub source_frames_per_second: Option<f64>,
    /// Frames a second that the sink takes while it is at work.
    pub sink_frames_per_second: Option<f64>,
    /// The part of the time in which at least two of uploads, work and downloads ran.
    pub overlap: Option<f64>,
    /// The part of the time in which the device had nothing to do.
    pub idle: Option<f64>,
    /// The stages of some batches of another run, which recorded them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub timeline: Option<Vec<Stage>>,
}

/// One stage of one batch.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Where it ran: one of [`TRACKS`].
    pub track: String,
    /// The number of the batch.
    pub batch: u64,
    /// The start, in microseconds since the first start.
    pub start_us: f64,
    /// The end.
    pub end_us: f64,
}

/// Stages of one track that follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane<'s> {
    /// The track.
    pub track: &'static str,
    /// The number of the lane within its track, from 0: sources may be several threads.
    pub number: usize,
    /// The stages with their starts and ends in microseconds, none of which overlaps the next.
    pub stages: Vec<(&'s Stage, [f64; 2])>,
}

/// Events have a resolution of half a microsecond.
const RESOLUTION_US: f64 = 1.0;

/// Sorts stages into lanes in which none overlaps another, in the order of [`TRACKS`].
pub fn lanes(stages: &[Stage]) -> Vec<Lane<'_>> {
    let mut all = Vec::new();
    for track in TRACKS {
        let mut own: Vec<&Stage> = stages.iter().filter(|stage| stage.track == track).collect();
        own.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
        let mut lanes: Vec<Lane<'_>> = Vec::new();
        for stage in own {
            let end = |lane: &Lane<'_>| lane.stages.last().map_or(f64::NEG_INFINITY, |(_, [_, end])| *end);
            let free = lanes.iter().position(|lane| end(lane) <= stage.start_us + RESOLUTION_US);
            let place = free.unwrap_or_else(|| {
                lanes.push(Lane { track, number: lanes.len(), stages: Vec::new() });
                lanes.len() - 1
            });
            let start = stage.start_us.max(end(&lanes[place]));
            lanes[place].stages.push((stage, [start, stage.end_us.max(start)]));
        }
        all.extend(lanes);
    }
    all
}

impl Pipelines {
    /// The runs whose results were wrong.
    pub fn wrong(&self) -> Vec<String> {
        self.runs.iter().filter(|run| !run.verified).map(PipelineRun::name).collect()
    }

    /// The runs as a table: with rates where there are times.
    pub fn table(&self) -> Table {
        let is_timed = self.runs.iter().any(|run| run.seconds.is_some());
        let mut header = vec!["mode", "batch", "frames", "verified", "waits/batch", "host MiB"];
        if is_timed {
            header.extend(["frames/s", "of bound", "bound by", "link", "compute", "source", "sink", "overlap", "idle"]);
        }
        let mut table = Table::new(&header);
        let percent = |part: Option<f64>| number(part.map(|part| 100.0 * part), 1, " %");
        for run in &self.runs {
            let mut row = vec![
                run.mode.clone(),
                run.batch.to_string(),
                run.frames.to_string(),
                if run.verified { "yes".into() } else { "NO".into() },
                number(run.waits_per_batch, 2, ""),
                format!("{:.1}", run.host_bytes as f64 / (1 << 20) as f64),
            ];
            if is_timed {
                row.extend([
                    number(run.frames_per_second, 0, ""),
                    percent(run.fraction_of_bound),
                    run.bound.map_or("-".into(), |bound| bound.name().into()),
                    number(run.bound.map(|bound| bound.link), 0, ""),
                    number(run.bound.map(|bound| bound.compute), 0, ""),
                    number(run.source_frames_per_second, 0, ""),
                    number(run.sink_frames_per_second, 0, ""),
                    percent(run.overlap),
                    percent(run.idle),
                ]);
            }
            table.add_row(row);
        }
        table
    }

    /// A line about the workload.
    pub fn heading(&self) -> String {
        let [channels, height, width] = self.shape;
        format!(
            "{} frames of {channels} x {height} x {width} {} by {}; of a frame {} go there and {} come back; a model of {} \
             operations a byte, in {}.",
            self.source,
            self.dtype,
            counted(self.threads, "thread"),
            counted(self.input_bytes, "byte"),
            counted(self.output_bytes, "byte"),
            self.intensity,
            counted(self.steps, "step")
        )
    }
}

impl PipelineRun {
    /// Mode and batch size.
    pub fn name(&self) -> String {
        format!("pipeline {} batch {}", self.mode, self.batch)
    }
}

/// The meaning of the table's words.
pub const WORDS: &str = "frames/s, link, compute, source, sink: frames a second of the run, of the copies alone in both directions at \
once, of the work alone, and of the host's ends while they are at work. The bound is the slower of link and compute. waits/batch: \
calls that can make the host wait.";

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(track: &str, batch: u64, start_us: f64, end_us: f64) -> Stage {
        Stage { name: track.into(), track: track.into(), batch, start_us, end_us }
    }

    #[test]
    fn the_slower_part_is_the_bound() {
        let bound = Bound { link: 10.0, compute: 20.0 };
        assert_eq!((bound.name(), bound.frames_per_second()), ("link", 10.0));
        let bound = Bound { link: 10.0, compute: 5.0 };
        assert_eq!((bound.name(), bound.frames_per_second()), ("compute", 5.0));
    }

    #[test]
    fn stages_of_a_lane_do_not_overlap() {
        let stages = [
            stage("source", 0, 0.0, 10.0),
            stage("source", 1, 2.0, 12.0),
            stage("source", 2, 11.0, 20.0),
            stage("work", 0, 10.0, 20.0),
            // Earlier than the end before by less than events resolve.
            stage("work", 1, 19.7, 30.0),
        ];
        let lanes = lanes(&stages);
        let shown: Vec<_> = lanes.iter().map(|lane| (lane.track, lane.number, lane.stages.len())).collect();
        assert_eq!(shown, [("source", 0, 2), ("source", 1, 1), ("work", 0, 2)]);
        for lane in &lanes {
            assert!(lane.stages.windows(2).all(|two| two[0].1[1] <= two[1].1[0]), "{lane:?}");
        }
    }
}
