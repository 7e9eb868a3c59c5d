//! `warpstride bench permute --file`: the permutes of a list, and their comparison with a record.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::report::compared;
use super::{Run, command};

const LIST: &str = r#"[
    {"name": "structs", "kind": "structs", "dtype": "u8", "shape": [400, 3], "axes": [1, 0]},
    {"dtype": "f32", "shape": [40, 30], "axes": [1, 0], "within": [40, 32], "into": [30, 48], "start": 1},
    {"dtype": "u16", "shape": [30, 20], "axes": [1, 0], "steps": [-1, 2]}
]"#;

/// A folder with a list.
struct Folder(TempDir);

impl Folder {
    fn of(list: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        folder.write(list);
        folder
    }

    fn write(&self, list: &str) {
        fs::write(self.0.path().join("list.json"), list).expect("writing the list");
    }

    /// Measures the list there on the software GPU.
    fn measured(&self, more: &str) -> Run {
        let words = "--device soft bench permute --file list.json".split(' ').chain(more.split_whitespace());
        Run::of(command(words).current_dir(self.0.path()))
    }
}

#[test]
fn a_list_is_measured_kept_in_a_file_and_compared_with_it() {
    let folder = Folder::of(LIST);
    let document = folder.measured("--json --save ./kept/run.json").succeeded().json();
    let cases = document["cases"].as_array().expect("cases");
    let names: Vec<_> = cases.iter().map(|case| case["name"].as_str().expect("a name")).collect();
    let stepped = "permute u16 30x20 by 1,0 steps -1,2";
    assert_eq!(
        names,
        ["permute u8 400x3 by 1,0", "permute f32 40x30 by 1,0 within 40x32 into 30x48 behind 1", stepped]
    );
    for case in cases {
        assert_eq!((&case["verified"], case["strategy"].is_string()), (&true.into(), true), "{case}");
    }
    assert_eq!((&cases[0]["kind"], &cases[1]["kind"]), (&"structs".into(), &"".into()));
    let kept = fs::read_to_string(folder.0.path().join("kept/run.json")).expect("the kept run");
    assert_eq!(serde_json::from_str::<Value>(&kept).expect("a document")["cases"], document["cases"]);
    assert!(kept.lines().any(|line| line.contains(stepped) && !line.contains("400x3")), "{kept}");
    folder.measured("--compare kept/run.json").ended(0, &["All counters are equal."], &[]);
    folder.measured("--compare ./other.json").failed(&["no run is kept as ./other.json"]);
}

#[test]
fn a_run_of_another_list_is_refused() {
    let folder = Folder::of(LIST);
    folder.measured("--save ./run.json").succeeded();
    let mut list: Vec<Value> = serde_json::from_str(LIST).expect("a list");
    list[2] = json!({ "dtype": "c128", "shape": [9, 8], "axes": [1, 0] });
    folder.write(&json!(list).to_string());
    let lacks = ["of another list", "lacks 1 case (`permute c128 9x8 by 1,0` first)"];
    folder.measured("--compare ./run.json").failed(&lacks);
    list.pop();
    folder.write(&json!(list).to_string());
    folder.measured("--compare ./run.json").failed(&["of another list", "has beside them 1 case (`permute u16 30x20"]);
}

#[test]
fn wrong_lists_are_refused_with_the_case_and_what_to_give() {
    let case = |members: &str| format!(r#"[{{"dtype": "u8", "shape": [4, 6], "axes": [1, 0]{members}}}]"#);
    let folder = Folder::of("");
    for (list, parts) in [
        ("{}".to_owned(), ["list.json", "--cases"]),
        ("[]".to_owned(), ["list.json has 0 cases", "1 to 1000"]),
        (case(r#", "stride": 2"#), ["unknown field `stride`", "list.json"]),
        (case(r#", "steps": [0, 1]"#), ["case 0", "other than 0"]),
        (case(r#", "steps": [2]"#), ["case 0", "2 axes"]),
        (case(r#", "steps": [9223372036854775807, 1]"#), ["case 0", "smaller"]),
        (case(r#", "within": [4, 5]"#), ["[4, 5]", "as long at least"]),
        (case(r#", "into": [6]"#), ["[6]", "an extent for each axis"]),
        (case(r#", "into": [6, 18446744073709551615]"#), ["case 0", "use a smaller one"]),
        (case(r#", "start": 18446744073709551615"#), ["case 0", "use a smaller one"]),
        (LIST.replace("[400, 3]", "[400, 0]"), ["case 0", "has no elements"]),
        (LIST.replace("[400, 3]", "[400, 3, 2]"), ["case 0", "axes"]),
        (
            LIST.replace(r#""u8", "shape": [400, 3]"#, r#""u8", "shape": [400, 99999999999999999]"#),
            ["case 0", "element"],
        ),
        (
            LIST.replace("{\"name\"", r#"{"dtype": "u8", "shape": [400, 3], "axes": [1, 0]}, {"name""#),
            ["twice", "400x3"],
        ),
    ] {
        folder.write(&list);
        folder.measured("").failed(&parts);
    }
    for (more, part) in [("--random 1,3", "'--random <SEED,N>'"), ("--part 1/2", "--random"), ("--cases", "--random")] {
        let run = folder.measured(more);
        assert!(run.code == Some(2) && run.stderr.contains(part), "{more}: {}", run.stderr);
    }
}

#[test]
fn a_loss_of_3_percent_beside_the_copy_is_named_and_one_of_1_percent_is_not() {
    let measured = Folder::of(LIST).measured("--json").succeeded().json();
    // The run as a GPU would have it, on a card whose copies have `copy` GB/s: the first case takes
    // `ms` milliseconds where a copy of its bytes takes 0.9.
    let timed = |copy: f64, ms: f64| {
        let mut run = measured.clone();
        run["device"]["name"] = "A GPU".into();
        run["device"]["kind"] = "cuda".into();
        for (at, case) in run["cases"].as_array_mut().expect("cases").iter_mut().enumerate() {
            let ms = if at == 0 { ms } else { 1.0 } * 3000.0 / copy;
            let times = json!({
                "ms": { "median": ms, "p10": 0.999 * ms, "p25": 0.9995 * ms, "p75": 1.0005 * ms, "p90": 1.001 * ms },
                "gbps": 2700.0 / ms, "copy_gbps": copy, "fraction_of_copy": 2700.0 / ms / copy, "gapless": true,
            });
            case.as_object_mut().expect("a case").extend(times.as_object().expect("members").clone());
        }
        run
    };
    let before = timed(3000.0, 1.0);
    let slower = timed(2900.0, 1.031);
    let lost = ["permute u8 400x3 by 1,0", "90.0 %", "87.3 %", "-3.0 %", "2 of 3 cases did as before"];
    compared(&slower, &before).ended(1, &lost, &["1 of 3 cases are slower", "permute u8 400x3"]);
    // A card that is 3 % slower at everything, and a loss within the threshold.
    for same in [timed(2900.0, 1.0), timed(3000.0, 1.01), timed(3100.0, 0.99)] {
        let run = compared(&same, &before).ended(0, &["3 of 3 cases did as before, by the same kernel."], &[]);
        assert!(!run.stdout.contains("400x3"), "{}", run.stdout);
    }
    let mut other = timed(3000.0, 1.0);
    other["cases"][2]["strategy"] = "boxes".into();
    let told = ["steps -1,2", "boxes patch_b16, was small patch_b16", "+0.0 %", "2 of 3 cases did as before"];
    compared(&other, &before).ended(0, &told, &[]);
}
