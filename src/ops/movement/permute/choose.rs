//! Says which strategies a task asks, by its class.

use std::fmt;

use super::class::Class;
use super::launch::{Launch, at_least};
use super::strategies::{boxes, elements, fields, quads, rows, small, tile, width_log2};
use super::task::Task;
use crate::device::Weights;
use crate::ops::Target;
use crate::ops::choose::{Choosable, Considered, Costs, Offer};
use crate::ops::tuning::{Permutes, Tuning};
use crate::ops::units::{VECTOR, WORD};

/// One way to permute: a kernel, or a few with one description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Rows,
    Small,
    Tile,
    Fields,
    Quads,
    Boxes,
    /// It takes every task.
    Elements,
}

impl Strategy {
    const ALL: [Self; 7] =
        [Self::Rows, Self::Small, Self::Tile, Self::Fields, Self::Quads, Self::Boxes, Self::Elements];

    /// Returns its name in explanations.
    fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Small => "small",
            Self::Tile => "tile",
            Self::Fields => "fields",
            Self::Quads => "quads",
            Self::Boxes => "boxes",
            Self::Elements => "elements",
        }
    }

    /// Takes the task: writes the launch in place, because it is large, and returns an offer. Or
    /// declines the task and writes nothing.
    fn consider(self, task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
        match self {
            Self::Rows => rows::consider(task, launch),
            Self::Small => small::consider(task, launch),
            Self::Tile => tile::consider(task, launch),
            Self::Fields => fields::consider(task, launch),
            Self::Quads => quads::consider(task, launch),
            Self::Boxes => boxes::consider(task, launch),
            Self::Elements => elements::consider(task, launch),
        }
    }

    /// Considers the task where its class asks. Strategies of large arrays decline others, and
    /// small arrays move by rows only as a copy.
    fn ask(self, task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
        if self == Self::Rows && is_small(task) {
            return rows::alike(task, launch);
        }
        let Permutes { quads, boxes, .. } = task.permutes();
        let (fewest, why) = match self {
            Self::Quads => (quads.smallest, "the multiprocessors would not be busy"),
            Self::Boxes => (boxes.smallest, "few boxes for each multiprocessor"),
            _ => (0, ""),
        };
        at_least(task.bytes(), fewest, "bytes of a side", why)?;
        self.consider(task, launch)
    }
}

/// Returns whether a launch takes most of the task's time.
fn is_small(task: &Task<'_>) -> bool {
    let most = task.permutes().small.bytes[width_log2(task.widened().canonical.width)];
    task.may_be_small() && task.bytes() <= most
}

/// Returns the strategies that a task's class asks, those first that are more often the fastest or
/// plan in less time. Where all of them decline, `elements` takes the task.
///
/// `benches/record/2026-11-27-h100/choices.md` has the measurements behind each row.
fn asked(task: &Task<'_>) -> &'static [Strategy] {
    use Strategy::{Boxes, Elements, Fields, Quads, Rows, Small, Tile};

    if is_small(task) {
        return &[Rows, Small];
    }
    let width = task.widened().canonical.width;
    let (is_narrow, is_vector) = (width < WORD, width == VECTOR);
    // The L2 cache joins the parts of sectors that elements of smaller arrays are.
    let is_cached = task.bytes() < task.permutes().small.cached;
    match task.class() {
        Class::Alike => &[Rows],
        Class::Structs if is_cached && is_vector => &[Elements],
        Class::Structs if is_cached => &[Small, Fields, Tile, Quads, Elements],
        Class::Structs if is_vector => &[Small, Quads, Tile],
        Class::Structs => &[Small, Fields, Tile, Quads, Boxes],
        Class::Runs if is_vector => &[Elements, Quads],
        // Elements that move one by one store part of a word each.
        Class::Runs if is_narrow => &[Rows, Quads, Boxes],
        Class::Runs if is_cached => &[Rows, Elements, Quads],
        Class::Runs => &[Rows, Quads, Elements, Boxes],
        Class::Turned if is_vector => &[Elements],
        Class::Turned if is_narrow => &[Quads, Boxes],
        Class::Turned if is_cached => &[Elements],
        Class::Turned => &[Elements, Quads, Boxes],
        Class::Crossed if is_cached => &[Small, Tile, Quads, Elements],
        // A box of elements of 16 bytes has no more than short runs.
        Class::Crossed if is_vector => &[Small, Tile, Quads],
        Class::Crossed => &[Small, Tile, Quads, Boxes],
        Class::SteppedRuns => &[Elements, Boxes],
        Class::Stepped => &[Boxes],
        Class::Scattered => &[Elements],
    }
}

impl Choosable for Task<'_> {
    type Launch = Launch;
    type Strategy = Strategy;

    const LAST: Strategy = Strategy::Elements;

    fn name(strategy: Strategy) -> &'static str {
        strategy.name()
    }

    fn asked(&self) -> &'static [Strategy] {
        asked(self)
    }

    #[inline]
    fn ask(&self, strategy: Strategy, launch: &mut Option<Launch>) -> Considered {
        strategy.ask(self, launch)
    }

    fn gain(&self) -> f64 {
        self.permutes().estimates.gain
    }

    fn is_enough(&self, strategy: Strategy, best: Option<Offer>) -> bool {
        let enough = self.permutes().estimates.enough * self.traffic();
        (strategy == Strategy::Tile && self.has_given_tiles()) || best.is_some_and(|best| best.time <= enough)
    }
}

impl Costs {
    /// Returns the place of the kernel that plans choose by these weights, among the costs of all
    /// kernels that they ask, in their order.
    pub fn chosen(asked: &[Self], weights: &Weights, target: Target) -> Option<usize> {
        let estimates = Tuning::of(target).permutes.estimates;
        let mut best: Option<(usize, f64)> = None;
        for (place, costs) in asked.iter().enumerate() {
            let time = costs.time(weights);
            if best.is_none_or(|(_, best)| time < estimates.gain * best) {
                best = Some((place, time));
            }
            if best.is_some_and(|(_, best)| best <= estimates.enough * costs.least) {
                break;
            }
        }
        best.map(|(place, _)| place)
    }
}

/// One way to do a task: a strategy, and one of its launches.
///
/// Its text is the name of the strategy, and behind it the number of the launch if it is not the
/// one that the strategy plans alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    strategy: Strategy,
    launch: u8,
}

impl Way {
    /// Returns all ways: each strategy's own, in their order, and the boxes by rank.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let own = Strategy::ALL.into_iter().map(|strategy| Self { strategy, launch: 0 });
        own.chain((1..=boxes::KEPT as u8).map(|launch| Self { strategy: Strategy::Boxes, launch }))
    }

    /// Returns the way that a text names.
    pub(super) fn named(text: &str) -> Option<Self> {
        let (name, launch) = text.split_once(' ').unwrap_or((text, "0"));
        let launch: u8 = launch.parse().ok()?;
        Self::all().find(|way| way.name() == name && way.launch == launch)
    }

    /// Returns the ways that plans of a task ask.
    pub(super) fn asked(task: &Task<'_>) -> impl Iterator<Item = Self> {
        asked(task).iter().map(|&strategy| Self { strategy, launch: 0 })
    }

    /// Writes the launch of a task, and returns the offer; or declines it and writes nothing.
    pub(super) fn consider(self, task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
        match usize::from(self.launch).checked_sub(1) {
            None => self.strategy.consider(task, launch),
            Some(rank) => boxes::ranked(task, rank, launch),
        }
    }

    /// Returns the name of the strategy.
    pub(super) fn name(self) -> &'static str {
        self.strategy.name()
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.launch {
            0 => f.write_str(self.name()),
            launch => write!(f, "{} {launch}", self.name()),
        }
    }
}
