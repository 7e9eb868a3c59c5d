//! What is printed of a launch.

use serde_json::{Value, json};
use warpstride::device::Device;
use warpstride::error::counted;
use warpstride::interp::{Finding, Kernel, Report, Stop};
use warpstride::roofline::table::Table;

use super::super::{args, kernel_names, output};
use super::{Program, instructions};

/// What a launch left behind.
pub(super) struct Outcome {
    /// By the GPU's clock, or the host's for the software GPU.
    pub(super) seconds: f64,
    /// What the software GPU counted and found.
    pub(super) report: Option<Report>,
    /// Why it stopped before the end.
    pub(super) stopped: Option<Stop>,
    /// The bytes of each buffer that was asked for.
    pub(super) dumped: Vec<Vec<u8>>,
}

pub(super) fn json(
    program: &Program,
    args: &args::Launched,
    kernel: &Kernel,
    device: &Device,
    outcome: &Outcome,
) -> Value {
    let report = outcome.report.as_ref();
    let mut document = launch_json(program, args, kernel, device);
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
pub(super) fn stopped_json(
    program: &Program,
    args: &args::Launched,
    kernel: &Kernel,
    device: &Device,
    stop: &Stop,
) -> Value {
    let mut document = launch_json(program, args, kernel, device);
    document["findings"] = json!(stop.findings);
    document["findings_total"] = json!(stop.findings.len() as u64 + stop.more_findings);
    document
}

/// What was launched where.
fn launch_json(program: &Program, args: &args::Launched, kernel: &Kernel, device: &Device) -> Value {
    // Not every path is text.
    let file = program.file.display().to_string();
    let mut document = match program.compiler {
        None => json!({ "ptx": file }),
        Some(compiler) => json!({ "ptx": null, "source": file, "compiler": compiler.json() }),
    };
    document["device"] = output::info_json(device.info());
    document["kernel"] = kernel_names::short(kernel.name()).into();
    document["entry"] = kernel.name().into();
    document["grid"] = json!(args.grid);
    document["block"] = json!(args.block);
    document["shared_bytes"] = json!(args.shared);
    document
}

/// A paragraph each, and how many there are besides.
pub(super) fn findings_text(findings: &[Finding], more: u64) -> String {
    let told: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    let told = kernel_names::readable(&told);
    if more > 0 { format!("{told}and {more} more\n") } else { told }
}

pub(super) fn text(args: &args::Launched, kernel: &str, device: &Device, outcome: &Outcome) -> String {
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
