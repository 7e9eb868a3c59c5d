//! Stages of a pipeline as a trace of Chrome's format, which Perfetto and `chrome://tracing` open.
//!
//! The format is that of "Trace Event Format" by the Chromium project: complete events (`X`) with
//! times in microseconds. A viewer draws overlapping events of one thread wrongly, so each lane is
//! a thread.

use serde_json::{Value, json};

use crate::run::pipelines::{Stage, TRACKS, lanes};

/// The number of the one process.
const PROCESS: u32 = 1;
/// Threads of a track have numbers up to this one.
const MOST_LANES: usize = 1000;

/// Draws stages as a trace. `name` is the process's.
pub(crate) fn trace(name: &str, stages: &[Stage]) -> Value {
    let metadata = |thread: usize, what: &str, args: Value| json!({ "ph": "M", "pid": PROCESS, "tid": thread, "name": what, "args": args });
    let mut events = vec![metadata(0, "process_name", json!({ "name": name }))];
    for lane in lanes(stages) {
        let track = TRACKS.iter().position(|&track| track == lane.track).unwrap_or(0);
        let thread = (track + 1) * MOST_LANES + lane.number.min(MOST_LANES - 1);
        events.push(metadata(thread, "thread_name", json!({ "name": lane.title() })));
        events.push(metadata(thread, "thread_sort_index", json!({ "sort_index": thread })));
        events.extend(lane.stages.iter().map(|(stage, [start, end])| {
            json!({
                "ph": "X", "pid": PROCESS, "tid": thread, "name": stage.name, "cat": lane.track,
                "ts": start, "dur": end - start, "args": { "batch": stage.batch },
            })
        }));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" })
}
