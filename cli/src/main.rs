//! The command line: `args` has what was typed, each command has a file, `output` prints for all of
//! them, and `export` writes runs in each format. This file has what the commands share.
//!
//! ```text
//!  words -- args --+-- bench, compare, transfers, pipeline --> run -- export --> output
//!                  +-- run-ptx, run-cu, check --> the software GPU --> report --> output
//!                  +-- transpose, permute: input --> the library --> destination
//!                  +-- learn: lessons --> check, or cargo --> progress
//!                  +-- run: a program with the software GPU as its libcuda --> its reports
//!                  +-- launch: processes --> their lines, and their status
//! ```

mod alloc;
mod args;
mod bench;
mod check;
mod ci;
mod compare;
mod completions;
mod cuda_cpp;
mod destination;
mod devices;
mod explain;
mod export;
mod gpus;
#[cfg(test)]
#[path = "../../tests/hooked.rs"]
mod hooked;
mod input;
mod kernel_names;
mod launch;
mod learn;
#[cfg(test)]
#[path = "../../tests/long.rs"]
mod long;
mod man;
mod model;
mod number;
mod nvml;
mod output;
mod peaks;
mod permute;
mod pipeline;
mod process;
mod ptx_file;
mod ptx_forms;
mod reference;
mod refusal;
mod report;
mod run;
mod run_cu;
mod run_program;
mod run_ptx;
mod runs;
mod signals;
mod streamed;
mod terminal;
mod threads;
mod transfers;
mod transpose;
mod tune;

use std::fmt;
use std::io;
use std::process::ExitCode;

use anyhow::{Context, Result};
use bytemuck::Pod;
use serde_json::{Value, json};
use warpstride::device::{Backend, Device};
use warpstride::driver::{DriverKind, available_memory};
use warpstride::element::DType;
use warpstride::error::{Error, ErrorKind};
use warpstride::layout::Layout;
use warpstride::roofline::measure;

use args::{Cli, Command};
use output::Output;
use refusal::{Refusal, refuse, require};

/// Evaluates `$body` with `$type` as wide as the element type. This is enough for code that only
/// moves elements.
macro_rules! by_width {
    ($dtype:expr, $type:ident => $body:expr) => {
        match $dtype.width() {
            1 => by_width!(@ u8, $type, $body),
            2 => by_width!(@ u16, $type, $body),
            4 => by_width!(@ u32, $type, $body),
            8 => by_width!(@ u64, $type, $body),
            _ => by_width!(@ [f64; 2], $type, $body),
        }
    };
    (@ $wide:ty, $type:ident, $body:expr) => {{
        type $type = $wide;
        $body
    }};
}
use by_width;

/// Evaluates `$body` with `$type` as the type of a name, which is one of these.
macro_rules! by_type {
    ($dtype:expr, $type:ident in [$($listed:ident)*] => $body:expr) => {
        match $dtype {
            $(dtype if dtype == <$listed as warpstride::element::Element>::DTYPE => {
                type $type = $listed;
                $body
            })*
            dtype => unreachable!("no operation on {dtype} can be typed"),
        }
    };
}
use by_type;

/// Runs the command that was typed: 0 done, 1 failed, 2 wrong usage. `launch` ends with the status
/// of the rank that failed, and `run` with that of its program.
fn main() -> ExitCode {
    if let Some(status) = cuda_cpp::compiled() {
        return status;
    }
    let cli = match Cli::typed() {
        Ok(cli) => cli,
        Err(usage) => return not_run(&usage),
    };
    measure::read_clocks_by(nvml::clocks);
    let output = Output::new(cli.json(), cli.global.quiet, cli.global.stats);
    let status = match run(&cli, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say(&format!("error: {}\n", message(&error)));
            output.failure(failure(&error));
            error.downcast_ref().map_or(ExitCode::FAILURE, |failed: &launch::Failed| failed.status.into())
        }
    };
    output.stats();
    status
}

/// Prints the help that was asked for, or why a line is wrong usage.
fn not_run(usage: &clap::Error) -> ExitCode {
    if !usage.use_stderr() {
        // Help has no text of others, and colours of its own. A closed stream has no reader.
        let _ = usage.print();
        return ExitCode::SUCCESS;
    }
    let text = usage.to_string();
    terminal::say(&text);
    // Advice and the usage follow the first paragraph.
    let (first, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message = match usage.kind() {
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            // Whatever the name that the program was called by.
            if text.contains(" bench [OPTIONS]") =>
        {
            args::NO_OPERATION.into()
        }
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a command is missing; see --help".into(),
        _ => first.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" "),
    };
    Output::new(args::ask_for_json(std::env::args_os().skip(1)), true, false)
        .failure(json!({ "kind": "usage", "message": message }));
    ExitCode::from(2)
}

/// Returns the error of the library or of the software GPU, if it is one.
fn of_library(cause: &(dyn std::error::Error + 'static)) -> Option<Error> {
    let of_interp = || cause.downcast_ref::<warpstride::interp::Error>().cloned().map(Error::from);
    cause.downcast_ref().cloned().or_else(of_interp)
}

/// Says what went wrong: in one line, unless a compiler has its own.
fn message(error: &anyhow::Error) -> String {
    let said = |cause: &(dyn std::error::Error + 'static)| match of_library(cause) {
        Some(of_library) => advised(&of_library),
        None => cause.to_string(),
    };
    if let Some(of_compiler) = error.downcast_ref::<cuda_cpp::NotCompiled>() {
        return of_compiler.to_string();
    }
    // A driver's own account may take several lines.
    shortened(error.chain().map(said).collect::<Vec<_>>().join(": ").replace('\n', " "))
}

/// The beginning and the end of a sentence that quotes something too long to be read.
fn shortened(sentence: String) -> String {
    const MOST: usize = 2000;
    let count = sentence.chars().count();
    if count <= MOST {
        return sentence;
    }
    let (begin, end) = (sentence.chars().take(MOST / 2), sentence.chars().skip(count - MOST / 2));
    begin.chain(['…']).chain(end).collect()
}

/// The names that programs write in the library's sentences, and the options that people type.
const TYPED: [(&str, &str); 5] = [
    ("`Backend::Soft`", "`--device soft`"),
    ("`Config::work_limit`", "`--limit`"),
    ("`Gpus::soft`", "`--device soft`"),
    ("`Options::device_memory`", "`--device-memory`"),
    ("`Options::resume`", "`--resume`"),
];

/// The words of an error of the library. Where memory runs out they name lines and calls of this
/// program, so the advice is another one here.
fn advised(error: &Error) -> String {
    let words = error.to_string();
    if error.kind() == ErrorKind::OutOfMemory && error.what() != words {
        return typed(format_args!("{}; take a smaller shape, batch or input", error.what()));
    }
    typed(words)
}

/// The library's words, with the options that a person types in place of the names that a program
/// writes, and kernels' names as C++ writes them.
fn typed(words: impl fmt::Display) -> String {
    let words = TYPED.into_iter().fold(words.to_string(), |words, (name, option)| words.replace(name, option));
    kernel_names::readable(&words)
}

fn error_kind(error: &anyhow::Error) -> Option<ErrorKind> {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let of_library = of_library(cause).map(|error| error.kind());
        let of_library = of_library.or(cause.is::<cuda_cpp::NotCompiled>().then_some(ErrorKind::InvalidArgument));
        of_library.or_else(|| cause.downcast_ref::<Refusal>().map(|refusal| refusal.kind))
    };
    let is_io = || error.chain().any(|cause| cause.is::<io::Error>());
    error.chain().find_map(kind).or_else(|| is_io().then_some(ErrorKind::Io))
}

/// A failure as documents have it.
fn failure(error: &anyhow::Error) -> Value {
    json!({ "kind": error_kind(error).map_or("failed", ErrorKind::name), "message": message(error) })
}

fn run(cli: &Cli, output: &Output) -> Result<()> {
    let backend = cli.global.device;
    match &cli.command {
        Command::Devices => devices::run(backend, output),
        Command::Transpose(args) => transpose::run(args, backend, output),
        Command::Permute(args) => permute::run(args, backend, output),
        Command::Compare(args) => compare::run(args, backend, output),
        Command::Model(args) => model::run(args, output),
        Command::Explain(args) => explain::run(args, backend, output),
        Command::Bench(args) => bench::run(args, backend, output),
        Command::Report(args) => report::run(args, output),
        Command::Peaks => peaks::run(backend, output),
        Command::Alloc(args::Alloc::Bench) => alloc::bench::run(backend, output),
        Command::Alloc(args::Alloc::Replay(args)) => alloc::replay::run(args, backend, output),
        Command::Transfers(args) => transfers::run(args, backend, output),
        Command::Pipeline(args) => pipeline::run(args, backend, output),
        Command::Check(args) => check::run(args, backend, output),
        Command::Run(args) => run_program::run(args, backend, output),
        Command::Learn(args) => learn::run(args, backend, output),
        Command::Launch(args) => launch::run(args, output),
        Command::RunPtx(args) => run_ptx::run(args, backend, output),
        Command::RunCu(args) => run_cu::run(args, backend, output),
        Command::PtxForms(args) => ptx_forms::run(args, output),
        Command::Completions { shell } => completions::run(*shell, output),
        Command::Man => man::run(output),
    }
}

/// Opens the device and says what `auto` took.
fn open(backend: Backend, output: &Output) -> Result<Device> {
    let device = if backend == Backend::Auto {
        let device = Device::open(backend)?;
        output.note(typed(device.choice()));
        device
    } else {
        Device::open(backend).with_context(|| format!("cannot open {backend}"))?
    };
    output.watch(&device);
    Ok(device)
}

/// Fails with a sentence if the host has no room for `on_host` copies of `bytes` bytes, or a device
/// has none for its number of copies. The software GPU's memory is the host's.
fn ensure_room(bytes: usize, on_host: usize, on_devices: &[(&Device, usize)]) -> Result<()> {
    let copies = |count: usize| bytes as u128 * count as u128;
    let mut host = copies(on_host);
    for &(device, count) in on_devices {
        let info = device.info();
        require!(
            copies(count) <= u128::from(info.memory_bytes),
            OutOfMemory,
            "this takes {} MB of memory on {}, which has {} MB; use smaller arrays",
            copies(count).div_ceil(1_000_000),
            info.name,
            info.memory_bytes / 1_000_000
        );
        if info.kind == DriverKind::Soft {
            host += copies(count);
        }
    }
    ensure_available(host, available_memory())
}

/// Fails with a sentence where the host has no room for `needed` bytes. Where the system does not
/// say what is available, there is room.
fn ensure_available(needed: u128, available: Option<u64>) -> Result<()> {
    let Some(available) = available else { return Ok(()) };
    require!(
        needed <= u128::from(available),
        OutOfMemory,
        "this takes {} MB of host memory and {} MB are available; use smaller arrays",
        needed.div_ceil(1_000_000),
        available / 1_000_000
    );
    Ok(())
}

/// The bytes of an array, where there is such a layout and an address can count them.
fn array_bytes(shape: &[usize], dtype: DType) -> Result<usize> {
    // However long the axes are, where one of them is empty.
    let extents = if shape.contains(&0) { &[0] } else { shape };
    let bytes = extents.iter().try_fold(dtype.width(), |bytes, &extent| bytes.checked_mul(extent));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
        refuse!(Layout, "an array of {shape:?} {dtype} has more bytes than an address can count; use a smaller one")
    };
    // Then its partial products are numbers too, also where it is empty.
    Layout::row_major(shape)?;
    Ok(bytes)
}

/// An array of `shape` in C order with its axes in the order `axes`, and what that is in C order.
fn permuted_layouts(shape: &[usize], axes: &[usize]) -> Result<[Layout; 2]> {
    let source = Layout::row_major(shape)?.permuted_axes(axes)?;
    Ok([source, Layout::row_major(source.shape())?])
}

/// `len` zero elements, or a sentence where the host has no memory for them.
fn zeroed<T: Pod>(len: usize) -> Result<Vec<T>> {
    bytemuck::try_zeroed_vec(len).or_else(|()| {
        let megabytes = len.saturating_mul(size_of::<T>()) / 1_000_000;
        refuse!(OutOfMemory, "the host has no {megabytes} MB of memory for this; use smaller arrays")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Adds the names of the library in the sentences of the files below a folder.
    fn add_names(folder: &Path, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                add_names(&entry, names);
                continue;
            }
            let text = fs::read_to_string(&entry).expect("a text");
            let sentences = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for name in sentences.flat_map(|line| line.split('`').skip(1).step_by(2)) {
                let is_path = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
                if is_path && name.contains("::") {
                    names.push(format!("`{name}`"));
                }
            }
        }
    }

    #[test]
    fn every_name_in_a_sentence_of_the_library_has_an_option() {
        let mut names = Vec::new();
        for folder in ["../src", "../interp/src"] {
            add_names(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut names);
        }
        for (known, _) in super::TYPED {
            assert!(names.iter().any(|name| name == known), "{known} is in no sentence");
        }
        // It is in advice for full memory, which `advised` replaces.
        names.retain(|name| name != "`Device::set_pinned_limit`");
        // Commands wrap no stream of another owner.
        names.retain(|name| name != "`Stream::capture`" && name != "`Device::stream_from_raw`");
        // No command has a communicator.
        names.retain(|name| name != "`Communicator::local`" && name != "`ops::copy_into`");
        // They plan for their device.
        names.retain(|name| name != "`Target::of`");
        names.retain(|name| super::TYPED.iter().all(|(known, _)| name != known));
        assert_eq!(names, [""; 0], "give each an option in `TYPED`");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        let refused = |needed, available| super::ensure_available(needed, available).map_err(|error| error.to_string());
        assert_eq!((refused(5, Some(5)), refused(1 << 60, None)), (Ok(()), Ok(())));
        let refused = refused(5_000_001, Some(3_000_000)).unwrap_err();
        assert!(refused.contains("6 MB") && refused.contains("3 MB"), "{refused}");
    }
}
