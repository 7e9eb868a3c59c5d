//! Predictions: the numbers that a learner types over a `?` of an expectation.

use warpstride::interp::expect::{Verdict, Verdicts};

/// The wrong tries after which the number that was found is shown.
pub(super) const TRIES: u64 = 3;
/// What stands in place of that number before.
const HIDDEN: &str = "another number; the third try shows it";

/// The expectations of a lesson's check that have a `?`, as the texts before and behind it.
pub(super) struct Predictions {
    around: Vec<(String, String)>,
}

impl Predictions {
    /// Those of a file of `warpstride check`, as the lesson has it.
    pub(super) fn of(check: &str) -> Self {
        let table = check.parse::<toml::Table>().unwrap_or_default();
        let expect = table.get("expect").and_then(|expect| expect.as_array());
        let texts = expect.into_iter().flatten().filter_map(|text| text.as_str());
        // As a verdict has it: with single spaces.
        let spaced = texts.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let around = spaced.filter_map(|text| {
            let (before, behind) = text.split_once('?')?;
            Some((before.to_owned(), behind.to_owned()))
        });
        Self { around: around.collect() }
    }

    fn are_wrong(&self, verdict: &Verdict) -> bool {
        let has = |(before, behind): &(String, String)| {
            verdict.expectation.starts_with(before.trim_end()) && verdict.expectation.ends_with(behind.trim_start())
        };
        !verdict.held && self.around.iter().any(has)
    }

    /// The expectations themselves, as a learner finds them.
    pub(super) fn open(&self) -> impl Iterator<Item = String> {
        self.around.iter().map(|(before, behind)| format!("{before}?{behind}"))
    }

    /// The wrong ones, as the learner typed them.
    pub(super) fn wrong(&self, verdicts: &Verdicts) -> impl Iterator<Item = String> {
        verdicts.rows.iter().filter(|verdict| self.are_wrong(verdict)).map(|verdict| verdict.expectation.clone())
    }

    /// Takes the numbers that were found out of the wrong ones.
    pub(super) fn hide(&self, verdicts: &mut Verdicts) {
        for verdict in verdicts.rows.iter_mut().filter(|verdict| self.are_wrong(verdict)) {
            verdict.found = HIDDEN.into();
            verdict.of_ideal = None;
        }
    }
}
