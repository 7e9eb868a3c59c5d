//! What is printed of a launch.

use serde_json::{Value, json};
use warpstride::device::Device;
use warpstride::error::counted;
use warpstride::interp::{Finding, Report, Stop};
use warpstride::roofline::table::Table;

use super::super::{args, output};
use super::instructions;

/// What a launch left behind.
pub(in crate::cli) struct Outcome {
    /// By the GPU's clock, or the host's for the software GPU.
    pub(in crate::cli) seconds: f64,
    /// What the software GPU counted and found.
    pub(in crate::cli) report: Option<Report>,
    /// Why it stopped before the end.
    pub(in crate::cli) stopped: Option<Stop>,
    /// The bytes of each buffer that was asked for.
    pub(in crate::cli) dumped: Vec<Vec<u8>>,
}

pub(in crate::cli) fn json(args: &args::RunPtx, kernel: &str, device: &Device, outcome: &Outcome) -> Value {
    let report = outcome.report.as_ref();
    let mut document = launch_json(args, kernel, device);
    document["counters"] = json!(report.map(|report| report.counters));
    document["thread_instructions"] = json!(report.map(|report| report.thread_instructions));
    document["findings"] = json!(report.map(|report| &report.findings));
    document["findings_total"] = json!(report.map(|report| report.findings.len() as u64 + report.more_findings));
    document["seconds"] = json!(outcome.seconds);
    if let Some(report) = report.filter(|_| args.report || args.report_json) {
        document["instructions"] = report.instructions.iter().map(instructions::json).collect();
        document["nsight_metrics"] = instructions::metrics_json();
    }
    document
}

/// Describes a launch that stopped, with its findings up to there.
pub(in crate::cli) fn stopped_json(args: &args::RunPtx, kernel: &str, device: &Device, stop: &Stop) -> Value {
    let mut document = launch_json(args, kernel, device);
    document["findings"] = json!(stop.findings);
    document["findings_total"] = json!(stop.findings.len() as u64 + stop.more_findings);
    document
}

/// What was launched where.
fn launch_json(args: &args::RunPtx, kernel: &str, device: &Device) -> Value {
    json!({
        // Not every path is text.
        "ptx": args.file.display().to_string(),
        "device": output::info_json(device.info()),
        "kernel": kernel,
        "grid": args.grid,
        "block": args.block,
        "shared_bytes": args.shared,
    })
}

/// A paragraph each, and how many there are besides.
pub(in crate::cli) fn findings_text(findings: &[Finding], more: u64) -> String {
    let told: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    if more > 0 { format!("{told}and {more} more\n") } else { told }
}

pub(super) fn text(args: &args::RunPtx, kernel: &str, device: &Device, outcome: &Outcome) -> String {
    let ([gx, gy, gz], [bx, by, bz], seconds) = (args.grid, args.block, outcome.seconds);
    let name = &device.info().name;
    let title = format!("{kernel} on {name}: {gx} x {gy} x {gz} blocks of {bx} x {by} x {bz} threads");
    let Some(report) = &outcome.report else {
        return format!(
            "{title}: {:.4} ms\nNothing is counted on a GPU; --device soft counts the same launch.\n",
            1e3 * seconds
        );
    };
    let mut table = Table::new(&["", "instructions", "requests", "sectors", "wavefronts", "bank conflicts"]);
    let updates = [("global atomic", report.global_atomic), ("global reduction", report.global_reduction)];
    let updates = updates.into_iter().filter(|(_, count)| count.instructions > 0);
    let accesses = [("global load", report.global_load), ("global store", report.global_store)];
    for (access, count) in accesses.into_iter().chain(updates) {
        let figures = [count.instructions, count.requests, count.sectors].map(|figure| figure.to_string());
        let [instructions, requests, sectors] = &figures;
        table.add_row([access, instructions, requests, sectors, "-", "-"]);
    }
    let updates = Some(("shared atomic", report.shared_atomic)).filter(|(_, count)| count.instructions > 0);
    let accesses = [("shared load", report.shared_load), ("shared store", report.shared_store)];
    for (access, count) in accesses.into_iter().chain(updates) {
        let figures = [count.instructions, count.wavefronts, count.bank_conflicts].map(|figure| figure.to_string());
        let [instructions, wavefronts, conflicts] = &figures;
        table.add_row([access, instructions, "-", "-", wavefronts, conflicts]);
    }
    let threads = counted(report.thread_instructions, "thread instruction");
    let found = findings_text(&report.findings, report.more_findings);
    let details = if args.report { instructions::text(report) } else { String::new() };
    format!(
        "{title}\n{table}\n{threads} in {seconds:.3} s of this host, which is no time of a GPU\n\
         {details}{found}"
    )
}
