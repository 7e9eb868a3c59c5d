//! `warpstride run-ptx FILE.ptx`: a kernel of anybody's, with the same arguments and results on a GPU and on the software GPU.

mod buffer;
mod gpu;
mod instructions;
mod report;
mod soft;

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use warpstride::abi::LaunchShape;
use warpstride::device::Backend;
use warpstride::driver::{DeviceInfo, DriverKind};
use warpstride::error::Error;
use warpstride::interp::{Args, Checks, DEFAULT_WORK, Kernel, Module};

use super::argument::{Argument, Dump, Value};
use super::output::Output;
use super::target::Target;
use super::{args, ensure_room, npy, open, ptx_file};
use buffer::Buffer;
use report::Outcome;

/// What is to be run, once it is known to go together.
struct Launch<'a> {
    text: &'a str,
    kernel: &'a Kernel,
    shape: LaunchShape,
    arguments: &'a [Argument],
    /// The arguments whose buffers are wanted back.
    dumps: Vec<usize>,
    /// What the software GPU looks for.
    checks: Checks,
    /// The work after which it stops the launch.
    limit: u64,
}

/// Where results go.
struct Targets {
    /// For each dump the file, and its elements' type and shape.
    dumps: Vec<(Target, String, Vec<usize>)>,
    drawing: Option<Target>,
}

impl Targets {
    fn write(self, outcome: &Outcome) -> Result<()> {
        for ((target, descr, shape), bytes) in self.dumps.into_iter().zip(&outcome.dumped) {
            target.replace(|file| npy::write(file, &descr, &shape, bytes))?;
        }
        if let (Some(target), Some(report)) = (self.drawing, &outcome.report) {
            target.replace(|file| file.write_all(report.to_svg().as_bytes()))?;
        }
        Ok(())
    }
}

pub(super) fn run(args: &args::RunPtx, backend: Backend, output: &Output) -> Result<()> {
    let file = args.file.display();
    let text = ptx_file::read(&args.file)?;
    let module = Module::parse(&text).with_context(|| format!("cannot parse {file}"))?;
    let kernel = module.kernel(&args.entry).ok_or_else(|| {
        let names = module.kernels().map(Kernel::name).collect::<Vec<_>>().join(", ");
        let instead =
            if names.is_empty() { "it has none; check the file".into() } else { format!("name one of: {names}") };
        anyhow!("{file} has no kernel `{}`; {instead}", args.entry)
    })?;
    // Before any work: whether they go together, whatever the addresses.
    parameters(kernel, &args.arguments, |_| 0)?;
    let buffers = args.arguments.iter().map(Buffer::of).collect::<Result<Vec<_>>>()?;
    let targets = targets(args, &buffers)?;
    let launch = Launch {
        text: &text,
        kernel,
        shape: LaunchShape { grid: args.grid, block: args.block, dynamic_shared: args.shared },
        arguments: &args.arguments,
        dumps: args.dumps.iter().map(|dump| dump.argument).collect(),
        checks: args.checks.unwrap_or_default(),
        limit: args.limit.unwrap_or(DEFAULT_WORK),
    };

    let device = open(backend, output)?;
    ensure_counted(args, device.info())?;
    ensure!(
        args.checks.is_none() || device.info().kind == DriverKind::Soft,
        "--check is for the software GPU; pass --device soft, or run this under compute-sanitizer, whose --tool takes the \
         same names"
    );
    ensure!(
        args.limit.is_none() || device.info().kind == DriverKind::Soft,
        "--limit is for the software GPU, and nothing stops a launch on a GPU; leave it out, or pass --device soft"
    );
    // On the host, contents that are made or read, and later those that are dumped.
    let bytes = buffers.iter().flatten().map(|buffer| buffer.bytes).fold(0, usize::saturating_add);
    ensure_room(bytes, 1, &[(&device, 1)]).with_context(|| format!("cannot run `{}`", args.entry))?;
    let progress = output.progress(1);
    progress.doing(kernel.name());
    let mut outcome = match device.info().kind {
        DriverKind::Soft => launch.on_soft(buffers, device.info().memory_bytes)?,
        DriverKind::Cuda => launch.on_gpu(buffers, &device)?,
    };
    if let Some(stop) = outcome.stopped.take() {
        drop(progress);
        if !stop.findings.is_empty() {
            let found = report::findings_text(&stop.findings, stop.more_findings);
            output.result(&found, report::stopped_json(args, &device, &stop))?;
        }
        // What the library calls by the name of its own.
        return Err(anyhow!(stop.to_string().replace("`Config::work_limit`", "--limit")));
    }
    targets.write(&outcome)?;
    drop(progress);
    output.result(&report::text(args, &device, &outcome), report::json(args, &device, &outcome))?;
    let findings = outcome.report.map_or(0, |report| report.findings.len() as u64 + report.more_findings);
    ensure!(
        findings == 0,
        "the checkers have found {findings} faults in `{}`, told above; mend it or them",
        args.entry
    );
    Ok(())
}

/// The parameter bytes, given the address of each argument that is a buffer.
fn parameters(kernel: &Kernel, arguments: &[Argument], address: impl Fn(usize) -> u64) -> Result<Vec<u8>, Error> {
    let mut params = Args::new(kernel);
    for (position, argument) in arguments.iter().enumerate() {
        params = match &argument.value {
            Value::Scalar(bytes) => params.bytes(bytes),
            Value::Buffer { .. } | Value::File(_) => params.value(address(position)),
        }
        .map_err(|error| error.while_doing(format_args!("--arg {argument}")))?;
    }
    params.finish()
}

/// Fails where what a GPU does not count is asked of one.
fn ensure_counted(args: &args::RunPtx, device: &DeviceInfo) -> Result<()> {
    let options = [("--report", args.report), ("--report-json", args.report_json), ("--draw", args.draw.is_some())];
    match options.into_iter().find(|(_, asked)| *asked && device.kind == DriverKind::Cuda) {
        Some((option, _)) => {
            let name = &device.name;
            Err(anyhow!("{option} shows what is counted, and nothing is counted on {name}; add --device soft"))
        }
        None => Ok(()),
    }
}

/// Checks, before any work, where results go.
fn targets(args: &args::RunPtx, buffers: &[Option<Buffer>]) -> Result<Targets> {
    let mut dumps: Vec<(Target, String, Vec<usize>)> = Vec::with_capacity(args.dumps.len());
    for Dump { argument, path } in &args.dumps {
        let count = buffers.len();
        let buffer = buffers.get(*argument).ok_or_else(|| {
            anyhow!("--dump {argument}: there are {count} arguments, counted from 0; name another one, or pass more")
        })?;
        let buffer = buffer.as_ref().ok_or_else(|| {
            anyhow!("--dump {argument}: {} is a number and stays as it is; dump a buffer", args.arguments[*argument])
        })?;
        let target = target(args, path, &dumps)?;
        dumps.push((target, buffer.descr.clone(), buffer.shape.clone()));
    }
    let drawing = args.draw.as_ref().map(|path| target(args, path, &dumps)).transpose()?;
    Ok(Targets { dumps, drawing })
}

/// The file in the making, if it is none of the inputs and none of the outputs before.
fn target(args: &args::RunPtx, path: &Path, before: &[(Target, String, Vec<usize>)]) -> Result<Target> {
    for input in args.arguments.iter().filter_map(Argument::file) {
        ensure!(
            !same_file::is_same_file(path, input).unwrap_or(false),
            "input and output are the same file, {}; name another output",
            path.display()
        );
    }
    let target = Target::check(path, &args.file)?;
    ensure!(
        before.iter().all(|(earlier, ..)| *earlier != target),
        "{} is named twice; give each output a file of its own",
        path.display()
    );
    Ok(target)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use warpstride::device::Device;

    use super::*;
    use crate::cli::args::{Cli, Command};

    #[test]
    fn what_a_gpu_does_not_count_is_not_asked_of_one() {
        let soft = Device::open(Backend::Soft).unwrap().info().clone();
        let gpu = DeviceInfo { kind: DriverKind::Cuda, name: "NVIDIA H100".into(), ..soft.clone() };
        let asked = |options: &[&str], device: &DeviceInfo| {
            let words = ["warpstride", "run-ptx", "k.ptx", "--entry", "k", "--grid", "1", "--block", "1"];
            let cli = Cli::try_parse_from(words.iter().chain(options)).unwrap();
            let Command::RunPtx(args) = cli.command else { panic!("another command") };
            ensure_counted(&args, device).map_err(|error| error.to_string())
        };
        for options in [&["--report"][..], &["--report-json"], &["--draw", "k.svg"]] {
            let refused = asked(options, &gpu).unwrap_err();
            assert!(
                refused.starts_with(options[0]) && refused.ends_with("NVIDIA H100; add --device soft"),
                "{refused}"
            );
            assert_eq!(asked(options, &soft), Ok(()));
        }
        assert_eq!(asked(&["--json"], &gpu), Ok(()));
    }
}
