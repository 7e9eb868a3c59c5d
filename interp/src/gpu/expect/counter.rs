//! Counters by their names, and their ideals.

use std::slice;

use crate::counters::Counters;
use crate::counters::table::{self, Figure, Least};
use crate::error::Result;
use crate::gpu::report::Report;

use super::invalid;

/// A figure of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    Of(Sum),
    ThreadInstructions,
    /// Shared memory of a block, static and dynamic.
    SharedBytes,
    /// The line of the source whose accesses exceed the least by most.
    WorstLine(Sum),
}

/// A figure of some kinds of access, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    accesses: &'static [&'static str],
    figure: &'static Figure,
}

/// Short names of kinds of access.
const SHORT: [(&str, &[&str]); 3] =
    [("load", &["global_load"]), ("store", &["global_store"]), ("shared", &["shared_load", "shared_store"])];

/// The counters whose names have no point.
const WHOLE: [(&str, Counter); 2] =
    [("thread_instructions", Counter::ThreadInstructions), ("shared_bytes", Counter::SharedBytes)];

/// Lists what may stand before the point of a name, with the kinds of access that it means.
fn names() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    SHORT.into_iter().chain(table::accesses().map(|access| (access.name, slice::from_ref(&access.name))))
}

impl Sum {
    /// The sum of `value` over the counters.
    fn over(self, value: impl Fn(table::Counter) -> u64) -> u64 {
        let accesses = table::accesses().filter(|access| self.accesses.contains(&access.name));
        accesses.filter_map(|access| access.counter(self.figure.name)).map(value).sum()
    }

    fn of(self, launch: &Counters) -> u64 {
        self.over(|counter| counter.of(launch))
    }

    /// The least that these accesses could take; 0 if it is not counted.
    fn least_of(self, launch: &Counters) -> u64 {
        self.over(|counter| counter.least(launch).unwrap_or_default())
    }
}

impl Counter {
    /// The counter of a name, of which `shown` is what errors show.
    pub(super) fn named(name: &str, shown: &str) -> Result<Self> {
        if let Some(&(_, counter)) = WHOLE.iter().find(|(known, _)| *known == name) {
            return Ok(counter);
        }
        let (first, figure) = name.split_once('.').unwrap_or((name, ""));
        let Some((_, accesses)) = names().find(|(known, _)| *known == first) else {
            let known: Vec<_> = names().map(|(known, _)| known).collect();
            return Err(invalid(format!(
                "`{shown}` is not a counter; use {} with a point and a counter's name, or {} or {}",
                known.join(", "),
                WHOLE[0].0,
                WHOLE[1].0
            )));
        };
        // All kinds of a short name have the same figures.
        let figures =
            table::accesses().find(|access| access.name == accesses[0]).map_or(&[][..], |first| first.figures);
        let Some(figure) = figures.iter().find(|known| known.name == figure) else {
            let known: Vec<_> = figures.iter().map(|figure| figure.name).collect();
            let (last, others) = known.split_last().unwrap_or((&"", &[]));
            return Err(invalid(format!(
                "`{shown}` is not a counter; use {} or {last} behind the point",
                others.join(", ")
            )));
        };
        Ok(Self::Of(Sum { accesses, figure }))
    }

    /// The worst line by this counter.
    pub(super) fn worst_line(self) -> Result<Self> {
        match self {
            Self::Of(sum) if sum.figure.least != Least::Unknown => Ok(Self::WorstLine(sum)),
            _ => Err(invalid(
                "worst_line compares sectors, wavefronts or bank conflicts; name one of them, such as \
                 worst_line(store.sectors)",
            )),
        }
    }

    pub(super) fn has_ideal(self) -> bool {
        matches!(self, Self::Of(Sum { figure: Figure { least: Least::Ideal(_), .. }, .. }))
    }

    /// Its figure in a report.
    pub(super) fn value(self, report: &Report) -> Result<u64> {
        Ok(match self {
            Self::Of(sum) => sum.of(&report.counters),
            Self::ThreadInstructions => report.thread_instructions,
            Self::SharedBytes => report.shared_bytes,
            Self::WorstLine(sum) => sum.worst_line(report)?.into(),
        })
    }

    /// The least that its accesses could take, where it has an ideal.
    pub(super) fn ideal(self, report: &Report) -> Option<u64> {
        match self {
            Self::Of(sum) if self.has_ideal() => Some(sum.least_of(&report.counters)),
            _ => None,
        }
    }
}

impl Sum {
    /// The line that wastes most; among equals the first, and 0 where none wastes anything.
    fn worst_line(self, report: &Report) -> Result<u32> {
        let lines = report.lines();
        if lines.is_empty() && !report.instructions.is_empty() {
            return Err(invalid(
                "worst_line needs PTX that has the lines of its source; compile it with nvcc -lineinfo or clang \
                 -gline-tables-only",
            ));
        }
        let waste = |launch: &Counters| self.of(launch).saturating_sub(self.least_of(launch));
        // The last of equal ones is taken, which is the first from behind.
        let worst = lines.iter().rev().max_by_key(|line| waste(&line.counters));
        Ok(worst.filter(|line| waste(&line.counters) > 0).map_or(0, |line| line.line))
    }
}
