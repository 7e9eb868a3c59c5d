//! Counters by their names, and their ideals.

use crate::counters::{Counters, GlobalCounters, SharedCounters};
use crate::error::Result;
use crate::gpu::report::Report;
use crate::gpu::vocabulary::AccessKind::{self, Atomic, Load, Reduction, Store};

use super::invalid;

/// A figure of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// Of accesses to global memory.
    Global(AccessKind, Field),
    /// Of accesses to shared memory of some kinds, together.
    Shared(&'static [AccessKind], Field),
    ThreadInstructions,
    /// Shared memory of a block, static and dynamic.
    SharedBytes,
    /// The line of the source whose accesses exceed the ideal by most.
    WorstLine(Wasted),
}

/// A counter that grows with what accesses waste: sectors, wavefronts or bank conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wasted {
    Global(AccessKind),
    Shared(&'static [AccessKind], Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Instructions,
    Requests,
    Sectors,
    Wavefronts,
    BankConflicts,
}

/// The accesses that the part of a name before the point stands for.
#[derive(Clone, Copy)]
enum Accesses {
    Global(AccessKind),
    Shared(&'static [AccessKind]),
}

const ACCESSES: [(&str, Accesses); 10] = [
    ("load", Accesses::Global(Load)),
    ("store", Accesses::Global(Store)),
    ("shared", Accesses::Shared(&[Load, Store])),
    ("global_load", Accesses::Global(Load)),
    ("global_store", Accesses::Global(Store)),
    ("global_atomic", Accesses::Global(Atomic)),
    ("global_reduction", Accesses::Global(Reduction)),
    ("shared_load", Accesses::Shared(&[Load])),
    ("shared_store", Accesses::Shared(&[Store])),
    ("shared_atomic", Accesses::Shared(&[Atomic])),
];

/// The counters whose names have no point.
const WHOLE: [(&str, Counter); 2] =
    [("thread_instructions", Counter::ThreadInstructions), ("shared_bytes", Counter::SharedBytes)];

impl Accesses {
    /// The counters of such accesses.
    fn fields(self) -> &'static [(&'static str, Field)] {
        match self {
            Self::Global(_) => {
                &[("instructions", Field::Instructions), ("requests", Field::Requests), ("sectors", Field::Sectors)]
            }
            Self::Shared(_) => &[
                ("instructions", Field::Instructions),
                ("wavefronts", Field::Wavefronts),
                ("bank_conflicts", Field::BankConflicts),
            ],
        }
    }
}

impl Counter {
    /// The counter of a name, of which `shown` is what errors show.
    pub(super) fn named(name: &str, shown: &str) -> Result<Self> {
        if let Some(&(_, counter)) = WHOLE.iter().find(|(known, _)| *known == name) {
            return Ok(counter);
        }
        let (accesses, field) = name.split_once('.').unwrap_or((name, ""));
        let Some(&(_, accesses)) = ACCESSES.iter().find(|(known, _)| *known == accesses) else {
            let known = ACCESSES.map(|(known, _)| known).join(", ");
            return Err(invalid(format!(
                "`{shown}` is not a counter; use {known} with a point and a counter's name, or {} or {}",
                WHOLE[0].0, WHOLE[1].0
            )));
        };
        let Some(&(_, field)) = accesses.fields().iter().find(|(known, _)| *known == field) else {
            let [first, second, third] = [0, 1, 2].map(|index| accesses.fields()[index].0);
            return Err(invalid(format!(
                "`{shown}` is not a counter; use {first}, {second} or {third} behind the point"
            )));
        };
        Ok(match accesses {
            Accesses::Global(kind) => Self::Global(kind, field),
            Accesses::Shared(kinds) => Self::Shared(kinds, field),
        })
    }

    /// The worst line by this counter.
    pub(super) fn worst_line(self) -> Result<Self> {
        match self {
            Self::Global(kind, Field::Sectors) => Ok(Self::WorstLine(Wasted::Global(kind))),
            Self::Shared(kinds, field @ (Field::Wavefronts | Field::BankConflicts)) => {
                Ok(Self::WorstLine(Wasted::Shared(kinds, field)))
            }
            _ => Err(invalid(
                "worst_line compares sectors, wavefronts or bank conflicts; name one of them, such as \
                 worst_line(store.sectors)"
                    .into(),
            )),
        }
    }

    pub(super) fn has_ideal(self) -> bool {
        matches!(self, Self::Global(_, Field::Sectors) | Self::Shared(_, Field::Wavefronts))
    }
}

/// The figures of a report by their names.
pub(super) struct Totals<'r> {
    report: &'r Report,
}

impl<'r> Totals<'r> {
    pub(super) fn of(report: &'r Report) -> Self {
        Self { report }
    }

    pub(super) fn value(&self, counter: Counter) -> Result<u64> {
        let counters = &self.report.counters;
        Ok(match counter {
            Counter::Global(kind, field) => {
                let GlobalCounters { instructions, requests, sectors } = global(counters, kind);
                match field {
                    Field::Requests => requests,
                    Field::Sectors => sectors,
                    _ => instructions,
                }
            }
            Counter::Shared(kinds, field) => {
                let SharedCounters { instructions, wavefronts, bank_conflicts } = shared(counters, kinds);
                match field {
                    Field::Wavefronts => wavefronts,
                    Field::BankConflicts => bank_conflicts,
                    _ => instructions,
                }
            }
            Counter::ThreadInstructions => self.report.thread_instructions,
            Counter::SharedBytes => self.report.shared_bytes,
            Counter::WorstLine(wasted) => self.worst_line(wasted)?.into(),
        })
    }

    /// The least that the accesses of a counter could take, where it has an ideal.
    pub(super) fn ideal(&self, counter: Counter) -> Option<u64> {
        match counter {
            Counter::Global(kind, Field::Sectors) => Some(ideal_sectors(&self.report.counters, kind)),
            Counter::Shared(kinds, Field::Wavefronts) => Some(ideal_wavefronts(&self.report.counters, kinds)),
            _ => None,
        }
    }

    /// The line that wastes most; among equals the first, and 0 where none wastes anything.
    fn worst_line(&self, wasted: Wasted) -> Result<u32> {
        let (report, lines) = (self.report, self.report.lines());
        if lines.is_empty() && !report.instructions.is_empty() {
            return Err(invalid(
                "worst_line needs PTX that has the lines of its source; compile it with nvcc -lineinfo or clang \
                 -gline-tables-only"
                    .into(),
            ));
        }
        let waste = |counters: &Counters| match wasted {
            Wasted::Global(kind) => global(counters, kind).sectors.saturating_sub(ideal_sectors(counters, kind)),
            Wasted::Shared(kinds, Field::BankConflicts) => shared(counters, kinds).bank_conflicts,
            Wasted::Shared(kinds, _) => {
                shared(counters, kinds).wavefronts.saturating_sub(ideal_wavefronts(counters, kinds))
            }
        };
        // Of equal ones the last is taken, which is the first from behind.
        let worst = lines.iter().rev().max_by_key(|line| waste(&line.counters));
        Ok(worst.filter(|line| waste(&line.counters) > 0).map_or(0, |line| line.line))
    }
}

fn global(counters: &Counters, kind: AccessKind) -> GlobalCounters {
    match kind {
        Load => counters.global_load,
        Store => counters.global_store,
        Atomic => counters.global_atomic,
        Reduction => counters.global_reduction,
    }
}

/// Shared memory has no reductions: the launch counts them as atomics.
fn shared(counters: &Counters, kinds: &[AccessKind]) -> SharedCounters {
    let one = |kind: &AccessKind| match kind {
        Load => counters.shared_load,
        Store => counters.shared_store,
        Atomic | Reduction => counters.shared_atomic,
    };
    kinds.iter().map(one).fold(SharedCounters::default(), |sum, counters| sum + counters)
}

fn ideal_sectors(counters: &Counters, kind: AccessKind) -> u64 {
    let ideal = &counters.ideal;
    match kind {
        Load => ideal.global_load,
        Store => ideal.global_store,
        Atomic => ideal.global_atomic,
        Reduction => ideal.global_reduction,
    }
}

fn ideal_wavefronts(counters: &Counters, kinds: &[AccessKind]) -> u64 {
    let ideal = &counters.ideal;
    let one = |kind: &AccessKind| match kind {
        Load => ideal.shared_load,
        Store => ideal.shared_store,
        Atomic | Reduction => ideal.shared_atomic,
    };
    kinds.iter().map(one).sum()
}
