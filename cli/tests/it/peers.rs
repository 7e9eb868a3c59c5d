//! The scripts of `benches/peers` that need no GPU.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::{long, repository};

/// Runs a script in a folder, which may have modules of its own; `None` where there is no Python.
fn python(script: &str, arguments: &[&str], folder: &TempDir) -> Option<Output> {
    let script = repository().join("benches/peers").join(script);
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).args(arguments).current_dir(folder.path());
    command.env("PYTHONPATH", folder.path()).output().ok()
}

/// A line of what a machine says before its cases.
fn machine(commit: &str, samples: u32) -> String {
    format!(
        r#"{{"gpu": "A, 1", "warpstride": "warpstride 1", "commit": "{commit}", "samples": {samples}, "random": "1,2"}}"#
    )
}

/// A line of a case that took ours 2 ms and a peer 3 ms.
fn case(name: &str, verified: bool) -> String {
    format!(
        r#"{{"case": {{"name": "{name}", "kind": "odd"}}, "peers": {{"cupy": {{"ms": 3.0, "verified": true}}}},
            "ours": {{"ms": {{"median": 2.0}}, "verified": {verified}, "fraction_of_copy": 0.5}}}}"#
    )
    .replace('\n', " ")
}

#[test]
fn a_wrong_case_counts_as_0_and_half_a_line_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = [machine("a", 20), case("one", true), "{\"case\": {\"na".to_owned(), case("two", false)];
    fs::write(folder.path().join("lines"), lines.join("\n")).expect("a file");
    let Some(scored) = python("score.py", &[".", "lines"], &folder) else { return long::missing("Python 3") };
    assert!(scored.status.success(), "{scored:?}");
    let text = fs::read_to_string(folder.path().join("random.json")).expect("a score");
    let score = &serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["score"];
    assert_eq!(score["drawn"], 2);
    assert_eq!(score["all"]["wrong_or_failed"], 1);
    assert_eq!(score["all"]["lowest"], 0.0);
    assert_eq!(score["all"]["at_or_above_best_peer"], 1);
    assert_eq!(score["peers"]["cupy"]["lowest"], 0.0);
}

#[test]
fn parts_of_different_runs_are_not_scored_together() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("one"), [machine("a", 20), case("one", true)].join("\n")).expect("a file");
    for (other, message) in [
        (machine("b", 20), "commit is 'a' and 'b'"),
        (machine("a", 5), "samples is 20 and 5"),
        (machine("a", 20).replace("warpstride 1", "warpstride 2"), "warpstride is 'warpstride 1' and 'warpstride 2'"),
    ] {
        fs::write(folder.path().join("two"), [other, case("two", true)].join("\n")).expect("a file");
        let Some(refused) = python("score.py", &[".", "one", "two"], &folder) else { return long::missing("Python 3") };
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(message), "{said}");
    }
    fs::write(folder.path().join("bare"), case("one", true)).expect("a file");
    let refused = python("score.py", &[".", "bare"], &folder).expect("it ran before");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no line says which cases were drawn"), "{refused:?}");
}

/// Returns a fat binary of entries, each with its kind, its capability and a body of this byte.
fn fat_binary(entries: &[(u16, u32, u8)]) -> Vec<u8> {
    const BODY: usize = 200;
    let mut body = Vec::new();
    for &(kind, capability, byte) in entries {
        body.extend(kind.to_le_bytes());
        body.extend(0x101_u16.to_le_bytes());
        body.extend(64_u32.to_le_bytes());
        body.extend((BODY as u64).to_le_bytes());
        body.extend([0; 12]);
        body.extend(capability.to_le_bytes());
        body.extend([0; 32]);
        body.extend([byte; BODY]);
    }
    let mut fat = 0xba55_ed50_u32.to_le_bytes().to_vec();
    fat.extend(1_u16.to_le_bytes());
    fat.extend(16_u16.to_le_bytes());
    fat.extend((body.len() as u64).to_le_bytes());
    fat.extend(body);
    fat
}

#[test]
fn a_pruned_library_keeps_its_length_and_the_code_of_one_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    // Machine code is of kind 2, and PTX of kind 1.
    let whole = [&b"before"[..], &fat_binary(&[(2, 80, b'x'), (2, 90, b'y'), (1, 90, b'z')]), b"behind"].concat();
    fs::write(folder.path().join("library"), &whole).expect("a file");
    let Some(pruned) = python("prune.py", &["library", "90", "out.xz"], &folder) else {
        return long::missing("Python 3");
    };
    assert!(pruned.status.success(), "{pruned:?}");
    let unpack = "import lzma, sys; sys.stdout.buffer.write(lzma.open('out.xz').read())";
    let unpacked = Command::new("python3").args(["-c", unpack]).current_dir(folder.path()).output().expect("Python");
    let expected: Vec<u8> = whole.iter().map(|&byte| if byte == b'x' || byte == b'z' { 0 } else { byte }).collect();
    assert_eq!(unpacked.stdout, expected);

    fs::write(folder.path().join("half"), &whole[..whole.len() - 100]).expect("a file");
    for (file, capability, message) in [
        ("library", "75", "has no machine code for sm_75"),
        ("half", "90", "has no machine code for sm_90"),
        ("missing", "90", "missing"),
    ] {
        let refused = python("prune.py", &[file, capability, "other.xz"], &folder).expect("it ran before");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains(message), "{said}");
        assert!(!said.contains("Traceback") && !folder.path().join("other.xz").exists(), "{said}");
    }
}

#[test]
fn a_log_that_misses_rows_is_not_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let torch = "class cuda:\n    empty_cache = reset_peak_memory_stats = lambda: None\n    \
                 caching_allocator_alloc = caching_allocator_delete = Stream = None\n";
    fs::write(folder.path().join("torch.py"), torch).expect("a file");
    let log = "Thread,Time,Action,Pointer,Size,Stream\n0,0,allocate,0x1,5,0\n0,0,lost,0x0,17,0\n";
    fs::write(folder.path().join("log.csv"), log).expect("a file");
    let Some(refused) = python("memory.py", &["replay", "log.csv"], &folder) else { return long::missing("Python 3") };
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("log.csv misses rows"), "{said}");
}
