//! Predictions: the numbers that a learner types over a `?` of an expectation.

use jiff::civil::Date;
use warpstride::interp::expect::{Verdict, Verdicts};

/// The wrong tries after which the number that was found is shown.
pub(super) const TRIES: u64 = 3;
/// It stands in a table in place of a number that was found.
const HIDDEN: &str = "another";

/// The first key of a check's file whose value is another one than in the lesson's, but for numbers
/// in place of `?`; `None` if the files ask the same, or if `typed` cannot be read.
pub(super) fn other_key(given: &str, typed: &str) -> Option<String> {
    let (given, typed) = (given.parse::<toml::Table>().ok()?, typed.parse::<toml::Table>().ok()?);
    let is_other = |key: &&String| match (given.get(*key), typed.get(*key)) {
        (Some(given), Some(typed)) => !is_same(given, typed),
        _ => true,
    };
    given.keys().chain(typed.keys()).find(is_other).cloned()
}

fn is_same(given: &toml::Value, typed: &toml::Value) -> bool {
    match (given, typed) {
        (toml::Value::Array(given), toml::Value::Array(typed)) => {
            given.len() == typed.len() && given.iter().zip(typed).all(|(given, typed)| is_same(given, typed))
        }
        (toml::Value::String(given), toml::Value::String(typed)) => is_typed_over(&bare(given), &bare(typed)),
        _ => given == typed,
    }
}

/// Returns the first word that a learner typed in place of a `?` and that is not a number.
pub(super) fn word(given: &str, typed: &str) -> Option<String> {
    let mut typed = texts(typed).into_iter();
    texts(given).into_iter().find_map(|given| {
        let (given, typed) = (bare(&given), bare(&typed.next()?));
        let word = in_place(&given, &typed)?;
        let is_word = !word.is_empty() && word.chars().all(char::is_alphanumeric) && word.parse::<f64>().is_err();
        is_word.then(|| word.to_owned())
    })
}

/// The expectations of a check's file.
fn texts(check: &str) -> Vec<String> {
    let table = check.parse::<toml::Table>().unwrap_or_default();
    let expect = table.get("expect").and_then(|expect| expect.as_array());
    expect.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Returns the part of a text in place of the `?` of another one.
fn in_place<'a>(given: &str, typed: &'a str) -> Option<&'a str> {
    let (before, behind) = given.split_once('?')?;
    typed.strip_prefix(before)?.strip_suffix(behind)
}

/// Returns whether a text is another one, with a number in place of its `?`.
fn is_typed_over(given: &str, typed: &str) -> bool {
    given == typed || in_place(given, typed).is_some_and(|number| number.parse::<f64>().is_ok())
}

/// A text without its spaces, which a learner may type or leave out.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The expectations of a lesson's check that have a `?`, as a learner finds them.
pub(super) struct Predictions(pub(super) Vec<String>);

impl Predictions {
    /// Those of a file of `warpstride check`, as the lesson has it.
    pub(super) fn of(check: &str) -> Self {
        Self(texts(check).into_iter().filter(|text| text.contains('?')).collect())
    }

    fn are_wrong(&self, verdict: &Verdict) -> bool {
        let typed = bare(&verdict.expectation);
        !verdict.held && self.0.iter().any(|open| in_place(&bare(open), &typed).is_some())
    }

    /// The wrong ones, as the learner typed them.
    pub(super) fn wrong(&self, verdicts: &Verdicts) -> impl Iterator<Item = String> {
        verdicts.rows.iter().filter(|verdict| self.are_wrong(verdict)).map(|verdict| verdict.expectation.clone())
    }

    /// Takes the numbers that were found out of the wrong ones. Returns the sentence that says when
    /// they are shown, if there are any.
    pub(super) fn hide(&self, verdicts: &mut Verdicts, withheld: Option<Date>) -> Option<String> {
        let mut hides = false;
        for verdict in verdicts.rows.iter_mut().filter(|verdict| self.are_wrong(verdict)) {
            HIDDEN.clone_into(&mut verdict.found);
            verdict.of_ideal = None;
            hides = true;
        }
        let shown = withheld.map_or("it is hidden until the third different wrong try".to_owned(), |day| {
            format!("it is shown from {day} on")
        });
        hides.then(|| format!("{HIDDEN}: a number that you did not predict; {shown}\n"))
    }
}
