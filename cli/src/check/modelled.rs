//! Expectations of what a model predicts: `model.ms <= 0.1`, `model.bound == "memory"`.

use std::str::FromStr;

use warpstride::interp::expect::{Expectation, Verdict};
use warpstride::roofline::model::Bound;

use super::super::run_ptx::model::Predicted;

/// An expectation of a file.
pub(super) enum Expect {
    /// A comparison of counters.
    Counted(Expectation),
    /// A comparison of a predicted figure.
    Modelled(Modelled),
}

/// A comparison of a predicted figure.
pub(super) struct Modelled {
    text: String,
    figure: Figure,
    sign: &'static str,
    wanted: Wanted,
}

enum Wanted {
    Number(f64),
    Bound(Bound),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Ms,
    Bound,
    Occupancy,
    InstructionsPerByte,
}

/// The names of figures in files.
const FIGURES: [(&str, Figure); 4] = [
    ("model.ms", Figure::Ms),
    ("model.bound", Figure::Bound),
    ("occupancy", Figure::Occupancy),
    ("instructions_per_byte", Figure::InstructionsPerByte),
];
/// The comparisons, those of two characters first.
const SIGNS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
/// The limits that may bound a launch.
const BOUNDS: [Bound; 5] = [Bound::Memory, Bound::L2, Bound::Shared, Bound::Instructions, Bound::Latency];

impl FromStr for Expect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.split_once(|c: char| "=!<>".contains(c)).map_or(text, |(name, _)| name).trim();
        match FIGURES.iter().find(|(figure, _)| *figure == name) {
            Some(&(_, figure)) => Modelled::parse(text, name, figure).map(Self::Modelled),
            None if name.starts_with("model") => {
                Err(format!("`{name}` is not a figure of a model; use {}", FIGURES.map(|(name, _)| name).join(", ")))
            }
            None => text.parse().map(Self::Counted).map_err(|error: warpstride::interp::Error| error.to_string()),
        }
    }
}

impl Modelled {
    fn parse(text: &str, name: &str, figure: Figure) -> Result<Self, String> {
        let rest = text.trim_start()[name.len()..].trim_start();
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let sign = sign.ok_or_else(|| format!("`{text}` has no comparison; write one such as `{name} <= 1`"))?;
        let value = rest[sign.len()..].trim();
        let wanted = if figure == Figure::Bound {
            let bound = BOUNDS.into_iter().find(|bound| bound.name().eq_ignore_ascii_case(value.trim_matches('"')));
            let names = BOUNDS.map(Bound::name).join(", ");
            let bound = bound.filter(|_| matches!(sign, "==" | "!="));
            Wanted::Bound(bound.ok_or(format!("compare `{name}` by == or != with one of {names}"))?)
        } else {
            let number = value.parse().ok().filter(|number: &f64| number.is_finite());
            Wanted::Number(number.ok_or_else(|| format!("`{value}` is not a number; write one such as 0.5"))?)
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { text, figure, sign, wanted })
    }

    pub(super) fn judge(&self, predicted: &Predicted) -> Verdict {
        let estimate = &predicted.estimate;
        let (found, held, wanted) = match (&self.wanted, self.figure) {
            (Wanted::Bound(wanted), _) => {
                let found = estimate.prediction.bound;
                (found.name().to_owned(), (found == *wanted) == (self.sign == "=="), wanted.name().to_owned())
            }
            (Wanted::Number(wanted), figure) => {
                let found = match figure {
                    Figure::Occupancy => estimate.occupancy,
                    Figure::InstructionsPerByte => estimate.instructions_per_byte[0],
                    Figure::Ms | Figure::Bound => estimate.prediction.ms,
                };
                (format!("{found:.4}"), self.holds(found, *wanted), wanted.to_string())
            }
        };
        Verdict {
            expectation: self.text.clone(),
            found,
            wanted: format!("{} {wanted}", self.sign),
            of_ideal: None,
            held,
        }
    }

    fn holds(&self, found: f64, wanted: f64) -> bool {
        match self.sign {
            "<" => found < wanted,
            "<=" => found <= wanted,
            ">" => found > wanted,
            ">=" => found >= wanted,
            "!=" => found != wanted,
            _ => found == wanted,
        }
    }
}

#[cfg(test)]
mod tests;
