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
        let title = if lane.number == 0 { lane.track.into() } else { format!("{} {}", lane.track, lane.number + 1) };
        events.push(metadata(thread, "thread_name", json!({ "name": title })));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn events_of_a_thread_do_not_overlap() {
        let stage = |name: &str, track: &str, batch, start_us, end_us| Stage {
            name: name.into(),
            track: track.into(),
            batch,
            start_us,
            end_us,
        };
        let stages: Vec<Stage> = (0..6)
            .flat_map(|batch| {
                let at = 10.0 * batch as f64;
                [
                    stage("random_generation", "source", batch, at, at + 25.0),
                    stage("cpu_to_gpu", "upload", batch, at + 25.0, at + 35.0),
                    stage("normalization", "work", batch, at + 35.0, at + 40.0),
                    stage("model", "work", batch, at + 39.8, at + 44.0),
                    stage("gpu_to_cpu", "download", batch, at + 45.0, at + 50.0),
                    stage("sink", "sink", batch, at + 50.0, at + 51.0),
                ]
            })
            .collect();
        let text = trace("streams", &stages).to_string();
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let mut threads = BTreeMap::<u64, Vec<(f64, f64)>>::new();
        let mut names = BTreeMap::new();
        for event in events {
            let thread = event["tid"].as_u64().unwrap();
            match event["ph"].as_str().unwrap() {
                "X" => {
                    let [ts, dur] = ["ts", "dur"].map(|member| event[member].as_f64().unwrap());
                    threads.entry(thread).or_default().push((ts, ts + dur));
                }
                _ if event["name"] == "thread_name" => drop(names.insert(thread, event["args"]["name"].clone())),
                _ => {}
            }
        }
        assert_eq!(threads.values().map(Vec::len).sum::<usize>(), stages.len());
        assert!(threads.keys().all(|thread| names.contains_key(thread)));
        for spans in threads.values() {
            assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "{spans:?}");
        }
        let shown: Vec<_> = names.values().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(shown, ["source", "source 2", "source 3", "upload", "work", "download", "sink"]);
    }
}
