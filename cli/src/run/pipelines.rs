//! Measurements of pipelines: frames from a source on the host through the device to a sink,
//! compared with the slower of link and compute.

use super::table::{Column, Table, number, percent, verified};
use warpstride::element::DType;
use warpstride::error::counted;

/// The tracks of a timeline, in the order in which a batch passes them.
pub(crate) const TRACKS: [&str; 5] = ["source", "upload", "work", "download", "sink"];

/// The runs of one workload, measured together.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pipelines {
    /// The source of the frames: `random` or `images`, or `reused` if the host makes none.
    pub(crate) source: String,
    /// The threads that make frames.
    pub(crate) threads: usize,
    /// Channels, height and width of a frame.
    pub(crate) shape: [usize; 3],
    /// Type of the elements that go to the device; results are `f32`.
    pub(crate) dtype: DType,
    /// Bytes of a frame that go to the device.
    pub(crate) input_bytes: u64,
    /// Bytes of a frame's results.
    pub(crate) output_bytes: u64,
    /// The steps of the model for each element.
    pub(crate) steps: u32,
    /// Floating-point operations for each byte that the model reads or writes.
    pub(crate) intensity: f64,
    /// The runs, one for each batch size and mode.
    pub(crate) runs: Vec<PipelineRun>,
}

/// The bounds of a run: rates of stages alone, at one batch size.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Bound {
    /// Frames a second that the copies alone allow: page-locked uploads of a batch's input and
    /// downloads of its output, on two streams at once, several batches in flight.
    pub(crate) link: f64,
    /// Frames a second that the work alone allows, by events.
    pub(crate) compute: f64,
}

impl Bound {
    /// The lower of the two rates.
    pub(crate) fn frames_per_second(&self) -> f64 {
        self.link.min(self.compute)
    }

    /// The name of the slower part.
    pub(crate) fn name(&self) -> &'static str {
        if self.link <= self.compute { "link" } else { "compute" }
    }
}

/// One run: a mode and a batch size. Rates and seconds are `None` on the software GPU.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PipelineRun {
    /// The mode's name.
    pub(crate) mode: String,
    /// Frames of a batch.
    pub(crate) batch: usize,
    /// Batches that are on their way at most.
    pub(crate) slots: usize,
    /// Frames of the run; the last batch may be smaller.
    pub(crate) frames: u64,
    /// True if the results of a batch were those of a CPU; checked before the run was timed.
    pub(crate) verified: bool,
    /// Calls to the driver that can make the host wait, for each batch behind the first ones;
    /// `None` if there is one batch.
    pub(crate) waits_per_batch: Option<f64>,
    /// Page-locked bytes of the host while the run went on.
    pub(crate) host_bytes: u64,
    /// Seconds from the first wait for a batch until the last was taken.
    pub(crate) seconds: Option<f64>,
    /// Frames a second.
    pub(crate) frames_per_second: Option<f64>,
    /// The bound that the rate is compared with.
    pub(crate) bound: Option<Bound>,
    /// The part of the bound that the run reaches.
    pub(crate) fraction_of_bound: Option<f64>,
    /// Frames a second that the source's threads make while they are at work.
    pub(crate) source_frames_per_second: Option<f64>,
    /// Frames a second that the sink takes while it is at work.
    pub(crate) sink_frames_per_second: Option<f64>,
    /// The part of the time in which at least two of uploads, work and downloads ran.
    pub(crate) overlap: Option<f64>,
    /// The part of the time in which the device had nothing to do.
    pub(crate) idle: Option<f64>,
    /// The stages of some batches of another run, which recorded them.
    pub(crate) timeline: Option<Vec<Stage>>,
}

/// One stage of one batch.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stage {
    /// Its name.
    pub(crate) name: String,
    /// The track that it ran on: one of [`TRACKS`].
    pub(crate) track: String,
    /// The number of the batch.
    pub(crate) batch: u64,
    /// The start, in microseconds since the first start.
    pub(crate) start_us: f64,
    /// The end.
    pub(crate) end_us: f64,
}

/// Stages of one track that follow each other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lane<'s> {
    /// The track.
    pub(crate) track: &'static str,
    /// The number of the lane within its track, from 0: sources may be several threads.
    pub(crate) number: usize,
    /// The stages with their starts and ends in microseconds, none of which overlaps the next.
    pub(crate) stages: Vec<(&'s Stage, [f64; 2])>,
}

impl Lane<'_> {
    /// The track, with a number where it is not the first lane.
    pub(crate) fn title(&self) -> String {
        if self.number == 0 { self.track.into() } else { format!("{} {}", self.track, self.number + 1) }
    }
}

/// Events have a resolution of half a microsecond.
const RESOLUTION_US: f64 = 1.0;

/// Sorts stages into lanes in which none overlaps another, in the order of [`TRACKS`].
pub(crate) fn lanes(stages: &[Stage]) -> Vec<Lane<'_>> {
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
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.runs.iter().filter(|run| !run.verified).map(PipelineRun::name).collect()
    }

    /// The runs as a table: with rates where there are times.
    pub(crate) fn table(&self) -> Table {
        let mut columns: Vec<Column<'_, PipelineRun>> = vec![
            ("mode", &|run| run.mode.clone()),
            ("batch", &|run| run.batch.to_string()),
            ("frames", &|run| run.frames.to_string()),
            ("verified", &|run| verified(run.verified)),
            ("waits/batch", &|run| number(run.waits_per_batch, 2, "")),
            ("host MiB", &|run| format!("{:.1}", run.host_bytes as f64 / (1 << 20) as f64)),
        ];
        let timed: [Column<'_, PipelineRun>; 9] = [
            ("frames/s", &|run| number(run.frames_per_second, 0, "")),
            ("of bound", &|run| percent(run.fraction_of_bound)),
            ("bound by", &|run| run.bound.map_or("-", |bound| bound.name()).into()),
            ("link", &|run| number(run.bound.map(|bound| bound.link), 0, "")),
            ("compute", &|run| number(run.bound.map(|bound| bound.compute), 0, "")),
            ("source", &|run| number(run.source_frames_per_second, 0, "")),
            ("sink", &|run| number(run.sink_frames_per_second, 0, "")),
            ("overlap", &|run| percent(run.overlap)),
            ("idle", &|run| percent(run.idle)),
        ];
        if self.runs.iter().any(|run| run.seconds.is_some()) {
            columns.extend(timed);
        }
        Table::by(1, &columns, &self.runs)
    }

    /// A line about the workload.
    pub(crate) fn heading(&self) -> String {
        let [channels, height, width] = self.shape;
        let model = match self.steps {
            0 => "no model".into(),
            steps => format!("a model of {} operations a byte, in {}", self.intensity, counted(steps, "step")),
        };
        format!(
            "{} frames of {channels} x {height} x {width} {} by {}; of a frame {} go there and {} come back; {model}.",
            self.source,
            self.dtype,
            counted(self.threads, "thread"),
            counted(self.input_bytes, "byte"),
            counted(self.output_bytes, "byte")
        )
    }
}

impl PipelineRun {
    /// Mode and batch size.
    pub(crate) fn name(&self) -> String {
        format!("pipeline {} batch {}", self.mode, self.batch)
    }
}

/// The meaning of the table's words.
pub(crate) const WORDS: &str = "frames/s, link, compute, source, sink: frames a second of the run, of the copies alone in both directions at \
once, of the work alone, and of the host's ends while they are at work. The bound is the slower of link and compute. waits/batch: \
calls that can make the host wait. host MiB: page-locked memory of the host while the run goes on.";

#[cfg(test)]
mod tests;
