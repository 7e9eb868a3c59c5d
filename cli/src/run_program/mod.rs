//! `warpstride run -- COMMAND ...`: runs a CUDA program with the software GPU as its
//! `libcuda.so.1`, and reports what its kernels did.
//!
//! ```text
//!  library: find, link --> a folder on the program's LD_LIBRARY_PATH
//!  the program's processes --> a document each --> reports --> text, junit, ci (SARIF, ncu, GitHub)
//! ```

mod junit;
mod library;
mod reports;
mod text;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use warpstride::device::Backend;
use warpstride::io::Destination;
use warpstride::roofline::record::SCHEMA;

use super::ci::{Found, ncu, sarif};
use super::launch::{self, Failed};
use super::output::Output;
use super::refusal::{Refusal, refuse, require};
use super::signals::Caught;
use super::{args, destination, terminal};
use reports::Process;

/// The status for a program that succeeds and has findings. Programs seldom end with it.
const FOUND: u8 = 86;
/// The time between two looks at the program.
const ROUND: Duration = Duration::from_millis(2);
/// The variable with the folders in which programs look for libraries first.
const SEARCHED: &str = "LD_LIBRARY_PATH";

pub(super) fn run(args: &args::RunProgram, backend: Backend, output: &Output) -> Result<()> {
    require!(
        cfg!(target_os = "linux"),
        Unavailable,
        "run gives a program another libcuda.so.1, which only Linux has; use run-ptx or run-cu here"
    );
    require!(
        !matches!(backend, Backend::Cuda(_)),
        InvalidArgument,
        "run is about the software GPU; leave out --device, or start the program itself to use a GPU"
    );
    let Some((program, words)) = args.command.split_first() else {
        refuse!(InvalidArgument, "a command is missing; name the program to run behind `--`")
    };
    launch::check_program(program)?;
    check_destinations(args)?;
    let library = library::find()?;
    let folder = tempfile::Builder::new().prefix("warpstride-").tempdir().context("cannot make a temporary folder")?;
    let written = prepare(&folder, &library)?;
    let mut command = Command::new(program);
    command.args(words);
    set_variables(&mut command, args, folder.path(), &written)?;
    if output.is_json() {
        command.stdout(terminal::errors_for_program());
    }
    let status = wait(&mut command, &program.to_string_lossy())?;
    let reports = reports::read(&written)?;
    drop(folder);
    let processes: Vec<&Process> = reports.iter().map(|(process, _)| process).collect();
    let documents: Vec<&Value> = reports.iter().map(|(_, document)| document).collect();
    let members = members(args, status, &processes, &documents);
    write_files(args, &processes, &members)?;
    show(args, &processes, members, output)?;
    end(&program.to_string_lossy(), status, &processes)
}

/// Makes sure that the files for the results can be written, before the program runs.
fn check_destinations(args: &args::RunProgram) -> Result<()> {
    for path in [&args.json_file, &args.junit, &args.sarif, &args.ncu_csv].into_iter().flatten() {
        // Not by `destination`: its watch for signals would end this program before its child.
        Destination::new(path).map_err(Refusal::of_file)?;
    }
    Ok(())
}

/// Makes the links to the library, and the folder for the reports, which it returns.
fn prepare(folder: &TempDir, library: &Path) -> Result<PathBuf> {
    library::link(library, folder.path())?;
    let written = folder.path().join("reports");
    fs::create_dir(&written).with_context(|| format!("cannot make {}", written.display()))?;
    Ok(written)
}

/// Sets what the library reads, and puts its folder before all others.
fn set_variables(command: &mut Command, args: &args::RunProgram, folder: &Path, written: &Path) -> Result<()> {
    let others = env::var_os(SEARCHED).filter(|others| !others.is_empty());
    let folders = [folder.to_owned()].into_iter().chain(others.iter().flat_map(env::split_paths));
    let folders = env::join_paths(folders).with_context(|| {
        format!("a folder of {SEARCHED} has a name that it cannot hold; name another folder by TMPDIR")
    })?;
    command.env(SEARCHED, folders).env("WARPSTRIDE_RUN_REPORT", written);
    let set = [
        ("WARPSTRIDE_RUN_CHECKS", args.checks.map(names)),
        ("WARPSTRIDE_RUN_MODEL", args.model.map(|model| model.name.to_owned())),
        ("WARPSTRIDE_RUN_GPUS", args.gpus.map(|gpus| gpus.to_string())),
        ("WARPSTRIDE_RUN_SEED", args.seed.map(|seed| seed.to_string())),
        ("WARPSTRIDE_RUN_LIMIT", args.limit.map(|limit| limit.to_string())),
        ("WARPSTRIDE_RUN_CONTRACT", args.contract.then(|| "1".to_owned())),
        ("WARPSTRIDE_RUN_INSTRUCTIONS", args.report.then(|| "1".to_owned())),
    ];
    for (name, value) in set {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    Ok(())
}

/// The checkers as their names, by comma.
fn names(checks: warpstride::interp::Checks) -> String {
    let all = warpstride::interp::check::Check::ALL.into_iter().filter(|&check| checks.contains(check));
    all.map(|check| check.name()).collect::<Vec<_>>().join(",")
}

/// Runs the program to its end. It has the terminal, and gets the signals that this program gets.
fn wait(command: &mut Command, program: &str) -> Result<ExitStatus> {
    let mut caught = Caught::new().context("cannot watch for signals")?;
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    loop {
        while let Some(signal) = caught.next() {
            pass_on(&mut child, signal);
        }
        if let Some(status) = child.try_wait().with_context(|| format!("cannot wait for {program}"))? {
            return Ok(status);
        }
        thread::sleep(ROUND);
    }
}

/// Passes on a signal, unless the terminal has sent it to both programs.
#[cfg(unix)]
fn pass_on(child: &mut Child, signal: i32) {
    use rustix::process::{Pid, Signal, getpgrp, kill_process};
    use rustix::termios::tcgetpgrp;

    let is_of_keys = matches!(signal, libc::SIGINT | libc::SIGQUIT);
    let has_terminal = || {
        let terminal = fs::File::open("/dev/tty").ok()?;
        Some(tcgetpgrp(terminal).ok()? == getpgrp())
    };
    if is_of_keys && has_terminal() == Some(true) {
        return;
    }
    if let (Some(id), Some(signal)) =
        (i32::try_from(child.id()).ok().and_then(Pid::from_raw), Signal::from_named_raw(signal))
    {
        // A program that has just ended needs no signal.
        let _ = kill_process(id, signal);
    }
}

#[cfg(not(unix))]
fn pass_on(_: &mut Child, _: i32) {}

/// The document of a run, without what all documents have.
fn members(args: &args::RunProgram, status: ExitStatus, processes: &[&Process], documents: &[&Value]) -> Value {
    let command: Vec<String> = args.command.iter().map(|word: &OsString| word.to_string_lossy().into_owned()).collect();
    let sum = |of: fn(&Process) -> u64| processes.iter().map(|process| of(process)).sum::<u64>();
    json!({
        "command": command,
        "status": launch::exit_status(status),
        "launches": sum(Process::launches),
        "kernels": sum(|process| process.kernels.len() as u64),
        "findings_total": sum(Process::faults),
        "processes": documents,
    })
}

/// Writes the files that are asked for.
fn write_files(args: &args::RunProgram, processes: &[&Process], members: &Value) -> Result<()> {
    let found = || processes.iter().flat_map(|process| process.found()).collect::<Vec<Found>>();
    if let Some(path) = &args.json_file {
        let mut document = json!({ "schema": SCHEMA, "ptx": warpstride::ptx::PROVENANCE });
        if let (Value::Object(document), Value::Object(members)) = (&mut document, members) {
            document.extend(members.clone());
        }
        write(path, format!("{document:#}\n").as_bytes())?;
    }
    if let Some(path) = &args.junit {
        write(path, junit::document(processes).as_bytes())?;
    }
    if let Some(path) = &args.sarif {
        let log = sarif::log(&found(), &env::current_dir().unwrap_or_default());
        write(path, format!("{log:#}\n").as_bytes())?;
    }
    if let Some(path) = &args.ncu_csv {
        let rows: Vec<ncu::Counted> = processes.iter().flat_map(|process| counted(process)).collect();
        write(path, &ncu::csv(&rows)?)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    destination::replace(&destination::at(path)?, |file: &mut dyn Write| file.write_all(bytes))
}

/// The kernels of a process, for the table of Nsight Compute.
fn counted(process: &Process) -> impl Iterator<Item = ncu::Counted> {
    let model = process.gpus.first().and_then(|name| args::model(name).ok());
    let capability =
        model.map_or("9.0".into(), |model| format!("{}.{}", model.architecture / 10, model.architecture % 10));
    process.kernels.iter().map(move |kernel| ncu::Counted {
        process: process.id,
        program: process.program(),
        kernel: kernel.short(),
        block: kernel.block,
        grid: kernel.grid,
        capability: capability.clone(),
        counters: kernel.counters,
    })
}

/// Prints the report: the text on standard error, because standard output is the program's.
fn show(args: &args::RunProgram, processes: &[&Process], members: Value, output: &Output) -> Result<()> {
    if args.github {
        for found in processes.iter().flat_map(|process| process.found()) {
            terminal::say(&found.annotation(None));
        }
    }
    if output.is_json() {
        return output.result("", members);
    }
    if !processes.is_empty() {
        terminal::say(&text::text(processes, args.report));
    }
    Ok(())
}

/// Ends as the program did, or with a status of its own for findings and for a program that
/// launched nothing.
fn end(program: &str, status: ExitStatus, processes: &[&Process]) -> Result<()> {
    if !status.success() {
        let sentence = format!("{program} {}", launch::ending(status));
        return Err(Failed { sentence, status: launch::exit_status(status) }.into());
    }
    require!(
        !processes.is_empty(),
        InvalidArgument,
        "{program} did not use the software GPU: no process called cuInit of the libcuda.so.1 that run names; a program \
         that has no CUDA, that is linked statically, or that loads the library by a path of its own does not"
    );
    let queued = processes.iter().flat_map(|process| &process.calls);
    let queued: u64 = queued.filter(|(name, _)| name.contains("Launch")).map(|(_, count)| count).sum();
    require!(
        processes.iter().any(|process| process.launches() > 0),
        InvalidArgument,
        "{program} ran no kernel: {}",
        match queued {
            0 => "it launched none".to_owned(),
            _ => format!(
                "it waited for none of what {queued} calls queued, so nothing had to run; synchronise before the end"
            ),
        }
    );
    if processes.iter().any(|process| process.faults() > 0) {
        let sentence = format!("{}, so the status is {FOUND}", text::summary(processes));
        return Err(Failed { sentence, status: FOUND }.into());
    }
    Ok(())
}
