//! `warpstride transfers` on the software GPU, and reports of what a GPU measured.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::warpstride;

fn measured(args: &[&str]) -> Value {
    warpstride([&["--device", "soft", "--json", "transfers"], args].concat()).succeeded().json()
}

#[test]
fn every_kind_of_memory_is_copied_in_every_direction_and_size() {
    let document = measured(&["--bytes", "100001"]);
    assert_eq!((&document["schema"], &document["device"]["kind"]), (&3.into(), &"soft".into()));
    let all = &document["transfers"];
    assert_eq!(all["link"], Value::Null);
    let copies = all["copies"].as_array().expect("a list");
    let found: BTreeSet<(&str, &str, u64)> = copies
        .iter()
        .map(|copy| {
            assert_eq!((&copy["verified"], &copy["ms"], &copy["gbps"]), (&true.into(), &Value::Null, &Value::Null));
            let name = |member: &str| copy[member].as_str().expect("a name");
            (name("memory"), name("direction"), copy["bytes"].as_u64().expect("bytes"))
        })
        .collect();
    let kinds = [
        ("pageable", "h2d"),
        ("pageable", "d2h"),
        ("fresh-pageable", "d2h"),
        ("pageable-by-driver", "h2d"),
        ("pageable-by-driver", "d2h"),
        ("pinned", "h2d"),
        ("pinned", "d2h"),
        ("pinned", "both"),
        ("registered", "h2d"),
        ("registered", "d2h"),
        ("write-combined", "h2d"),
    ];
    let expected = [65_536, 100_001].into_iter().flat_map(|bytes| kinds.map(|(memory, way)| (memory, way, bytes)));
    assert_eq!(found, expected.collect());
    assert_eq!(all["pinning"].as_array().map(Vec::len), Some(2));
    let frames = all["frames"].as_array().expect("a list");
    assert!(frames.len() == 4 && frames.iter().all(|trip| trip["verified"] == true), "{frames:?}");
}

#[test]
fn the_software_gpu_prints_no_speed_and_refuses_what_does_not_fit() {
    let shown = warpstride(["--device", "soft", "transfers", "--bytes", "5"]).succeeded().stdout;
    assert!(shown.contains("No GB/s") && shown.contains("write-combined"), "{shown}");
    warpstride(["--device", "soft", "transfers", "--bytes", "9000000000000000"]).failed(&["memory", "smaller"]);
    for wrong in ["0", "-1", "1.5", "many", "99999999999999999999999"] {
        let run = warpstride(["transfers", &format!("--bytes={wrong}")]);
        assert_eq!(run.code, Some(2), "{wrong}: {}", run.stderr);
    }
}

/// The software GPU's document with times as a GPU's has them.
fn timed() -> Value {
    let mut document = measured(&["--bytes", "1000000"]);
    document["device"]["kind"] = "cuda".into();
    let all = &mut document["transfers"];
    all["link"] = json!({ "generation": 5, "lanes": 16, "gbps": 63.015 });
    for copy in all["copies"].as_array_mut().expect("a list") {
        copy["ms"] = json!({ "median": 1.0, "p10": 0.9, "p25": 0.95, "p75": 1.05, "p90": 1.1 });
        copy["gbps"] = 31.5.into();
    }
    document
}

#[test]
fn a_report_draws_the_copies_of_a_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [run, page, charts] = ["run.json", "page.html", "charts"].map(|name| folder.path().join(name));
    fs::write(&run, timed().to_string()).expect("writing the run");
    let report = |options: &[&std::ffi::OsStr]| warpstride([&["report".as_ref(), run.as_os_str()], options].concat());
    let shown = report(&[]).succeeded().stdout;
    assert!(shown.contains("PCIe 5 x16: 63.0 GB/s") && shown.contains("50.0 %"), "{shown}");
    report(&["--html".as_ref(), page.as_os_str(), "--svg".as_ref(), charts.as_os_str()]).succeeded();
    let page = fs::read_to_string(page).expect("the page");
    let chart = fs::read_to_string(charts.join("transfers.svg")).expect("the chart");
    for part in ["pinned both ways", "pageable, by the driver H2D", "link, one direction"] {
        assert!(chart.contains(part) && page.contains(part), "{part}");
    }
    roxmltree::Document::parse(&chart).expect("the chart is XML");
}

#[test]
fn a_run_of_numbers_that_no_chart_holds_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [run, page] = ["run.json", "page.html"].map(|name| folder.path().join(name));
    for wrong in [-1.0, 1e300] {
        let mut document = timed();
        document["transfers"]["copies"][0]["gbps"] = wrong.into();
        fs::write(&run, document.to_string()).expect("writing the run");
        warpstride(["report".as_ref(), run.as_os_str(), "--html".as_ref(), page.as_os_str()]).failed(&["GB/s"]);
        assert!(!page.exists());
    }
}
