//! The model's times against what an H100 took, as `benches/record` has it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::cuda_cpp::compilers;
use super::{Run, command, repository, warpstride};
use crate::long::is_long;

fn record(file: &str) -> PathBuf {
    repository().join("benches/record").join(file)
}

/// The document of `warpstride model`.
fn predicted(run: &str) -> Value {
    warpstride(["--json", "model", run]).succeeded().json()
}

fn number(document: &Value, name: &str) -> f64 {
    document[name].as_f64().unwrap_or_else(|| panic!("no {name} in {document}"))
}

#[test]
fn the_ladder_is_predicted_with_what_bounds_it() {
    for size in ["4096", "16384"] {
        let file = record(&format!("2026-11-21-h100/compare-f32-{size}.json"));
        let document = predicted(file.to_str().expect("text"));
        let cases = document["cases"].as_array().expect("cases");
        assert_eq!(cases.len(), 6, "{document}");
        for case in cases {
            let (name, ratio) = (case["name"].as_str().expect("a name"), number(case, "ratio"));
            let bounds = [("column_loop", "launches"), ("naive", "L2"), ("tiled", "shared")];
            let bound = bounds.iter().find(|(kernel, _)| name.contains(kernel)).map_or("memory", |(_, bound)| bound);
            assert_eq!(case["bound"], bound, "{name}");
            assert!((0.88..1.12).contains(&ratio), "{name}: {ratio} of the measured time");
        }
    }
}

/// The bars of docs/model.md, over every tenth case; in the long form over all.
#[test]
fn permutes_are_predicted_as_the_page_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (file, strides) in [("guard-across.json", 23), ("planned.json", 19)] {
        let text = fs::read(record("2026-11-27-h100").join(file)).expect("the record");
        let mut run: Value = serde_json::from_slice(&text).expect("a document");
        let every = if is_long() { 1 } else { strides };
        let cases = run["cases"].as_array().expect("cases").iter().step_by(every).cloned().collect();
        run["cases"] = Value::Array(cases);
        let path = folder.path().join(file);
        fs::write(&path, run.to_string()).expect("a run");
        let document = predicted(path.to_str().expect("text"));
        let cases = document["cases"].as_array().expect("cases");
        assert!(cases.len() > 10, "{document}");
        let off = cases.iter().filter(|case| (number(case, "ratio") - 1.0).abs() > 0.25).count();
        assert!(20 * off <= cases.len().max(20), "{file}: {document}");
        assert!(number(&document, "median_error") < 0.1, "{file}: {document}");
        assert!(number(&document, "bound_right") >= 0.9, "{file}: {document}");
    }
}

/// The last numbers of each lesson's kernel, where the record has its buffers alone.
const LESSONS: [(&str, &str, &[&str]); 8] = [
    ("02-sectors", "solution.cu", &["16777216"]),
    ("03-strides", "solution.cu", &["5592405"]),
    ("04-wide", "solution.cu", &["16777216"]),
    ("07-tile", "task.cu", &["4096", "4096"]),
    ("07-tile", "solution.cu", &["4096", "4096"]),
    ("09-pad", "solution.cu", &["4096", "4096"]),
    ("10-stagger", "solution.cu", &["4096", "4096"]),
    ("11-wide-banks", "solution.cu", &["4096", "4096"]),
];

#[test]
fn lessons_are_predicted_within_a_quarter() {
    let Some(nvrtc) = compilers().into_iter().find_map(|compiler| compiler.nvrtc) else { return };
    let text = fs::read_to_string(record("2026-11-23-h100/lessons.md")).expect("the record");
    let short = ["09-pad"];
    for (lesson, file, numbers) in LESSONS.into_iter().filter(|(lesson, ..)| is_long() || short.contains(lesson)) {
        let row = text.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let row = row.into_iter().find(|cells| cells.len() == 10 && cells[1..3] == [lesson, file]);
        let row = row.unwrap_or_else(|| panic!("no {file} of {lesson}"));
        let (grid, block) = row[4].split_once(" of ").expect("a launch");
        let folder = lesson.split_once('-').expect("a number").1;
        let source = repository().join("cli/lessons").join(folder).join(file);
        let mut words = vec!["--json".to_owned(), "run-cu".into(), source.display().to_string()];
        words.extend(["--model", "h100", "--limit", "17179869184", "--grid"].map(String::from));
        words.extend([grid.replace(" x ", ","), "--block".into(), block.replace(" x ", ",")]);
        if lesson == "10-stagger" {
            // Its tile is as large as the launch says.
            words.extend(["--shared", "4096"].map(String::from));
        }
        if lesson == "11-wide-banks" {
            words.extend(["--entry", "transpose"].map(String::from));
        }
        let buffers = row[5].split(", ").map(str::to_owned);
        for argument in buffers.chain(numbers.iter().map(|number| format!("i32:{number}"))) {
            words.extend(["--arg".into(), argument]);
        }
        let document = Run::of(command(words).env("WARPSTRIDE_NVRTC", &nvrtc)).succeeded().json();
        let (predicted, measured) = (number(&document["model"], "ms"), row[6].parse::<f64>().expect("ms"));
        let ratio = predicted / measured;
        assert!((0.75..1.25).contains(&ratio), "{lesson}, {file}: {predicted} of {measured} ms");
        if lesson == "09-pad" {
            assert_eq!(document["model"]["bound"], "latency", "{document}");
            assert!(
                number(&document["model"], "bytes_in_flight") < number(&document["model"], "bytes_in_flight_needed")
            );
        }
    }
}

const FILL: &str = "
    .version 6.3 .target sm_75 .address_size 64
    .visible .entry fill(.param .u64 out) {
        .reg .b32 %r<5>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
        mad.lo.u32 %r4, %r1, %r2, %r3; mad.wide.u32 %rd2, %r4, 4, %rd1; st.global.u32 [%rd2], %r4;
        ret;
    }
    .visible .entry count(.param .u64 out) {
        .reg .b32 %r<2>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [out]; red.global.add.u32 [%rd1], 1;
        ret;
    }";

#[test]
fn a_launch_is_predicted_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ptx = folder.path().join("k.ptx");
    fs::write(&ptx, FILL).expect("PTX");
    let run = |entry: &str, more: &str| {
        let launch = format!("--entry {entry} --grid 4096 --block 256 --arg u32[1048576]=uninit {more}");
        let words = ["--device", "soft", "run-ptx", ptx.to_str().expect("text")].into_iter();
        warpstride(words.chain(launch.split(' ').filter(|word| !word.is_empty())))
    };
    let text = run("fill", "--model h100 --registers 16").succeeded().stdout;
    for part in
        ["Model of h100: 0.00", "Bound by ", "A thread has 16 registers.", "PTX line ", "The longest limit decides"]
    {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    // Without accesses to shared memory, the table has no row of it.
    let limits = text.split_once("ms alone").and_then(|(_, rest)| rest.split_once("The longest")).expect("a table").0;
    assert!(limits.contains(" latency ") && !limits.contains("shared"), "{limits}");
    // 255 registers leave room for one block.
    let document = run("fill", "--model h100 --registers 255 --json").succeeded().json();
    assert_eq!(document["model"]["blocks_on_a_multiprocessor"], 1, "{document}");
    let ms = |model: &str| number(&run("fill", &format!("--model {model} --json")).succeeded().json()["model"], "ms");
    assert!(
        ms("h200") < ms("h100") && ms("h100") < ms("a100") && ms("a100") < ms("rtx4090") && ms("rtx4090") < ms("t4")
    );
    run("count", "--model h100").failed(&["the model does not know how long atomics wait for each other"]);
    run("fill", "--registers 16").ended(2, &[], &["--model"]);
    run("fill", "--model b200").ended(2, &[], &["the models are h100, h200, a100, l4, t4, rtx4090"]);
}

#[test]
fn checks_hold_the_model_to_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("k.ptx"), FILL).expect("PTX");
    let check = |more: &str| {
        let text = format!(
            "kernel = \"k.ptx\"\nentry = \"fill\"\ngrid = [4096]\nblock = [256]\nargs = [\"u32[1048576]=uninit\"]\n{more}"
        );
        let path = folder.path().join("check.toml");
        fs::write(&path, text).expect("a check");
        warpstride(["check", path.to_str().expect("text")])
    };
    let figures =
        "[\"model.ms <= 0.01\", \"model.bound != shared\", \"occupancy > 0.9\", \"instructions_per_byte < 3\"]";
    check(&format!("model = \"h100\"\nexpect = {figures}")).ended(0, &["4 expectations held"], &[]);
    check("model = \"h100\"\nexpect = [\"model.ms > 1\"]").ended(1, &["FELL SHORT  model.ms > 1"], &[]);
    // A refusal of the model stands beside what falls short, and alone where nothing does.
    let (count, refused) = ("model = \"h100\"\nexpect = [\"model.ms > 0\"", "how long atomics wait for each other");
    fs::write(folder.path().join("k.ptx"), FILL.replace("fill", "filled").replace("count", "fill")).expect("PTX");
    check(&format!("{count}]")).failed(&[refused]);
    check(&format!("{count}, \"load.requests == 7\"]")).ended(1, &["FELL SHORT  load.requests == 7", refused], &[]);
    fs::write(folder.path().join("k.ptx"), FILL).expect("PTX");
    check("expect = [\"model.ms > 1\"]").failed(&["line 6, `expect`: no GPU is named whose time is predicted"]);
    check("model = \"b200\"\nexpect = [\"model.ms > 1\"]").failed(&["line 6", "the models are h100"]);
    check("model = \"h100\"\nregisters = 0\nexpect = [\"model.ms > 1\"]").failed(&["whole number from 1 to 255"]);
}

#[test]
fn runs_without_a_prediction_are_refused() {
    let file = record("2026-11-27-h100/random.json");
    warpstride(["model", file.to_str().expect("text")]).failed(&["is not a run"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.json");
    let soft = warpstride(["--device", "soft", "--json", "compare", "--shape", "64,64"]).succeeded().stdout;
    fs::write(&path, soft).expect("a run");
    warpstride(["model", path.to_str().expect("text")]).failed(&["was measured on software GPU", "--model"]);
    let words = ["model", path.to_str().expect("text"), "--model", "h100"];
    warpstride(words).failed(&["has no case that the model predicts"]);
}
