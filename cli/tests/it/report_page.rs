//! The page of a run: it stands alone, and readers of all kinds can use it. And what each report
//! begins with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use roxmltree::{Document, ParsingOptions};
use serde_json::{Value, json};

use super::report::{MEASURED, Reports, timed};
use super::{repository, warpstride};

#[test]
fn a_page_stands_alone_and_escapes_what_it_shows() {
    for (run, speed) in [(timed(&|_| 1.0), true), (MEASURED.run.clone(), false)] {
        let mut run = run;
        run["cases"][0]["name"] = "<script>alert(1)</script>&\"'".into();
        let html = Reports::of(&run).form("--html");
        assert!(!html.contains("<script>alert") && !html.contains("src=") && !html.contains("@import"), "{html}");
        for address in html.split("http").skip(1) {
            assert!(address.starts_with("://www.w3.org/2000/svg"), "http{}", &address[..40.min(address.len())]);
        }
        assert!(html.contains("&lt;script&gt;alert(1)"), "{html}");
        assert_eq!(html.contains("10⁹ bytes a second"), speed);
        assert_eq!(html.contains("No GB/s: the software GPU"), !speed);
        // The charts are XML; the page around them is HTML.
        for svg in html.split("<svg").skip(1) {
            let svg = format!("<svg{}</svg>", svg.split("</svg>").next().expect("a chart"));
            Document::parse_with_options(&svg, ParsingOptions::default())
                .unwrap_or_else(|error| panic!("{error}: {svg}"));
        }
    }
}

/// The run whose page is committed.
pub(super) const RECORD: &str = "benches/record/2026-11-25-h100/all.json";

/// The words of every report of that run, in their order. The three slowest cases come first, each
/// with its rank.
const ORDER: [&str; 27] = [
    "Each timing is a case.",
    "NVIDIA H100 80GB HBM3, CUDA 13.0, 2026-11-25 19:50 UTC",
    "Ceilings in GB/s: read 3,192, write 3,275, copy 3,059 (cudaMemcpy reaches 3,005; the data sheet has 3,352).",
    "The slowest cases",
    "62 of 97 cases reach 95 % of their ceiling.",
    "35 cases are below 95 %. The list ends after 6 entries with 11 of these cases, up to 66.0 %.",
    "The other 21, from 83.8 % to 94.9 %, stand in the tables.",
    "The software GPU, a simulator on the CPU, counted",
    "Many launches, one after another",
    "1st, transpose column_loop f32 4096x4096: 13.1 of 3,059 GB/s (0.4 %), 10.2 ms; 4,096 launches of 2.49 us",
    "2nd, transpose column_loop_graph f32 4096x4096: 20.9 of 3,059 GB/s (0.7 %), 6.41 ms; 4,096 launches of 1.57 us",
    "3rd, transpose column_loop f32 16384x16384: 49.7 of 3,059 GB/s (1.6 %)",
    "4th, transpose column_loop_graph f32 16384x16384: 76.7 of 3,059 GB/s (2.5 %)",
    "The numbers below are those of the 1st case.",
    "A launch of 4 times the bytes takes 2.64 us, so nearly all of it is a fixed cost. A graph of them takes 1.57 us each.",
    "The launches explain the other 10.0 of the 10.2 ms.",
    "The kernel naive does it in one launch, with as many sectors, and takes 288 us.",
    "The next limit is uncoalesced loads",
    "the kernel padded takes 50.8 us and reaches 86.5 % of its ceiling",
    "5th, transpose naive f32 16384x16384",
    "Cause unknown: no counters",
    "7th, affine u8 to f16 64x1080x1920x3",
    "Run this command, which counts the accesses",
    "Else profile the kernel in Nsight Compute. Its section Warp State Statistics shows",
    "8th, transpose tiled f32 4096x4096",
    "The advice is that for the 7th case.",
    "11th, strided-copy f32 134217728 step 2",
];

/// Returns the words of a report without marks, and with usual spaces.
pub(super) fn words(text: &str) -> String {
    // The page's words stand before its charts.
    let mut plain = String::with_capacity(text.len());
    let mut is_tag = false;
    for c in text.chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if !is_tag => plain.push(c),
            _ => {}
        }
    }
    plain.replace('\u{a0}', " ").replace("**", "").replace(['\\', '`'], "")
}

/// Returns a report of the recorded run in a form.
fn recorded(option: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let record = repository().join(RECORD);
    warpstride(["report".as_ref(), record.as_os_str(), option.as_ref(), out.as_os_str()]).succeeded();
    fs::read_to_string(out).expect("the report")
}

#[test]
fn every_report_begins_with_the_slowest_cases_and_why() {
    let shown = warpstride(["report".as_ref(), repository().join(RECORD).as_os_str()]).succeeded().stdout;
    for text in [shown, recorded("--markdown"), recorded("--html")] {
        let text = words(&text);
        let mut rest = &*text;
        for part in ORDER {
            rest =
                rest.split_once(part).unwrap_or_else(|| panic!("{part:?} is missing, or not in its place: {text}")).1;
        }
        for part in [
            "4,096 launches run one after another, 2.49 us each, and each",
            "Counted on the software GPU: 32 sectors for each of 8,388,608 requests, where 4 would hold the bytes of a request \
             (global_store.sectors 268,435,456; in Nsight Compute",
            "The counts are those of an array of 4096x4096, multiplied by 16",
            "8 times the bytes of stores move",
            "the bytes take up to 4.40 ms by the model; 301 us of the 4.70 ms stay unexplained",
            "3 small arrays have no rank, because a plain copy of the same size is as slow: permute f32 1024x1024 by 1,0 (42.0 %), ",
            "31 extra passes for each of 524,288 loads",
            "take 70.2 us at 1,980 MHz, more than the 43.9 us of the bytes; 19.0 of the 89.2 us stay unexplained",
            "nsys profile --cuda-graph-trace=node",
            "it moves 1.4 elements in a clock of a multiprocessor, and normalize 3.7",
        ] {
            assert!(text.contains(part), "{part:?} is missing: {text}");
        }
        // A word has its meaning once.
        assert_eq!(text.matches("A sector is 32 bytes").count(), 1, "{text}");
    }
}

/// Returns the page of the recorded run without times, or with other members of its cases.
pub(super) fn changed(change: impl Fn(&mut Value)) -> String {
    let text = fs::read_to_string(repository().join(RECORD)).expect("the record");
    let mut run: Value = serde_json::from_str(&text).expect("a document");
    run["cases"].as_array_mut().expect("cases").iter_mut().for_each(change);
    words(&Reports::of(&run).form("--markdown"))
}

#[test]
fn reasons_go_by_what_was_measured_and_not_by_names() {
    let renamed = changed(|case| {
        case["name"] = format!("case of {}", case["name"].as_str().expect("a name").len()).into();
        case["variant"] = Value::Null;
    });
    for part in ["launches run one after another", "32 sectors for each of", "31 extra passes for each of"] {
        assert!(renamed.contains(part), "{part:?} is missing: {renamed}");
    }
    let uncounted = changed(|case| {
        case["counters"] = Value::Null;
        case["predicted"] = Value::Null;
    });
    assert!(!uncounted.contains("sectors for each of") && !uncounted.contains("one after another"), "{uncounted}");
    // Counters that show no waste explain nothing.
    let ideal = changed(|case| {
        if let Some(counters) = case["counters"].as_object_mut() {
            let ideal = counters["ideal"].clone();
            for (name, needed) in ideal.as_object().expect("ideals") {
                let taken = if name.starts_with("global") { "sectors" } else { "wavefronts" };
                counters[name][taken] = needed.clone();
                if counters[name].get("bank_conflicts").is_some() {
                    counters[name]["bank_conflicts"] = 0.into();
                }
            }
        }
        case["predicted"] = Value::Null;
        case["fraction_of_copy"] = 0.1.into();
    });
    assert!(ideal.contains("Cause not known") && ideal.contains("No counter explains most of the time."), "{ideal}");
    let throttled = changed(|case| case["clocks"]["slowed"] = true.into());
    assert!(throttled.contains("Doubtful times"), "{throttled}");
}

/// Returns the page of the recorded run with one case alone, as `change` makes it.
pub(super) fn alone(name: &str, change: impl Fn(&mut Value)) -> String {
    changed(|case| {
        if case["name"] == name {
            change(case);
        } else {
            case["fraction_of_ceiling"] = Value::Null;
            case["fraction_of_copy"] = Value::Null;
            case["counters"] = Value::Null;
        }
    })
}

#[test]
fn a_cause_weighs_by_the_bytes_of_its_side_and_by_the_model() {
    let naive = "transpose naive f32 4096x4096";
    // The model's limit is the L2 cache, whose sectors take nearly all of the time.
    let by_model = alone(naive, |_| {});
    assert!(by_model.contains("Uncoalesced stores") && !by_model.contains("stay unexplained"), "{by_model}");
    // Without it, stores of 8 times their sectors are 4.5 times all bytes: 69 % of the time.
    let weighed = alone(naive, |case| case["predicted"] = Value::Null);
    assert!(weighed.contains("up to 197 us; 90.3 of the 288 us stay unexplained"), "{weighed}");
    // Hardly any bytes are stored, so their sectors hardly weigh.
    let few = alone(naive, |case| {
        case["predicted"] = Value::Null;
        case["written"] = 4096.into();
    });
    assert!(few.contains("Cause not known") && few.contains("up to 43.9 us; 244 of the 288 us"), "{few}");
    // Another limit of the model.
    let other = alone(naive, |case| case["predicted"]["bound"] = "latency".into());
    assert!(other.contains("Cause not known") && other.contains("8 times the bytes of stores move"), "{other}");
}

#[test]
fn a_cause_explains_time_beyond_that_of_the_bytes() {
    let tiled = "transpose tiled f32 4096x4096";
    let without_conflicts = |case: &mut Value, conflicts: u64| {
        let counters = &mut case["counters"];
        let needed = counters["ideal"]["shared_load"].as_u64().expect("an ideal");
        counters["shared_load"]["wavefronts"] = (needed + conflicts).into();
        counters["shared_load"]["bank_conflicts"] = conflicts.into();
        case["predicted"] = Value::Null;
    };
    // The bytes take half of the time, and 6 % more sectors hardly any.
    let little = alone(tiled, |case| {
        without_conflicts(case, 0);
        let sectors = case["counters"]["global_load"]["sectors"].as_f64().expect("sectors");
        case["counters"]["global_load"]["sectors"] = ((1.06 * sectors) as u64).into();
    });
    assert!(little.contains("Cause not known") && little.contains("1.1 times the bytes of loads move"), "{little}");
    let one = alone(tiled, |case| without_conflicts(case, 1));
    assert!(one.contains("Cause not known") && !one.contains("extra pass"), "{one}");
    let all = alone(tiled, |_| {});
    assert!(all.contains("Bank conflicts") && all.contains("31 extra passes"), "{all}");
}

#[test]
fn a_case_that_a_copy_is_as_slow_as_is_no_fault() {
    let name = "permute f32 1024x1024 by 1,0";
    let small = alone(name, |_| {});
    assert!(small.contains("1 case is below 95 %. 1 small array has no rank, because a plain copy of the same size is as slow: permute f32 1024x1024"), "{small}");
    let slow = alone(name, |case| {
        case["ms"]["median"] = 0.65.into();
        case["copy_gbps"] = 13.0.into();
        case["fraction_of_ceiling"] = 0.0042.into();
    });
    assert!(slow.contains("A slow copy") && slow.contains("10.0 us at most"), "{slow}");
    // A copy is not compared with itself.
    let copy = alone("transpose copy f32 4096x4096", |case| {
        case["gbps"] = 13.0.into();
        case["copy_gbps"] = 13.0.into();
        case["ms"]["median"] = 10.3.into();
        case["fraction_of_ceiling"] = 0.0042.into();
    });
    assert!(copy.contains("This case is a copy itself"), "{copy}");
}

#[test]
fn launches_are_those_of_a_case_with_the_same_kernel_and_accesses() {
    let graph = |change: &dyn Fn(&mut Value)| {
        changed(|case| {
            if case["name"].as_str().is_some_and(|name| name.contains("column_loop f32")) {
                change(case);
            }
        })
    };
    assert!(graph(&|_| {}).contains("6.41 ms; 4,096 launches of 1.57 us"));
    // No case has a count, or it is that of other accesses.
    let none = graph(&|case| case["predicted"] = Value::Null);
    assert!(!none.contains("launches run one after another"), "{none}");
    let other = graph(&|case| case["counters"]["global_load"]["sectors"] = 1.into());
    assert!(!other.contains("6.41 ms; 4,096 launches"), "{other}");
    // The time of a launch includes its work, and no other launches tell how much that is.
    let lone = changed(|case| {
        let name = case["name"].as_str().unwrap_or_default();
        if name.contains("16384") || name.contains("graph") || name.contains("naive") {
            case["kernel"] = "another".into();
            case["ms"] = Value::Null;
        }
    });
    assert!(lone.contains("2.49 us each (10.2 ms / 4,096, with their work), and each"), "{lone}");
    assert!(!lone.contains("does it in one launch") && !lone.contains("A graph of them"), "{lone}");
    // A number that is not whole is not one of launches.
    let broken = graph(&|case| case["predicted"]["ms"] = 9.8315.into());
    assert!(!broken.contains("launches run one after another"), "{broken}");
}

#[test]
fn a_peer_has_no_gaps_and_moves_more_elements() {
    let slow = "affine u8 to f16 64x1080x1920x3 by 0,3,1,2 channels 1";
    let peers = |change: &dyn Fn(&mut Value)| {
        changed(|case| {
            if case["name"] != slow {
                change(case)
            }
        })
    };
    let found = peers(&|_| {});
    assert!(found.contains("93.1 % of its ceiling"), "{found}");
    for member in ["step", "ms"] {
        let page = peers(&|case| match member {
            "step" => case["step"] = 2.into(),
            _ => case["ms"] = Value::Null,
        });
        assert_eq!(page.contains("not the bytes that must move"), member == "ms", "{page}");
    }
    let slower = peers(&|case| {
        if case["ms"].is_object() {
            case["ms"]["median"] = 1e6.into();
        }
    });
    assert!(!slower.contains("normalize u8 to f16 64x1080x1920x3 moves as many bytes"), "{slower}");
}

#[test]
fn no_number_of_a_document_makes_a_report_panic() {
    let text = fs::read_to_string(repository().join(RECORD)).expect("the record");
    let run: Value = serde_json::from_str(&text).expect("a document");
    let figures = [
        "/read",
        "/written",
        "/bytes",
        "/counters/global_store/requests",
        "/counters/shared_load/instructions",
        "/counters/shared_load/wavefronts",
        "/counters/ideal/global_load",
        "/step",
        "/shape/0",
    ];
    let whole = figures.map(|figure| (figure, [0, 1 << 53, u64::MAX].map(Value::from)));
    let measured =
        ["/ms/median", "/ms/p10", "/copy_gbps", "/gbps", "/fraction_of_copy", "/fraction_of_ceiling", "/predicted/ms"];
    let measured = measured.map(|figure| (figure, [1e-300, 9.9e11, -1.0].map(Value::from)));
    for (figure, numbers) in whole.into_iter().chain(measured) {
        for number in numbers {
            let mut run = run.clone();
            for case in run["cases"].as_array_mut().expect("cases") {
                if let Some(value) = case.pointer_mut(figure) {
                    *value = number.clone();
                }
            }
            let reported = Reports::of(&run).report("--html a --markdown b --csv c --svg d");
            let shown = Reports::of(&run).report("");
            for run in [reported, shown] {
                assert!([Some(0), Some(1)].contains(&run.code), "{figure} {number}: {}", run.stderr);
                assert!(!run.stderr.contains("panicked"), "{figure} {number}: {}", run.stderr);
                assert!(
                    !run.stdout.contains(" inf ") && !run.stdout.contains("NaN"),
                    "{figure} {number}: {}",
                    run.stdout
                );
            }
        }
    }
}

#[test]
fn the_commands_that_a_report_names_count_accesses() {
    let page = recorded("--html");
    let commands = page.split("<pre tabindex=\"0\"><code>warpstride ").skip(1);
    let mut commands: Vec<&str> =
        commands.map(|rest| rest.split_once("</code>").expect("the end of the command").0).collect();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let words = ["--json"].into_iter().chain(command.split(' '));
        let document = warpstride(words).succeeded().json();
        assert!(document["counters"].is_object(), "{command}");
    }
}

#[test]
fn a_run_without_times_begins_with_its_accesses() {
    let html = Reports::of(&MEASURED.run).form("--html");
    for part in [
        "software GPU, driver ",
        "Most accesses beyond those needed",
        "of its accesses are needed",
        "A sector is 32 bytes",
        "bank conflicts",
    ] {
        assert!(html.contains(part), "{part:?} is missing: {html}");
    }
}

#[test]
fn a_page_of_two_runs_begins_with_what_changed() {
    let (now, before) = (timed(&|name| if name.starts_with("add f32") { 1.1 } else { 1.0 }), timed(&|_| 1.0));
    let reports = Reports::of(&now);
    fs::write(reports.path("before.json"), before.to_string()).expect("writing the run");
    for (option, same) in [("--html", "did as before"), ("--markdown", "| same |")] {
        let run = reports.report(&format!("--compare before.json {option} out"));
        assert_eq!(run.code, Some(1), "a case is slower");
        let text = fs::read_to_string(reports.path("out")).expect("the page");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is missing: {text}"));
        let order = ["What changed", "+10.0 %", same, "The slowest cases"].map(place);
        assert!(order.is_sorted(), "{order:?} in {text}");
    }
    let shown = reports.report("--compare before.json").stdout;
    assert!(shown.starts_with("A <b>GPU</b>") && shown.contains("\nCeilings in GB/s: read 950, "), "{shown}");
    let page = fs::read_to_string(reports.path("out")).expect("the page");
    assert!(page.contains("Before: "), "{page}");
}

/// The browser, if there is one.
fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name))).find(|path| path.is_file())
}

#[test]
fn a_browser_renders_the_page_without_an_error_or_a_request() {
    let Some(chromium) = chromium() else {
        crate::long::missing("a browser (chromium, chromium-browser or google-chrome)");
        return;
    };
    for run in [timed(&|_| 1.0), MEASURED.run.clone()] {
        let reports = Reports::of(&run);
        reports.form("--html");
        let page = reports.path("page.html");
        fs::rename(reports.path("out"), &page).expect("a name that is HTML");
        let Browsed { errors, requests, .. } = browse(&chromium, &page, &[]);
        assert_eq!((errors.as_str(), requests), ("", vec![]));
    }
    // The check sees an error and a request if they are there.
    let reports = Reports::of(&json!({}));
    let page = reports.path("page.html");
    fs::write(&page, "<p>x<script>console.error('wrong')</script><img src='http://127.0.0.1:9/x.png'>")
        .expect("a page");
    let Browsed { errors, requests, .. } = browse(&chromium, &page, &[]);
    assert!(errors.contains("wrong") && requests == ["http://127.0.0.1:9/x.png"], "{errors} {requests:?}");
}

/// A page as a browser made it.
struct Browsed {
    /// The page as it is after its scripts ran.
    page: String,
    /// The console's text.
    errors: String,
    /// The addresses that it asked for beyond its own.
    requests: Vec<String>,
}

/// Loads a page, with further words for the browser.
fn browse(chromium: &Path, page: &Path, more: &[&str]) -> Browsed {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("net.json");
    let output = Command::new(chromium)
        .args("--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-logging=stderr --v=0".split(' '))
        .args(["--disable-background-networking", "--disable-component-update", "--no-first-run", "--dump-dom"])
        // The browser asks its maker for news all the same, but finds no host.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("<p"), "the page was not rendered");
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    let log = fs::read_to_string(&log).expect("what was fetched");
    // An event a line; what the browser asks for itself was initiated by no origin.
    let mut requests: Vec<String> = log
        .lines()
        .filter(|event| event.contains("\"initiator\":") && !event.contains("\"initiator\":\"not an origin\""))
        .filter_map(|event| event.split_once("\"url\":\"")?.1.split('"').next())
        .map(str::to_owned)
        .collect();
    requests.sort();
    requests.dedup();
    Browsed { page, errors: errors.join("\n"), requests }
}

/// A script that is added to a page: axe-core looks at all of it, and then a button sorts a table.
const HARNESS: &str = r#"
const result = document.createElement("pre");
const point = document.querySelector("svg a.point");
const group = document.querySelector(point.getAttribute("href")).closest("details");
const opened = [1, 2].map(() => {
  group.removeAttribute("open");
  point.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  return group.hasAttribute("open");
});
point.focus();
opened.push(document.activeElement === point);
location.hash = "%";
document.querySelectorAll("details").forEach((group) => group.setAttribute("open", ""));
axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => {
  const found = violations.map(({ id, impact, nodes }) => ({ id, impact, node: nodes[0].html, why: nodes[0].failureSummary }));
  const table = document.querySelector("details table");
  const button = [...table.querySelectorAll("thead button")].find((button) => button.textContent === "of ceiling");
  const at = button.parentElement.cellIndex;
  const sorted = ["ascending", "descending"].map((wanted) => {
    button.click();
    const cells = [...table.tBodies[0].rows].map((row) => Number.parseFloat(row.cells[at].textContent));
    return [button.parentElement.ariaSort === wanted, cells];
  });
  location.hash = "case-0";
  result.id = "result";
  result.textContent = JSON.stringify({ found, sorted, opened });
  document.body.append(result);
});
"#;

#[test]
fn readers_of_all_kinds_can_use_the_page() {
    let axe = repository().join("target/tools/axe/node_modules/axe-core/axe.min.js");
    let (Some(chromium), Ok(axe)) = (chromium(), fs::read_to_string(axe)) else {
        crate::long::missing("a browser or axe-core");
        return;
    };
    let page =
        recorded("--html").replace("</body>", &format!("<script>{axe}</script><script>{HARNESS}</script></body>"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("page.html");
    fs::write(&path, page).expect("a page");
    // Dark, and light.
    for scheme in [0, 1] {
        let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
        let browsed = browse(&chromium, &path, &["--virtual-time-budget=60000", "--window-size=1400,900", &scheme]);
        let result = browsed.page.split_once("<pre id=\"result\">").expect("axe-core ran").1;
        let result = result
            .split_once("</pre>")
            .expect("its end")
            .0
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        let result: Value = serde_json::from_str(&result).expect("a document");
        assert_eq!(result["found"], json!([]), "{scheme}: {result:#}");
        assert_eq!(result["opened"], json!([true, true, true]), "a point opens its group, and takes the focus");
        let cells = |at: usize| -> Vec<f64> {
            let cells = result["sorted"][at][1].as_array().expect("cells");
            cells.iter().map(|cell| cell.as_f64().expect("a number")).collect()
        };
        assert_eq!((&result["sorted"][0][0], &result["sorted"][1][0]), (&true.into(), &true.into()), "{result:#}");
        assert!(cells(0).is_sorted() && cells(1).iter().rev().is_sorted(), "{result:#}");
        assert_eq!(browsed.errors, "");
    }
}

#[test]
fn the_committed_page_is_what_the_command_draws() {
    for (option, page) in [("--html", "docs/report/h100.html"), ("--markdown", "docs/report/h100.md")] {
        let committed = fs::read_to_string(repository().join(page)).unwrap_or_default();
        assert!(committed == recorded(option), "run: warpstride report {RECORD} {option} {page}");
    }
}
