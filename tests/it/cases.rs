//! The lists of permutes that are measured: `scripts/compare-peers` and `benches/permute.rs` take
//! them as they are.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use warpstride::layout::Layout;

#[path = "../../cli/src/bench/drawn.rs"]
mod drawn;

use drawn::Sizes;

/// The types that the scripts know.
const KNOWN: [&str; 5] = ["u8", "u16", "f32", "f64", "c128"];

/// The cases of `bench --all`.
const LISTED: &str = "cli/src/bench/cases.json";

fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).expect("readable");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn numbers(value: &Value) -> Vec<usize> {
    let numbers = value.as_array().expect("a list").iter();
    numbers.map(|number| number.as_u64().expect("a number") as usize).collect()
}

#[test]
fn every_case_is_a_permute_with_a_name_of_its_own() {
    let mut names = HashSet::new();
    let mut dtypes = HashSet::new();
    for case in cases(LISTED).into_iter().chain(cases("benches/cases-more.json")) {
        let layout = Layout::row_major(&numbers(&case["shape"])).expect("a shape");
        layout.permuted_axes(&numbers(&case["axes"])).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(names.insert(case["name"].as_str().expect("a name").to_owned()), "{case}: another has its name");
        dtypes.insert(case["dtype"].as_str().expect("a type").to_owned());
    }
    assert_eq!(dtypes, HashSet::from(KNOWN.map(String::from)), "one type a width, which the scripts know");
}

#[test]
fn only_the_other_cases_have_a_kind() {
    assert!(cases(LISTED).iter().all(|case| case["kind"].is_null()));
    assert!(cases("benches/cases-more.json").iter().all(|case| case["kind"].is_string()));
}

#[test]
fn drawn_cases_have_types_that_the_scripts_know() {
    let drawn = drawn::cases(1, 90, Sizes::TIMED);
    let dtypes: HashSet<_> = drawn.iter().map(|case| case.dtype.name()).collect();
    assert_eq!(dtypes, HashSet::from(KNOWN));
}
