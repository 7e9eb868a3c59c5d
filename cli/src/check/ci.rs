//! Checked files as CI systems show them: annotations of GitHub's pull requests, and JUnit's
//! report.

use std::path::PathBuf;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use warpstride::error::{printable, printable_line};
use warpstride::interp::expect::Verdict;

use super::super::{kernel_names, message, terminal};
use super::Checked;

/// Returns a line for each finding, at its line of the source, and for each expectation that fell
/// short, at its line of the file.
pub(super) fn annotations(files: &[PathBuf], checked: &[Checked]) -> String {
    let mut lines = String::new();
    let mut add = |level: &str, file: &str, line: Option<&str>, words: &str| {
        let line = line.map_or(String::new(), |line| format!(",line={line}"));
        let text = format!("::{level} file={}{line}::{}", property(file), data(words));
        lines += &(terminal::whole(&text) + "\n");
    };
    for (path, checked) in files.iter().zip(checked) {
        let path = path.display().to_string();
        for finding in &checked.found {
            let level = if finding.note { "notice" } else { "error" };
            let (file, line) = finding.place.source.as_deref().map_or((&*path, None), file_and_line);
            add(level, file, line, &kernel_names::readable(&finding.to_string()));
        }
        for (verdict, line) in checked.verdicts.rows.iter().zip(&checked.lines) {
            // The verdict on the checkers has no line: each finding has an annotation already.
            if let (false, Some(line)) = (verdict.held, line) {
                add("error", &path, Some(&line.to_string()), &sentence(verdict));
            }
        }
        if let (Some(error), []) = (&checked.wrong, &*checked.verdicts.rows) {
            add("error", &path, None, &message(error));
        }
    }
    lines
}

/// Splits a place of a source, which may be a file alone.
fn file_and_line(source: &str) -> (&str, Option<&str>) {
    let of_line = source.rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok());
    of_line.map_or((source, None), |(file, line)| (file, Some(line)))
}

/// Returns a document with a suite for each file, and a case for each of its expectations.
pub(super) fn junit(files: &[PathBuf], checked: &[Checked]) -> String {
    let mut report = Report::new("warpstride check");
    report.add_test_suites(files.iter().zip(checked).map(|(path, checked)| suite(&terminal::path(path), checked)));
    report.to_string().expect("text goes into a string")
}

fn suite(path: &str, checked: &Checked) -> TestSuite {
    let mut suite = TestSuite::new(path);
    let rows = checked.verdicts.rows.iter().zip(&checked.lines);
    suite.add_test_cases(rows.map(|(verdict, line)| {
        let mut status = TestCaseStatus::success();
        if !verdict.held {
            status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(sentence(verdict));
            // The findings of the checkers, whose expectation stands on no line.
            if line.is_none() {
                status.set_description(printable(&checked.findings));
            }
        }
        case(printable_line(&verdict.expectation), path, status)
    }));
    if let (Some(error), []) = (&checked.wrong, &*checked.verdicts.rows) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(printable_line(&message(error))).set_description(printable(&checked.findings));
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

/// The words of an annotation, on one line.
fn data(words: &str) -> String {
    printable(words).replace('%', "%25").replace('\n', "%0A")
}

/// The value of a property of an annotation.
fn property(value: &str) -> String {
    data(value).replace(':', "%3A").replace(',', "%2C")
}
