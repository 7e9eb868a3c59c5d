//! The score of drawn permutes: their parts of a copy's speed, by kind and overall.

use std::fmt;

use crate::run::table::Table;
use serde::Serialize;
use serde_json::{Map, Value, json};
use warpstride::error::counted;
use warpstride::roofline::random_permutes::Kind;

/// The most cases that are listed as the worst.
const WORST: usize = 10;

/// What a score needs to know of a case.
#[derive(Clone, Serialize)]
pub(super) struct Scored {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The strategy that took it.
    pub(super) strategy: &'static str,
    /// Bytes of the sectors that it reads and writes.
    #[serde(skip)]
    pub(super) touched: u64,
    /// The part of a copy's speed; `None` where it was not timed, because it was wrong.
    #[serde(rename = "fraction_of_copy")]
    pub(super) fraction: Option<f64>,
}

/// The parts of a copy's speed of some cases.
#[derive(Serialize)]
struct Speed {
    cases: usize,
    geometric_mean: f64,
    lowest: f64,
}

impl Speed {
    fn of(fractions: &[f64]) -> Self {
        let logarithms: f64 = fractions.iter().map(|fraction| fraction.ln()).sum();
        Self {
            cases: fractions.len(),
            geometric_mean: (logarithms / fractions.len() as f64).exp(),
            lowest: fractions.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }

    fn row(&self, name: &str) -> Vec<String> {
        vec![name.into(), self.cases.to_string(), format!("{:.3}", self.geometric_mean), format!("{:.3}", self.lowest)]
    }
}

#[derive(Serialize)]
struct OfKind {
    kind: Kind,
    #[serde(flatten)]
    speed: Speed,
}

/// The score of cases on a device that has times. A case that was not timed counts as 0, as in
/// `benches/peers/score.py`: otherwise a kernel could raise the score by a wrong result.
pub(super) struct Score {
    all: Speed,
    /// The names of those that were not timed.
    untimed: Vec<String>,
    /// The worst first.
    kinds: Vec<OfKind>,
    /// The slowest first.
    worst: Vec<Scored>,
}

impl Score {
    /// The score; `None` without a case.
    pub(super) fn of(cases: &[Scored]) -> Option<Self> {
        let fractions = |kind: Option<Kind>| {
            let of = cases.iter().filter(|case| kind.is_none_or(|kind| case.kind == kind));
            Some(of.map(|case| case.fraction.unwrap_or(0.0)).collect::<Vec<_>>()).filter(|all| !all.is_empty())
        };
        let all = Speed::of(&fractions(None)?);
        let speeds =
            Kind::ALL.into_iter().filter_map(|kind| Some(OfKind { kind, speed: Speed::of(&fractions(Some(kind))?) }));
        let mut kinds: Vec<_> = speeds.collect();
        kinds.sort_by(|one, other| one.speed.geometric_mean.total_cmp(&other.speed.geometric_mean));
        let mut worst = cases.to_vec();
        worst.sort_by(|one, other| one.fraction.unwrap_or(0.0).total_cmp(&other.fraction.unwrap_or(0.0)));
        worst.truncate(WORST);
        let untimed = cases.iter().filter(|case| case.fraction.is_none()).map(|case| case.name.clone()).collect();
        Some(Self { all, untimed, kinds, worst })
    }

    /// Adds its members to a document; they are `null` without a score.
    pub(super) fn add_to(score: Option<&Self>, document: &mut Map<String, Value>) {
        let members = [
            ("score", score.map(|score| json!(score.all.geometric_mean))),
            ("lowest", score.map(|score| json!(score.all.lowest))),
            ("kinds", score.map(|score| json!(score.kinds))),
            ("worst", score.map(|score| json!(score.worst))),
        ];
        document.extend(members.map(|(name, value)| (name.into(), value.unwrap_or(Value::Null))));
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, untimed, kinds, worst } = self;
        let rows = kinds.iter().map(|OfKind { kind, speed }| speed.row(kind.name()));
        let kinds = Table {
            words: 1,
            header: vec!["kind", "cases", "mean of copy", "lowest of copy"],
            rows: rows.chain([all.row("all")]).collect(),
        };
        let rows = worst.iter().map(|case| {
            let fraction = case.fraction.map_or("-".into(), |fraction| format!("{fraction:.3}"));
            vec![case.name.clone(), case.kind.name().into(), case.strategy.into(), fraction]
        });
        let worst =
            Table { words: 3, header: vec!["worst cases", "kind", "strategy", "of copy"], rows: rows.collect() };
        writeln!(f, "\n{kinds}\n\n{worst}\n")?;
        if !untimed.is_empty() {
            let cases = counted(untimed.len(), "case");
            writeln!(f, "{cases} could not be timed, and each counts as 0: {}", untimed.join(", "))?;
        }
        let cases = counted(all.cases, "case");
        writeln!(
            f,
            "score: {:.3} of the copy's speed, the geometric mean of {cases}; the lowest has {:.3}",
            all.geometric_mean, all.lowest
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(kind: Kind, fraction: Option<f64>) -> Scored {
        Scored { name: format!("{kind:?} {fraction:?}"), kind, strategy: "tile", touched: 2, fraction }
    }

    #[test]
    fn worst_kinds_and_cases_come_first() {
        let cases = [case(Kind::Odd, Some(0.9)), case(Kind::Prime, Some(0.5)), case(Kind::Odd, Some(0.4))];
        let score = Score::of(&cases).expect("all were timed");
        assert!((score.all.geometric_mean - 0.18_f64.cbrt()).abs() < 1e-12);
        assert_eq!((score.all.cases, score.all.lowest), (3, 0.4));
        let kinds: Vec<_> = score.kinds.iter().map(|of| (of.kind, of.speed.cases)).collect();
        assert_eq!(kinds, [(Kind::Prime, 1), (Kind::Odd, 2)]);
        let worst: Vec<_> = score.worst.iter().filter_map(|case| case.fraction).collect();
        assert_eq!(worst, [0.4, 0.5, 0.9]);
        let mut document = Map::new();
        Score::add_to(Some(&score), &mut document);
        assert_eq!(document["kinds"][0]["kind"], "prime");
        assert_eq!(document["worst"][0]["fraction_of_copy"], 0.4);
        let text = score.to_string();
        assert!(text.contains("score: 0.565") && text.contains("3 cases; the lowest has 0.400"), "{text}");
    }

    #[test]
    fn a_case_that_was_not_timed_counts_as_0_and_is_named() {
        let score = Score::of(&[case(Kind::Odd, Some(0.9)), case(Kind::Prime, None)]).expect("a score");
        assert_eq!((score.all.cases, score.all.geometric_mean, score.all.lowest), (2, 0.0, 0.0));
        assert_eq!((score.kinds[0].kind, score.kinds[1].speed.lowest), (Kind::Prime, 0.9));
        assert_eq!(score.worst[0].fraction, None);
        let text = score.to_string();
        assert!(text.contains("1 case could not be timed, and each counts as 0: Prime None\n"), "{text}");
        assert!(text.contains("score: 0.000 of"), "{text}");
    }

    #[test]
    fn without_a_score_the_members_are_null() {
        assert!(Score::of(&[]).is_none());
        let mut document = Map::new();
        Score::add_to(None, &mut document);
        assert!(["score", "lowest", "kinds", "worst"].into_iter().all(|name| document[name].is_null()));
    }
}
