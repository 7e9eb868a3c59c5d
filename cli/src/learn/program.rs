//! Lessons that are programs in Rust: cargo compiles `task.rs`, and its exit status says whether it
//! is solved.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::error::ErrorKind;

use super::super::output::Output;
use super::super::process::{self, Ended};
use super::super::{Refusal, failure, refuse};
use super::attempt::Attempt;

/// The time for the compilation, which compiles the crate the first time.
const COMPILATION: Duration = Duration::from_secs(900);
/// The time for the program itself, which takes a second, or a minute where the machine is busy.
const RUN: Duration = Duration::from_secs(120);
/// The most bytes of what cargo and the program print.
const MOST: u64 = 1 << 20;
/// Names a folder with this crate, for lessons of a version that is not published.
const CRATE: &str = "WARPSTRIDE_CRATE";
/// Cargo's words if the registry has no such crate.
const NO_CRATE: &str = "no matching package named `warpstride` found";

/// Compiles and runs the task of a lesson's folder.
pub(super) fn run(folder: &Path, output: &Output) -> Result<Attempt> {
    let (text, wrong) = match compile(folder, output)? {
        Ok(program) => ran(&program, folder)?,
        Err((log, wrong)) => (log, Some(wrong)),
    };
    let error = wrong.as_ref().map(failure);
    let file = folder.join("task.rs").display().to_string();
    let document = json!({ "file": file, "held": wrong.is_none(), "printed": text, "error": error });
    Ok(Attempt { text, documents: vec![document], wrong, ..Attempt::default() })
}

/// The program that cargo makes, or what the compiler says.
fn compile(folder: &Path, output: &Output) -> Result<Result<PathBuf, (String, anyhow::Error)>> {
    let mut command = process::command("cargo");
    command.args(["build", "--quiet", "--bin", "task", "--message-format", "json-render-diagnostics"]);
    if env::var_os("CARGO_TARGET_DIR").is_none() {
        // Each lesson would compile the crate anew into a folder of its own.
        command.args(["--target-dir", "../target"]);
    }
    command.current_dir(folder);
    if let Some(local) = env::var_os(CRATE).filter(|local| !local.is_empty()) {
        let local = fs::canonicalize(&local)
            .with_context(|| format!("cannot use {CRATE}, {}: name a folder with the crate", local.display()))?;
        // As Rust writes it, a path is a string of TOML.
        command.args(["--config", &format!("patch.crates-io.warpstride.path={:?}", local.display().to_string())]);
    }
    let progress = output.progress(1);
    progress.doing(format!("cargo build in {}", folder.display()));
    let Ended { status, stdout, stderr } = match process::run(command, COMPILATION, MOST) {
        Ok(ended) => ended,
        Err(error) if error.kind() == io::ErrorKind::NotFound => refuse!(
            Unavailable,
            "{} is a program in Rust, and no cargo was found in PATH; install Rust from https://rustup.rs",
            folder.join("task.rs").display()
        ),
        Err(error) => return Err(error).context("cannot start cargo"),
    };
    drop(progress);
    let wrong = |sentence: String| {
        (stderr.clone(), anyhow::Error::from(Refusal { kind: ErrorKind::InvalidArgument, sentence }))
    };
    let task = folder.join("task.rs");
    let task = task.display();
    Ok(match status {
        None => Err(wrong(format!("cargo takes more than {} seconds to compile {task}", COMPILATION.as_secs()))),
        Some(status) if !status.success() && stderr.contains(NO_CRATE) => Err(wrong(format!(
            "cargo does not find this crate for {task}; in a clone, set {CRATE} to the clone's folder"
        ))),
        Some(status) if !status.success() => Err(wrong(format!("{task} does not compile; what is printed says why"))),
        Some(_) => {
            let program = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|line| {
                let is_task = line["target"]["name"] == "task";
                line["executable"].as_str().filter(|_| is_task).map(PathBuf::from)
            });
            program.ok_or_else(|| wrong(format!("cargo made no program of {task}; see Cargo.toml beside it")))
        }
    })
}

/// Runs the program, and returns its output with its fault.
fn ran(program: &Path, folder: &Path) -> Result<(String, Option<anyhow::Error>)> {
    let mut command = process::command(program);
    command.current_dir(folder);
    let Ended { status, stdout, stderr } = process::run(command, RUN, MOST)
        .with_context(|| format!("cannot start {}; check again to compile it anew", program.display()))?;
    let task = folder.join("task.rs");
    let task = task.display();
    let sentence = match status {
        Some(status) if status.success() => None,
        Some(status) if status.code() == Some(1) => Some(format!("{task} says what is left to do")),
        Some(status) => Some(format!("{task} ended with {status}")),
        None => Some(format!("{task} took more than {} seconds; look for a loop without an end", RUN.as_secs())),
    };
    let wrong = sentence.map(|sentence| Refusal { kind: ErrorKind::KernelFault, sentence }.into());
    Ok((stdout + &stderr, wrong))
}
