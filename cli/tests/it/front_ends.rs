//! PTX by other compilers: what they make of the page docs/getting-ptx.md, and of the kernels in
//! tests/data/front_ends. `scripts/tools` installs them; the PTX that is committed is
//! checked without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rayon::prelude::*;
use tempfile::TempDir;

use super::cuda_cpp::clang;
use super::{Run, command, repository, soft};
use crate::long::{missing, short_or_long};

/// A compiler.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Compiler {
    /// The packages of PyPI that the script calls so.
    Python(&'static str),
    Clang,
    Rustc,
}
use Compiler::{Clang, Python, Rustc};

/// The sections of the page that have commands, and what the commands need.
const SECTIONS: [(&str, Compiler); 7] = [
    ("`run-cu`: compile and run in one command", Python("nvrtc")),
    ("NVRTC by hand", Python("nvrtc")),
    ("nvcc", Python("nvcc")),
    ("clang by hand", Clang),
    ("Numba", Python("numba")),
    ("Triton", Python("triton")),
    ("rustc", Rustc),
];

/// The folder into which `scripts/tools` installs.
fn tools() -> PathBuf {
    repository().join("target/tools")
}

/// The virtual environment of Python's packages.
fn environment() -> PathBuf {
    tools().join("python")
}

/// The folder of the kernels' compiler, if it is installed.
fn rustc() -> Option<String> {
    fs::read_to_string(tools().join("rustc")).ok().map(|folder| folder.trim().to_owned())
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/front_ends")
}

impl Compiler {
    /// Returns whether the compiler is installed. A line says so if it is not.
    fn is_installed(self) -> bool {
        let (name, is_there) = match self {
            Python("nvcc") if Command::new("g++").arg("--version").output().is_err() => ("g++, for nvcc,", false),
            Python(name) => (name, environment().join("installed").exists()),
            Rustc => ("rustc of the kernels", rustc().is_some()),
            Clang => ("clang", clang().is_some()),
        };
        if !is_there {
            missing(name);
        }
        is_there
    }
}

/// A block of code on the page.
struct Block<'p> {
    language: &'p str,
    text: String,
}

impl Block<'_> {
    /// The file that the first line names, if it names one: `// saxpy.cu`, `# saxpy.py`.
    fn file(&self) -> Option<&str> {
        let first = self.text.lines().next()?;
        let name = first.strip_prefix("// ").or_else(|| first.strip_prefix("# "))?;
        (name.contains('.') && !name.contains(' ')).then_some(name)
    }
}

/// The sections of the page, each with its title and its blocks of code; the first has no title.
fn sections(page: &str) -> Vec<(&str, Vec<Block<'_>>)> {
    let mut sections = vec![("", Vec::new())];
    let mut open: Option<Block> = None;
    for line in page.lines() {
        let (_, blocks) = sections.last_mut().expect("there is one");
        match (&mut open, line.strip_prefix("```"), line.strip_prefix("## ")) {
            (Some(_), Some(_), _) => blocks.extend(open.take()),
            (Some(block), None, _) => block.text += &format!("{line}\n"),
            (None, Some(language), _) => open = Some(Block { language, text: String::new() }),
            (None, None, Some(title)) => sections.push((title, Vec::new())),
            _ => {}
        }
    }
    sections
}

/// Runs the commands of a section in a folder that has its files and `shared` ones.
fn follow(compiler: Compiler, shared: &[Block], blocks: &[Block]) -> Result<(), String> {
    let folder = TempDir::new().expect("a temporary folder");
    for block in shared.iter().chain(blocks) {
        if let Some(name) = block.file() {
            fs::write(folder.path().join(name), &block.text).expect("writable");
        }
    }
    let commands: String = blocks.iter().filter(|block| block.language == "sh").map(|block| &*block.text).collect();
    let output = shell(compiler, folder.path(), &commands);
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let is_by_line = told.lines().any(|line| line.starts_with("Line by line, ") && line.contains("saxpy."));
    if !output.status.success() || !is_by_line {
        return Err(told);
    }
    let result = fs::read(folder.path().join("y.npy")).map_err(|error| format!("y.npy: {error}\n{told}"))?;
    let expected: Vec<u8> = (0..1000).flat_map(|i| (3.0 * i as f32).to_le_bytes()).collect();
    if result.ends_with(&expected) { Ok(()) } else { Err(format!("other values of y\n{told}")) }
}

/// Replaces pip in the short form: `pip install` fails if a package is not installed. The long form
/// runs pip itself, which checks what the packages need, too.
const PIP: &str = r#"pip() { python -c 'import importlib.metadata, re, sys
assert sys.argv[1] == "install"
for name in sys.argv[2:]: importlib.metadata.version(re.split(r"\W", name.replace("-", "_"))[0])' "$@"; }
"#;

/// Runs commands of the page with the compiler first in `PATH`, on the software GPU.
fn shell(compiler: Compiler, folder: &Path, commands: &str) -> Output {
    let (programs, before) = match compiler {
        Python(_) => (environment().join("bin"), short_or_long(PIP, "").to_owned()),
        Clang => (folder.to_owned(), format!("clang() {{ command {} \"$@\"; }}", clang().unwrap_or_default())),
        // Rust's own library is compiled once.
        Rustc => {
            (rustc().unwrap_or_default().into(), format!("mkdir -p {0:?}; ln -s {0:?} target", tools().join("rust")))
        }
    };
    let binary = env!("CARGO_BIN_EXE_warpstride");
    let script = format!(
        "set -euo pipefail\nwarpstride() {{ {binary:?} --device soft \"$@\"; }}\n\
         export PATH={programs:?}:\"$PATH\"\n{before}\n{commands}"
    );
    let mut command = Command::new("bash");
    // pip finds what the script has installed, and Triton nothing that it compiled before.
    command.arg("-c").arg(script).current_dir(folder).env("PIP_NO_INDEX", "1").env("TRITON_CACHE_DIR", folder);
    // The settings of the build that this test belongs to.
    let is_of_this_build = |name: &str| name.starts_with("CARGO") && name != "CARGO_HOME" || name.starts_with("RUST");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_this_build(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command.env("VIRTUAL_ENV", environment()).output().expect("bash runs")
}

#[test]
fn the_commands_of_the_page_give_ptx_and_right_values() {
    let page = fs::read_to_string(repository().join("docs/getting-ptx.md")).expect("readable");
    let sections = sections(&page);
    let titles: Vec<&str> = sections.iter().skip(1).map(|(title, _)| *title).collect();
    assert_eq!(titles, SECTIONS.map(|(title, _)| title));
    let (_, shared) = &sections[0];
    let told: Vec<String> = SECTIONS
        .par_iter()
        .zip(&sections[1..])
        .filter(|((_, compiler), _)| compiler.is_installed())
        .filter_map(|(&(title, compiler), (_, blocks))| {
            follow(compiler, shared, blocks).err().map(|told| format!("{title}: {told}"))
        })
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}

/// The files that `warpstride check` takes in a folder.
fn checks(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

fn names(files: &[PathBuf]) -> Vec<&str> {
    files.iter().filter_map(|path| path.file_name()?.to_str()).collect()
}

/// Checks the files, which must hold.
fn hold(files: &[PathBuf]) {
    let run = Run::of(command(["--device", "soft", "check"]).args(files));
    assert_eq!(run.code, Some(0), "{}", run.stdout);
}

const NUMBA: [&str; 6] = ["broadcast.toml", "convolve.toml", "dot.toml", "matmul.toml", "pool.toml", "scan.toml"];
const TRITON: [&str; 2] = ["softmax.toml", "vector_add.toml"];

#[test]
fn committed_ptx_gives_what_numpy_computes() {
    let files = checks(&data());
    let mut all = [&NUMBA[..], &TRITON].concat();
    all.sort();
    assert_eq!(names(&files), all);
    hold(&files);
}

#[test]
fn kernels_compiled_anew_give_what_numpy_computes() {
    // The short form has Triton's. The page's commands compile a kernel by each.
    for (name, expected) in [("triton", &TRITON[..]), ("numba", &NUMBA)].into_iter().take(short_or_long(1, 2)) {
        if !Python(name).is_installed() {
            continue;
        }
        let folder = TempDir::new().expect("a temporary folder");
        let mut python = Command::new(environment().join("bin/python"));
        python.arg(data().join(format!("{name}_kernels.py"))).arg(folder.path());
        // Triton keeps what it has compiled.
        python.env("PYTHONDONTWRITEBYTECODE", "1").env("TRITON_CACHE_DIR", folder.path().join("cache"));
        let output = python.output().expect("Python starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let files = checks(folder.path());
        assert_eq!(names(&files), expected);
        hold(&files);
    }
}

#[test]
fn reports_name_the_lines_and_kernels_of_python() {
    let arguments = ["f32[3008]=iota", "f32[3008]=iota", "f32[3008]=zeros", "i32:3008", "u64:0", "u64:0"];
    let arguments = arguments.map(|argument| format!(" --arg {argument}")).concat();
    let launch = "run-ptx tests/data/front_ends/vector_add.ptx --grid 3 --block 128 --report";
    soft(&format!("{launch}{arguments}")).ended(0, &["Line by line, triton_kernels.py"], &[]);
    soft("check tests/data/front_ends/dot.toml").ended(0, &["dot.toml: __main__::dot, 4 x 1 x 1 blocks"], &[]);
}
