//! `warpstride run-ptx FILE.ptx`: a user's kernel, with the same arguments and results on a
//! GPU and on the software GPU.

mod annotate;
pub(super) mod arguments;
pub(super) mod buffer;
mod gpu;
mod instructions;
mod lines;
pub(super) mod model;
pub(super) mod report;
mod soft;
mod source;
mod time;
pub(super) mod variables;

use std::path::Path;

use anyhow::{Context, Result};
use warpstride::device::{Backend, Device};
use warpstride::driver::{DeviceInfo, DriverKind};
use warpstride::error::{Error, counted};
use warpstride::interp::{Args, Kernel, Module, Stop};
use warpstride::io::{Destination, npy};
use warpstride::launch_shape::LaunchShape;

use super::args::{Argument, Dump, Value as Passed};
use super::cuda_cpp::Taken;
use super::output::Output;
use super::{args, destination, ensure_room, failure, kernel_names, open, ptx_file, refuse, require};
use buffer::Buffer;
use report::{Outcome, Shown};
use time::Time;
use variables::Variable;

/// A launch whose parts are known to go together.
pub(super) struct Launch<'a> {
    pub(super) text: &'a str,
    pub(super) kernel: &'a Kernel,
    pub(super) args: &'a args::Launched,
    /// The variables that are filled before.
    pub(super) variables: Vec<Variable<'a>>,
    /// The arguments whose buffers are wanted back.
    pub(super) dumps: Vec<usize>,
    /// Tells if the software GPU counts the bytes that the launch must move.
    pub(super) footprint: bool,
}

impl<'a> Launch<'a> {
    /// The launch that `args` ask for, of a kernel in this PTX.
    pub(super) fn new(text: &'a str, kernel: &'a Kernel, args: &'a args::Launched) -> Self {
        let dumps = args.dumps.iter().map(|dump| dump.argument).collect();
        Self { text, kernel, args, variables: Vec::new(), dumps, footprint: false }
    }

    pub(super) fn shape(&self) -> LaunchShape {
        let args::Launched { grid, block, shared, .. } = *self.args;
        LaunchShape { grid, block, dynamic_shared: shared }
    }

    /// The arguments' buffers, whose contents are not made yet.
    fn buffers(&self) -> Result<Vec<Option<Buffer>>> {
        self.args.arguments.iter().map(Buffer::of).collect()
    }

    /// Bytes of the buffers and of the variables that are filled.
    pub(super) fn bytes(&self, buffers: &[Option<Buffer>]) -> usize {
        let buffers = buffers.iter().flatten().map(|buffer| buffer.bytes);
        buffers.chain(self.variables.iter().map(|variable| variable.bytes)).fold(0, usize::saturating_add)
    }
}

/// The files for the results.
struct Targets {
    /// For each dump the file, and its elements' type and shape.
    dumps: Vec<(Destination, String, Vec<usize>)>,
    drawing: Option<Destination>,
}

impl Targets {
    fn write(self, outcome: &Outcome) -> Result<()> {
        for ((target, descr, shape), bytes) in self.dumps.into_iter().zip(&outcome.dumped) {
            destination::replace(&target, |file| npy::write(file, &descr, &shape, bytes))?;
        }
        if let (Some(target), Some(report)) = (self.drawing, &outcome.report) {
            destination::replace(&target, |file| file.write_all(report.to_svg().as_bytes()))?;
        }
        Ok(())
    }
}

/// The module that holds the kernels, and its origin.
pub(super) struct Program<'a> {
    /// The file that the user named.
    pub(super) file: &'a Path,
    pub(super) ptx: String,
    /// The compiler, where the file is CUDA C++.
    pub(super) compiler: Option<Taken>,
}

pub(super) fn run(args: &args::RunPtx, backend: Backend, output: &Output) -> Result<()> {
    require!(
        !ptx_file::is_cuda_cpp(&args.file),
        InvalidArgument,
        "{} is CUDA C++; run it with run-cu, which compiles it",
        args.file.display()
    );
    let program = Program { file: &args.file, ptx: ptx_file::read(&args.file)?, compiler: None };
    launch(&program, &args.launch, || open(backend, output), output)
}

/// Runs a kernel of a program on the device that `open` gives, once all else is known to be right.
pub(super) fn launch(
    program: &Program,
    args: &args::Launched,
    open: impl FnOnce() -> Result<Device>,
    output: &Output,
) -> Result<()> {
    let file = program.file.display();
    let module = Module::parse(&program.ptx).with_context(|| format!("cannot parse {file}"))?;
    let kernel = &on_architecture(kernel_names::find(&module, args.entry.as_deref(), &file)?, args);
    let name = kernel_names::short(kernel.name());
    // Before any work: whether they go together, whatever the addresses.
    let (_, places) = placed(kernel, &args.arguments, |_| 0)?;
    arguments::notes(kernel, &args.arguments, &places).iter().for_each(|note| output.note(note));
    let variables = variables::found(&module, &args.sets, &file, output)?;
    report::note(args, kernel).iter().for_each(|note| output.note(note));
    let time = Time::asked(program, args, kernel)?;
    let footprint = args.timed.time && args.timed.bytes.is_none() || args.modelled.model.is_some();
    let launch = Launch { footprint, variables, ..Launch::new(&program.ptx, kernel, args) };
    shared_note(kernel, &launch.shape()).iter().for_each(|note| output.note(note));
    let buffers = launch.buffers()?;
    buffers.iter().flatten().for_each(|buffer| buffer.note(output));
    let targets = targets(program.file, args, &buffers, output)?;

    let device = open()?;
    ensure_soft_options(args, device.info())?;
    time.as_ref().map_or(Ok(()), |time| time.kept.check_device(&device))?;
    // On the host, contents that are made or read, and later those that are dumped.
    ensure_room(launch.bytes(&buffers), 1, &[(&device, 1)]).with_context(|| format!("cannot run `{name}`"))?;
    let shown = Shown { program, args, kernel, device: &device };
    let progress = output.progress(1);
    progress.doing(&*name);
    // A GPU counts none of the bytes.
    let counts = time.as_ref().filter(|_| args.timed.bytes.is_none() && device.info().kind == DriverKind::Cuda);
    let counted = counts.map(|time| time.counted(&launch)).transpose()?;
    let mut outcome = match device.info().kind {
        DriverKind::Soft => launch.on_soft(buffers, device.info().memory_bytes)?,
        DriverKind::Cuda => launch.on_gpu(buffers, &device)?,
    };
    if let Some(stop) = outcome.stopped.take() {
        drop(progress);
        return stopped(&shown, stop, output);
    }
    let counted = counted.as_ref().or(outcome.report.as_ref());
    let measured = time.as_ref().map(|time| time.measure(&launch, counted, &device)).transpose()?;
    targets.write(&outcome)?;
    drop(progress);
    let (mut text, mut document) = (shown.text(&outcome), shown.json(&outcome));
    if let Some(predicted) = shown.predicted(&outcome, &launch)? {
        text += &predicted.text();
        document["model"] = predicted.json();
    }
    if let (Some(time), Some(measured)) = (time, measured) {
        return time.finish(measured, [&shown.title(), &text], document, &device, output);
    }
    output.result(&text, document)?;
    ensure_nothing_found(&name, &outcome)
}

/// Prints what the checkers found before a launch stopped, and fails with the reason of the stop.
fn stopped(shown: &Shown, stop: Stop, output: &Output) -> Result<()> {
    let found = report::findings_text(&stop.findings, stop.more_findings);
    let mut document = shown.stopped_json(&stop);
    let error = Error::from(stop).into();
    if !found.is_empty() {
        document["error"] = failure(&error);
        output.result(&found, document)?;
    }
    Err(error)
}

/// Fails where the checkers found something.
fn ensure_nothing_found(name: &str, outcome: &Outcome) -> Result<()> {
    let report = outcome.report.as_ref();
    let faults = report.map_or(0, |report| report::faults(&report.findings, report.more_findings));
    require!(
        faults == 0,
        KernelFault,
        "the checkers have found {} in `{name}`; what is printed above says where",
        counted(faults, "fault")
    );
    Ok(())
}

/// The parameter bytes, given the address of each argument that is a buffer.
fn parameters(kernel: &Kernel, arguments: &[Argument], address: impl Fn(usize) -> u64) -> Result<Vec<u8>, Error> {
    Ok(placed(kernel, arguments, address)?.0)
}

/// The same with the offset of each argument.
pub(super) fn placed(
    kernel: &Kernel,
    arguments: &[Argument],
    address: impl Fn(usize) -> u64,
) -> Result<(Vec<u8>, Vec<usize>), Error> {
    let mut params = Args::new(kernel);
    for (position, argument) in arguments.iter().enumerate() {
        params = match &argument.value {
            Passed::Scalar { bytes, .. } => params.bytes(bytes),
            Passed::Buffer { .. } | Passed::File(_) => params.value(address(position)),
        }
        .map_err(|error| error.while_doing(format_args!("--arg {argument}")))?;
    }
    Ok(params.finish_placed()?)
}

/// The kernel on the architecture that is asked for, or on that of its PTX.
pub(super) fn on_architecture(kernel: &Kernel, args: &args::Launched) -> Kernel {
    args.arch.map_or_else(|| kernel.clone(), |architecture| kernel.on_architecture(architecture.number))
}

/// Says that a program has to allow the shared memory of a launch, where that is possible.
pub(super) fn shared_note(kernel: &Kernel, shape: &LaunchShape) -> Option<String> {
    let most = kernel.shared_limit().saturating_sub(kernel.shared_bytes());
    kernel.shared_to_allow(shape).filter(|&bytes| bytes <= most).map(|bytes| {
        format!(
            "note: a block has more than 48 KiB of shared memory; on a GPU a program asks for it before the launch, with \
             cudaFuncSetAttribute({}, cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes})",
            kernel_names::short(kernel.name())
        )
    })
}

/// Fails where a GPU is asked for what only the software GPU does.
fn ensure_soft_options(args: &args::Launched, device: &DeviceInfo) -> Result<()> {
    if device.kind == DriverKind::Soft {
        return Ok(());
    }
    let options = [
        ("--report", args.report),
        ("--report-json", args.report_json),
        ("--by", args.by.is_some()),
        ("--nsight", args.nsight),
        ("--annotate", args.annotate),
        ("--draw", args.draw.is_some()),
        ("--model", args.modelled.model.is_some()),
    ];
    if let Some((option, _)) = options.into_iter().find(|(_, asked)| *asked) {
        let name = &device.name;
        refuse!(InvalidArgument, "{option} shows what is counted, and nothing is counted on {name}; add --device soft")
    }
    require!(
        args.checks.is_none(),
        InvalidArgument,
        "--check is for the software GPU; pass --device soft, or run this under compute-sanitizer, whose --tool takes the \
         same names"
    );
    require!(
        args.limit.is_none() || args.timed.time && args.timed.bytes.is_none(),
        InvalidArgument,
        "--limit is for the software GPU, and nothing stops a launch on a GPU; leave it out, or pass --device soft"
    );
    require!(
        !args.contract,
        InvalidArgument,
        "--contract is for the software GPU, and NVIDIA's driver decides what a GPU fuses; leave it out, or pass --device soft"
    );
    Ok(())
}

/// Checks, before any work, where results go.
fn targets(source: &Path, args: &args::Launched, buffers: &[Option<Buffer>], output: &Output) -> Result<Targets> {
    let values = args.arguments.iter().chain(args.sets.iter().map(|set| &set.value));
    let inputs: Vec<&Path> = values.filter_map(Argument::file).chain([source]).collect();
    // Returns where an output goes, and fails if an input or an earlier output is there.
    let target = |path: &Path, before: &[(Destination, String, Vec<usize>)]| -> Result<Destination> {
        let target = destination::checked(path, &inputs, output)?;
        require!(
            before.iter().all(|(earlier, ..)| *earlier != target),
            InvalidArgument,
            "{} is named twice; give each output a file of its own",
            path.display()
        );
        Ok(target)
    };
    let mut dumps = Vec::with_capacity(args.dumps.len());
    for Dump { argument, path } in &args.dumps {
        let Some(buffer) = buffers.get(*argument) else {
            let count = counted(buffers.len(), "argument");
            refuse!(
                InvalidArgument,
                "--dump {argument}: the launch has {count}, counted from 0; name another one, or pass more"
            )
        };
        let Some(buffer) = buffer else {
            let number = &args.arguments[*argument];
            refuse!(InvalidArgument, "--dump {argument}: {number} is a number and stays as it is; dump a buffer")
        };
        dumps.push((target(path, &dumps)?, buffer.descr.clone(), buffer.shape.clone()));
    }
    let drawing = args.draw.as_ref().map(|path| target(path, &dumps)).transpose()?;
    Ok(Targets { dumps, drawing })
}

#[cfg(test)]
mod tests;
