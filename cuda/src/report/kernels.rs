//! The launches of the process by kernel.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use warpstride::counters::Counters;
use warpstride::interp::launch_shape::LaunchShape;
use warpstride::interp::{self, Finding, InstructionReport, Kernel, Stop};
use warpstride::roofline::model::{DeviceModel, Work};

/// The most kernels that are told apart; launches of others count as those of [`OTHERS`].
const MOST_KERNELS: usize = 4096;
const OTHERS: &str = "(other kernels)";
/// The most findings and stops of a kernel that are told apart; others are only counted.
const MOST_FINDINGS: usize = interp::check::MAX_FINDINGS;
/// The most instructions of a kernel that have a row.
const MOST_ROWS: usize = 4096;

/// The launches so far, in the order of each kernel's first.
#[derive(Default)]
pub(super) struct Kernels {
    rows: Vec<Ran>,
    by_name: HashMap<String, usize>,
}

/// The launches of one kernel.
struct Ran {
    kernel: String,
    /// The source that the kernel was compiled from, if its PTX names that.
    source: Option<String>,
    launches: u64,
    /// The shape of the first launch, and whether others differ.
    shape: LaunchShape,
    has_other_shapes: bool,
    counters: Counters,
    warp_instructions: u64,
    thread_instructions: u64,
    /// The most shared memory of a block.
    shared_bytes: u64,
    findings: Vec<(Key, Finding)>,
    more_findings: u64,
    stops: Vec<(Stop, u64)>,
    more_stops: u64,
    predicted: Predicted,
    /// The instructions that access memory, with the sums of all launches.
    instructions: BTreeMap<(u32, String), InstructionReport>,
}

/// The model's time of launches.
#[derive(Default)]
struct Predicted {
    launches: u64,
    ms: f64,
    /// The bound of the longest launch, and its time.
    longest: Option<(&'static str, f64)>,
    /// Why the model predicts no time of another launch.
    why_not: Option<String>,
}

/// The members of a finding that do not differ from one launch to the next: the rule, the
/// instruction and its line, and whether it is a note.
type Key = (String, u32, String, bool);

fn key(finding: &Finding) -> Key {
    (finding.rule(), finding.place.line, finding.place.instruction.clone(), finding.note)
}

impl Kernels {
    /// Adds a launch, and returns whether it stopped or has a finding that no launch before had.
    pub(super) fn add(
        &mut self,
        kernel: &Kernel,
        shape: &LaunchShape,
        result: Result<&interp::Report, &Stop>,
        model: Option<&DeviceModel>,
        with_instructions: bool,
    ) -> bool {
        let ran = self.row(kernel, shape);
        ran.launches += 1;
        ran.has_other_shapes |= ran.shape != *shape;
        let (findings, more) = match result {
            Ok(report) => {
                ran.counters += report.counters;
                ran.warp_instructions = ran.warp_instructions.saturating_add(report.warp_instructions);
                ran.thread_instructions = ran.thread_instructions.saturating_add(report.thread_instructions);
                ran.shared_bytes = ran.shared_bytes.max(report.shared_bytes);
                if let Some(model) = model {
                    ran.predicted.add(model, shape, report);
                }
                if with_instructions {
                    ran.add_rows(&report.instructions);
                }
                (&report.findings, report.more_findings)
            }
            Err(stop) => {
                ran.add_stop(stop);
                (&stop.findings, stop.more_findings)
            }
        };
        ran.more_findings = ran.more_findings.saturating_add(more);
        let mut is_new = result.is_err();
        for finding in findings {
            is_new |= ran.add_finding(finding);
        }
        is_new
    }

    fn row(&mut self, kernel: &Kernel, shape: &LaunchShape) -> &mut Ran {
        let (mut name, mut source) = (kernel.name(), kernel.source_file());
        if self.rows.len() >= MOST_KERNELS && !self.by_name.contains_key(name) {
            (name, source) = (OTHERS, None);
        }
        let place = *self.by_name.entry(name.to_owned()).or_insert(self.rows.len());
        if place == self.rows.len() {
            self.rows.push(Ran::new(name, source, shape));
        }
        &mut self.rows[place]
    }

    pub(super) fn json(&self) -> Value {
        self.rows.iter().map(Ran::json).collect()
    }

    /// Returns the sum of the launches of the kernels that `is_meant` chooses; `None` if it chooses
    /// none that ran.
    pub(super) fn sum(&self, is_meant: impl Fn(&str) -> bool) -> Option<interp::Report> {
        let mut meant = self.rows.iter().filter(|ran| is_meant(&ran.kernel)).peekable();
        meant.peek()?;
        let mut sum = interp::Report::default();
        for ran in meant {
            sum.counters += ran.counters;
            sum.warp_instructions = sum.warp_instructions.saturating_add(ran.warp_instructions);
            sum.thread_instructions = sum.thread_instructions.saturating_add(ran.thread_instructions);
            sum.shared_bytes = sum.shared_bytes.max(ran.shared_bytes);
            sum.instructions.extend(ran.instructions.values().cloned());
        }
        Some(sum)
    }
}

impl Ran {
    fn new(kernel: &str, source: Option<&str>, shape: &LaunchShape) -> Self {
        Self {
            kernel: kernel.to_owned(),
            source: source.map(ToOwned::to_owned),
            launches: 0,
            shape: *shape,
            has_other_shapes: false,
            counters: Counters::default(),
            warp_instructions: 0,
            thread_instructions: 0,
            shared_bytes: 0,
            findings: Vec::new(),
            more_findings: 0,
            stops: Vec::new(),
            more_stops: 0,
            predicted: Predicted::default(),
            instructions: BTreeMap::new(),
        }
    }

    /// Adds a finding to the same one of earlier launches, and returns whether it is a new one.
    fn add_finding(&mut self, finding: &Finding) -> bool {
        let key = key(finding);
        if let Some((_, known)) = self.findings.iter_mut().find(|(known, _)| *known == key) {
            known.times = known.times.saturating_add(finding.times);
            return false;
        }
        if self.findings.len() == MOST_FINDINGS {
            self.more_findings = self.more_findings.saturating_add(1);
            return false;
        }
        self.findings.push((key, finding.clone()));
        true
    }

    fn add_stop(&mut self, stop: &Stop) {
        let line = |stop: &Stop| stop.place.as_ref().map(|place| place.line);
        let is_same = |known: &Stop| known.reason.rule() == stop.reason.rule() && line(known) == line(stop);
        if let Some((_, count)) = self.stops.iter_mut().find(|(known, _)| is_same(known)) {
            *count += 1;
        } else if self.stops.len() < MOST_FINDINGS {
            // The findings are added to those of the kernel, and a report leaves the program's own
            // output out.
            let stop = Stop { findings: Vec::new(), more_findings: 0, printed: String::new(), ..stop.clone() };
            self.stops.push((stop, 1));
        } else {
            self.more_stops += 1;
        }
    }

    fn add_rows(&mut self, rows: &[InstructionReport]) {
        for row in rows {
            let key = (row.line, row.instruction.clone());
            if self.instructions.len() >= MOST_ROWS && !self.instructions.contains_key(&key) {
                continue;
            }
            let sum = match self.instructions.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(row.clone());
                    continue;
                }
                Entry::Occupied(place) => place.into_mut(),
            };
            sum.executions += row.executions;
            sum.thread_executions += row.thread_executions;
            sum.counted += row.counted;
        }
    }

    fn json(&self) -> Value {
        let findings = self.findings.iter().map(|(_, finding)| {
            let mut entry = json!(finding);
            entry["rule"] = finding.rule().into();
            entry
        });
        let instructions = self.instructions.values().map(|row| {
            json!({
                "line": row.line,
                "instruction": row.instruction,
                "source": row.source,
                "executions": row.executions,
                "thread_executions": row.thread_executions,
                "counters": row.counted,
            })
        });
        json!({
            "kernel": self.kernel,
            "source": self.source,
            "launches": self.launches,
            "grid": self.shape.grid,
            "block": self.shape.block,
            "has_other_shapes": self.has_other_shapes,
            "counters": self.counters,
            "warp_instructions": self.warp_instructions,
            "thread_instructions": self.thread_instructions,
            "findings": findings.collect::<Vec<_>>(),
            "more_findings": self.more_findings,
            "stops": self.stops.iter().map(|(stop, count)| stop_json(stop, *count)).collect::<Vec<_>>(),
            "more_stops": self.more_stops,
            "model": self.predicted.json(),
            "instructions": instructions.collect::<Vec<_>>(),
        })
    }
}

fn stop_json(stop: &Stop, count: u64) -> Value {
    let place = stop.place.as_ref();
    json!({
        "rule": stop.reason.rule(),
        "text": stop.to_string(),
        "line": place.map(|place| place.line),
        "instruction": place.map(|place| &place.instruction),
        "source": place.and_then(|place| place.source.as_ref()),
        "count": count,
    })
}

impl Predicted {
    fn add(&mut self, model: &DeviceModel, shape: &LaunchShape, report: &interp::Report) {
        match Work::of(report, shape).and_then(|work| model.estimate(&work)) {
            Ok(estimate) => {
                let prediction = estimate.prediction;
                self.launches += 1;
                self.ms += prediction.ms;
                if self.longest.is_none_or(|(_, ms)| prediction.ms > ms) {
                    self.longest = Some((prediction.bound.name(), prediction.ms));
                }
            }
            Err(error) => {
                self.why_not.get_or_insert_with(|| error.to_string());
            }
        }
    }

    fn json(&self) -> Value {
        if self.launches == 0 && self.why_not.is_none() {
            return Value::Null;
        }
        let ms = (self.launches > 0).then_some(self.ms);
        json!({ "ms": ms, "launches": self.launches, "bound": self.longest.map(|(bound, _)| bound), "why_not": self.why_not })
    }
}
