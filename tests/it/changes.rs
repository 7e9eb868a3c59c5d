//! The files that a change touches, as the section "Changes" of CONTRIBUTING.md lists them.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn section() -> String {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("readable");
    let (_, rest) = text.split_once("\n## Changes\n").expect("the section");
    rest.split("\n## ").next().expect("its text").to_owned()
}

/// The paths that a word in backticks names: one, or one for each name in its braces.
fn paths(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let (names, after) = rest.split_once('}').expect("a closing brace");
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

#[test]
fn every_file_that_a_change_touches_is_there() {
    let section = section();
    let words = section.split('`').skip(1).step_by(2).filter(|word| word.contains('/') && !word.contains('<'));
    let named: Vec<String> = words.flat_map(paths).collect();
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<_> = named.into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md names files that are not there: {missing:?}");
}

fn files_under(place: &Path, files: &mut Vec<PathBuf>) {
    if place.is_file() {
        return files.push(place.to_owned());
    }
    for entry in fs::read_dir(place).expect("readable") {
        files_under(&entry.expect("readable").path(), files);
    }
}

/// The files in some places that have a word.
fn files_with(word: &str, places: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    places.iter().for_each(|place| files_under(&root().join(place), &mut files));
    let has = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
    };
    let shown = |file: PathBuf| file.strip_prefix(root()).expect("it is below").display().to_string();
    files.into_iter().filter(has).map(shown).collect()
}

#[test]
fn a_counter_stands_in_four_files() {
    for kind in ["global_atomic", "global_reduction", "shared_atomic"] {
        let files = files_with(kind, &["interp/src", "cli/src", "src", "scripts", "docs/counters.md"]);
        assert!(files.len() <= 4, "{kind}: {files:?}");
    }
}

#[test]
fn a_method_of_the_driver_stands_in_six_files() {
    for method in ["pool_trim", "reset_persisting_l2", "graph_update"] {
        let files = files_with(method, &["src/driver"]);
        assert!(files.len() <= 6, "{method}: {files:?}");
    }
}
