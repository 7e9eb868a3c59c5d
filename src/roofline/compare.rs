//! Two runs, case by case: faster, slower or the same.
//!
//! A difference is told only where the middle halves of the samples, from p25 to p75, do not overlap *and* the medians are more
//! than [`THRESHOLD`] apart. The first alone would call every drift of a quiet machine a change; the second alone would
//! call noise one. Times with gaps of the host in them decide nothing.

use super::report::{Run, Times};

/// The part by which medians must differ: what two runs on one machine agree within.
pub const THRESHOLD: f64 = 0.02;

/// How a case did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Verdict {
    /// It takes less time than it did.
    Faster,
    /// It takes more.
    Slower,
    /// Neither can be told.
    Same,
    /// It cannot be compared: one run lacks it or its times, or they have the host's gaps in them.
    Undecided,
}

impl Verdict {
    /// As reports say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Undecided => "undecided",
        }
    }

    /// Of times before and now.
    pub fn of(before: &Times, now: &Times) -> Self {
        if !(before.gapless && now.gapless) {
            return Self::Undecided;
        }
        let change = now.median_ms / before.median_ms - 1.0;
        if now.p75_ms < before.p25_ms && change < -THRESHOLD {
            Self::Faster
        } else if now.p25_ms > before.p75_ms && change > THRESHOLD {
            Self::Slower
        } else {
            Self::Same
        }
    }
}

/// One case of two runs.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Change {
    /// The case.
    pub name: String,
    /// Its median in milliseconds in the first run; `None` where that has no times of it.
    pub before_ms: Option<f64>,
    /// In the second.
    pub now_ms: Option<f64>,
    /// How it did.
    pub verdict: Verdict,
}

/// Compares two runs: the cases of `now` in their order, then those that only `before` has.
pub fn changes(before: &Run, now: &Run) -> Vec<Change> {
    let times =
        |run: &'_ Run, name: &str| run.cases.iter().find(|case| case.name == name).and_then(|c| c.times.clone());
    let only_before = before.cases.iter().filter(|case| now.cases.iter().all(|other| other.name != case.name));
    now.cases
        .iter()
        .chain(only_before)
        .map(|case| {
            let (before, now) = (times(before, &case.name), times(now, &case.name));
            let verdict = match (&before, &now) {
                (Some(before), Some(now)) => Verdict::of(before, now),
                _ => Verdict::Undecided,
            };
            let median = |times: Option<Times>| times.map(|times| times.median_ms);
            Change { name: case.name.clone(), before_ms: median(before), now_ms: median(now), verdict }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(median: f64, spread: f64) -> Times {
        let at = |part: f64| median * (1.0 + part * spread);
        Times {
            samples_ms: vec![at(-1.0), median, at(1.0)],
            median_ms: median,
            p10_ms: at(-0.8),
            p25_ms: at(-0.5),
            p75_ms: at(0.5),
            p90_ms: at(0.8),
            gbps: 1.0 / median,
            fraction_of_ceiling: 0.5,
            fraction_of_nominal: None,
            gapless: true,
            discarded: 0,
            clocks: None,
        }
    }

    #[test]
    fn a_change_is_beyond_the_noise_and_beyond_the_threshold() {
        let verdict = |now| Verdict::of(&times(1.0, 0.01), &now);
        assert_eq!(verdict(times(1.05, 0.01)), Verdict::Slower);
        assert_eq!(verdict(times(0.95, 0.01)), Verdict::Faster);
        // Apart, but by no more than two runs are.
        assert_eq!(verdict(times(1.015, 0.001)), Verdict::Same);
        // Far apart, but so are the samples.
        assert_eq!(verdict(times(1.05, 0.2)), Verdict::Same);
        assert_eq!(verdict(Times { gapless: false, ..times(2.0, 0.01) }), Verdict::Undecided);
    }
}
