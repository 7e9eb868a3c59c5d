//! A program of nvcc, which checks the library itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::long::missing;
use crate::names::library;
use crate::untyped::libraries;

/// Returns nvcc of CUDA 13, which `scripts/tools` installs; it calls g++.
fn nvcc() -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/python/lib");
    let versions = std::fs::read_dir(tools).ok()?.flatten();
    let mut found = versions.map(|version| version.path().join("site-packages/nvidia/cu13/bin/nvcc"));
    found.find(|nvcc| nvcc.exists() && Command::new("g++").arg("--version").output().is_ok())
}

/// Compiles sources with the shared runtime.
fn compile(folder: &Path, out: &str, sources: &[&str], options: &[&str]) -> Option<PathBuf> {
    let Some(nvcc) = nvcc() else {
        missing("nvcc");
        return None;
    };
    let link = folder.join("libcudart.so");
    if !link.exists() {
        std::os::unix::fs::symlink(library("libwarpstride_cudart.so"), link).expect("a link");
    }
    let program = folder.join(out);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let told = Command::new(nvcc)
        .args(["-std=c++17", "-cudart", "shared", "-gencode", "arch=compute_90,code=compute_90", "-L"])
        .arg(folder)
        .args(options)
        .args(sources.iter().map(|source| data.join(source)))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("nvcc");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    Some(program)
}

/// Runs a check of a program in a process of its own, and returns what it printed.
fn run(program: &Path, folder: &Path, check: &str) -> String {
    let mut command = Command::new(program);
    let told = command.arg(check).env("LD_LIBRARY_PATH", folder).env("WARPSTRIDE_RUN_LOG", "1").output();
    let told = told.expect("a process");
    let text = [told.stdout, told.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(told.status.success() && text.contains(&format!("{check} is right")), "{check}: {}\n{text}", told.status);
    text
}

#[test]
fn a_program_of_nvcc_runs() {
    let folder = libraries();
    let Some(program) = compile(folder.path(), "runtime", &["runtime.cu"], &[]) else { return };
    for check in
        ["launches", "attributes", "boxes", "pointers", "streams", "managed", "resets", "graphs", "asserts", "faults"]
    {
        run(&program, folder.path(), check);
    }
    let told = run(&program, folder.path(), "prints");
    assert!(told.contains("thread 0 prints 42\nthread 1 prints 42\n"), "{told}");
}

#[test]
fn stream_0_can_be_the_threads() {
    let folder = libraries();
    let options = ["--default-stream", "per-thread"];
    let Some(program) = compile(folder.path(), "per_thread", &["runtime.cu"], &options) else { return };
    for check in ["launches", "boxes", "pointers", "streams"] {
        run(&program, folder.path(), check);
    }
}

#[test]
fn kernels_of_several_files_are_linked() {
    let folder = libraries();
    let sources = ["first.cu", "second.cu"];
    let Some(program) = compile(folder.path(), "linked", &sources, &["-rdc=true"]) else { return };
    run(&program, folder.path(), "linked");
}
