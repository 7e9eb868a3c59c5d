//! Compares two runs, case by case: by times on a GPU, by counters on the software GPU.
//!
//! Times differ only where the middle halves of the samples, from p25 to p75, do not overlap *and*
//! the medians are more than [`THRESHOLD`] apart. The first alone would call every drift of a quiet
//! machine a change; the second alone would call noise one. Times with gaps of the host in them, or
//! of a throttled device, decide nothing. Counters are exact: a single sector is a difference.
//!
//! Permutes that were measured in one run with copies, drawn ones and those of a list, are compared
//! by their speed beside the copy: then two GPUs of one kind, of which one is a little faster, do
//! not differ.

use anyhow::Result;

use crate::require;
use crate::run::Run;
use warpstride::counters::table;
use warpstride::roofline::record::{Milliseconds, Record};
use warpstride::roofline::run::Machine;

/// The part by which medians must differ. Two whole benches on one H100, one after the other,
/// agreed within it in every case above 64 MiB without gaps of the host, most within 0.8 %.
pub(crate) const THRESHOLD: f64 = 0.02;

/// How a case of the second run did; what changed stands first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Its result is wrong in the second run.
    Wrong,
    /// The second run lacks it.
    Gone,
    /// It takes more time than it did.
    Slower,
    /// It has no times, and its counters differ.
    Different,
    /// It takes less.
    Faster,
    /// It cannot be compared: it is new, a run has neither times nor counters of it, there is a
    /// [doubt](Record::doubt) about the times, or the clocks were set low in one run alone.
    Undecided,
    /// Its times do not differ, or its counters are equal.
    Same,
}

impl Verdict {
    /// Its name in reports.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The verdict on the times of one case before and now.
    fn of_times([before, now]: [(&Record, Milliseconds); 2]) -> Self {
        // Times of a GPU whose clocks are set low say nothing about one that runs free.
        let are_held = |record: &Record| record.clocks.is_some_and(|clocks| clocks.held);
        if before.0.doubt().or(now.0.doubt()).is_some() || are_held(before.0) != are_held(now.0) {
            return Self::Undecided;
        }
        // A copy that is slower now takes its part of the time.
        let slower_copy = beside_copies([before.0, now.0]).map_or(1.0, |[before, now]| before.copy / now.copy);
        let (before, now) = (before.1, now.1);
        let [p25, median, p75] = [now.p25, now.median, now.p75].map(|ms| ms / slower_copy);
        let change = median / before.median - 1.0;
        if p75 < before.p25 && change < -THRESHOLD {
            Self::Faster
        } else if p25 > before.p75 && change > THRESHOLD {
            Self::Slower
        } else {
            Self::Same
        }
    }
}

/// One case of two runs.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Change {
    /// The case.
    pub(crate) name: String,
    /// Its median in milliseconds in the first run; `None` where that has no times of it.
    pub(crate) before_ms: Option<f64>,
    /// In the second.
    pub(crate) now_ms: Option<f64>,
    /// The part of a copy's speed that it had in the first run, of permutes that are compared by
    /// it.
    pub(crate) before_of_copy: Option<f64>,
    /// In the second.
    pub(crate) now_of_copy: Option<f64>,
    /// How it did.
    pub(crate) verdict: Verdict,
    /// The strategy and the kernel, where they are not those of the first run: `boxes
    /// permute_boxes_b32, was rows permute_rows_b32`.
    pub(crate) choice: Option<String>,
    /// The [doubt](Record::doubt) that leaves it undecided.
    pub(crate) doubt: Option<&'static str>,
    /// The counters and bytes that differ, of a case that has no times: `global_store.sectors 128,
    /// was 1024`.
    pub(crate) difference: Option<String>,
}

impl Change {
    fn of(before: Option<&Record>, now: Option<&Record>) -> Option<Self> {
        let name = now.or(before)?.name.clone();
        let records = [before, now];
        let times = records.map(|record| record.and_then(|record| Some((record, record.ms?))));
        let counters = records.map(|record| record.and_then(|record| record.counters));
        let doubt = records.iter().flatten().find_map(|record| record.doubt());
        let mut difference = None;
        let verdict = match (now, times, counters) {
            (None, ..) => Verdict::Gone,
            (Some(now), ..) if now.verified == Some(false) => Verdict::Wrong,
            (_, [Some(before), Some(now)], _) => Verdict::of_times([before, now]),
            (Some(now), [None, None], [Some(_), Some(_)]) => {
                difference = before.and_then(|before| difference_of(before, now));
                if difference.is_some() { Verdict::Different } else { Verdict::Same }
            }
            _ => Verdict::Undecided,
        };
        let [before_ms, now_ms] = times.map(|times| times.map(|(_, ms)| ms.median));
        let doubt = doubt.filter(|_| verdict == Verdict::Undecided);
        let beside = before.zip(now).and_then(|(before, now)| beside_copies([before, now]));
        let [before_of_copy, now_of_copy] =
            beside.map_or([None; 2], |both| both.map(|Beside { fraction, .. }| Some(fraction)));
        let choice = before.zip(now).and_then(|(before, now)| other_choice(before, now));
        Some(Self { name, before_ms, now_ms, before_of_copy, now_of_copy, verdict, choice, doubt, difference })
    }

    /// Returns whether anything about the case is to be told: it did as before, by the same kernel,
    /// if not.
    pub(crate) fn is_news(&self) -> bool {
        self.verdict != Verdict::Same || self.choice.is_some()
    }
}

/// The speed of a copy in GB/s, and the part of it that a permute has.
#[derive(Clone, Copy)]
struct Beside {
    copy: f64,
    fraction: f64,
}

/// Returns the speeds of two records of a permute beside a copy, if both are of many permutes.
fn beside_copies(records: [&Record; 2]) -> Option<[Beside; 2]> {
    let of = |record: &Record| {
        record.drawn.as_ref()?;
        Some(Beside { copy: record.copy_gbps.filter(|&copy| copy > 0.0)?, fraction: record.fraction_of_copy? })
    };
    Some([of(records[0])?, of(records[1])?])
}

/// The strategy and the kernel of a permute now and before, where they differ.
fn other_choice(before: &Record, now: &Record) -> Option<String> {
    let choice = |record: &Record| {
        let strategy = &record.drawn.as_ref()?.strategy;
        Some(format!("{strategy} {}", record.kernel.as_deref().unwrap_or("-")))
    };
    let (before, now) = (choice(before)?, choice(now)?);
    (before != now).then(|| format!("{now}, was {before}"))
}

/// The counters and bytes that differ, each with both values; `None` where none does.
fn difference_of(before: &Record, now: &Record) -> Option<String> {
    let all = |record: &Record| {
        let bytes = [("read", record.subject.read), ("written", record.subject.written)];
        let bytes = bytes.map(|(name, bytes)| (name.to_owned(), bytes));
        // Without the ideals, which documents of earlier versions lack.
        let figures = |counted| table::counters().map(move |counter| (counter.name(), counter.of(counted)));
        record.counters.as_ref().into_iter().flat_map(figures).chain(bytes).collect::<Vec<_>>()
    };
    let differences: Vec<String> = all(before)
        .into_iter()
        .zip(all(now))
        .filter(|((_, before), (_, now))| before != now)
        .map(|((name, before), (_, now))| format!("{name} {now}, was {before}"))
        .collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// Makes sure that two runs ran on one kind of device.
pub(crate) fn check_devices(before: &Machine, now: &Machine) -> Result<()> {
    require!(
        (&before.kind, &before.name) == (&now.kind, &now.name),
        InvalidArgument,
        "a run on {} cannot be compared with one on {}, which is another GPU; compare runs of one kind of device",
        now.name,
        before.name
    );
    Ok(())
}

/// A run that another is compared with, and the differences.
pub(crate) struct Compared {
    /// The earlier run.
    pub(crate) before: Run,
    /// The differences, those that changed first.
    pub(crate) changes: Vec<Change>,
}

impl Compared {
    /// Compares a run with an earlier one.
    pub(crate) fn of(before: Run, now: &Run) -> Result<Self> {
        Ok(Self { changes: changes(&before, now)?, before })
    }
}

/// Compares two runs: by their verdicts, the cases of `now` in their order, then those that only
/// `before` has.
pub(crate) fn changes(before: &Run, now: &Run) -> Result<Vec<Change>> {
    check_devices(&before.device, &now.device)?;
    let of = |run: &'_ Run, name: &str| run.cases.iter().position(|case| case.name == name);
    let both = now.cases.iter().map(|case| (of(before, &case.name).map(|at| &before.cases[at]), Some(case)));
    let gone = before.cases.iter().filter(|case| of(now, &case.name).is_none()).map(|case| (Some(case), None));
    let mut changes: Vec<Change> = both.chain(gone).filter_map(|(before, now)| Change::of(before, now)).collect();
    changes.sort_by_key(|change| change.verdict);
    Ok(changes)
}

#[cfg(test)]
mod tests;
