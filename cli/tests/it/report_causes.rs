//! The causes that a report gives: what each sentence says, and where its numbers come from.

use std::fs;

use serde_json::{Value, json};

use super::report::{MEASURED, Reports, timed};
use super::report_page::{RECORD, alone, words};
use super::{repository, soft};

/// Returns the report of a run of some cases, as Markdown without marks.
fn report_of(run: &Value) -> String {
    words(&Reports::of(run).form("--markdown"))
}

/// Returns the recorded run as a document.
fn record() -> Value {
    let text = fs::read_to_string(repository().join(RECORD)).expect("the record");
    serde_json::from_str(&text).expect("a document")
}

/// Makes a case a drawn one at this part of a copy of its sectors.
fn draw(case: &mut Value, part: f64) {
    let touched = case["bytes"].clone();
    let members = json!({ "kind": "listed", "strategy": "tile", "touched": touched, "fraction_of_copy": part });
    case.as_object_mut().expect("a case").extend(members.as_object().expect("members").clone());
}

#[test]
fn a_drawn_case_is_compared_with_a_copy_of_its_sectors_in_every_sentence() {
    let tiled = "transpose tiled f32 4096x4096";
    let conflicts = alone(tiled, |case| draw(case, 0.25));
    assert!(conflicts.contains("than the 22.3 us of a copy of the same sectors"), "{conflicts}");
    let sectors = alone("transpose naive f32 4096x4096", |case| {
        draw(case, 0.1);
        case["predicted"] = Value::Null;
    });
    for part in [
        "A copy of the same sectors takes 28.8 us. With the extra sectors this case takes up to",
        "10.0 % of a copy of its sectors",
    ] {
        assert!(sectors.contains(part), "{part:?} is missing: {sectors}");
    }
    let unknown = alone(tiled, |case| {
        draw(case, 0.25);
        case["counters"] = Value::Null;
        case["predicted"] = Value::Null;
    });
    assert!(unknown.contains("A copy of the same sectors takes 22.3 us; 66.9 of the 89.2 us stay"), "{unknown}");
    for text in [conflicts, sectors, unknown] {
        assert!(!text.contains("bytes alone") && !text.contains("of the bytes;"), "{text}");
        assert!(text.contains("0 of 1 case reaches 95 % of a copy of the same sectors."), "{text}");
        assert!(text.contains("Each case is compared with a copy of the sectors that it reads and writes."), "{text}");
    }
}

/// A run may hold cases that are compared with different speeds.
#[test]
fn the_words_of_a_case_are_those_of_the_speed_that_it_is_compared_with() {
    let mut run = record();
    let cases = run["cases"].as_array_mut().expect("cases");
    cases.truncate(4);
    for case in cases.iter_mut() {
        case["counters"] = Value::Null;
        case["fraction_of_ceiling"] = 0.5.into();
        case["fraction_of_copy"] = 0.4.into();
    }
    cases[1]["fraction_of_ceiling"] = Value::Null;
    draw(&mut cases[2], 0.3);
    cases[3] = MEASURED.run["cases"][3].clone();
    cases[3]["name"] = "counted".into();
    cases[3]["counters"]["ideal"]["global_load"] = 1.into();
    let text = report_of(&run);
    for part in
        [" (50.0 %), ", "40.0 % of a copy's speed, ", "30.0 % of a copy of its sectors, ", "of its accesses are needed"]
    {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    for part in [
        "0 of 4 cases reach 95 % of the speed that each is compared with.",
        "Each case is compared with its ceiling, with a copy of the sectors that it reads and writes, or with a copy of as many bytes.",
    ] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    assert!(!text.contains("of their ceiling"), "{text}");
    run["cases"].as_array_mut().expect("cases").drain(1..);
    draw(&mut run["cases"][0], 0.3);
    let mut other = record()["cases"][0].clone();
    other["fraction_of_ceiling"] = 0.99.into();
    run["cases"].as_array_mut().expect("cases").push(other);
    let text = report_of(&run);
    assert!(text.contains("1 of 2 cases reaches 95 % of the speed that it is compared with."), "{text}");
}

#[test]
fn the_verb_of_the_summary_agrees_with_its_number() {
    let summary = |cases: usize, near: usize| {
        let mut run = timed(&|_| 1.0);
        let all = run["cases"].as_array_mut().expect("cases");
        all.truncate(cases);
        all.iter_mut().take(near).for_each(|case| case["fraction_of_ceiling"] = 1.into());
        report_of(&run)
    };
    for (cases, near, said) in [
        (1, 0, "0 of 1 case reaches 95 % of its ceiling."),
        (1, 1, "1 of 1 case reaches 95 % of its ceiling."),
        (2, 0, "0 of 2 cases reach 95 % of their ceiling."),
        (2, 1, "1 of 2 cases reaches 95 % of its ceiling."),
        (2, 2, "2 of 2 cases reach 95 % of their ceiling."),
    ] {
        let text = summary(cases, near);
        assert!(text.contains(said), "{said:?} is missing: {text}");
    }
}

#[test]
fn a_case_without_a_known_cause_has_what_its_counters_say() {
    let copy = |loads: u64, conflicts: u64| {
        alone("transpose copy f32 4096x4096", |case| {
            let counters = &mut case["counters"];
            for side in ["global_load", "global_store"] {
                counters[side]["sectors"] = counters["ideal"][side].clone();
            }
            let needed = counters["ideal"]["global_load"].as_u64().expect("an ideal");
            counters["global_load"]["sectors"] = (needed * loads / 100).into();
            counters["shared_load"]["instructions"] = 100.into();
            counters["shared_load"]["wavefronts"] = (100 + conflicts).into();
            counters["shared_load"]["bank_conflicts"] = conflicts.into();
            case["predicted"] = Value::Null;
            case["gbps"] = 1000.into();
            case["fraction_of_ceiling"] = 0.3.into();
        })
    };
    let ideal = copy(100, 0);
    assert!(ideal.contains("Counted on the software GPU: all sectors and wavefronts are needed."), "{ideal}");
    let some = copy(104, 3);
    let said = "Counted on the software GPU: loads touch 2,181,038 sectors and need 2,097,152; 3 bank conflicts among 103 wavefronts.";
    assert!(some.contains(said) && !some.contains("are needed"), "{some}");
}

/// Returns the recorded run with these cases alone, which no counter explains.
fn uncounted(kernel: &str, of: &[(&str, usize)]) -> Value {
    let mut run = record();
    let cases = run["cases"].as_array_mut().expect("cases");
    cases.retain(|case| case["name"] == "add f32 268435456");
    let first = cases[0].clone();
    *cases = of
        .iter()
        .enumerate()
        .map(|(at, (dtype, elements))| {
            let mut case = first.clone();
            let members = json!({
                "name": format!("case {at}"), "kernel": kernel, "dtype": dtype, "shape": [elements],
                "fraction_of_ceiling": 0.5, "counters": null, "predicted": null,
            });
            case.as_object_mut().expect("a case").extend(members.as_object().expect("members").clone());
            case
        })
        .collect();
    run
}

#[test]
fn cases_of_an_unknown_cause_share_an_entry_only_where_all_else_is_alike() {
    let entries = |of: &[(&str, usize)]| {
        let text = report_of(&uncounted("a_kernel", of));
        let of_cause = text.matches("\nCause unknown: no counters\n").count();
        assert!(text.contains("Cases with the same kernel and the same known cause share one entry."), "{text}");
        (of_cause, text)
    };
    let (alike, text) = entries(&[("u8", 1 << 27); 8]);
    assert!(alike == 1 && text.contains("2 more cases of the same kernel, type and command, 7th to 8th"), "{text}");
    let (types, text) = entries(&[("u8", 1 << 27), ("c128", 1 << 27)]);
    assert_eq!(types, 2, "{text}");
    // Another number of elements is counted by another command.
    let (commands, text) = entries(&[("u8", 1 << 27), ("u8", 100_003)]);
    assert_eq!(commands, 2, "{text}");
}

#[test]
fn small_arrays_have_no_rank_and_the_others_are_counted_without_them() {
    let mut run = record();
    let cases = run["cases"].as_array_mut().expect("cases");
    // The slowest two; the second is small.
    cases.retain(|case| {
        ["permute f32 1024x1024 by 1,0", "transpose tiled f32 4096x4096", "transpose naive f32 4096x4096"]
            .contains(&case["name"].as_str().unwrap_or_default())
    });
    let text = report_of(&run);
    for part in ["1st, transpose naive", "2nd, transpose tiled", "1 small array has no rank"] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    assert!(!text.contains("3rd, "), "{text}");
}

#[test]
fn the_number_of_launches_is_counted_where_the_document_has_it() {
    let looped = "transpose column_loop f32 4096x4096";
    let derived = alone(looped, |_| {});
    assert!(derived.contains("the model's time of a launch gives their number"), "{derived}");
    let with = |count: u64, predicted: bool| {
        alone(looped, |case| {
            case["launches"] = count.into();
            if !predicted {
                case["predicted"] = Value::Null;
            }
        })
    };
    for counted in [with(2048, true), with(2048, false)] {
        assert!(counted.contains("a run of the case counted them"), "{counted}");
        assert!(!counted.contains("the model's time of a launch"), "{counted}");
    }
    // A graph has the number of a case of the same accesses, and says so.
    let mut run = record();
    let cases = run["cases"].as_array_mut().expect("cases");
    cases.retain(|case| case["name"] == looped);
    cases.push(cases[0].clone());
    cases[1]["name"] = "as a graph".into();
    cases[1]["predicted"] = Value::Null;
    cases[1]["fraction_of_ceiling"] = 0.003.into();
    for (count, from) in [
        (Value::Null, "the model's time of a launch gives their number in a case of the same accesses"),
        (json!(4096), "they were counted in a case of the same accesses"),
    ] {
        run["cases"][0]["launches"] = count;
        let text = report_of(&run);
        assert!(text.contains(&format!("make the 10.2 ms ({from})")), "{from:?} is missing: {text}");
    }
    // One launch is not one after another, and few long ones are not the cause.
    for few in [with(1, true), with(2, false)] {
        assert!(!few.contains("one after another"), "{few}");
    }
    assert!(!derived.contains("counted sectors, bank conflicts and launches"), "{derived}");
}

#[test]
fn a_document_has_the_launches_of_each_case() {
    let document = soft("--json compare --shape 64,48").succeeded().json();
    let launches = |variant: &str| {
        let rows = document["cases"].as_array().expect("cases");
        rows.iter().find(|row| row["variant"] == variant).expect("a row")["launches"].clone()
    };
    let counted = ["copy", "naive", "column_loop", "column_loop_graph"].map(launches);
    assert_eq!(counted, [1, 1, 48, 48].map(Value::from));
    let empty = soft("--json bench copy --elements 0").succeeded().json();
    assert_eq!(empty["launches"], Value::Null);
    let mut run = MEASURED.run.clone();
    let cases = run["cases"].as_array_mut().expect("cases");
    assert!(cases.iter().all(|case| case["launches"].as_u64() > Some(0)));
    // Documents of earlier versions lack it.
    for case in cases {
        case.as_object_mut().expect("a case").remove("launches");
    }
    Reports::of(&run).report("").succeeded();
}

/// No cause looks at every case for each, so a long run has its page soon.
#[test]
fn a_run_of_8000_cases_has_a_page() {
    let mut run = record();
    let recorded = run["cases"].as_array().expect("cases").clone();
    let looped = recorded.iter().find(|case| case["variant"] == "column_loop").expect("a case");
    let cases = recorded.iter().cycle().take(8000).enumerate().map(|(at, case)| {
        // Every second one is many launches of a kernel of its own.
        let mut case = if at % 2 == 0 { case.clone() } else { looped.clone() };
        if at % 2 == 1 {
            case["kernel"] = format!("kernel_{at}").into();
        }
        case["name"] = format!("{} {at}", case["name"].as_str().expect("a name")).into();
        case["samples_ms"] = Value::Null;
        case
    });
    run["cases"] = cases.collect();
    let page = Reports::of(&run).form("--html");
    assert_eq!(page.matches("<tr id=\"case-").count(), 8000);
}

/// Counts the words of a text that stand for figures beyond all numbers.
fn no_numbers(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| ["inf", "NaN"].contains(word)).count()
}

/// Counts those of all reports of a run; `None` where the run is refused.
fn no_numbers_of(run: &Value) -> Option<usize> {
    let reports = Reports::of(run);
    let shown = reports.report("--html out.html --markdown out.md --csv out.csv --svg charts");
    if shown.code != Some(0) {
        assert!(shown.stderr.contains("is the file whole?"), "{}", shown.stderr);
        return None;
    }
    let charts = fs::read_dir(reports.path("charts")).expect("charts").map(|entry| entry.expect("a chart").path());
    let files = ["out.html", "out.md", "out.csv"].map(|name| reports.path(name)).into_iter().chain(charts);
    let written: usize = files.map(|file| no_numbers(&fs::read_to_string(file).expect("a report"))).sum();
    Some(written + no_numbers(&reports.report("").succeeded().stdout))
}

/// Figures of a document may be out of all proportion, and have a report all the same.
#[test]
fn no_report_has_a_figure_that_is_no_number() {
    let mut run = record();
    let cases = run["cases"].as_array_mut().expect("cases");
    // Most causes have a case.
    cases.retain(|case| {
        let name = case["name"].as_str().expect("a name");
        name.starts_with("transpose") || name.starts_with("add") || name.contains("1024x1024") || name.contains("step")
    });
    let first = no_numbers_of(&run).expect("a run");
    let (small, large, least, most) = (json!(1e-9), json!(9.9e11), json!(5e-324), json!(1_u64 << 53));
    let figures = [
        ("ms/median", &small, &large),
        ("gbps", &least, &large),
        ("copy_gbps", &small, &large),
        ("fraction_of_copy", &least, &large),
        ("fraction_of_ceiling", &least, &large),
        ("fraction_of_nominal", &least, &large),
        ("predicted/ms", &least, &large),
        ("launches", &json!(0), &most),
        ("shape", &json!([0]), &json!([most, most, most])),
        ("counted_shape", &json!([0, 0]), &json!([most, most, most])),
        ("counters/global_load/sectors", &json!(0), &most),
        ("counters/global_load/requests", &json!(0), &most),
        ("counters/shared_load/wavefronts", &json!(0), &most),
    ];
    let of_run = [
        ("peaks/read/gbps", &small, &large),
        ("peaks/copy/gbps", &small, &large),
        ("peaks/memcpy", &small, &large),
        ("clocks/sm_mhz", &json!(1), &json!(u32::MAX)),
        ("device/multiprocessors", &json!(0), &json!(u32::MAX)),
    ];
    let set = |run: &mut Value, member: &str, value: &Value| {
        if let Some(figure) = run.pointer_mut(&format!("/{member}")) {
            *figure = value.clone();
        }
    };
    let change = |run: &mut Value, member: &str, value: &Value| {
        set(run, member, value);
        run["cases"].as_array_mut().expect("cases").iter_mut().for_each(|case| set(case, member, value));
    };
    let mut accepted = 0;
    let [mut all_small, mut all_large] = [run.clone(), run.clone()];
    for (member, small, large) in figures.into_iter().chain(of_run) {
        for (value, all) in [(small, &mut all_small), (large, &mut all_large)] {
            let mut changed = run.clone();
            change(&mut changed, member, value);
            change(all, member, value);
            for run in [&changed, all] {
                if let Some(found) = no_numbers_of(run) {
                    assert_eq!(found, first, "{member} {value}");
                    accepted += 1;
                }
            }
        }
    }
    assert!(accepted > 40, "{accepted}");
}
