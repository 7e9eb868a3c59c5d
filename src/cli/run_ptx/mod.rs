//! `warpstride run-ptx FILE.ptx`: a kernel of anybody's, with the same arguments and results on a GPU and on the software GPU.

mod argument;
mod buffer;
mod gpu;
mod report;
mod soft;

use anyhow::{Context, Result, anyhow, ensure};
use warpstride::abi::LaunchShape;
use warpstride::device::Backend;
use warpstride::driver::DriverKind;
use warpstride::error::Error;
use warpstride::interp::{Args, Checks, Kernel, Module};

use super::output::Output;
use super::target::Target;
use super::{args, ensure_room, npy, open, ptx_file};
use argument::Value;
use buffer::Buffer;

pub(super) use argument::{Argument, Dump, extents};

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
}

pub(super) fn run(args: &args::RunPtx, backend: Backend, output: &Output) -> Result<()> {
    let file = args.file.display();
    let text = ptx_file::read(&args.file)?;
    let module = Module::parse(&text).with_context(|| format!("cannot parse {file}"))?;
    let kernel = module.kernel(&args.entry).ok_or_else(|| {
        let names = module.kernels().map(Kernel::name).collect::<Vec<_>>().join(", ");
        let advice = if names.is_empty() { "it has none at all; check the path" } else { "name one of: " };
        anyhow!("{file} has no kernel `{}`; {advice}{names}", args.entry)
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
    };

    let device = open(backend, output)?;
    ensure!(
        args.checks.is_none() || device.info().kind == DriverKind::Soft,
        "--check is for the software GPU; pass --device soft, or run this under compute-sanitizer, whose --tool takes the \
         same names"
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
            output.result(&report::findings_text(&stop.findings), report::stopped_json(args, &device, &stop))?;
        }
        return Err(Error::from(stop).into());
    }
    for ((target, descr, shape), bytes) in targets.into_iter().zip(&outcome.dumped) {
        target.replace(|file| npy::write(file, &descr, &shape, bytes))?;
    }
    drop(progress);
    output.result(&report::text(args, &device, &outcome), report::json(args, &device, &outcome))?;
    let findings = outcome.report.map_or(0, |report| report.findings.len());
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

/// For each dump the file in the making, and its elements' type and shape.
fn targets(args: &args::RunPtx, buffers: &[Option<Buffer>]) -> Result<Vec<(Target, String, Vec<usize>)>> {
    let mut targets = Vec::with_capacity(args.dumps.len());
    for (position, Dump { argument, path }) in args.dumps.iter().enumerate() {
        let count = buffers.len();
        let buffer = buffers.get(*argument).ok_or_else(|| {
            anyhow!("--dump {argument}: there are {count} arguments, counted from 0; name another one, or pass more")
        })?;
        let buffer = buffer.as_ref().ok_or_else(|| {
            anyhow!("--dump {argument}: {} is a number and stays as it is; dump a buffer", args.arguments[*argument])
        })?;
        ensure!(
            args.dumps[..position].iter().all(|earlier| earlier.path != *path),
            "--dump names {} twice; give each argument a file of its own",
            path.display()
        );
        for input in args.arguments.iter().filter_map(Argument::file) {
            ensure!(
                !same_file::is_same_file(path, input).unwrap_or(false),
                "input and output are the same file, {}; name another output",
                path.display()
            );
        }
        targets.push((Target::check(path, &args.file)?, buffer.descr.clone(), buffer.shape.clone()));
    }
    Ok(targets)
}
