//! Two runs, case by case: faster, slower or the same.
//!
//! A difference is told only where the middle halves of the samples, from p25 to p75, do not overlap *and* the medians are more
//! than [`THRESHOLD`] apart. The first alone would call every drift of a quiet machine a change; the second alone would
//! call noise one. Times with gaps of the host in them, or of a throttled device, decide nothing.

use super::report::{Case, Machine, Run, Times};
use crate::error::{Error, ErrorKind, Result};

/// The part by which medians must differ: what two whole benches on one H100, one after the other, agreed within in every case above
/// 64 MiB without gaps of the host, most within 0.8 %.
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
    /// Its result is wrong in the second run.
    Wrong,
    /// The second run lacks it.
    Gone,
    /// It cannot be compared: it is new, a run has no times of it, there is a [doubt](Times::doubt) about them, or one run alone was
    /// at clocks that are set low.
    Undecided,
}

impl Verdict {
    /// As reports say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Wrong => "wrong",
            Self::Gone => "gone",
            Self::Undecided => "undecided",
        }
    }

    /// Of times before and now.
    pub fn of(before: &Times, now: &Times) -> Self {
        // Those of a GPU whose clocks are set low say nothing of one that runs free.
        let are_held = |times: &Times| times.clocks.is_some_and(|clocks| clocks.held);
        if before.doubt().or(now.doubt()).is_some() || are_held(before) != are_held(now) {
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
    /// The [doubt](Times::doubt) that leaves it undecided.
    pub doubt: Option<&'static str>,
}

impl Change {
    fn of(before: Option<&Case>, now: Option<&Case>) -> Option<Self> {
        let name = now.or(before)?.name.clone();
        let times = [before, now].map(|case| case.and_then(|case| case.times.as_ref()));
        let doubt = times.iter().flatten().find_map(|times| times.doubt());
        let verdict = match (now, times) {
            (None, _) => Verdict::Gone,
            (Some(now), _) if !now.verified => Verdict::Wrong,
            (_, [Some(before), Some(now)]) => Verdict::of(before, now),
            _ => Verdict::Undecided,
        };
        let [before_ms, now_ms] = times.map(|times| times.map(|times| times.median_ms));
        Some(Self { name, before_ms, now_ms, verdict, doubt: doubt.filter(|_| verdict == Verdict::Undecided) })
    }
}

/// Makes sure that two runs are of one kind of device.
///
/// # Errors
///
/// `InvalidArgument` where they are not.
pub fn check_devices(before: &Machine, now: &Machine) -> Result<()> {
    if (&before.kind, &before.name) == (&now.kind, &now.name) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "a run on {} is not compared with one on {}, whose times differ by what they are; compare runs of one kind of device",
            now.name, before.name
        ),
    ))
}

/// Compares two runs: the cases of `now` in their order, then those that only `before` has.
///
/// # Errors
///
/// As [`check_devices`].
pub fn changes(before: &Run, now: &Run) -> Result<Vec<Change>> {
    check_devices(&before.device, &now.device)?;
    let of = |run: &'_ Run, name: &str| run.cases.iter().position(|case| case.name == name);
    let both = now.cases.iter().map(|case| (of(before, &case.name).map(|at| &before.cases[at]), Some(case)));
    let gone = before.cases.iter().filter(|case| of(now, &case.name).is_none()).map(|case| (Some(case), None));
    Ok(both.chain(gone).filter_map(|(before, now)| Change::of(before, now)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::measure::Clocks;

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
        let hot = Clocks { sm_mhz: 1980, sm_max_mhz: 1980, memory_mhz: 2619, slowed: true, held: false };
        let hot = Times { clocks: Some(hot), ..times(2.0, 0.01) };
        assert_eq!((verdict(hot.clone()), hot.doubt()), (Verdict::Undecided, Some("throttled")));
        assert_eq!(Verdict::of(&hot, &times(1.0, 0.01)), Verdict::Undecided);
        let set = Clocks { sm_mhz: 1200, sm_max_mhz: 1980, memory_mhz: 2619, slowed: false, held: true };
        let set = Times { clocks: Some(set), ..times(2.0, 0.01) };
        assert_eq!(verdict(set.clone()), Verdict::Undecided);
        assert_eq!(Verdict::of(&set, &Times { clocks: set.clocks, ..times(1.0, 0.01) }), Verdict::Faster);
    }
}
