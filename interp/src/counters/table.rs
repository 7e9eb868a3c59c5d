//! The table of counters: for each its name in documents and expectations, its unit, its metric in
//! Nsight Compute, and its figure of a launch.

use super::{ACCESSES, Counters, InstructionCounters};

/// A kind of access.
#[derive(Debug)]
pub struct Access {
    /// Its name, such as `global_load`.
    pub name: &'static str,
    /// The accesses in words.
    pub doc: &'static str,
    /// The memory, as metrics name it.
    pub space: &'static str,
    /// The operations that count here, as Nsight Compute names them; metrics have the first.
    pub operations: &'static [&'static str],
    /// The figures that are counted of such accesses.
    pub figures: &'static [Figure],
    /// The figure of a row of `figures`.
    pub(super) figure: fn(&Counters, usize) -> u64,
    /// The ideal of these accesses.
    pub(super) ideal: fn(&Counters) -> u64,
    /// Adds an instruction of one of the operations to a launch.
    pub(super) add: fn(&mut Counters, &InstructionCounters),
}

/// A figure of accesses.
#[derive(Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name, such as `sectors`.
    pub name: &'static str,
    /// The figure in words.
    pub doc: &'static str,
    /// The unit that it counts.
    pub unit: &'static str,
    /// The least that the same accesses could take.
    pub least: Least,
    /// Its metric in Nsight Compute, with `{space}` and `{op}` in place of those of an access.
    pub metric: &'static str,
}

/// The least of a figure that accesses could take. The figure wastes what is beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    /// It is not counted.
    Unknown,
    /// The launch's [`Ideal`](super::Ideal) of these accesses, with its metric in Nsight Compute.
    Ideal(&'static str),
    /// It is zero: the figure itself is waste.
    Zero,
}

/// A counter: a figure of a kind of access.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// The kind of access.
    pub access: &'static Access,
    /// The row of the figure in the access's.
    row: usize,
}

/// All kinds of access, memory by memory.
pub fn accesses() -> impl Iterator<Item = &'static Access> {
    let mut accesses: Vec<&Access> = ACCESSES.iter().collect();
    accesses.sort_by_key(|access| access.space);
    accesses.into_iter()
}

/// All counters, memory by memory.
pub fn counters() -> impl Iterator<Item = Counter> {
    accesses().flat_map(Access::counters)
}

/// The counter of a name such as `global_load.sectors`.
pub fn counter(name: &str) -> Option<Counter> {
    counters().find(|counter| counter.name() == name)
}

impl Access {
    /// Its counters.
    pub fn counters(&'static self) -> impl Iterator<Item = Counter> {
        (0..self.figures.len()).map(move |row| Counter { access: self, row })
    }

    /// Its counter of a figure, if it has that.
    pub fn counter(&'static self, figure: &str) -> Option<Counter> {
        self.counters().find(|counter| counter.figure().name == figure)
    }

    fn metric(&self, pattern: &str) -> String {
        pattern.replace("{space}", self.space).replace("{op}", self.operations[0])
    }
}

impl Counter {
    /// Its figure of the access.
    pub fn figure(&self) -> &'static Figure {
        &self.access.figures[self.row]
    }

    /// Its name, such as `global_load.sectors`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.access.name, self.figure().name)
    }

    /// Its metric in Nsight Compute.
    pub fn metric(&self) -> String {
        self.access.metric(self.figure().metric)
    }

    /// The metric of its ideal in Nsight Compute, if it has an ideal.
    pub fn ideal_metric(&self) -> Option<String> {
        let Least::Ideal(metric) = self.figure().least else { return None };
        Some(self.access.metric(metric))
    }

    /// Its value for a launch.
    pub fn of(&self, launch: &Counters) -> u64 {
        (self.access.figure)(launch, self.row)
    }

    /// The least that the accesses of a launch could take, if it is counted.
    pub fn least(&self, launch: &Counters) -> Option<u64> {
        match self.figure().least {
            Least::Unknown => None,
            Least::Ideal(_) => Some((self.access.ideal)(launch)),
            Least::Zero => Some(0),
        }
    }
}
