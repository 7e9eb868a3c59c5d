//! Counters by their names, and their ideals.

use crate::counters::{GlobalCounters, SharedCounters};
use crate::error::Result;
use crate::interp::report::Report;
use crate::interp::vocabulary::AccessKind::{self, Atomic, Load, Reduction, Store};

use super::invalid;

/// A figure of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// Of accesses to global memory.
    Global(AccessKind, Field),
    /// Of accesses to shared memory of some kinds, together.
    Shared(&'static [AccessKind], Field),
    ThreadInstructions,
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

const THREAD_INSTRUCTIONS: &str = "thread_instructions";

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
        if name == THREAD_INSTRUCTIONS {
            return Ok(Self::ThreadInstructions);
        }
        let (accesses, field) = name.split_once('.').unwrap_or((name, ""));
        let Some(&(_, accesses)) = ACCESSES.iter().find(|(known, _)| *known == accesses) else {
            let known = ACCESSES.map(|(known, _)| known).join(", ");
            return Err(invalid(format!(
                "`{shown}` is not a counter; use {known} with a point and a counter's name, or {THREAD_INSTRUCTIONS}"
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

    pub(super) fn value(&self, counter: Counter) -> u64 {
        match counter {
            Counter::Global(kind, field) => {
                let GlobalCounters { instructions, requests, sectors } = self.global(kind);
                match field {
                    Field::Requests => requests,
                    Field::Sectors => sectors,
                    _ => instructions,
                }
            }
            Counter::Shared(kinds, field) => {
                let counters = kinds.iter().map(|&kind| self.shared(kind));
                let SharedCounters { instructions, wavefronts, bank_conflicts } =
                    counters.fold(SharedCounters::default(), |sum, counters| sum + counters);
                match field {
                    Field::Wavefronts => wavefronts,
                    Field::BankConflicts => bank_conflicts,
                    _ => instructions,
                }
            }
            Counter::ThreadInstructions => self.report.thread_instructions,
        }
    }

    /// The least that the accesses of a counter could take, where it has an ideal.
    pub(super) fn ideal(&self, counter: Counter) -> Option<u64> {
        counter.has_ideal().then(|| match counter {
            Counter::Global(kind, _) => self.ideal_sectors(kind),
            Counter::Shared(kinds, _) => kinds.iter().map(|&kind| self.ideal_wavefronts(kind)).sum(),
            Counter::ThreadInstructions => 0,
        })
    }

    fn global(&self, kind: AccessKind) -> GlobalCounters {
        match kind {
            Load => self.report.global_load,
            Store => self.report.global_store,
            Atomic => self.report.global_atomic,
            Reduction => self.report.global_reduction,
        }
    }

    fn shared(&self, kind: AccessKind) -> SharedCounters {
        match kind {
            Load => self.report.shared_load,
            Store => self.report.shared_store,
            Atomic | Reduction => self.report.shared_atomic,
        }
    }

    fn ideal_sectors(&self, kind: AccessKind) -> u64 {
        let ideal = &self.report.counters.ideal;
        match kind {
            Load => ideal.global_load,
            Store => ideal.global_store,
            Atomic => ideal.global_atomic,
            Reduction => ideal.global_reduction,
        }
    }

    /// Shared memory has no reductions: the launch counts them as atomics.
    fn ideal_wavefronts(&self, kind: AccessKind) -> u64 {
        let ideal = &self.report.counters.ideal;
        match kind {
            Load => ideal.shared_load,
            Store => ideal.shared_store,
            Atomic | Reduction => ideal.shared_atomic,
        }
    }
}
