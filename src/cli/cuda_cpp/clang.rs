//! clang, run as a program, with our own header in place of CUDA's.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use warpstride::interp::MAX_TEXT_BYTES;

use super::super::args::Compiler;
use super::{Compiled, Job, MAX_LOG_BYTES, NotCompiled, TIME_LIMIT, Taken, headers, process, too_slow};

/// The oldest version that has what our header uses.
const OLDEST: u32 = 14;
/// The newest version that is looked for under its own name.
const NEWEST: u32 = 30;

/// A program that was found.
pub(super) struct Clang(Taken);

impl Clang {
    /// Looks for `clang`, then for the newest `clang-N`, in the folders of `PATH`.
    pub(super) fn find() -> Option<Self> {
        let path = env::var_os("PATH")?;
        let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
        let versions = (OLDEST..=NEWEST).rev().map(|version| format!("clang-{version}"));
        let names = ["clang".to_owned()].into_iter().chain(versions);
        let in_folders = |name: String| {
            let name = format!("{name}{}", env::consts::EXE_SUFFIX);
            folders.iter().map(|folder| folder.join(&name)).find(|file| file.is_file())
        };
        names.filter_map(in_folders).find_map(Self::at)
    }

    /// The program, if it is clang and new enough.
    fn at(path: PathBuf) -> Option<Self> {
        let mut command = Command::new(&path);
        command.arg("-dumpversion").stdin(Stdio::null());
        let version = process::output(command, Duration::from_secs(5))?.trim().to_owned();
        let major: u32 = version.split('.').next()?.parse().ok()?;
        (major >= OLDEST).then_some(Self(Taken { kind: Compiler::Clang, version, path }))
    }

    /// Compiles to PTX. Headers, source and results are in a folder of ours: clang reads the source
    /// that was read already, also where it came through a pipe.
    pub(super) fn compile(self, job: &Job) -> Result<Compiled> {
        let Self(compiler) = self;
        let folder = tempfile::Builder::new().prefix("warpstride-").tempdir();
        let folder = folder.context("cannot make a folder for clang's files")?;
        let place = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| fs::write(place(name), text).context("cannot write clang's files");
        headers::for_clang().try_for_each(|(name, text)| write(name, text))?;
        // Messages and line numbers name the user's file.
        write("source.cu", &format!("#line 1 {:?}\n{}", job.file.display().to_string(), job.source))?;

        let messages = File::create(place("log")).context("cannot write clang's files")?;
        let mut command = bounded(&compiler.path);
        command.args(options(job, folder.path())).args([place("source.cu"), "-o".into(), place("out.ptx")]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages).spawn();
        let mut child = child.with_context(|| format!("cannot start {}", compiler.path.display()))?;
        let Some(status) = process::wait(&mut child, TIME_LIMIT) else { return Err(too_slow(job, &compiler)) };
        let log = beginning(&place("log"), MAX_LOG_BYTES + 1)?;
        if !status.success() {
            return Err(NotCompiled::new(job, &compiler, &ended(status), &log).into());
        }
        Compiled::new(job, compiler, beginning(&place("out.ptx"), MAX_TEXT_BYTES + 1)?, &log)
    }
}

/// What clang is asked for. It finds our headers and those beside the source, and none of the host,
/// so that a file compiles alike on every machine.
fn options(job: &Job, headers: &Path) -> Vec<OsString> {
    let architecture = format!("--cuda-gpu-arch=sm_{}", job.architecture);
    let mut options: Vec<OsString> = vec!["-x".into(), "cuda".into(), "--cuda-device-only".into(), architecture.into()];
    // Without CUDA's folder, clang takes a version of PTX that has no shuffles.
    options.extend(["-Xclang", "-target-feature", "-Xclang", "+ptx70"].map(Into::into));
    options.extend(["-nocudainc", "-nocudalib", "-nostdlibinc", "-nostdinc++", "-std=c++17"].map(Into::into));
    options.extend(["-O2", "-gline-tables-only", "-fno-color-diagnostics", "-S"].map(Into::into));
    options.extend(["-isystem".into(), headers.into(), "-include".into(), headers.join(headers::SHIM).into()]);
    options.extend(["-iquote".into(), job.folder().into()]);
    options
}

/// The program in bounded memory, which a hostile source would fill.
fn bounded(program: &Path) -> Command {
    if cfg!(unix) {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 8388608 2>/dev/null; exec \"$0\" \"$@\""]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

/// Says how clang ended where its messages do not.
fn ended(status: ExitStatus) -> String {
    format!("it ended with {status}, and said nothing")
}

/// The first bytes of a file.
fn beginning(path: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64).read_to_end(&mut bytes));
    read.context("cannot read what clang wrote")?;
    Ok(bytes)
}
