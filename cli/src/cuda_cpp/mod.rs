//! CUDA C++ to PTX, by the compiler at hand: NVRTC or clang.

mod child;
mod clang;
mod headers;
mod locate;
mod nvrtc;
mod ptxas;

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use warpstride::driver::DeviceInfo;
use warpstride::error::printable_line;
use warpstride::interp::MAX_TEXT_BYTES;

use super::args::{Architecture, Compiler};
use super::process::{self, Ended};
use super::signals::Folder;
use super::{input, refuse, require, terminal};

pub(super) use child::compiled;
pub(super) use ptxas::registers;

/// The time after which a compilation counts as one that never ends. It takes a second, or a minute
/// where the machine is busy.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// The time in which a library loads. It takes milliseconds, or seconds where the machine is busy.
const LOADING: Duration = Duration::from_secs(60);
/// The bytes of a compiler's messages that are shown, at most.
const MAX_LOG_BYTES: usize = 64 << 10;

/// The source to compile, and how.
struct Job<'a> {
    /// Its path as the user gave it.
    file: &'a Path,
    source: String,
    architecture: Architecture,
}

/// The output of a compiler.
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
    fn name(&self) -> &'static str {
        match self.kind {
            Compiler::Nvrtc => "NVRTC",
            Compiler::Clang => "clang",
        }
    }

    /// As documents have it.
    pub(super) fn json(&self) -> Value {
        // Not every path is text.
        let path = self.path.display().to_string();
        json!({ "name": self.name().to_lowercase(), "version": self.version, "path": path })
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.version)
    }
}

/// A source that a compiler refuses, with the compiler's own lines.
#[derive(Debug)]
pub(super) struct NotCompiled(String);

impl NotCompiled {
    /// The same, with the place behind it that names the source.
    pub(super) fn at(&self, place: impl fmt::Display) -> Self {
        Self(format!("{self}\n{} names this file", printable_line(&place.to_string())))
    }
}

impl fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotCompiled {}

/// The architecture that kernels for a device are compiled for: 80, unless a GPU is older.
pub(super) fn architecture(device: &DeviceInfo) -> Architecture {
    const USUAL: u32 = 80;
    let (major, minor) = device.compute_capability;
    USUAL.min(10 * major + minor).into()
}

/// Compiles a file for an architecture with the first compiler that is found, or with the one that
/// is wanted.
pub(super) fn compile(file: &Path, wanted: Option<Compiler>, architecture: Architecture) -> Result<Compiled> {
    let job = Job { file, source: read(file)?, architecture };
    if wanted != Some(Compiler::Clang)
        && let Some(taken) = find_nvrtc()?
    {
        return by_nvrtc(taken, &job);
    }
    let clang = if wanted == Some(Compiler::Nvrtc) { Err(None) } else { clang::find()? };
    let why = match clang {
        Ok(clang) => return clang::compile(clang, &job),
        Err(why) => why.map_or_else(String::new, |why| format!(" ({why})")),
    };
    match wanted {
        Some(Compiler::Clang) => refuse!(
            Unavailable,
            "no clang 14 or later was found in PATH{why}; install one, or leave out --compiler to take another compiler"
        ),
        _ => refuse!(
            Unavailable,
            "no compiler of CUDA C++ was found{why}; install one with `pip install nvidia-cuda-nvrtc`"
        ),
    }
}

/// The text of a source.
fn read(file: &Path) -> Result<String> {
    let advice = "check the path, and that it is CUDA C++ as text";
    let source = input::text(file, MAX_TEXT_BYTES, "CUDA C++", advice)?;
    require!(!source.contains('\0'), Io, "{} has a zero byte and is not CUDA C++; check the path", file.display());
    // Some editors begin a file with a mark that compilers refuse.
    Ok(source.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(source))
}

/// The first NVRTC that loads. That a user names one that does not is an error. A process looks for
/// it once.
fn find_nvrtc() -> Result<Option<Taken>> {
    static FOUND: OnceLock<Taken> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(Some(found.clone()));
    }
    let named = env::var_os(locate::VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from);
    let found = match named.as_ref().map(|named| first_that_loads(std::slice::from_ref(named))).transpose()? {
        Some(Err(wrong)) => refuse!(
            Unavailable,
            "cannot load {}, which {} names: {wrong}; give the file of libnvrtc, or unset the variable",
            named.unwrap_or_default().display(),
            locate::VARIABLE
        ),
        Some(Ok(found)) => Some(found),
        None => {
            locate::libraries().find_map(|paths| first_that_loads(&paths).map(Result::ok).transpose()).transpose()?
        }
    };
    Ok(found.map(|found| FOUND.get_or_init(|| found).clone()))
}

/// Refuses to look for a compiler where the system starts no process for it.
fn not_started<T>(error: &io::Error) -> Result<T> {
    refuse!(
        Unavailable,
        "cannot look for a compiler of CUDA C++, because the system starts no process or thread for it: {error}; end \
         other programs, or raise the limit on processes (`ulimit -u`)"
    )
}

/// The first of these libraries that loads, or why the last one does not. A process of its own
/// tries them: a library may do anything when it is loaded, and a file may be a pipe.
fn first_that_loads(libraries: &[PathBuf]) -> Result<Result<Taken, String>> {
    let program = env::current_exe().context("cannot find this program to start it once more")?;
    let mut command = process::bounded(&program);
    command.arg(nvrtc::FIND_WORD).args(libraries);
    match process::run(command, LOADING, MAX_LOG_BYTES as u64) {
        Ok(ended) => Ok(loaded(ended, libraries)),
        Err(error) => not_started(&error),
    }
}

/// The library that the process has loaded which tries these.
fn loaded(ended: Ended, libraries: &[PathBuf]) -> Result<Taken, String> {
    let Ended { status, stdout, stderr } = ended;
    let Some(status) = status else { return Err(format!("it does not load within {} seconds", LOADING.as_secs())) };
    // A library may print lines of its own before.
    let found = stdout.lines().last().filter(|_| status.success()).and_then(|line| {
        let (number, version) = line.split_once(' ')?;
        let path = libraries.get(number.parse::<usize>().ok()?)?.clone();
        Some(Taken { kind: Compiler::Nvrtc, version: version.to_owned(), path })
    });
    found.ok_or_else(|| match text_of(stderr.as_bytes()) {
        said if said.is_empty() => format!("the process that loads it ended with {status}"),
        said => said,
    })
}

/// Compiles in a process of its own: a hostile source makes the library overflow its stack, or
/// never end.
fn by_nvrtc(compiler: Taken, job: &Job) -> Result<Compiled> {
    let workplace = Workplace::new(job, compiler)?;
    let source = workplace.write("source.cu", &job.source)?;
    let program = env::current_exe().context("cannot find this program to start it once more")?;
    let mut command = process::bounded_in(workplace.folder.path(), &program);
    command.args([nvrtc::WORD.as_ref(), workplace.compiler.path.as_os_str(), job.file.as_os_str(), source.as_os_str()]);
    command.args(["--std=c++17", "-lineinfo", &format!("-arch=compute_{}", job.architecture)]);
    let Taken { path, version, .. } = &workplace.compiler;
    let folders = [job.folder().to_owned()].into_iter().chain(locate::include_folders(path, version));
    command.args(folders.map(|folder| format!("--include-path={}", folder.display())));
    workplace.compile(command)
}

/// A compiler's folder for a job, with the files that go with it.
struct Workplace<'a> {
    job: &'a Job<'a>,
    compiler: Taken,
    folder: Folder,
}

impl<'a> Workplace<'a> {
    fn new(job: &'a Job, compiler: Taken) -> Result<Self> {
        let folder = Folder::new().context("cannot make a folder for a compiler's files")?;
        Ok(Self { job, compiler, folder })
    }

    /// Writes a file, and returns its path.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::write(&path, text).context("cannot write a compiler's files")?;
        Ok(path)
    }

    /// Runs a compiler that prints PTX on standard output, and its messages on standard error.
    fn compile(self, mut command: Command) -> Result<Compiled> {
        let Self { job, compiler, folder } = self;
        let [ptx, log] = ["ptx", "log"].map(|name| folder.path().join(name));
        let file = |path: &Path| File::create(path).context("cannot write a compiler's files");
        // Files that the compiler makes for itself go with the folder, too.
        command.env("TMPDIR", folder.path()).stdout(file(&ptx)?).stderr(file(&log)?);
        let child = process::start(&mut command);
        let mut child = child.with_context(|| format!("cannot start {compiler}"))?;
        let source = terminal::path(job.file);
        let Some(status) = process::wait(&mut child, TIME_LIMIT) else {
            let seconds = TIME_LIMIT.as_secs();
            let why = format!(
                "{source} does not compile with {compiler} within {seconds} seconds; look for templates, constants or \
                 included files that never end"
            );
            return Err(NotCompiled(why).into());
        };
        let log = text_of(&beginning(&log, MAX_LOG_BYTES + 1)?);
        process::check_started(status, &log).with_context(|| format!("cannot start {compiler}"))?;
        if compiler.kind == Compiler::Nvrtc && status.code() == Some(child::NOT_LOADED.into()) {
            refuse!(Unavailable, "cannot load {compiler} of {} to compile {source}: {log}", compiler.path.display());
        }
        if !status.success() {
            let lines = if log.is_empty() { &format!("it ended with {status}, and said nothing") } else { &log };
            let advice = headers::advice(&log, compiler.kind == Compiler::Nvrtc, &compiler.version);
            let advice = advice.map_or(String::new(), |advice| format!("\n{advice}"));
            let line = first_line(&log, &source).map_or(String::new(), |line| format!(" line {line}"));
            return Err(
                NotCompiled(format!("{source}{line} does not compile with {compiler}:\n{lines}{advice}")).into()
            );
        }
        let ptx = beginning(&ptx, MAX_TEXT_BYTES + 1)?;
        require!(
            ptx.len() <= MAX_TEXT_BYTES,
            InvalidArgument,
            "{compiler} makes more than {} MiB of PTX from {source}; compile fewer kernels",
            MAX_TEXT_BYTES >> 20
        );
        let ptx = String::from_utf8(ptx).with_context(|| format!("{compiler} makes PTX that is not text"))?;
        Ok(Compiled { ptx, compiler, log })
    }
}

/// The first bytes of a file.
fn beginning(path: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64).read_to_end(&mut bytes));
    read.context("cannot read what a compiler wrote")?;
    Ok(bytes)
}

impl Job<'_> {
    /// The source's folder, where its own headers are.
    fn folder(&self) -> &Path {
        self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

/// The line of the first error in a source, by the messages of NVRTC, such as `k.cu(2): error`, or
/// of clang, such as `k.cu:2:5: error`.
fn first_line(log: &str, source: &str) -> Option<u32> {
    let number = |line: &str| {
        let place = line.strip_prefix(source)?.strip_prefix(['(', ':'])?;
        let (number, rest) = place.split_at(place.find(|c: char| !c.is_ascii_digit())?);
        // Behind clang's line stands a column, perhaps.
        let kind = rest.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        let is_error = ["): error", "): catastrophic error"].iter().any(|kind| rest.starts_with(kind))
            || (rest.starts_with(':') && [" error:", " fatal error:"].iter().any(|error| kind.starts_with(error)));
        number.parse().ok().filter(|_| is_error)
    };
    log.lines().find_map(number)
}

/// A compiler's messages as text of a bearable length.
fn text_of(log: &[u8]) -> String {
    let shown = &log[..log.len().min(MAX_LOG_BYTES)];
    let text = String::from_utf8_lossy(shown);
    let more = if shown.len() < log.len() { "\n..." } else { "" };
    format!("{}{more}", text.trim_end().trim_start_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_errors_is_not_that_of_a_warning() {
        let first = |log: &str| first_line(log, "k.cu");
        let nvrtc = "k.cu(3): warning #20039-D: an error, it says: error: none\nk.cu(9): error: expected a \";\"\n";
        assert_eq!(first(nvrtc), Some(9));
        assert_eq!(first("k.cu(3): catastrophic error: cannot open source file \"a.h\"\n"), Some(3));
        let clang =
            "k.cu:3:5: warning: error: no error [-Werror]\nk.cu:4:1: note: error: x\nk.cu:7:5: error: expected ';'\n";
        assert_eq!(first(clang), Some(7));
        assert_eq!(first("k.cu:1:10: fatal error: 'a.h' file not found\n"), Some(1));
        assert_eq!(first("other.cu(3): error: x\nk.cu(2): remark: error\n"), None);
    }
}
