//! The command line, run as a program: one binary, one module a subject.

mod alloc;
mod bad_input;
mod bench;
mod check;
mod class;
mod compare;
mod cuda_cpp;
#[cfg(unix)]
#[path = "../../../tests/it/executable.rs"]
mod executable;
mod failures;
#[cfg(unix)]
mod front_ends;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(unix)]
mod hostile_names;
#[cfg(unix)]
mod launch;
mod learn;
mod learn_names;
#[cfg(unix)]
mod learn_programs;
mod lessons;
#[path = "../../../tests/long.rs"]
mod long;
mod model;
mod npy_headers;
#[cfg(target_os = "linux")]
mod nvtx;
mod options;
#[cfg(unix)]
mod outputs;
mod peers;
mod permute;
mod permute_lists;
mod pipeline;
mod ptx_forms;
#[cfg(target_os = "linux")]
mod pytest;
mod readme;
mod run_cu;
#[cfg(target_os = "linux")]
mod run_program;
mod run_ptx;
mod run_ptx_lines;
mod run_ptx_time;
mod several_gpus;
mod report;
mod report_causes;
mod report_page;
mod schemas;
mod streamed;
mod transfers;
mod transpose;
mod tuning_file;
mod usage;
mod variables;
mod width;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Child;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Returns the folder of the repository.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in it")
}

/// The results of a run.
struct Run {
    /// The command, which a failed test shows.
    command: String,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `warpstride` with `args`.
fn warpstride<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    Run::of(&mut command(args))
}

/// Runs `warpstride` on the software GPU with the words of a line.
fn soft(line: &str) -> Run {
    warpstride(["--device", "soft"].into_iter().chain(line.split(' ')))
}

fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpstride"));
    command.args(args).stdin(Stdio::null());
    // They decide about colours and widths. A test sets what it is about.
    for variable in ["CI", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command
}

/// Sends a signal, by its name, to a program.
#[cfg(unix)]
#[track_caller]
fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill starts").success(), "{signal} is not sent");
}

impl Run {
    /// Runs a command to its end.
    fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the binary starts");
        Self {
            command: format!("{command:?}"),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text on standard output"),
            stderr: String::from_utf8(output.stderr).expect("text on standard error"),
        }
    }

    /// It did what was asked.
    #[track_caller]
    fn succeeded(self) -> Self {
        self.ended(0, &[], &[])
    }

    /// Its status is this one, its standard output holds all of `printed`, and its standard error
    /// all of `said`.
    #[track_caller]
    fn ended(self, code: i32, printed: &[&str], said: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}: {}", self.command, self.stderr);
        for (stream, parts) in [(&self.stdout, printed), (&self.stderr, said)] {
            for part in parts {
                assert!(stream.contains(part), "{}: {part:?} is not in {stream}", self.command);
            }
        }
        self
    }

    /// It failed with one sentence that holds all of `parts`, and printed nothing else.
    #[track_caller]
    fn failed(self, parts: &[&str]) {
        assert_eq!((self.code, &*self.stdout), (Some(1), ""), "{}: {}", self.command, self.stderr);
        let sentence = self.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("no sentence: {:?}", self.stderr));
        assert_eq!(sentence.trim_end().lines().count(), 1, "not one sentence: {sentence:?}");
        for part in parts {
            assert!(sentence.contains(part), "{}: {part:?} is not in {sentence:?}", self.command);
        }
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A document has these members, and may have others. The same holds of objects in it.
#[track_caller]
fn has_members(document: &Value, members: &Value) {
    for (name, member) in members.as_object().expect("members") {
        match document.get(name) {
            Some(found @ Value::Object(_)) => has_members(found, member),
            found => assert_eq!(found, Some(member), "{name} of {document}"),
        }
    }
}

/// A folder with files, which goes at the end.
struct Folder {
    folder: TempDir,
}

const OLD: &[u8] = b"what was there before";

impl Folder {
    /// Makes a folder with one file.
    fn with(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let folder = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        folder.write(name, bytes);
        folder
    }

    /// Makes a folder with an input, and with an output that was there before.
    fn with_input(bytes: &[u8]) -> Self {
        let folder = Self::with("in.npy", bytes);
        folder.write("out.npy", OLD);
        folder
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("writing a file");
    }

    /// Returns the path of a file as text.
    fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().expect("a plain path")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `warpstride` in the folder on the software GPU with the words of a line.
    fn run(&self, line: &str) -> Run {
        Run::of(command(line.split(' ')).args(["--device", "soft"]).current_dir(self.path("")))
    }

    /// Runs a script in the folder, in which `"$0"` is `warpstride`.
    #[cfg(unix)]
    fn shell(&self, script: &str) -> Run {
        let mut shell = Command::new("sh");
        Run::of(shell.args(["-c", script, env!("CARGO_BIN_EXE_warpstride")]).current_dir(self.path("")))
    }

    fn transpose(&self) -> Run {
        self.run("transpose in.npy out.npy")
    }

    fn transpose_to(&self, output: &Path) -> Run {
        warpstride(self.words(output))
    }

    /// Returns the words that transpose the input to an output.
    fn words(&self, output: &Path) -> [OsString; 5] {
        ["--device".into(), "soft".into(), "transpose".into(), self.path("in.npy").into(), output.into()]
    }

    /// Returns the header of the output, and its elements.
    fn written(&self) -> (String, Vec<u8>) {
        let bytes = fs::read(self.path("out.npy")).expect("the output");
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        (String::from_utf8_lossy(&bytes[10..start]).trim_end().to_owned(), bytes[start..].to_vec())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("listing the folder");
        let mut names = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name of ours"))
            .collect::<Vec<_>>();
        names.sort();
        names
    }

    /// The output is the old one, and nothing lies beside it that was not there before.
    #[track_caller]
    fn is_untouched(&self) {
        assert_eq!(fs::read(self.path("out.npy")).expect("reading the old output"), OLD);
        assert_eq!(self.names(), ["in.npy", "out.npy"]);
    }
}

/// A `.npy` file of version 1 with this header dictionary.
fn npy_with_header(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{dictionary}\n");
    let length = u16::try_from(header.len()).expect("a short header").to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), data].concat()
}

/// A `.npy` file in C order.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_with_header(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), data)
}

/// A case of `tests/data/npy`, written by NumPy.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/npy").join(name)
}
