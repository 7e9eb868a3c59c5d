//! The documents that the library has written, a process each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use warpstride::counters::Counters;
use warpstride::error::counted;

use super::super::ci::{Found, file_and_line};
use super::super::{kernel_names, typed};

/// The code of a call that the software GPU does not support.
const NOT_SUPPORTED: u32 = 801;

/// A process that loaded the software GPU.
#[derive(Debug, Deserialize)]
pub(super) struct Process {
    #[serde(rename = "process")]
    pub(super) id: u32,
    pub(super) command: Vec<String>,
    /// False if it was killed, or ended without its last functions.
    pub(super) ended: bool,
    /// The models of the GPUs that it saw.
    pub(super) gpus: Vec<String>,
    pub(super) kernels: Vec<Kernel>,
    /// The successful calls by function.
    pub(super) calls: BTreeMap<String, u64>,
    pub(super) failures: Vec<Failure>,
    order: Order,
    pub(super) memory: Memory,
}

/// The accesses of streams without an order between them.
#[derive(Debug, Deserialize)]
struct Order {
    findings: Vec<Unordered>,
    more: u64,
}

#[derive(Debug, Deserialize)]
struct Unordered {
    text: String,
    count: u64,
}

/// The launches of a kernel.
#[derive(Debug, Deserialize)]
pub(super) struct Kernel {
    #[serde(rename = "kernel")]
    pub(super) name: String,
    pub(super) launches: u64,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) has_other_shapes: bool,
    pub(super) counters: Counters,
    pub(super) findings: Vec<Finding>,
    pub(super) more_findings: u64,
    pub(super) stops: Vec<Stop>,
    pub(super) more_stops: u64,
    pub(super) model: Option<Predicted>,
    pub(super) instructions: Vec<Instruction>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Finding {
    rule: String,
    note: bool,
    text: String,
    instruction: String,
    source: Option<String>,
}

/// A reason for which launches stopped.
#[derive(Debug, Deserialize)]
pub(super) struct Stop {
    rule: String,
    text: String,
    instruction: Option<String>,
    source: Option<String>,
    count: u64,
}

/// The model's time of all launches of a kernel.
#[derive(Debug, Deserialize)]
pub(super) struct Predicted {
    pub(super) ms: Option<f64>,
    pub(super) bound: Option<String>,
    pub(super) why_not: Option<String>,
}

/// An instruction that accesses memory.
#[derive(Debug, Deserialize)]
pub(super) struct Instruction {
    pub(super) line: u32,
    pub(super) instruction: String,
    pub(super) source: Option<String>,
    pub(super) executions: u64,
    pub(super) counters: InstructionCounters,
}

#[derive(Debug, Deserialize)]
pub(super) struct InstructionCounters {
    pub(super) global: warpstride::counters::GlobalCounters,
    pub(super) ideal_sectors: u64,
    pub(super) shared: warpstride::counters::SharedCounters,
}

/// Calls that failed.
#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    pub(super) function: String,
    code: u32,
    pub(super) name: Option<String>,
    pub(super) count: u64,
    pub(super) why: String,
    /// The rule that the program broke, if it broke one.
    rule: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Memory {
    pub(super) transfers: Vec<Transfer>,
    /// Asynchronous copies that made the host wait.
    pub(super) hidden_waits: u64,
    pub(super) leaks: Option<Leaks>,
    pub(super) unread: Option<Unread>,
}

/// Memory of devices that was written and never read.
#[derive(Debug, Deserialize)]
pub(super) struct Unread {
    pub(super) allocations: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Transfer {
    pub(super) way: String,
    pub(super) pageable: bool,
    pub(super) calls: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Leaks {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// Reads the documents in a folder, the first process first.
pub(super) fn read(folder: &Path) -> Result<Vec<(Process, Value)>> {
    let unread = || format!("cannot read the reports in {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(unread)? {
        let path = entry.with_context(unread)?.path();
        // A process that was killed may leave a file that is not complete.
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    // `PID-TIME.json`
    paths.sort_by_key(|path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        stem.rsplit_once('-').and_then(|(_, time)| time.parse::<u128>().ok())
    });
    let document = |path: &Path| -> Result<(Process, Value)> {
        let text = fs::read(path).with_context(unread)?;
        let wrong = || format!("{} is not a report of this version; build both from the same sources", path.display());
        let document: Value = serde_json::from_slice(&text).with_context(wrong)?;
        Ok((Process::deserialize(&document).with_context(wrong)?, document))
    };
    paths.iter().map(|path| document(path)).collect()
}

impl Process {
    /// The program, without its folder.
    pub(super) fn program(&self) -> String {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        Path::new(program).file_name().map_or("a program".into(), |name| name.to_string_lossy().into_owned())
    }

    /// The program and its arguments in a line.
    pub(super) fn title(&self) -> String {
        let words = self.command.iter().skip(1).map(String::as_str);
        [&*self.program()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn launches(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.launches).sum()
    }

    pub(super) fn faults(&self) -> u64 {
        self.kernels.iter().map(Kernel::faults).sum::<u64>() + self.own_faults()
    }

    /// The number of findings that are of no kernel.
    pub(super) fn own_faults(&self) -> u64 {
        self.found_by_itself().len() as u64 + self.order.more
    }

    /// The findings that are of no kernel: calls that break a rule, and streams without an order.
    pub(super) fn found_by_itself(&self) -> Vec<Found> {
        let found = |rule: &str, text: &str, count: u64| Found {
            rule: rule.to_owned(),
            is_note: false,
            text: typed(text) + &times(count),
            file: None,
            line: None,
            kernel: None,
            instruction: None,
        };
        let calls = self.failures.iter().filter_map(|failure| {
            let text = format!("{}: {}", failure.function, failure.why);
            Some(found(failure.rule.as_deref()?, &text, failure.count))
        });
        let order =
            self.order.findings.iter().map(|Unordered { text, count }| found("racecheck/streams", text, *count));
        calls.chain(order).collect()
    }

    /// Says how many findings of no kernel are counted only.
    pub(super) fn more(&self) -> Option<String> {
        (self.order.more > 0).then(|| format!("and {} more of streams without an order", self.order.more))
    }

    /// Returns whether the reason of a failed call is a launch that stopped, which is told by
    /// itself.
    pub(super) fn is_of_stop(&self, failure: &Failure) -> bool {
        let mut stops = self.kernels.iter().flat_map(|kernel| &kernel.stops);
        stops.any(|stop| failure.why.contains(&stop.text))
    }

    /// The functions that the program called and the software GPU does not support.
    pub(super) fn unsupported(&self) -> Vec<&Failure> {
        self.failures.iter().filter(|failure| failure.is_unsupported()).collect()
    }

    /// All findings, and the memory that is not freed.
    pub(super) fn found(&self) -> Vec<Found> {
        let mut found: Vec<Found> = self.kernels.iter().flat_map(Kernel::found).chain(self.found_by_itself()).collect();
        if let Some(leaks) = self.memory.leaks.as_ref().filter(|leaks| leaks.count > 0) {
            found.push(Found {
                rule: "memcheck/leak".into(),
                is_note: true,
                text: format!("{}: {}", self.title(), leaks.sentence()),
                file: None,
                line: None,
                kernel: None,
                instruction: None,
            });
        }
        found
    }
}

/// Says how often there was more than one.
fn times(count: u64) -> String {
    if count > 1 { format!("\n  {}", counted(count, "time")) } else { String::new() }
}

impl Failure {
    /// Returns whether the call is a finding.
    pub(super) fn is_finding(&self) -> bool {
        self.rule.is_some()
    }

    /// Returns whether the software GPU lacks what was called for.
    pub(super) fn is_unsupported(&self) -> bool {
        self.code == NOT_SUPPORTED
    }
}

impl Leaks {
    pub(super) fn sentence(&self) -> String {
        let what = counted(self.count, "allocation");
        format!("the program ended without freeing {what}, {} in all", counted(self.bytes, "byte"))
    }
}

impl Unread {
    pub(super) fn sentence(&self) -> String {
        let (bytes, what) = (counted(self.bytes, "byte"), counted(self.allocations, "allocation"));
        format!("no kernel and no copy read {bytes} that were written to {what}")
    }
}

impl Kernel {
    /// The kernel's name as C++ writes it.
    pub(super) fn short(&self) -> String {
        kernel_names::short(&self.name)
    }

    /// The number of stops, and of findings that are not notes.
    pub(super) fn faults(&self) -> u64 {
        let listed = self.findings.iter().filter(|finding| !finding.note).count() + self.stops.len();
        listed as u64 + self.more_findings + self.more_stops
    }

    pub(super) fn found(&self) -> Vec<Found> {
        let of = |rule: &str, is_note, text: String, source: Option<&str>, instruction: Option<&str>| {
            let place = source.map(file_and_line);
            Found {
                rule: rule.to_owned(),
                is_note,
                text: typed(text),
                file: place.map(|(file, _)| file.to_owned()),
                line: place.and_then(|(_, line)| line),
                kernel: Some(self.name.clone()),
                instruction: instruction.map(ToOwned::to_owned),
            }
        };
        let findings = self.findings.iter().map(|finding| {
            let Finding { rule, note, text, instruction, source } = finding;
            of(rule, *note, text.clone(), source.as_deref(), Some(instruction))
        });
        let stops = self.stops.iter().map(|stop| {
            let Stop { rule, text, instruction, source, count } = stop;
            let times = if *count > 1 { format!("\n  in {}", counted(count, "launch")) } else { String::new() };
            of(rule, false, format!("{text}{times}"), source.as_deref(), instruction.as_deref())
        });
        findings.chain(stops).collect()
    }

    /// Says how many findings are counted only.
    pub(super) fn more(&self) -> Option<String> {
        let more = self.more_findings + self.more_stops;
        (more > 0).then(|| format!("and {more} more in {}", self.short()))
    }
}
