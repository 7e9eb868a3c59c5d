//! `warpstride check FILE.toml ...`: holds kernels to their values and memory accesses on the
//! software GPU, as files say.

mod arithmetic;
mod ci;
mod expected;
mod file;
mod modelled;
mod oracle;

use std::cell::RefCell;
use std::env;
use std::path::{Path, PathBuf};
use std::slice;

use anyhow::Result;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::error::{Error, counted};
use warpstride::interp::expect::{Verdict, Verdicts};
use warpstride::interp::{Finding, Module, Report};
use warpstride::io::Destination;

use super::args::Architecture;
use super::output::Output;
use super::run::table::Table;
use super::run_ptx::buffer::Buffer;
use super::run_ptx::model::Predicted;
use super::run_ptx::report::{self, Outcome, Shown};
use super::run_ptx::{self, Launch, Program, arguments, variables};
use super::{
    args, cuda_cpp, destination, ensure_room, export, failure, input, kernel_names, message, open, ptx_file, require,
    terminal,
};
use expected::Expected;
use file::Check;
use modelled::Expect;

/// Copies on the host of what the device holds: as it is before the launch, as it should be after
/// it, and as it is then.
const HOST_COPIES: usize = 3;

/// The results of a file that are printed.
pub(super) struct Checked {
    /// The file, the launch and how it ended.
    pub(super) heading: String,
    /// The expected and the found figures.
    pub(super) verdicts: Verdicts,
    /// The line of the file that asks for each of these expectations, where one does.
    lines: Vec<Option<usize>>,
    /// The findings of the checkers.
    found: Vec<Finding>,
    /// The same as text, or the reason why nothing was checked.
    findings: String,
    pub(super) document: Value,
    /// The first fault; `None` if nothing fell short.
    pub(super) wrong: Option<anyhow::Error>,
}

impl Checked {
    pub(super) fn has_findings(&self) -> bool {
        !self.found.is_empty()
    }

    pub(super) fn text(&self) -> String {
        let Self { heading, verdicts, findings, .. } = self;
        let mut cells = verdicts.cells();
        let table = Table { words: cells[0].len(), header: cells.remove(0), rows: cells };
        let table = if verdicts.rows.is_empty() { String::new() } else { export::plain(&table) };
        format!("{heading}\n{table}{findings}")
    }
}

pub(super) fn run(args: &args::Check, backend: Backend, output: &Output) -> Result<()> {
    let to = |path: &Option<PathBuf>| path.as_deref().map(|path| report_to(path, &args.files, output)).transpose();
    let (junit, sarif, ncu) = (to(&args.junit)?, to(&args.sarif)?, to(&args.ncu_csv)?);
    let (device, sources) = (device(backend, output)?, Sources::default());
    let progress = output.progress(args.files.len());
    let (mut checked, mut is_run) = (Vec::with_capacity(args.files.len()), true);
    for path in &args.files {
        progress.doing(path.display().to_string());
        match check(path, &device, &sources, output) {
            Ok(outcome) => checked.push(outcome),
            Err(error) => {
                checked.push(not_run(path, error));
                is_run = false;
            }
        }
        progress.step();
    }
    drop(progress);
    if args.github {
        terminal::say(&ci::annotations(&args.files, &checked));
    }
    let texts: Vec<String> = checked.iter().map(Checked::text).collect();
    let held = checked.iter().all(|checked| checked.wrong.is_none());
    let files: Vec<&Value> = checked.iter().map(|checked| &checked.document).collect();
    // The error is all there is to say about one file that cannot be checked.
    if is_run || args.files.len() > 1 {
        output.result(&texts.join("\n"), json!({ "held": held, "files": files }))?;
    }
    if let Some(junit) = junit {
        destination::replace(&junit, |file| file.write_all(ci::junit(&args.files, &checked).as_bytes()))?;
    }
    if let Some(sarif) = sarif {
        let log = ci::sarif(&args.files, &checked, &env::current_dir().unwrap_or_default());
        destination::replace(&sarif, |file| file.write_all(log.as_bytes()))?;
    }
    if let Some(table) = ncu {
        let rows = super::ci::ncu::csv(&ci::counted(&checked))?;
        destination::replace(&table, |file| file.write_all(&rows))?;
    }
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

/// The destination of a report, which differs from the files and from what they read.
fn report_to(path: &Path, files: &[PathBuf], output: &Output) -> Result<Destination> {
    let sources: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let destination = destination::checked(path, &sources, output)?;
    // A file that cannot be read names no others.
    for check in files.iter().filter_map(|file| Check::read(file).ok()) {
        destination::spared(path, &check.inputs())?;
    }
    Ok(destination)
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
        lines: Vec::new(),
        found: Vec::new(),
        findings: format!("error: {}\n", message(&error)),
        document,
        wrong: Some(error),
    }
}

/// Runs what a file says, and holds it to what the file expects.
pub(super) fn check(path: &Path, device: &Device, sources: &Sources, output: &Output) -> Result<Checked> {
    let check = Check::read(path)?;
    let launch = &check.launch;
    let program = sources.program(&check.kernel, launch.arch, device).map_err(|error| check.wrong_kernel(error))?;
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
    let footprint = launch.modelled.model.is_some();
    let prepared = Launch { dumps, variables, footprint, ..Launch::new(&program.ptx, kernel, launch) };
    let shared = run_ptx::shared_note(kernel, &prepared.shape());
    notes.iter().chain(&shared).for_each(|note| output.note(format!("{}: {note}", path.display())));
    ensure_room(prepared.bytes(&buffers), HOST_COPIES, &[(device, 1)]).map_err(|error| check.wrong(error))?;
    let expected =
        check.result.as_ref().map(|wanted| Expected::of(wanted, &launch.arguments, &buffers, output)).transpose();
    let expected = expected.map_err(|error| check.wrong_result(error))?;
    let outcome = prepared.silently_on_soft(buffers, device.info().memory_bytes).map_err(|error| check.wrong(error))?;
    output.of_kernel(outcome.printed());
    let shown = Shown { program: &program, args: launch, kernel, device };
    let predicted = shown.predicted(&outcome, &prepared);
    let known = predicted.as_ref().ok().and_then(Option::as_ref);
    let mut checked = judge(&check, &shown, outcome, expected.as_ref(), known)?;
    // A kernel that falls short in other ways may do what no model knows because of that.
    match predicted {
        Err(error) if checked.wrong.is_some() => checked.findings += &format!("{}\n", message(&error)),
        Err(error) => return Err(check.wrong(error)),
        Ok(_) => {}
    }
    Ok(checked)
}

/// The source that a command compiled last: the files that it checks may name one source.
#[derive(Default)]
pub(super) struct Sources(RefCell<Option<(PathBuf, Architecture, cuda_cpp::Compiled)>>);

impl Sources {
    /// Reads the PTX in a file, or compiles the CUDA C++ in it, by its name.
    fn program<'p>(&self, path: &'p Path, arch: Option<Architecture>, device: &Device) -> Result<Program<'p>> {
        input::ensure_regular(path, "name a file with a kernel")?;
        if !ptx_file::is_cuda_cpp(path) {
            return Ok(Program { file: path, ptx: ptx_file::read(path)?, compiler: None });
        }
        let arch = arch.unwrap_or_else(|| cuda_cpp::architecture(device.info()));
        let last = self.0.take().filter(|(last, for_arch, _)| last == path && *for_arch == arch);
        let compiled = match last {
            Some((_, _, compiled)) => compiled,
            None => cuda_cpp::compile(path, None, arch)?,
        };
        let program = Program { file: path, ptx: compiled.ptx.clone(), compiler: Some(compiled.compiler.clone()) };
        self.0.replace(Some((path.to_owned(), arch, compiled)));
        Ok(program)
    }
}

/// Holds a launch to what its file expects.
fn judge(
    check: &Check,
    shown: &Shown,
    mut outcome: Outcome,
    expected: Option<&Expected>,
    predicted: Option<&Predicted>,
) -> Result<Checked> {
    if let Some(stop) = outcome.stopped.take() {
        let mut document = shown.stopped_json(&stop);
        let found = report::findings_text(&stop.findings, stop.more_findings);
        let stop_findings = stop.findings.clone();
        let error = check.wrong(Error::from(stop).into());
        if found.is_empty() {
            return Err(error);
        }
        describe(check, &mut document, false);
        document["error"] = failure(&error);
        return Ok(Checked {
            heading: format!("{}: stopped", title(check, shown)),
            verdicts: Verdicts::default(),
            lines: Vec::new(),
            found: stop_findings,
            // Why it stopped stands above what was found before.
            findings: format!("{}\n{found}", message(&error)),
            document,
            wrong: Some(error),
        });
    }
    let mut document = shown.json(&outcome);
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    if let (Some(expected), Some(bytes)) = (expected, outcome.dumped.first()) {
        let (verdict, result) = expected.judge(bytes);
        rows.push(verdict);
        lines.push(Some(check.result_line()));
        document["result"] = result;
    }
    let (mut findings, mut found) = (String::new(), Vec::new());
    if let Some(mut report) = outcome.report {
        if check.launch.checks.is_some() {
            rows.push(clean(report::faults(&report.findings, report.more_findings)));
            lines.push(None);
            findings = report::findings_text(&report.findings, report.more_findings);
            found = std::mem::take(&mut report.findings);
        }
        for (expected, line) in check.expect.iter().zip(&check.expect_lines) {
            let verdict = verdict(expected, &report, predicted).map_err(|error| check.wrong(error))?;
            lines.extend(verdict.is_some().then_some(Some(*line)));
            rows.extend(verdict);
        }
    }
    if let Some(predicted) = predicted {
        document["model"] = predicted.json();
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
    Ok(Checked { heading, verdicts, lines, found, findings, document, wrong })
}

/// Holds a launch to one expectation; `None` without the prediction that it is of.
fn verdict(expected: &Expect, report: &Report, predicted: Option<&Predicted>) -> Result<Option<Verdict>> {
    match expected {
        Expect::Counted(expected) => Ok(Verdicts::of(report, slice::from_ref(expected))?.rows.pop()),
        Expect::Modelled(expected) => Ok(predicted.map(|predicted| expected.judge(predicted))),
    }
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

/// Returns the faults that the checkers found, as an expectation that they find none.
fn clean(faults: u64) -> Verdict {
    Verdict {
        expectation: "faults checkers found".into(),
        found: counted(faults, "fault").to_string(),
        wanted: "0 faults".into(),
        of_ideal: None,
        held: faults == 0,
    }
}
