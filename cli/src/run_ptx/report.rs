//! Prints a launch.

use std::path::Path;

use crate::run::table::{Table, times};
use anyhow::Result;
use serde_json::{Value, json};
use warpstride::counters::{self, over_ideal};
use warpstride::device::Device;
use warpstride::error::counted;
use warpstride::interp::{Finding, InstructionReport, Kernel, Report, Stop};
use warpstride::ops::SECTOR;

use super::super::args::By;
use super::super::{args, kernel_names, output};
use super::model::Predicted;
use super::{Launch, Program, annotate, instructions, lines};

/// The results of a launch.
pub(crate) struct Outcome {
    /// By the GPU's clock, or the host's for the software GPU.
    pub(crate) seconds: f64,
    /// The counters and findings of the software GPU.
    pub(crate) report: Option<Report>,
    /// Why it stopped before the end.
    pub(crate) stopped: Option<Stop>,
    /// The bytes of each buffer that was asked for.
    pub(crate) dumped: Vec<Vec<u8>>,
}

impl Outcome {
    /// The kernel's own output on the software GPU.
    pub(crate) fn printed(&self) -> &str {
        let printed = self.report.as_ref().map(|report| &report.printed);
        printed.or(self.stopped.as_ref().map(|stop| &stop.printed)).map_or("", String::as_str)
    }
}

/// Returns whether more is asked for than the launch's counters.
fn is_detailed(args: &args::Launched) -> bool {
    args.report || args.report_json || args.by.is_some() || args.nsight
}

/// Returns the note for a report by line of PTX that has no lines.
fn no_lines(kernel: &Kernel) -> String {
    format!(
        "`{}` has no lines of a source in this PTX; compile with -lineinfo (nvcc, NVRTC) or -gline-tables-only (clang)",
        kernel_names::short(kernel.name())
    )
}

/// A note before the launch, if the report will be another one than that asked for.
pub(super) fn note(args: &args::Launched, kernel: &Kernel) -> Option<String> {
    let is_missing = args.by == Some(By::Line) && kernel.source_file().is_none();
    is_missing.then(|| format!("note: {}; the report is by instruction", no_lines(kernel)))
}

/// A launch as its text and its document show it.
pub(crate) struct Shown<'a> {
    pub(crate) program: &'a Program<'a>,
    pub(crate) args: &'a args::Launched,
    pub(crate) kernel: &'a Kernel,
    pub(crate) device: &'a Device,
}

impl Shown<'_> {
    pub(crate) fn json(&self, outcome: &Outcome) -> Value {
        let report = outcome.report.as_ref();
        let mut document = self.launch_json();
        document["counters"] = json!(report.map(|report| report.counters));
        document["thread_instructions"] = json!(report.map(|report| report.thread_instructions));
        document["findings"] = json!(report.map(|report| &report.findings));
        document["findings_total"] = json!(report.map(|report| report.findings.len() as u64 + report.more_findings));
        document["seconds"] = json!(outcome.seconds);
        if let Some(report) = report.filter(|_| is_detailed(self.args) || self.args.annotate) {
            document["instructions"] = report.instructions.iter().map(instructions::json).collect();
            let lines = lines::sorted(report, self.kernel.source_file());
            document["lines"] = lines.iter().map(|line| lines::json(line, &report.counters)).collect();
            document["nsight_metrics"] = instructions::metrics_json();
        }
        if let Some(report) = report.filter(|_| self.args.annotate) {
            document["sources"] = match self.kernel.source_file() {
                Some(main) => annotate::json(report, main, self.folder()),
                None => json!([]),
            };
        }
        document
    }

    /// Predicts the time of a launch on the software GPU, if that is asked for.
    pub(crate) fn predicted(&self, outcome: &Outcome, launch: &Launch) -> Result<Option<Predicted>> {
        let Some(report) = &outcome.report else { return Ok(None) };
        Predicted::of(&self.program.ptx, self.kernel, self.args, &launch.shape(), report)
    }

    /// Describes a launch that stopped, with its findings up to there.
    pub(crate) fn stopped_json(&self, stop: &Stop) -> Value {
        let mut document = self.launch_json();
        document["findings"] = json!(stop.findings);
        document["findings_total"] = json!(stop.findings.len() as u64 + stop.more_findings);
        document
    }

    /// Describes the launch, the kernel and the device.
    fn launch_json(&self) -> Value {
        // Not every path is text.
        let file = self.program.file.display().to_string();
        let mut document = match &self.program.compiler {
            None => json!({ "ptx": file }),
            Some(compiler) => json!({ "ptx": null, "source": file, "compiler": compiler.json() }),
        };
        document["device"] = output::info_json(self.device.info());
        document["kernel"] = kernel_names::short(self.kernel.name()).into();
        document["entry"] = self.kernel.name().into();
        document["grid"] = json!(self.args.grid);
        document["block"] = json!(self.args.block);
        document["shared_bytes"] = json!(self.args.shared);
        document["static_shared_bytes"] = json!(self.kernel.shared_bytes());
        document
    }

    /// The folder of the program's file, where relative names of sources begin.
    fn folder(&self) -> &Path {
        self.program.file.parent().unwrap_or(Path::new(""))
    }

    /// The kernel, the device and the launch.
    pub(super) fn title(&self) -> String {
        let ([gx, gy, gz], [bx, by, bz]) = (self.args.grid, self.args.block);
        let (kernel, device) = (kernel_names::short(self.kernel.name()), &self.device.info().name);
        format!("{kernel} on {device}: {gx} x {gy} x {gz} blocks of {bx} x {by} x {bz} threads")
    }

    pub(super) fn text(&self, outcome: &Outcome) -> String {
        let (title, seconds) = (self.title(), outcome.seconds);
        let Some(report) = &outcome.report else {
            return format!(
                "{title}: {:.4} ms\nNothing is counted on a GPU; --device soft counts the same launch.\n",
                1e3 * seconds
            );
        };
        let threads = counted(report.thread_instructions, "thread instruction");
        let found = findings_text(&report.findings, report.more_findings);
        format!(
            "{title}\n{}\n{}{threads} in {seconds:.3} s of this host, not of a GPU\n\
             {}{found}",
            totals(report),
            used(report),
            self.details(report)
        )
    }

    /// The report, by lines where the PTX has them and nothing else was asked for, and the source.
    fn details(&self, report: &Report) -> String {
        let (args, main) = (self.args, self.kernel.source_file());
        let details = match main.filter(|_| args.by != Some(By::Instruction)) {
            _ if !is_detailed(args) => String::new(),
            Some(main) => lines::text(report, main, args.nsight),
            None => instructions::text(report, args.nsight),
        };
        let source = match main {
            _ if !args.annotate => String::new(),
            Some(main) => annotate::text(report, main, self.folder()),
            None => format!("\nNo source is shown: {}.\n", no_lines(self.kernel)),
        };
        details + &source
    }
}

/// The number of findings that are faults; others are notes. Those that are only counted may be
/// faults.
pub(crate) fn faults(findings: &[Finding], more: u64) -> u64 {
    findings.iter().filter(|finding| !finding.note).count() as u64 + more
}

/// A paragraph each, and how many there are besides.
pub(crate) fn findings_text(findings: &[Finding], more: u64) -> String {
    let told: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    let told = kernel_names::readable(&told);
    if more > 0 { format!("{told}and {more} more\n") } else { told }
}

/// Says how many of the bytes that global memory moved the lanes asked for. Sectors over their
/// ideal do not show lanes that are off.
fn used(report: &Report) -> String {
    let moved = |row: &InstructionReport| SECTOR as u64 * row.global.sectors;
    let asked = |row: &InstructionReport| {
        let bytes = row.worst_global.as_ref().map_or(0, |access| u64::from(access.bytes));
        // Lanes may ask for the same bytes.
        (bytes * row.thread_executions).min(moved(row))
    };
    let rows = || report.instructions.iter().filter(|row| row.worst_global.is_some());
    let (asked, moved) = (rows().map(asked).sum::<u64>(), rows().map(moved).sum::<u64>());
    if moved == 0 {
        return String::new();
    }
    let part = 100.0 * asked as f64 / moved as f64;
    format!("global memory: lanes ask for {} of {} moved, {part:.1} %\n", asked, counted(moved, "byte"))
}

/// The launch's counters: those of loads and stores, and of other accesses where there are any.
fn totals(report: &Report) -> Table {
    const ALWAYS: [&str; 4] = ["global_load", "global_store", "shared_load", "shared_store"];
    let header = ["", "instructions", "requests", "sectors", "wavefronts", "over ideal", "bank conflicts"];
    let mut table = Table::new(&header);
    for access in counters::table::accesses() {
        let of = |name: &str| access.counter(name).map(|counter| counter.of(report));
        let over_ideal = || {
            let counter = access.counters().find(|counter| counter.ideal_metric().is_some())?;
            over_ideal(counter.of(report), counter.least(report)?).map(times)
        };
        let cell = |heading: &&str| match *heading {
            "over ideal" => over_ideal(),
            heading => of(&heading.replace(' ', "_")).map(|figure| figure.to_string()),
        };
        if ALWAYS.contains(&access.name) || of("instructions") > Some(0) {
            let cells = header[1..].iter().map(|heading| cell(heading).unwrap_or("-".into()));
            table.add_row([access.name.replace('_', " ")].into_iter().chain(cells));
        }
    }
    table
}
