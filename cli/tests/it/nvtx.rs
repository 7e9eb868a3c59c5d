//! Ranges for NVIDIA's profilers, through a library that writes down what it is told.

use std::fs;
use std::process::Command;

use super::{Run, command};

/// A stand-in for `libnvToolsExt` that appends each call, with its thread, to a file.
const LIBRARY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void note(char what, const char *name) {
    FILE *file = fopen(getenv("NOTED"), "a");
    fprintf(file, "%c %lx %s\n", what, (unsigned long)pthread_self(), name);
    fclose(file);
}

int nvtxRangePushA(const char *name) { note('+', name); return 0; }
int nvtxRangePop(void) { note('-', ""); return 0; }
"#;

#[test]
fn every_stage_is_a_range_that_ends_on_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let [source, library, noted] = ["nvtx.c", "nvtx.so", "noted"].map(|name| folder.path().join(name));
    fs::write(&source, LIBRARY).unwrap();
    // The linker that Rust needs anyway.
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-pthread", "-o"]).args([&library, &source]).status().unwrap();
    assert!(compiled.success());
    let args = "--device soft --quiet pipeline --frames 6 --shape 3,4,4 --batch 2 --mode streams --json";
    Run::of(command(args.split(' ')).env("WARPSTRIDE_NVTX", &library).env("NOTED", &noted)).succeeded();

    let noted = fs::read_to_string(&noted).unwrap();
    let names: Vec<_> = noted.lines().filter_map(|line| line.strip_prefix("+ ")?.split_once(' ')).collect();
    for stage in ["random_generation", "cpu_to_gpu", "normalization", "model", "gpu_to_cpu", "sink"] {
        let count = names.iter().filter(|(_, name)| *name == stage).count();
        assert!(count >= 3, "{stage} has {count} ranges for three batches: {noted}");
    }
    let threads = names.iter().map(|(thread, _)| *thread).collect::<std::collections::BTreeSet<_>>();
    for thread in threads {
        let mut open = 0_i32;
        for line in noted.lines().filter(|line| line.split(' ').nth(1) == Some(thread)) {
            open += if line.starts_with('+') { 1 } else { -1 };
            assert!(open >= 0, "a range ends that never began on thread {thread}: {noted}");
        }
        assert_eq!(open, 0, "thread {thread}: {noted}");
    }
}

#[test]
fn without_the_library_nothing_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let args = "--device soft --quiet pipeline --frames 2 --shape 3,4,4 --batch 2 --mode streams";
    let run = Run::of(command(args.split(' ')).env("WARPSTRIDE_NVTX", folder.path().join("none.so")));
    assert_eq!(run.succeeded().stderr, "");
}
