//! `warpstride transfers` on the software GPU, and reports of what a GPU measured.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::report::Reports;
use super::{soft, warpstride};

fn measured(bytes: usize) -> Value {
    soft(&format!("--json transfers --bytes {bytes}")).succeeded().json()
}

#[test]
fn every_kind_of_memory_is_copied_in_every_direction_and_size() {
    let document = measured(100_001);
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
        ("pageable", &["h2d", "d2h"][..]),
        ("fresh-pageable", &["d2h"]),
        ("pageable-by-driver", &["h2d", "d2h"]),
        ("pinned", &["h2d", "d2h", "both"]),
        ("registered", &["h2d", "d2h"]),
        ("write-combined", &["h2d"]),
    ];
    let kinds = kinds.iter().flat_map(|(memory, ways)| ways.iter().map(move |way| (*memory, *way)));
    let expected = kinds.flat_map(|(memory, way)| [65_536, 100_001].map(|bytes| (memory, way, bytes)));
    assert_eq!(found, expected.collect());
    assert_eq!(all["pinning"].as_array().map(Vec::len), Some(2));
    let frames = all["frames"].as_array().expect("a list");
    assert!(frames.len() == 4 && frames.iter().all(|trip| trip["verified"] == true), "{frames:?}");
}

#[test]
fn the_software_gpu_prints_no_speed_and_refuses_what_does_not_fit() {
    let shown = soft("transfers --bytes 5").succeeded().stdout;
    assert!(shown.contains("No GB/s") && shown.contains("write-combined"), "{shown}");
    soft("transfers --bytes 9000000000000000").failed(&["memory", "smaller"]);
    for wrong in ["0", "-1", "1.5", "many", "99999999999999999999999"] {
        let run = warpstride(["transfers", &format!("--bytes={wrong}")]);
        assert_eq!(run.code, Some(2), "{wrong}: {}", run.stderr);
    }
}

/// The software GPU's document with times as a GPU's has them.
fn timed() -> Value {
    let mut document = measured(1_000_000);
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
    let reports = Reports::of(&timed());
    // Copies both ways are compared with both directions.
    reports.report("").ended(0, &["PCIe 5 x16: 63.0 GB/s", "50.0 %", "25.0 %"], &[]);
    reports.report("--html page.html --svg charts").succeeded();
    let page = fs::read_to_string(reports.path("page.html")).expect("the page");
    let chart = fs::read_to_string(reports.path("charts/transfers.svg")).expect("the chart");
    for part in ["pinned both ways", "pageable, by the driver H2D", "link, one direction"] {
        assert!(chart.contains(part) && page.contains(part), "{part}");
    }
    roxmltree::Document::parse(&chart).expect("the chart is XML");
}

#[test]
fn a_run_of_numbers_that_no_chart_holds_is_refused() {
    for wrong in [-1.0, 1e300] {
        let mut document = timed();
        document["transfers"]["copies"][0]["gbps"] = wrong.into();
        let reports = Reports::of(&document);
        reports.report("--html page.html").failed(&["GB/s"]);
        assert!(!reports.path("page.html").exists());
    }
}
