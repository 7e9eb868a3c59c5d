//! Kernels of CUDA C++ through every compiler that is installed, beside oracles of the host.
//! `scripts/tools` installs the compilers.

mod cases;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use rayon::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::warpstride;
use crate::long::{missing, short_or_long};
use cases::{CASES, Case, Expected};

/// A compiler, as options of `run-cu`, and the NVRTC that it takes.
#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) name: &'static str,
    pub(crate) nvrtc: Option<PathBuf>,
}

impl Compiler {
    /// The command line that runs a kernel of a file through it.
    pub(super) fn command(&self, file: &Path) -> Command {
        let mut command = super::command(["--device", "soft", "run-cu", "--compiler", self.name]);
        command.arg(file);
        if let Some(nvrtc) = &self.nvrtc {
            command.env("WARPSTRIDE_NVRTC", nvrtc);
        }
        command
    }
}

/// Returns the environments with NVRTC. Where NVRTC is missing, the test says so.
pub(super) fn environments() -> Vec<PathBuf> {
    let folders = folders();
    if folders.is_empty() {
        missing("nvrtc");
    }
    folders
}

/// The folders into which the script installs NVRTC, each version in an environment.
fn folders() -> Vec<PathBuf> {
    let tools = crate::repository().join("target/tools");
    ["python", "python-cuda-12"].map(|name| tools.join(name)).into_iter().filter(|folder| folder.exists()).collect()
}

fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match path.is_dir() {
                true => libraries(&path),
                false if name.starts_with("libnvrtc.so") => vec![path],
                false => Vec::new(),
            }
        })
        .collect()
}

/// The compilers that are installed; says which are missing, and what installs them.
pub(crate) fn compilers() -> Vec<Compiler> {
    // Python's packages have thousands of files.
    static NVRTC: LazyLock<Vec<PathBuf>> =
        LazyLock::new(|| folders().iter().flat_map(|folder| libraries(&folder.join("lib"))).collect());
    let mut found: Vec<Compiler> =
        NVRTC.iter().cloned().map(|library| Compiler { name: "nvrtc", nvrtc: Some(library) }).collect();
    found.extend(clang().map(|_| Compiler { name: "clang", nvrtc: None }));
    for name in ["nvrtc", "clang"] {
        if !found.iter().any(|compiler| compiler.name == name) {
            missing(name);
        }
    }
    found
}

/// Returns the name of the clang that `run-cu` takes, which has its version in it on Debian; `None`
/// without one.
pub(super) fn clang() -> Option<&'static str> {
    // Many tests ask, and it starts slowly.
    static CLANG: LazyLock<Option<String>> = LazyLock::new(|| {
        let versions = (14..=30).rev().map(|version| format!("clang-{version}"));
        let is_new_enough = |name: &String| {
            let output = Command::new(name).arg("-dumpversion").output().ok()?;
            let version = String::from_utf8(output.stdout).ok()?;
            Some(version.split('.').next()?.trim().parse::<u32>().ok()? >= 14)
        };
        ["clang".to_owned()].into_iter().chain(versions).find(|name| is_new_enough(name) == Some(true))
    });
    CLANG.as_deref()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cuda_cpp").join(name)
}

/// Runs a case through a compiler, and returns the bytes that it dumps, and its counters.
fn run(case: &Case, compiler: &Compiler) -> Result<(Vec<u8>, Value), String> {
    let folder = TempDir::new().expect("a temporary folder");
    let dump = folder.path().join("out.npy");
    let mut command = compiler.command(&source(case.file));
    command.args(["--json", "--entry", case.entry, "--grid", case.grid, "--block", case.block, "--check", "all"]);
    command.args(case.shared.iter().flat_map(|bytes| ["--shared", bytes]));
    command.args(case.args.split(' ').flat_map(|argument| ["--arg", argument]));
    command.args(["--dump".into(), format!("{}={}", case.result, dump.display())]);
    let output = command.output().expect("the binary starts");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let array = fs::read(dump).expect("it was written");
    let begin = array.iter().position(|&byte| byte == b'\n').expect("a header") + 1;
    Ok((array[begin..].to_vec(), document["counters"].take()))
}

/// Describes the first place where bytes are not the expected ones.
fn difference(expected: &Expected, found: &[u8]) -> Option<String> {
    match expected {
        Expected::Bytes(bytes) if bytes.len() != found.len() => Some(format!("{} bytes", found.len())),
        Expected::Bytes(bytes) => {
            let at = bytes.iter().zip(found).position(|(a, b)| a != b)?;
            Some(format!("byte {at} is {}, not {}", found[at], bytes[at]))
        }
        Expected::Near(values, tolerance) => {
            let found = found.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().expect("four bytes")));
            let is_off = |&(_, (found, value)): &(usize, (f32, &f64))| {
                let apart = (f64::from(found) - value).abs();
                apart.is_nan() || apart > tolerance * value.abs()
            };
            let (at, (found, value)) = found.zip(values).enumerate().find(is_off)?;
            Some(format!("element {at} is {found}, not {value}"))
        }
    }
}

/// Lists the faults of a case, by the compilers.
fn faults(case: &Case, compilers: &[Compiler]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut first: Option<(Vec<u8>, Value)> = None;
    for compiler in compilers.iter().filter(|compiler| !case.needs_cuda_headers || compiler.name == "nvrtc") {
        let mut fault = |what| faults.push(format!("{} of {} by {compiler:?}: {what}", case.entry, case.file));
        let (bytes, counters) = match run(case, compiler) {
            Ok(ran) => ran,
            Err(failed) => {
                fault(failed);
                continue;
            }
        };
        difference(&(case.expected)(), &bytes).map(&mut fault);
        let Some((before, counted)) = &first else {
            first = Some((bytes, counters));
            continue;
        };
        if bytes != *before {
            fault("other bits than by the first compiler".into());
        }
        let may_differ = compiler.name == "clang" && case.other_accesses_by_clang.is_some();
        if counters != *counted && !may_differ {
            fault(format!("counts {counters} beside {counted}"));
        }
    }
    faults
}

#[test]
fn every_kernel_computes_what_the_host_computes_and_every_compiler_counts_alike() {
    let compilers = compilers();
    // In the short form every third case goes through all compilers, as do those for NVRTC alone,
    // and the others go through one, in turn.
    let faults: Vec<String> = CASES
        .par_iter()
        .enumerate()
        .flat_map_iter(|(at, case)| {
            let all = short_or_long(at % 3 == 0 || case.needs_cuda_headers, true);
            let one = at / 3 % compilers.len().max(1);
            faults(case, if all { &compilers } else { &compilers[one..compilers.len().min(one + 1)] })
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_source_has_its_cases() {
    let sources = fs::read_dir(source("")).expect("the folder is there");
    let mut kernels = 0;
    for entry in sources {
        let name = entry.expect("readable").file_name().into_string().expect("a plain name");
        let text = fs::read_to_string(source(&name)).expect("readable");
        let count = CASES.iter().filter(|case| case.file == name).count();
        let defined = text.matches("__global__ void").count();
        let templates = text.matches("template <typename T>\n__global__ void").count();
        assert_eq!(count, defined - templates, "the kernels of {name}");
        kernels += count;
    }
    assert_eq!(kernels, CASES.len());
    let of_both = CASES.iter().filter(|case| !case.needs_cuda_headers).count();
    let page = fs::read_to_string(crate::repository().join("docs/getting-ptx.md")).expect("readable");
    let of_nvrtc = ["no", "one", "two", "three"][CASES.len() - of_both];
    let said = format!("The tests run {of_both} kernels through both, and {of_nvrtc} of half precision through NVRTC.");
    assert!(page.contains(&said), "docs/getting-ptx.md does not say {said:?}");
    assert!(warpstride(["run-cu", "--help"]).succeeded().stdout.contains("--compiler"));
}
