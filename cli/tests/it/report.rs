//! `warpstride bench --all` on the software GPU, and `warpstride report` on what it and a GPU
//! found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use roxmltree::Document;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Run, command, repository, soft, warpstride};

/// Cases of a run on the software GPU.
const CASES: usize = 109;

/// One run for all tests, kept as `before`, in a folder for caches of its own.
pub(super) struct Measured {
    cache: TempDir,
    pub(super) run: Value,
}

pub(super) static MEASURED: LazyLock<Measured> = LazyLock::new(|| {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let run = suite(cache.path(), "--json bench --all --save before").succeeded().json();
    Measured { cache, run }
});

/// Runs the command line on the software GPU with a folder for caches.
fn suite(cache: &Path, line: &str) -> Run {
    let mut command = command(["--device", "soft"].into_iter().chain(line.split(' ')));
    Run::of(command.env("XDG_CACHE_HOME", cache).env("XDG_DATA_HOME", cache).env("HOME", cache))
}

/// The same run as a GPU would have it: every case takes 1 ms, over and over, but for what `median`
/// says.
pub(super) fn timed(median: &dyn Fn(&str) -> f64) -> Value {
    let mut run = MEASURED.run.clone();
    let shape = json!({ "steps": 1, "threads": 256 });
    let best = |gbps: f64| json!({ "gbps": gbps, "shape": shape });
    let sizes = [1_u64, 16, 64, 256]
        .map(|mib| json!({ "bytes": mib << 20, "read": 900.0 + mib as f64, "write": 950.0, "copy": 920.0 }));
    run["device"]["name"] = "A <b>GPU</b> & \"more\"".into();
    run["device"]["kind"] = "cuda".into();
    run["device"]["l2_bytes"] = (32_u64 << 20).into();
    run["peaks"] = json!({
        "nominal": 1000.0, "bytes": 1 << 30, "read": best(950.0), "write": best(970.0), "copy": best(930.0), "memcpy": 900.0,
        "sizes": sizes,
    });
    run["clocks"] = json!({ "sm_mhz": 1980, "sm_max_mhz": 1980, "memory_mhz": 2619, "slowed": false });
    for case in run["cases"].as_array_mut().expect("cases") {
        let ms = median(case["name"].as_str().expect("a name"));
        let times = json!({
            "ms": { "median": ms, "p10": 0.99 * ms, "p25": 0.995 * ms, "p75": 1.005 * ms, "p90": 1.01 * ms },
            "samples_ms": [0.99 * ms, ms, 1.01 * ms], "gbps": 700.0, "fraction_of_ceiling": 0.75,
            "fraction_of_nominal": 0.7, "gapless": true, "discarded": 2, "clocks": null,
        });
        case.as_object_mut().expect("a case").extend(times.as_object().expect("members").clone());
    }
    run
}

pub(super) struct Reports {
    folder: TempDir,
}

impl Reports {
    /// A folder with `run.json`.
    pub(super) fn of(run: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("run.json"), run.to_string()).expect("writing the run");
        Self { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reports `run.json` in the folder, with the words of a line.
    pub(super) fn report(&self, line: &str) -> Run {
        let words = ["report", "run.json"].into_iter().chain(line.split_whitespace());
        Run::of(command(words).current_dir(self.folder.path()))
    }

    /// Writes the run in this form, and reads that.
    pub(super) fn form(&self, option: &str) -> String {
        self.report(&format!("{option} out")).succeeded();
        fs::read_to_string(self.path("out")).expect("what was written")
    }
}

#[test]
fn a_run_has_every_case_and_no_speed_of_the_software_gpu() {
    let run = &MEASURED.run;
    assert_eq!(run["schema"], 3);
    for member in ["ptx", "date", "version"] {
        assert!(run[member].is_string(), "{member}");
    }
    assert_eq!((&run["device"]["kind"], &run["peaks"], &run["clocks"]), (&"soft".into(), &Value::Null, &Value::Null));
    let cases = run["cases"].as_array().expect("cases");
    let of = |group: &str| cases.iter().filter(|case| case["group"] == group).count();
    let groups = ["stream", "permute", "transpose", "axis", "conversion"];
    assert_eq!((groups.map(of), cases.len()), ([64, 20, 7, 9, 9], CASES));
    for case in cases {
        assert_eq!((&case["verified"], &case["ms"]), (&true.into(), &Value::Null), "{case}");
        assert!(case["kernel"].is_string() && case["counters"].is_object(), "{case}");
    }
    let mut names: Vec<_> = cases.iter().map(|case| case["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn a_run_is_kept_and_compared_with() {
    let cache = MEASURED.cache.path();
    let kept = fs::read(cache.join("warpstride/run-before.json")).expect("the kept run");
    let kept: Value = serde_json::from_slice(&kept).expect("a document");
    assert_eq!(kept["cases"], MEASURED.run["cases"]);
    suite(cache, "bench --all --compare nothing").failed(&["no run is kept as nothing", "--save nothing"]);
    for name in ["../x", "", "a\tb"] {
        let run = suite(cache, &format!("bench --all --save {name}"));
        assert_eq!(run.code, Some(2), "{name:?}: {}", run.stderr);
    }
}

#[test]
fn a_single_operation_is_kept_and_compared_by_its_counters() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let run = |more: &str| suite(cache.path(), &format!("bench permute --shape 64,96 --axes 1,0 {more}"));
    run("--save one").succeeded();
    run("--compare one").ended(0, &["All counters are equal."], &[]);
    let document = run("--json --compare one").succeeded().json();
    assert_eq!((&document["op"], &document["changes"][0]["verdict"]), (&"permute".into(), &"same".into()));
    assert_eq!(document["changes"][0]["name"], document["name"]);

    let file = cache.path().join("warpstride/run-one.json");
    let mut kept: Value = serde_json::from_slice(&fs::read(&file).expect("the kept run")).expect("a document");
    let sectors = kept["cases"][0]["counters"]["global_store"]["sectors"].as_u64().expect("sectors");
    kept["cases"][0]["counters"]["global_store"]["sectors"] = (sectors + 1).into();
    fs::write(&file, kept.to_string()).expect("writing the run");
    let difference = &*format!("global_store.sectors {sectors}, was {}", sectors + 1);
    run("--compare one").ended(1, &[difference], &[difference]);
    suite(cache.path(), "bench copy --elements 64 --compare one").failed(&["no case `copy f32 64`", "--save"]);
    // A case of a run of many is compared alone.
    suite(MEASURED.cache.path(), "bench softmax --shape 128,128 --compare before").succeeded();
}

#[test]
fn documents_of_single_commands_are_reported() {
    for line in [
        "bench sum --elements 1000",
        "bench affine --shape 8,9 --axes 1,0 --from u8 --to f32 --channels 0",
        "compare --shape 64,64",
    ] {
        let document = soft(&format!("--json {line}")).succeeded().json();
        let first = &document["cases"][0];
        let name = first["name"].as_str().expect("a name");
        let reports = Reports::of(&document);
        for form in ["--html", "--markdown", "--csv"] {
            let text = reports.form(form);
            assert!(text.contains(name), "{name} is not in {text}");
        }
        compared(&document, &document).succeeded();
        // Scripts also find the records where documents of schema 2 have them, and those have them
        // nowhere else.
        if line.starts_with("compare") {
            assert_eq!(document["rows"], document["cases"]);
        } else {
            assert!(first.as_object().expect("a record").iter().all(|(name, value)| document[name] == *value));
        }
        let mut older = document.clone();
        older["schema"] = 2.into();
        older.as_object_mut().expect("a document").remove("cases");
        compared(&older, &document).succeeded();
    }
}

#[test]
#[cfg(unix)]
fn a_run_is_kept_where_its_output_is_not_read_and_printed_where_it_cannot_be_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [cache, file] = ["cache", "file"].map(|name| folder.path().join(name));
    let words = ["--device", "soft", "--json", "bench", "--all", "--save", "x"];
    let mut child = command(words);
    child.stdout(Stdio::piped()).stderr(Stdio::null()).env("XDG_CACHE_HOME", &cache).env("XDG_DATA_HOME", &cache);
    let mut child = child.spawn();
    let child = child.as_mut().expect("a child");
    drop(child.stdout.take());
    fs::write(&file, "no folder").expect("writing");
    let run = suite(&file, "--json bench --all --save x");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let document = run.json();
    assert_eq!(document["cases"].as_array().map(Vec::len), Some(CASES));
    assert_eq!(document["error"]["kind"], "io");
    let message = document["error"]["message"].as_str().expect("a message");
    assert!(message.contains("cannot make") && run.stderr.ends_with(&format!("error: {message}\n")), "{}", run.stderr);

    assert!(child.wait().expect("its end").success());
    let kept = fs::read(cache.join("warpstride/run-x.json")).expect("the kept run");
    assert!(serde_json::from_slice::<Value>(&kept).is_ok());
}

#[test]
fn a_slower_case_is_named_and_ends_with_status_1() {
    let (slower, usual) = (timed(&|name| if name.starts_with("add f32") { 1.1 } else { 1.0 }), timed(&|_| 1.0));
    let told = format!("1 of {CASES} cases are slower");
    compared(&slower, &usual).ended(1, &["+10.0 %", "slower"], &[&told, "add f32"]);
    Reports::of(&slower).report("--compare run.json").succeeded();
    compared(&usual, &slower).ended(0, &["-9.1 %", "faster"], &[]);
}

/// Returns the output of `report` for a run compared with another.
pub(super) fn compared(now: &Value, before: &Value) -> Run {
    let reports = Reports::of(now);
    fs::write(reports.path("before.json"), before.to_string()).expect("writing the run");
    reports.report("--compare before.json")
}

#[test]
fn cases_that_are_wrong_or_gone_end_with_status_1() {
    let mut now = timed(&|_| 1.0);
    let cases = now["cases"].as_array_mut().expect("cases");
    cases.truncate(2);
    cases[0]["verified"] = false.into();
    cases[0]["ms"] = Value::Null;
    let (wrong, gone) =
        (format!("1 of {CASES} cases gave wrong"), format!("{} of {CASES} cases are no longer", CASES - 2));
    compared(&now, &timed(&|_| 1.0)).ended(1, &[], &[&wrong, &gone]);
    // A new case is not a regression.
    let mut before = timed(&|_| 1.0);
    before["cases"].as_array_mut().expect("cases").truncate(2);
    compared(&timed(&|_| 1.0), &before).succeeded();
}

#[test]
fn runs_of_two_devices_are_not_compared() {
    let mut before = timed(&|_| 1.0);
    before["device"]["name"] = "Another GPU".into();
    compared(&timed(&|_| 1.1), &before).failed(&["Another GPU", "one kind of device"]);
    // Nor is anything measured first.
    let cache = tempfile::tempdir().expect("a temporary folder");
    let folder = cache.path().join("warpstride");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("run-other.json"), before.to_string()).expect("writing the run");
    suite(cache.path(), "bench --all --compare other").failed(&["Another GPU", "one kind of device"]);
}

#[test]
fn times_of_a_throttled_device_decide_nothing_and_are_marked() {
    let throttled = |every: bool| {
        let mut run = timed(&|_| 1.1);
        for (at, case) in run["cases"].as_array_mut().expect("cases").iter_mut().enumerate() {
            if every || at == 0 {
                case["clocks"] = json!({ "sm_mhz": 1980, "sm_max_mhz": 1980, "memory_mhz": 2619, "slowed": true });
            }
        }
        run["cases"][1]["gapless"] = false.into();
        run
    };
    let (some, all) = (throttled(false), throttled(true));
    let run = compared(&some, &timed(&|_| 1.1)).succeeded();
    for doubt in ["undecided (throttled)", "undecided (gaps)"] {
        assert_eq!(run.stdout.matches(doubt).count(), 1, "{}", run.stdout);
    }
    let run = compared(&all, &timed(&|_| 1.0)).ended(1, &[], &["none of", "throttled"]);
    assert_eq!(run.stdout.matches("slower").count(), 1, "the word's meaning only: {}", run.stdout);

    let reports = Reports::of(&some);
    let shown = reports.report("").succeeded().stdout;
    let [markdown, html, csv] = ["--markdown", "--html", "--csv"].map(|form| reports.form(form));
    for (text, [throttled, gaps]) in [
        (shown, [" throttled ", " gaps "]),
        (markdown, ["| throttled |", "| gaps |"]),
        (html, [">throttled</td>", ">gaps</td>"]),
    ] {
        assert_eq!([throttled, gaps].map(|doubt| text.matches(doubt).count()), [1, 1], "{text}");
    }
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let column = rows.headers().expect("headings").iter().position(|name| name == "throttled").expect("a column");
    let throttled: Vec<bool> =
        rows.records().map(|row| row.expect("a row")[column].parse().expect("true or false")).collect();
    assert_eq!((throttled.len(), throttled[0], throttled[1..].contains(&true)), (CASES, true, false));
    let sound = Reports::of(&timed(&|_| 1.0)).form("--html");
    assert!(!sound.contains("throttled:") && !sound.contains(">throttled</td>"), "{sound}");
}

#[test]
fn nothing_above_nominal_is_printed_of_ceilings() {
    let mut run = timed(&|_| 1.0);
    run["peaks"]["read"]["gbps"] = 1223.0.into();
    let html = Reports::of(&run).form("--html");
    assert!(html.contains("1223.0") && html.contains("97.0 %") && !html.contains("122.3 %"), "{html}");
}

#[test]
fn ceilings_of_low_clocks_say_so() {
    let mut run = timed(&|_| 1.0);
    let said = |run: &Value| Reports::of(run).form("--markdown").contains("ceilings measured at low clocks");
    assert!(!said(&run));
    run["peaks"]["low_clocks"] = true.into();
    assert!(said(&run));
}

#[test]
fn an_output_is_neither_a_run_that_is_read_nor_another_output() {
    let reports = Reports::of(&timed(&|_| 1.0));
    let [run, before, out, charts] = ["run.json", "before.json", "out", "charts"].map(|name| reports.path(name));
    let text = timed(&|_| 1.0).to_string();
    fs::write(&before, &text).expect("writing the run");
    let refused = |line: &str, parts: &[&str]| reports.report(line).failed(parts);
    refused("--compare before.json --html before.json", &["before.json", "the same file"]);
    refused("--csv out --html run.json", &["run.json", "the same file"]);
    refused("--html out --csv out", &["two outputs", "out"]);
    refused("--svg charts --html out/out.html", &["out.html", "its folder exists"]);
    assert!(!charts.exists(), "made before it was known that all else works");
    refused("--svg run.json", &["cannot make the folder", "run.json", "name another one with --svg"]);
    refused("--svg charts --csv charts/roofline.svg", &["two outputs", "roofline.svg"]);
    for kept in [&run, &before] {
        assert_eq!(fs::read_to_string(kept).expect("the run"), text);
    }
    assert!(!out.exists());
}

#[test]
fn tables_have_a_row_a_case() {
    let reports = Reports::of(&timed(&|_| 1.0));
    let markdown = reports.form("--markdown");
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| ")).count(), CASES + 2 * 5, "{markdown}");
    assert!(!markdown.contains("<b>"), "{markdown}");
    assert!(markdown.contains("| 1.0000 |") && markdown.contains("75.0 %"), "{markdown}");
    let csv = reports.form("--csv");
    let fields: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(fields.len(), CASES + 1);
    assert_eq!(fields[0], 28);
    assert!(csv.starts_with("group,case,op,dtype,shape"), "{csv}");
    reports.report("").ended(0, &["Streams", "GB/s"], &[]);
}

#[test]
fn charts_are_well_formed_and_name_their_cases() {
    let reports = Reports::of(&timed(&|_| 1.0));
    let folder = reports.path("charts");
    reports.report("--svg charts").succeeded();
    for name in ["roofline", "roofline-flops", "sizes"] {
        let svg = fs::read_to_string(folder.join(name).with_extension("svg")).expect(name);
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        let text: String = document.descendants().filter_map(|node| node.text()).collect();
        let part = match name {
            "roofline" => "data sheet",
            "roofline-flops" => "triad f64",
            _ => "L2 cache",
        };
        assert!(text.contains(part), "{part:?} is not in {name}: {text}");
    }
    // Each case is a point, by its name.
    let points = ["roofline", "roofline-flops"].map(|name| fs::read_to_string(folder.join(name).with_extension("svg")));
    let points: usize =
        points.map(|svg| svg.expect("a chart").matches("class=\"point\" href=\"#case-").count()).iter().sum();
    assert_eq!(points, CASES);
    Reports::of(&MEASURED.run).report("--svg charts").failed(&["no times", "leave --svg out"]);
    let mut bare = timed(&|_| 1.0);
    bare["peaks"] = Value::Null;
    Reports::of(&bare).report("--svg charts").failed(&["no ceilings", "bench --all"]);
}

/// Returns the JSON files in a folder and the folders in it.
pub(super) fn records(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let in_it = |path: PathBuf| if path.is_dir() { records(&path) } else { vec![path] };
    entries.flat_map(in_it).filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

#[test]
fn committed_records_of_every_schema_are_read() {
    let paths = records(&repository().join("benches/record"));
    let document =
        |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).expect("a record")).expect("a document") };
    let (runs, others): (Vec<_>, Vec<_>) = paths.iter().partition(|path| document(path)["schema"].is_u64());
    assert!(runs.len() >= 5 && !others.is_empty(), "{paths:?}");
    for path in runs {
        let text = path.to_str().expect("a path");
        let cases = document(path).get("cases").unwrap_or(&document(path)["rows"]).as_array().map_or(1, Vec::len);
        let folder = tempfile::tempdir().expect("a folder");
        let csv = folder.path().join("out.csv");
        let shown = warpstride(["report", text, "--csv", csv.to_str().expect("a path")]).succeeded();
        let rows = fs::read_to_string(&csv).expect("a table").lines().count();
        assert!(rows > cases && shown.stderr.is_empty(), "{text} has {cases} cases, and {rows} rows: {}", shown.stderr);
        warpstride(["report", text, "--compare", text]).succeeded();
        warpstride(["report", text]).ended(0, &["H100"], &[]);
    }
    for path in others.into_iter().filter(|path| path.ends_with("permutes.json")) {
        warpstride(["report", path.to_str().expect("a path")]).failed(&["scripts/compare-peers", "is not a run"]);
    }
}

#[test]
fn documents_of_one_operation_of_schema_1_are_read() {
    let device = json!({
        "name": "NVIDIA H100", "kind": "cuda", "ordinal": 0, "compute_capability": "9.0", "driver_version": "13.0",
    });
    let document = json!({
        "schema": 1, "device": device, "op": "permute", "dtype": "f32", "shape": [4096, 2048], "axes": [1, 0],
        "bytes": 67_108_864, "kernel": "tile", "verified": true, "samples": 20, "gbps": 2765.5,
        "ms": { "median": 0.024, "p10": 0.023, "p90": 0.025 },
    });
    Reports::of(&document).report("").ended(0, &["permute", "4096", "date unknown"], &[]);
    // Whatever is wrong is an error, and not a panic.
    for member in document.as_object().expect("members").keys() {
        for value in [Value::Null, json!(-1), json!("x"), json!([]), json!({}), json!([[1e300]])] {
            let mut changed = document.clone();
            changed[member] = value;
            let run = Reports::of(&changed).report("");
            assert!([Some(0), Some(1)].contains(&run.code), "{changed}: {}", run.stderr);
        }
    }
}

#[test]
fn what_is_no_run_is_refused() {
    let reports = Reports::of(&json!({ "schema": 2, "cases": [] }));
    reports.report("").failed(&["run.json", "does not hold a run of"]);
    let mut newer = MEASURED.run.clone();
    newer["schema"] = 4.into();
    Reports::of(&newer).report("").failed(&["schema 4", "anew"]);
}

/// Reports divide by some of these figures, add others up, and draw the rest.
#[test]
fn a_figure_out_of_range_is_refused_with_its_case_and_member() {
    let run = timed(&|_| 1.0);
    let name = run["cases"][0]["name"].as_str().expect("a name");
    let most = u64::MAX;
    let figures = [
        ("/ms/median", vec![json!(0), json!(-0.5), json!(1e-10), json!(1e13)]),
        ("/ms/p10", vec![json!(-1), json!(1e300)]),
        ("/ms/p90", vec![json!(-1)]),
        ("/copy_gbps", vec![json!(0), json!(5e-324), json!(-3000)]),
        ("/counted_shape", vec![json!([most])]),
        ("/clocks", vec![json!({ "sm_mhz": 0, "sm_max_mhz": 1980, "memory_mhz": 2619, "slowed": false })]),
        ("/gbps", vec![json!(-1), json!(1e12)]),
        ("/fraction_of_copy", vec![json!(-0.1)]),
        ("/fraction_of_ceiling", vec![json!(-1), json!(1e12)]),
        ("/fraction_of_nominal", vec![json!(-1)]),
        ("/launch_us", vec![json!(-1)]),
        ("/predicted", vec![json!({ "ms": -1, "bound": "memory" })]),
        ("/samples_ms/1", vec![json!(-1)]),
        ("/shape/0", vec![json!(most)]),
        ("/step", vec![json!(most)]),
        ("/launches", vec![json!(most)]),
    ];
    let bytes = ["/read", "/written", "/bytes"].map(|member| (member, vec![json!(most), json!((1_u64 << 53) + 1)]));
    for (member, values) in figures.into_iter().chain(bytes) {
        for value in values {
            let mut wrong = run.clone();
            *wrong["cases"][0].pointer_mut(member).expect("a member") = value;
            let wrong = Reports::of(&wrong);
            let member = member.trim_start_matches('/').replace('/', ".");
            let member = member.trim_end_matches(".0").trim_end_matches(".1");
            let said =
                [&format!("has a figure out of range: {member}"), &*format!("of `{name}`"), "is the file whole?"];
            wrong.report("--html out.html").failed(&said);
            assert!(!wrong.path("out.html").exists());
        }
    }
    // No case reads or writes more bytes than it moves.
    for member in ["read", "written"] {
        let mut more = run.clone();
        let bytes = run["cases"][0]["bytes"].as_u64().expect("bytes");
        more["cases"][0][member] = (bytes + 1).into();
        Reports::of(&more).report("").failed(&["has a figure out of range", member, name]);
    }
    // A drawn case touches bytes, too.
    let mut drawn = run.clone();
    for (member, value) in [("kind", json!("listed")), ("strategy", json!("tile")), ("touched", json!(most))] {
        drawn["cases"][0][member] = value;
    }
    Reports::of(&drawn).report("").failed(&["has a figure out of range", "touched", name]);
    // The slowest case of all reaches none of its ceiling.
    let mut least = run;
    least["cases"][0]["gbps"] = 0.into();
    least["cases"][0]["fraction_of_ceiling"] = 0.into();
    Reports::of(&least).report("").succeeded();
}

#[test]
fn a_ceiling_or_a_clock_out_of_range_is_refused_with_its_member() {
    let run = timed(&|_| 1.0);
    for (member, value) in [
        ("clocks/sm_mhz", json!(0)),
        ("peaks/read/gbps", json!(0)),
        ("peaks/write/gbps", json!(1e12)),
        ("peaks/copy/gbps", json!(5e-324)),
        ("peaks/memcpy", json!(-1)),
        ("peaks/nominal", json!(0)),
        ("peaks/sizes/0/copy", json!(0)),
    ] {
        let mut wrong = run.clone();
        *wrong.pointer_mut(&format!("/{member}")).expect("a member") = value;
        let member = member.replace("/0", "").replace('/', ".");
        Reports::of(&wrong).report("").failed(&[&format!("has a figure out of range: {member}"), "is the file whole?"]);
    }
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    for line in ["report /dev/zero", "report /dev/zero --compare /dev/zero"] {
        suite(Path::new("/nowhere"), line).failed(&["/dev/zero has more than 16 MiB and is not a run; check the path"]);
    }
}
