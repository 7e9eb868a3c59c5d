//! The figures of README and of the page of the records: those of the newest record, which is one
//! of this version, and whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::{long, repository};

const RECORDS: &str = "benches/record";

/// Runs `readme-figures --check` of a repository; `None` where there is no Python.
fn checked(repository: &Path) -> Option<Output> {
    Command::new("python3").arg(repository.join("scripts/readme-figures")).arg("--check").output().ok()
}

/// Returns the newest record that the figures may come from, from the repository's folder.
fn newest() -> PathBuf {
    let folders = fs::read_dir(repository().join(RECORDS)).expect("records");
    let names = folders.map(|folder| folder.expect("a record").path()).filter(|at| at.join("permutes.json").exists());
    let newest = names.max().expect("a record of permutes beside peers");
    newest.strip_prefix(repository()).expect("a folder of the repository").to_owned()
}

/// Copies what the script reads.
fn copied() -> TempDir {
    let (copy, record) = (tempfile::tempdir().expect("a folder"), newest());
    let files =
        ["scripts/readme-figures", "benches/peers/score.py", "Cargo.toml", "README.md", "benches/record/README.md"];
    let figures =
        ["permutes.json", "random.json", "pipelines.json", "larger.jsonl", "small.md"].map(|name| record.join(name));
    for file in files.iter().map(Path::new).chain(figures.iter().map(PathBuf::as_path)) {
        let to = copy.path().join(file);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(repository().join(file), to).expect("a copy");
    }
    copy
}

#[test]
fn pages_have_the_figures_of_the_record() {
    let Some(checked) = checked(repository()) else { return long::missing("Python 3") };
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// People read it with `cat`, too. Tables and programs have longer lines.
#[test]
fn sentences_of_readme_have_short_lines() {
    let text = fs::read_to_string(repository().join("README.md")).expect("README");
    // Every second part is a program.
    let sentences = text.split("```").step_by(2).flat_map(str::lines).filter(|line| !line.starts_with('|'));
    let long: Vec<&str> = sentences.filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "README has lines of more than 100 columns: {long:#?}");
}

#[test]
fn a_record_that_is_not_whole_and_right_is_refused() {
    let (record, copy) = (newest(), copied());
    let Some(whole) = checked(copy.path()) else { return long::missing("Python 3") };
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    for (file, right, wrong, message) in [
        ("permutes.json", "\"rows\": [", "\"chosen\": 1000, \"rows\": [", "of 1000 cases"),
        ("random.json", "\"drawn\": ", "\"drawn\": 9", "cases; measure the others too"),
        ("random.json", "\"commit\": \"", "\"commit\": \"0", "are not of one commit"),
        ("permutes.json", "\"verified\": true", "\"verified\": false", "results that are wrong or missing"),
        ("permutes.json", "\"fraction_of_copy\": 0.", "\"fraction_of_copy\": 1.", "differs from"),
        ("pipelines.json", "\"verified\": true", "\"verified\": false", "results that are wrong or missing"),
        ("pipelines.json", "\"version\": \"", "\"version\": \"9", "measure them anew"),
        ("pipelines.json", "\"shape\": [3, ", "\"shape\": [4, ", "frames of 2 shapes"),
        ("small.md", "; warpstride ", "; warpstride 9", "measure them anew"),
        ("small.md", "NVIDIA", "another NVIDIA", "measure them on one GPU"),
        ("small.md", "Kept plan: ", "Kept plans: ", "does not count its cases"),
        ("larger.jsonl", "\"device\":\"", "\"device\":\"another ", "measure them on one GPU"),
        ("larger.jsonl", "\"what\":\"files\"", "\"what\":\"others\"", "missing: files"),
    ] {
        let path = copy.path().join(&record).join(file);
        let text = fs::read_to_string(&path).expect("a record");
        assert!(text.contains(right), "{file} has {right}");
        fs::write(&path, text.replacen(right, wrong, 1)).expect("a file");
        let refused = checked(copy.path()).expect("it ran before");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains(message), "{file} with {wrong}: {said}");
        assert!(!said.contains("Traceback"), "{file} with {wrong}: {said}");
        fs::write(&path, text).expect("a file");
    }
    fs::remove_file(copy.path().join(&record).join("larger.jsonl")).expect("a record");
    let refused = checked(copy.path()).expect("it ran before");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has no larger.jsonl"), "{refused:?}");
}

#[test]
fn a_block_of_figures_without_its_end_is_refused() {
    let copy = copied();
    let page = copy.path().join("README.md");
    let text = fs::read_to_string(&page).expect("README");
    // The script would take all up to the end of the second block for the first.
    let twice = format!("<!-- figures: speed -->\nPeople wrote this.\n{text}");
    fs::write(&page, twice).expect("README");
    let Some(refused) = checked(copy.path()) else { return long::missing("Python 3") };
    assert!(String::from_utf8_lossy(&refused.stderr).contains("must have the markers"), "{refused:?}");
}
