//! `run-ptx --time`: the bytes that a launch must move, and the run that is kept and compared. No
//! test asserts a time.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::report::Reports;
use super::{Folder, Run, command};

/// `near` reads words side by side and writes them, and each thread reads the first word twice
/// more. `far` reads and writes words that are a sector apart.
const PTX: &str = "
    .version 7.0
    .target sm_80
    .address_size 64
    .visible .entry near(.param .u64 cells) {
        .reg .b32 %r<4>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [cells]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
        ld.global.u32 %r2, [%rd2]; ld.global.u32 %r3, [%rd1]; add.u32 %r2, %r2, %r3;
        ld.global.u32 %r3, [%rd1]; add.u32 %r2, %r2, %r3;
        st.global.u32 [%rd2], %r2;
        ret;
    }
    .visible .entry far(.param .u64 cells) {
        .reg .b32 %r<4>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [cells]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 32, %rd1;
        ld.global.u32 %r2, [%rd2];
        st.global.u32 [%rd2], %r2;
        ret;
    }
    .visible .entry nothing() { ret; }
    .visible .entry endless(.param .u64 cells) { again: bra again; }";

/// A folder with the PTX, where runs are kept too.
fn with_ptx() -> Folder {
    Folder::with("k.ptx", PTX)
}

impl Folder {
    /// Runs a kernel in one block on the software GPU, or on the device that `more` names.
    fn run_once(&self, entry: &str, block: &str, more: &[&str]) -> Run {
        let mut run = command(["run-ptx".as_ref(), self.path("k.ptx").as_os_str()]);
        run.args(["--entry", entry, "--grid", "1", "--block", block]).args(more);
        if !more.contains(&"--device") {
            run.args(["--device", "soft"]);
        }
        self.at_home(run)
    }

    /// Runs a command that keeps runs in this folder, wherever the system has its data.
    fn at_home(&self, mut command: Command) -> Run {
        for variable in ["XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "APPDATA"] {
            command.env(variable, self.folder.path());
        }
        Run::of(command.env("XDG_DATA_HOME", self.path("data")))
    }

    fn timed(&self, entry: &str, block: &str, more: &[&str]) -> Run {
        self.run_once(entry, block, &[&["--arg", "u32[1024]=iota", "--time"], more].concat())
    }
}

#[test]
fn each_byte_counts_once_a_side_and_no_speed_is_told() {
    let folder = with_ptx();
    let document = folder.timed("near", "64", &["--json"]).succeeded().json();
    assert_eq!([&document["read"], &document["written"], &document["bytes"]], [256, 256, 512]);
    assert_eq!((&document["samples"], &document["verified"]), (&20.into(), &Value::Null));
    for member in ["ms", "gbps", "fraction_of_copy", "fraction_of_ceiling"] {
        assert_eq!(document.get(member), Some(&Value::Null), "{member}");
    }
    // The members of a launch without --time are there too.
    assert_eq!(
        (&document["kernel"], &document["entry"], &document["block"]),
        (&"near".into(), &"near".into(), &json!([64, 1, 1]))
    );
    assert!(document["thread_instructions"].is_u64() && document["counters"]["global_load"]["sectors"].is_u64());
    // A word of each sector is not the sector.
    let far = folder.timed("far", "64", &["--json", "--samples", "7"]).succeeded().json();
    assert_eq!([&far["read"], &far["written"], &far["samples"]], [256, 256, 7]);
    let given = folder.timed("near", "64", &["--json", "--bytes", "1001"]).succeeded().json();
    assert_eq!([&given["read"], &given["written"], &given["bytes"]], [501, 500, 1001]);

    let parts = ["256 bytes read and 256 written, each counted once", "global load", "No GB/s: the software GPU"];
    let run = folder.timed("near", "64", &[]).ended(0, &parts, &[]);
    assert_eq!(run.stdout.matches("GB/s").count(), 1, "{}", run.stdout);
}

#[test]
fn a_run_is_drawn_kept_and_compared_by_its_counters() {
    let folder = with_ptx();
    let document = folder.timed("near", "64", &["--json", "--save", "a-run"]).succeeded().json();
    let reports = Reports::of(&document);
    for text in [reports.report("").succeeded().stdout, reports.form("--html")] {
        assert!(text.contains("Kernels") && text.contains("near u32[1024]=iota"), "{text}");
    }

    folder.timed("near", "64", &["--compare", "a-run"]).succeeded();
    // Another block, of the same kernel with the same arguments.
    let other = folder.timed("near", "96", &["--compare", "a-run"]);
    other.ended(1, &["global_store.sectors 12, was 8"], &[]);
    folder.timed("far", "64", &["--compare", "a-run"]).failed(&["no case `far u32[1024]=iota` to compare with"]);
    folder.timed("near", "64", &["--compare", "nothing"]).failed(&["no run is kept as nothing", "--save nothing"]);
}

#[cfg(target_os = "linux")]
#[test]
fn kept_runs_are_listed_and_those_in_the_cache_of_earlier_versions_too() {
    let folder = with_ptx();
    let listed = || folder.at_home(command(["bench", "--list-saved"])).succeeded().stdout;
    assert_eq!(listed(), "No runs are kept; `bench OP --save NAME` keeps one.\n");
    folder.timed("near", "64", &["--save", "old"]).ended(0, &[], &["kept as old: ", "data/warpstride/run-old.json"]);
    let [kept, cache] = ["data/warpstride", "warpstride"].map(|name| folder.path(name));
    fs::create_dir_all(&cache).expect("a cache");
    fs::rename(kept.join("run-old.json"), cache.join("run-old.json")).expect("it moves");
    folder.timed("near", "64", &["--compare", "old", "--save", "later"]).succeeded();
    let [old, later] = [cache.join("run-old.json"), kept.join("run-later.json")].map(|file| file.display().to_string());
    // No run has such a name.
    fs::write(kept.join("run-a name\u{1b}.json"), "").expect("writing");
    assert_eq!(listed(), format!("later  {later}\nold    {old}\n"));
    let document = folder.at_home(command(["--json", "bench", "--list-saved"])).succeeded().json();
    assert_eq!(document["saved"][1], json!({ "name": "old", "file": old }));
}

#[test]
fn a_run_with_times_is_drawn_beside_the_ceilings() {
    let folder = with_ptx();
    let mut document = folder.timed("near", "64", &["--json"]).succeeded().json();
    let times = json!({
        "ms": { "median": 1.0, "p10": 0.9, "p25": 0.95, "p75": 1.05, "p90": 1.1 }, "gbps": 700.0, "copy_gbps": 800.0,
        "fraction_of_copy": 0.875, "fraction_of_ceiling": 0.75, "fraction_of_nominal": 0.7, "gapless": true, "discarded": 0,
    });
    document["cases"][0].as_object_mut().expect("a record").extend(times.as_object().expect("members").clone());
    let record = fs::read(super::repository().join("benches/record/2026-11-25-h100/all.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("a document");
    document["peaks"] = record["peaks"].clone();
    let reports = Reports::of(&document);
    reports.report("").ended(0, &["1.0000", "700.0", "87.5 %", "75.0 %"], &[]);
    reports.report("--svg charts").succeeded();
    let chart = fs::read_to_string(reports.path("charts/roofline.svg")).expect("a chart");
    assert!(chart.contains("near u32[1024]=iota") && chart.contains("75.0"), "{chart}");
}

#[test]
fn what_does_not_go_with_a_time_is_refused() {
    let folder = with_ptx();
    let misused = |more: &[&str], part: &str| {
        let run = folder.run_once("near", "64", &[&["--arg", "u32[1024]=iota"], more].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{more:?}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{part:?} is not in {}", run.stderr);
    };
    misused(&["--time", "--bytes", "0"], "whole number of bytes from 1");
    misused(&["--time", "--bytes=-1"], "--bytes");
    misused(&["--time", "--samples", "0"], "--samples");
    misused(&["--time", "--check", "all"], "--check");
    for option in [["--bytes", "5"], ["--samples", "5"], ["--save", "x"], ["--compare", "x"]] {
        misused(&option, "--time");
    }
    for name in ["../x", "a/b", "", "a b"] {
        misused(&["--time", "--save", name], "a run's name has");
        misused(&["--time", "--compare", name], "a run's name has");
    }
    // A launch that does not end on the software GPU is stopped there as ever.
    folder.timed("endless", "64", &["--limit", "1000"]).failed(&["endless", "--limit"]);
    // Without bytes there is no bandwidth; the software GPU has none anyway.
    let document = folder.run_once("nothing", "1", &["--time", "--json"]).succeeded().json();
    assert_eq!(document["bytes"], 0);
}
