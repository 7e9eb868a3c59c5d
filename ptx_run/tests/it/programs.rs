//! Programs in C, C++ and Python that call the library.

use std::path::Path;
use std::process::Command;

use crate::api::library;
use crate::long::missing;

/// Returns the path of a file of the package.
fn of_package(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a command, which has to succeed, and returns what it printed.
fn succeeds(command: &mut Command) -> String {
    let told = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [told.stdout, told.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(told.status.success(), "{command:?}: {}\n{text}", told.status);
    text
}

fn is_there(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        missing(program);
    }
    is_there
}

/// Compiles the program with a compiler, links it with a library, and runs it.
fn compile_and_run(compiler: &str, options: &[&str], linked: &str) {
    if !is_there(compiler) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let mut command = Command::new(compiler);
    command.args(options).args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(of_package("")).arg("-o").arg(&program);
    succeeds(command.arg(of_package("tests/data/program.c")).args(["-x", "none"]).arg(library(linked)).arg("-lm"));
    let mut run = Command::new(&program);
    let told = succeeds(run.env("LD_LIBRARY_PATH", library(linked).parent().expect("a folder")));
    assert!(
        told.contains("ptx_run: the PTX is null") && told.contains("the kernel prints 3\nall is right\n"),
        "{told}"
    );
}

#[test]
fn a_program_in_c_links_the_static_library() {
    compile_and_run("cc", &["-std=c99"], "libwarpstride_ptx_run.a");
}

#[test]
fn a_program_in_cpp_links_the_shared_library() {
    compile_and_run("g++", &["-x", "c++"], "libwarpstride_ptx_run.so");
}

#[test]
fn a_program_in_python_calls_it_as_tinygrad_does() {
    if !is_there("python3") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // tinygrad looks for the library under this name.
    std::os::unix::fs::symlink(library("libwarpstride_ptx_run.so"), folder.path().join("libgpuocelot.so"))
        .expect("a link");
    let mut command = Command::new("python3");
    let told = succeeds(command.arg(of_package("tests/data/program.py")).arg(folder.path().join("libgpuocelot.so")));
    assert!(told.contains("all is right"), "{told}");
}
