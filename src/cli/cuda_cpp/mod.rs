//! CUDA C++ to PTX, by the compiler at hand: NVRTC or clang.

mod clang;
mod headers;
mod locate;
mod nvrtc;
mod process;

use std::env;
use std::ffi::CString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::driver::DeviceInfo;
use warpstride::interp::MAX_TEXT_BYTES;

use super::args::Compiler;
use super::{input, refuse, require};
use clang::Clang;
use nvrtc::Nvrtc;

/// The time after which a compilation counts as one that never ends.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// What is shown of a compiler's messages.
const MAX_LOG_BYTES: usize = 64 << 10;
/// A compiler descends into nested expressions; a source has them as deep as it likes.
const STACK_BYTES: usize = 256 << 20;

/// What is compiled.
struct Job<'a> {
    /// Its path as the user gave it.
    file: &'a Path,
    source: String,
    /// The architecture's number: 80 for sm_80.
    architecture: u32,
}

/// What a compiler made.
pub(super) struct Compiled {
    pub(super) ptx: String,
    pub(super) compiler: Taken,
    /// The compiler's messages: warnings, where it has any.
    pub(super) log: String,
}

/// The compiler that was taken.
#[derive(Clone)]
pub(super) struct Taken {
    kind: Compiler,
    version: String,
    path: PathBuf,
}

impl Taken {
    /// As documents have it.
    pub(super) fn json(&self) -> Value {
        let name = match self.kind {
            Compiler::Nvrtc => "nvrtc",
            Compiler::Clang => "clang",
        };
        // Not every path is text.
        json!({ "name": name, "version": self.version, "path": self.path.display().to_string() })
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Compiler::Nvrtc => "NVRTC",
            Compiler::Clang => "clang",
        };
        write!(f, "{name} {}", self.version)
    }
}

/// A source that a compiler refuses, with the compiler's own lines.
#[derive(Debug)]
pub(super) struct NotCompiled(String);

impl NotCompiled {
    /// `failure` is what the compiler calls it, where its messages do not say.
    fn new(job: &Job, compiler: &Taken, failure: &str, log: &[u8]) -> Self {
        let log = text_of(log);
        let lines = if log.is_empty() { failure } else { &log };
        Self(format!("{} does not compile with {compiler}:\n{lines}", job.file.display()))
    }
}

impl fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotCompiled {}

/// The architecture that kernels for a device are compiled for: 80, unless a GPU is older.
pub(super) fn architecture(device: &DeviceInfo) -> u32 {
    const USUAL: u32 = 80;
    let (major, minor) = device.compute_capability;
    USUAL.min(10 * major + minor)
}

/// Compiles a file for an architecture with the first compiler that is found, or with the one that
/// is wanted.
pub(super) fn compile(file: &Path, wanted: Option<Compiler>, architecture: u32) -> Result<Compiled> {
    let job = Job { file, source: read(file)?, architecture };
    if wanted != Some(Compiler::Clang)
        && let Some((nvrtc, taken)) = find_nvrtc()?
    {
        return by_nvrtc(nvrtc, taken, &job);
    }
    if wanted != Some(Compiler::Nvrtc)
        && let Some(clang) = Clang::find()
    {
        return clang.compile(&job);
    }
    match wanted {
        Some(Compiler::Clang) => refuse!(
            Unavailable,
            "no clang 14 or later was found in PATH; install one, or leave out --compiler to take another compiler"
        ),
        _ => {
            refuse!(Unavailable, "no compiler of CUDA C++ was found; install one with `pip install nvidia-cuda-nvrtc`")
        }
    }
}

/// The text of a source.
fn read(file: &Path) -> Result<String> {
    let bytes = input::read(file, MAX_TEXT_BYTES, "CUDA C++")?;
    let source = String::from_utf8(bytes);
    let source = source
        .with_context(|| format!("cannot read {}: check the path, and that it is CUDA C++ as text", file.display()))?;
    require!(!source.contains('\0'), Io, "{} has a zero byte and is not CUDA C++; check the path", file.display());
    Ok(source)
}

/// The first NVRTC that loads, and what it is. That a user names one that does not is an error.
fn find_nvrtc() -> Result<Option<(Nvrtc, Taken)>> {
    if let Some(named) = env::var_os(locate::VARIABLE).map(PathBuf::from) {
        return match load(&named) {
            Ok(found) => Ok(Some(found)),
            Err(wrong) => refuse!(
                Unavailable,
                "cannot load {}, which {} names: {wrong}; give the file of libnvrtc, or unset the variable",
                named.display(),
                locate::VARIABLE
            ),
        };
    }
    Ok(locate::names().chain(locate::in_environments()).find_map(|path| load(&path).ok()))
}

fn load(path: &Path) -> Result<(Nvrtc, Taken), String> {
    let nvrtc = Nvrtc::load(path)?;
    let (major, minor) = nvrtc.version().ok_or("it does not tell its version")?;
    let taken = Taken { kind: Compiler::Nvrtc, version: format!("{major}.{minor}"), path: path.to_owned() };
    Ok((nvrtc, taken))
}

/// Compiles on a thread of its own, which is left behind where it does not end.
fn by_nvrtc(nvrtc: Nvrtc, compiler: Taken, job: &Job) -> Result<Compiled> {
    let string = |text: &str| CString::new(text).context("a path with a zero byte names no file");
    let (source, name) = (string(&job.source)?, string(&job.file.display().to_string())?);
    let headers = headers::for_nvrtc().map(|(name, text)| Ok((string(name)?, string(text)?)));
    let headers = headers.collect::<Result<Vec<_>>>()?;
    let mut options = vec!["--std=c++17".to_owned(), "-lineinfo".into(), format!("-arch=compute_{}", job.architecture)];
    let folders = [job.folder().to_owned()].into_iter().chain(locate::include_folders(&compiler.path));
    options.extend(folders.map(|folder| format!("--include-path={}", folder.display())));
    let options = options.iter().map(|option| string(option)).collect::<Result<Vec<_>>>()?;

    let (send, receive) = mpsc::channel();
    let work = move || {
        let input = nvrtc::Input { source: &source, name: &name, headers: &headers, options: &options };
        // Nobody waits for an answer after the limit.
        let _ = send.send(nvrtc.compile(&input));
    };
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).context("cannot start a thread for NVRTC")?;
    match receive.recv_timeout(TIME_LIMIT) {
        Ok(nvrtc::Output { ptx: Ok(ptx), log }) => Compiled::new(job, compiler, ptx, &log),
        Ok(nvrtc::Output { ptx: Err(failure), log }) => Err(NotCompiled::new(job, &compiler, &failure, &log).into()),
        Err(_) => Err(too_slow(job, &compiler)),
    }
}

fn too_slow(job: &Job, compiler: &Taken) -> anyhow::Error {
    NotCompiled(format!(
        "{} does not compile with {compiler} within {} seconds; look for templates or constants that never end",
        job.file.display(),
        TIME_LIMIT.as_secs()
    ))
    .into()
}

impl Job<'_> {
    /// The source's folder, where its own headers are.
    fn folder(&self) -> &Path {
        self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

impl Compiled {
    fn new(job: &Job, compiler: Taken, ptx: Vec<u8>, log: &[u8]) -> Result<Self> {
        require!(
            ptx.len() <= MAX_TEXT_BYTES,
            InvalidArgument,
            "{compiler} makes more than {} MiB of PTX from {}; compile fewer kernels",
            MAX_TEXT_BYTES >> 20,
            job.file.display()
        );
        let ptx = String::from_utf8(ptx).with_context(|| format!("{compiler} makes PTX that is not text"))?;
        Ok(Self { ptx, compiler, log: text_of(log) })
    }
}

/// A compiler's messages as text of a bearable length.
fn text_of(log: &[u8]) -> String {
    let shown = &log[..log.len().min(MAX_LOG_BYTES)];
    // What quotes a source may hold anything; a terminal is to get lines alone.
    let text: String =
        String::from_utf8_lossy(shown).chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let more = if shown.len() < log.len() { "\n..." } else { "" };
    format!("{}{more}", text.trim_end())
}
