//! Checked files as CI systems and other tools show them.

use std::path::{Path, PathBuf};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::Value;
use warpstride::error::printable_line;
use warpstride::interp::expect::Verdict;

use super::super::ci::{Found, annotation, fell_short, ncu};
use super::super::{kernel_names, message, terminal};
use super::Checked;

/// The rule of a launch that stopped, or that could not begin.
const STOPPED: &str = "launch/stopped";

/// Returns a line for each finding, at its line of the source, and for each expectation that fell
/// short, at its line of the file.
pub(super) fn annotations(files: &[PathBuf], checked: &[Checked]) -> String {
    let mut lines = String::new();
    for (path, checked) in files.iter().zip(checked) {
        let path = path.display().to_string();
        for finding in &checked.found {
            lines += &Found::of(finding).annotation(Some(&path));
        }
        for (verdict, line) in short(checked) {
            lines += &annotation("error", Some(&path), Some(line), &sentence(verdict));
        }
        if let Some(error) = not_judged(checked) {
            lines += &annotation("error", Some(&path), None, &error);
        }
    }
    lines
}

/// The same findings for a log of SARIF.
fn found(files: &[PathBuf], checked: &[Checked]) -> Vec<Found> {
    let mut found = Vec::new();
    for (path, checked) in files.iter().zip(checked) {
        let path = path.display().to_string();
        let kernel = checked.document["entry"].as_str().map(ToOwned::to_owned);
        let at_file = |rule: String, text: String, line: Option<u32>, instruction: Option<String>| Found {
            rule,
            is_note: false,
            text,
            file: Some(path.clone()),
            line,
            kernel: kernel.clone(),
            instruction,
        };
        found.extend(checked.found.iter().map(|finding| {
            let found = Found::of(finding);
            let file = found.file.clone().or_else(|| Some(path.clone()));
            Found { file, ..found }
        }));
        for (verdict, line) in short(checked) {
            let expectation = verdict.expectation.clone();
            found.push(at_file(rule(&expectation), sentence(verdict), Some(line), Some(expectation)));
        }
        found.extend(not_judged(checked).map(|error| at_file(STOPPED.into(), error, None, None)));
    }
    found
}

/// The launches that were counted, for Nsight Compute's table.
pub(super) fn counted(checked: &[Checked]) -> Vec<ncu::Counted> {
    checked.iter().filter_map(|checked| launch(&checked.document)).collect()
}

fn launch(document: &Value) -> Option<ncu::Counted> {
    let three = |key: &str| serde_json::from_value(document[key].clone()).ok();
    Some(ncu::Counted {
        process: std::process::id(),
        program: "warpstride".into(),
        kernel: kernel_names::short(document["entry"].as_str()?),
        block: three("block")?,
        grid: three("grid")?,
        capability: document["device"]["compute_capability"].as_str()?.to_owned(),
        counters: serde_json::from_value(document["counters"].clone()).ok()?,
    })
}

/// The expectations that fell short, with their lines. The verdict on the checkers has no line:
/// its findings stand for it.
fn short(checked: &Checked) -> impl Iterator<Item = (&Verdict, u32)> {
    let rows = checked.verdicts.rows.iter().zip(&checked.lines);
    rows.filter_map(|(verdict, line)| {
        let line = line.filter(|_| !verdict.held)?;
        Some((verdict, u32::try_from(line).unwrap_or(u32::MAX)))
    })
}

/// Says why a file has no verdicts.
fn not_judged(checked: &Checked) -> Option<String> {
    checked.wrong.as_ref().filter(|_| checked.verdicts.rows.is_empty()).map(message)
}

/// Returns the rule of an expectation: `access/sectors` of `load.sectors <= 1.0 * ideal`.
fn rule(expectation: &str) -> String {
    let figure = expectation.split([' ', '<', '>', '=']).next().unwrap_or_default();
    let figure = figure.trim_start_matches("worst_line(").trim_end_matches(')');
    match figure.rsplit_once('.') {
        Some(("model", figure)) => format!("model/{figure}"),
        Some((_, figure)) => format!("access/{figure}"),
        None if figure == "argument" => "result/values".into(),
        None => format!("launch/{figure}"),
    }
}

/// Returns a document with a suite for each file, and a case for each of its expectations.
pub(super) fn junit(files: &[PathBuf], checked: &[Checked]) -> String {
    let suites = files.iter().zip(checked).map(|(path, checked)| suite(&terminal::path(path), checked));
    super::super::ci::junit("warpstride check", suites)
}

fn suite(path: &str, checked: &Checked) -> TestSuite {
    let mut suite = TestSuite::new(path);
    let rows = checked.verdicts.rows.iter().zip(&checked.lines);
    suite.add_test_cases(rows.map(|(verdict, line)| {
        let mut status = TestCaseStatus::success();
        if !verdict.held {
            // The findings of the checkers, whose expectation stands on no line.
            let account = if line.is_none() { &*checked.findings } else { "" };
            status = fell_short(NonSuccessKind::Failure, &sentence(verdict), account);
        }
        case(printable_line(&verdict.expectation), path, status)
    }));
    if let Some(error) = not_judged(checked) {
        let status = fell_short(NonSuccessKind::Error, &error, &checked.findings);
        suite.add_test_case(case("the check runs to its end", path, status));
    }
    suite
}

fn case(name: impl AsRef<str>, path: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name.as_ref(), status);
    case.set_classname(path);
    case
}

fn sentence(verdict: &Verdict) -> String {
    let Verdict { expectation, found, wanted, .. } = verdict;
    printable_line(&format!("{expectation}: found {found}, wanted {wanted}"))
}

/// Writes the log of SARIF of checked files.
pub(super) fn sarif(files: &[PathBuf], checked: &[Checked], folder: &Path) -> String {
    format!("{:#}\n", super::super::ci::sarif::log(&found(files, checked), folder))
}

#[cfg(test)]
mod tests {
    use super::rule;

    #[test]
    fn an_expectation_has_the_rule_of_its_figure() {
        for (expectation, wanted) in [
            ("load.sectors <= 1.0 * ideal", "access/sectors"),
            ("worst_line(store.sectors) == 4", "access/sectors"),
            ("shared.bank_conflicts==0", "access/bank_conflicts"),
            ("model.ms <= 3", "model/ms"),
            ("occupancy >= 0.5", "launch/occupancy"),
            ("argument 1 is iota", "result/values"),
        ] {
            assert_eq!(rule(expectation), wanted);
        }
    }
}
