//! `warpstride check FILE.toml ...`: holds kernels to their values and memory accesses on the
//! software GPU, as files say.

mod arithmetic;
mod expected;
mod file;
mod oracle;

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::error::{Error, counted};
use warpstride::interp::Module;
use warpstride::interp::expect::{Verdict, Verdicts};

use super::args::Architecture;
use super::output::Output;
use super::run_ptx::buffer::Buffer;
use super::run_ptx::report::{self, Outcome, Shown};
use super::run_ptx::{self, Launch, Program, arguments, variables};
use super::{args, cuda_cpp, ensure_room, failure, input, kernel_names, message, open, ptx_file, require, terminal};
use expected::Expected;
use file::Check;

/// Copies on the host of what the device holds: as it is before the launch, as it should be after
/// it, and as it is then.
const HOST_COPIES: usize = 3;

/// The results of a file that are printed.
pub(super) struct Checked {
    /// The file, the launch and how it ended.
    heading: String,
    /// The expected and the found figures.
    pub(super) verdicts: Verdicts,
    /// The findings of the checkers, or the reason why nothing was checked.
    findings: String,
    pub(super) document: Value,
    /// The first fault; `None` if nothing fell short.
    pub(super) wrong: Option<anyhow::Error>,
}

impl Checked {
    pub(super) fn text(&self) -> String {
        let Self { heading, verdicts, findings, .. } = self;
        let table = if verdicts.rows.is_empty() { String::new() } else { verdicts.to_string() };
        format!("{heading}\n{table}{findings}")
    }
}

pub(super) fn run(args: &args::Check, backend: Backend, output: &Output) -> Result<()> {
    let device = device(backend, output)?;
    let progress = output.progress(args.files.len());
    let mut checked = Vec::with_capacity(args.files.len());
    for path in &args.files {
        progress.doing(path.display().to_string());
        match check(path, &device, output) {
            Ok(outcome) => checked.push(outcome),
            // One sentence is all there is to say.
            Err(error) if args.files.len() == 1 => return Err(error),
            Err(error) => checked.push(not_run(path, error)),
        }
        progress.step();
    }
    drop(progress);
    let texts: Vec<String> = checked.iter().map(Checked::text).collect();
    let held = checked.iter().all(|checked| checked.wrong.is_none());
    let files: Vec<&Value> = checked.iter().map(|checked| &checked.document).collect();
    output.result(&texts.join("\n"), json!({ "held": held, "files": files }))?;
    if let [_] = *checked {
        return checked.pop().and_then(|checked| checked.wrong).map_or(Ok(()), Err);
    }
    let wrong = checked.iter().zip(&args.files).filter(|(checked, _)| checked.wrong.is_some());
    let names: Vec<String> = wrong.map(|(_, path)| path.display().to_string()).collect();
    require!(
        held,
        KernelFault,
        "{} of {} fell short or could not be checked: {}; what is printed of each says why",
        names.len(),
        counted(checked.len(), "file"),
        names.join(", ")
    );
    Ok(())
}

/// The software GPU, which is the device that counts.
pub(super) fn device(backend: Backend, output: &Output) -> Result<Device> {
    require!(
        !matches!(backend, Backend::Cuda(_)),
        InvalidArgument,
        "check counts memory accesses, and nothing is counted on a GPU; leave out --device, or pass --device soft"
    );
    open(Backend::Soft, output)
}

/// A file that has nothing but an error.
fn not_run(path: &Path, error: anyhow::Error) -> Checked {
    let document = json!({ "file": path.display().to_string(), "held": false, "error": failure(&error) });
    Checked {
        heading: format!("{}: not checked", terminal::path(path)),
        verdicts: Verdicts::default(),
        findings: format!("error: {}\n", message(&error)),
        document,
        wrong: Some(error),
    }
}

/// Runs what a file says, and holds it to what the file expects.
pub(super) fn check(path: &Path, device: &Device, output: &Output) -> Result<Checked> {
    let check = Check::read(path)?;
    let launch = &check.launch;
    let program = program(&check.kernel, launch.arch, device).map_err(|error| check.wrong_kernel(error))?;
    let file = check.kernel.display();
    let module = Module::parse(&program.ptx).map_err(|error| check.wrong_kernel(error.while_doing(&file).into()))?;
    let kernel =
        kernel_names::find(&module, launch.entry.as_deref(), &file).map_err(|error| check.wrong_entry(error))?;
    let kernel = &run_ptx::on_architecture(kernel, launch);
    let placed = run_ptx::placed(kernel, &launch.arguments, |_| 0);
    let (_, places) = placed.map_err(|error| check.wrong(error.into()))?;
    let notes = arguments::notes(kernel, &launch.arguments, &places);
    let variables = variables::found(&module, &launch.sets, &file, output).map_err(|error| check.wrong(error))?;
    let buffers = launch.arguments.iter().map(Buffer::of).collect::<Result<Vec<_>>>();
    let buffers = buffers.map_err(|error| check.wrong(error))?;
    buffers.iter().flatten().for_each(|buffer| buffer.note(output));
    let dumps = check.result.iter().map(|wanted| wanted.argument).collect();
    let prepared = Launch { dumps, variables, ..Launch::new(&program.ptx, kernel, launch) };
    let shared = run_ptx::shared_note(kernel, &prepared.shape());
    notes.iter().chain(&shared).for_each(|note| output.note(format!("{}: {note}", path.display())));
    ensure_room(prepared.bytes(&buffers), HOST_COPIES, &[(device, 1)]).map_err(|error| check.wrong(error))?;
    let expected =
        check.result.as_ref().map(|wanted| Expected::of(wanted, &launch.arguments, &buffers, output)).transpose();
    let expected = expected.map_err(|error| check.wrong_result(error))?;
    let outcome = prepared.on_soft(buffers, device.info().memory_bytes).map_err(|error| check.wrong(error))?;
    let shown = Shown { program: &program, args: launch, kernel, device };
    judge(&check, &shown, outcome, expected.as_ref())
}

/// Reads the PTX in a file, or compiles the CUDA C++ in it, by its name.
fn program<'p>(path: &'p Path, arch: Option<Architecture>, device: &Device) -> Result<Program<'p>> {
    input::ensure_regular(path, "name a file with a kernel")?;
    if ptx_file::is_cuda_cpp(path) {
        let compiled = cuda_cpp::compile(path, None, arch.unwrap_or_else(|| cuda_cpp::architecture(device.info())))?;
        return Ok(Program { file: path, ptx: compiled.ptx, compiler: Some(compiled.compiler) });
    }
    Ok(Program { file: path, ptx: ptx_file::read(path)?, compiler: None })
}

/// Holds a launch to what its file expects.
fn judge(check: &Check, shown: &Shown, mut outcome: Outcome, expected: Option<&Expected>) -> Result<Checked> {
    if let Some(stop) = outcome.stopped.take() {
        let mut document = shown.stopped_json(&stop);
        let found = report::findings_text(&stop.findings, stop.more_findings);
        let error = check.wrong(Error::from(stop).into());
        if found.is_empty() {
            return Err(error);
        }
        describe(check, &mut document, false);
        document["error"] = failure(&error);
        return Ok(Checked {
            heading: format!("{}: stopped", title(check, shown)),
            verdicts: Verdicts::default(),
            findings: found,
            document,
            wrong: Some(error),
        });
    }
    let mut document = shown.json(&outcome);
    let mut rows = Vec::new();
    if let (Some(expected), Some(bytes)) = (expected, outcome.dumped.first()) {
        let (verdict, result) = expected.judge(bytes);
        rows.push(verdict);
        document["result"] = result;
    }
    let mut found = String::new();
    if let Some(report) = &outcome.report {
        if check.launch.checks.is_some() {
            rows.push(clean(report.findings.len() as u64 + report.more_findings));
            found = report::findings_text(&report.findings, report.more_findings);
        }
        let verdicts = Verdicts::of(report, &check.expect).map_err(|error| check.wrong(error.into()))?;
        rows.extend(verdicts.rows);
    }
    let verdicts = Verdicts { rows };
    let short = verdicts.rows.iter().filter(|verdict| !verdict.held).count();
    let count = counted(verdicts.rows.len(), "expectation");
    describe(check, &mut document, short == 0);
    document["expectations"] = json!(verdicts);
    let outcome = if short == 0 { format!("{count} held") } else { format!("{short} of {count} fell short") };
    let heading = format!("{}: {outcome}", title(check, shown));
    let wrong = (short > 0).then(|| {
        let sentence = format!("{short} of {count} fell short; the table says which");
        check.wrong(super::Refusal { kind: warpstride::ErrorKind::KernelFault, sentence }.into())
    });
    Ok(Checked { heading, verdicts, findings: found, document, wrong })
}

fn describe(check: &Check, document: &mut Value, held: bool) {
    document["file"] = check.source.path.display().to_string().into();
    document["held"] = held.into();
}

fn title(check: &Check, shown: &Shown) -> String {
    let args::Launched { grid: [gx, gy, gz], block: [bx, by, bz], .. } = check.launch;
    let (path, kernel) = (terminal::path(&check.source.path), kernel_names::short(shown.kernel.name()));
    format!("{path}: {kernel}, {gx} x {gy} x {gz} blocks of {bx} x {by} x {bz} threads")
}

/// Returns the findings of the checkers, as an expectation that they find nothing.
fn clean(findings: u64) -> Verdict {
    Verdict {
        expectation: "checkers find nothing".into(),
        found: counted(findings, "finding").to_string(),
        wanted: "0 findings".into(),
        of_ideal: None,
        held: findings == 0,
    }
}
