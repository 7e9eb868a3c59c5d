//! Results of checkers and counters in the formats of other tools: SARIF, annotations of GitHub,
//! and the CSV of Nsight Compute.

pub(crate) mod ncu;
pub(crate) mod sarif;

use quick_junit::{NonSuccessKind, Report, TestCaseStatus, TestSuite};
use warpstride::error::{printable, printable_line};
use warpstride::interp::Finding;

use super::{kernel_names, terminal};

/// A finding that a report shows, whatever it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The rule that is broken, such as `memcheck/oob`.
    pub(crate) rule: String,
    /// True if it does no harm.
    pub(crate) is_note: bool,
    pub(crate) text: String,
    /// The file of the source, and the line in it, from 1.
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// The kernel, and the instruction where one is at fault.
    pub(crate) kernel: Option<String>,
    pub(crate) instruction: Option<String>,
}

impl Found {
    /// The finding of a checker.
    pub(crate) fn of(finding: &Finding) -> Self {
        let source = finding.place.source.as_deref().map(file_and_line);
        Self {
            rule: finding.rule(),
            is_note: finding.note,
            text: kernel_names::readable(&finding.to_string()),
            file: source.map(|(file, _)| file.to_owned()),
            line: source.and_then(|(_, line)| line),
            kernel: Some(finding.kernel.clone()),
            instruction: Some(finding.place.instruction.clone()),
        }
    }

    /// The finding as an annotation of GitHub. Without a source it stands at `file`, if that is
    /// given.
    pub(crate) fn annotation(&self, file: Option<&str>) -> String {
        let level = if self.is_note { "notice" } else { "error" };
        annotation(level, self.file.as_deref().or(file), self.line, &self.text)
    }
}

/// Splits a place of a source, which may be a file alone.
pub(crate) fn file_and_line(source: &str) -> (&str, Option<u32>) {
    let of_line = source.rsplit_once(':').and_then(|(file, line)| Some((file, Some(line.parse().ok()?))));
    of_line.unwrap_or((source, None))
}

/// Returns the line by which GitHub shows words at a place of a pull request.
pub(crate) fn annotation(level: &str, file: Option<&str>, line: Option<u32>, words: &str) -> String {
    let file = file.map(|file| format!("file={}", property(file)));
    let line = line.filter(|_| file.is_some()).map(|line| format!("line={line}"));
    let place = file.into_iter().chain(line).collect::<Vec<_>>().join(",");
    let gap = if place.is_empty() { "" } else { " " };
    terminal::whole(&format!("::{level}{gap}{place}::{}", data(words))) + "\n"
}

/// The words of an annotation, on one line.
fn data(words: &str) -> String {
    printable(words).replace('%', "%25").replace('\n', "%0A")
}

/// The value of a property of an annotation.
fn property(value: &str) -> String {
    data(value).replace(':', "%3A").replace(',', "%2C")
}

/// Returns a report in JUnit's format. It follows the schema of Jenkins, whose `testsuites` do not
/// count what was skipped.
pub(crate) fn junit(name: &str, suites: impl IntoIterator<Item = TestSuite>) -> String {
    let mut report = Report::new(name);
    report.add_test_suites(suites);
    let count = format!(" skipped=\"{}\"", report.skipped);
    // The first place is the one in `testsuites`, because no name has a quotation mark in it.
    report.to_string().expect("text goes into a string").replacen(&count, "", 1)
}

/// Returns the status of a case of JUnit that fell short: a sentence, and the whole account.
pub(crate) fn fell_short(kind: NonSuccessKind, sentence: &str, account: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(printable_line(sentence));
    if !account.is_empty() {
        status.set_description(printable(account));
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_a_source_may_be_a_file_alone() {
        assert_eq!(file_and_line("a/k.cu:7"), ("a/k.cu", Some(7)));
        assert_eq!(file_and_line("a:b/k.cu"), ("a:b/k.cu", None));
        assert_eq!(file_and_line("k.cu:99999999999"), ("k.cu:99999999999", None));
    }

    #[test]
    fn an_annotation_has_as_much_of_a_place_as_is_known() {
        let plain = |line: &str| line.trim_start_matches(|c: char| c > '\u{fdcf}').to_owned();
        assert_eq!(plain(&annotation("error", Some("a,b"), Some(3), "x\ny")), "::error file=a%2Cb,line=3::x%0Ay\n");
        assert_eq!(plain(&annotation("notice", None, Some(3), "100 %")), "::notice::100 %25\n");
    }
}
