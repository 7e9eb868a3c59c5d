//! Chooses the strategy of a task: those that its class asks, and of these the fastest by their
//! estimates.

use std::fmt;

use super::class::Class;
use super::launch::{Decline, Launch, at_least};
use super::strategies::{boxes, copy, elements, fields, quads, rows, small, tile, width_log2};
use super::task::Task;
use crate::ops::plan::Verdict;
use crate::ops::tuning::Permutes;
use crate::ops::units::{VECTOR, WORD};

/// The offer of a strategy that takes a task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Offer {
    /// Why it takes the task.
    pub(super) reason: &'static str,
    /// The estimated time, relative to that of a copy of the same bytes. Those of `copy` and
    /// `small`, which stand first where they are asked, are 1.
    pub(super) time: f64,
}

/// The answer of a strategy: an offer, or the reason to decline.
pub(super) type Considered = Result<Offer, Decline>;

/// One way to permute: a kernel, or a few with one description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Copy,
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
    const ALL: [Self; 8] =
        [Self::Copy, Self::Rows, Self::Small, Self::Tile, Self::Fields, Self::Quads, Self::Boxes, Self::Elements];

    /// Returns its name in explanations.
    fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
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
            Self::Copy => copy::consider(task, launch),
            Self::Rows => rows::consider(task, launch),
            Self::Small => small::consider(task, launch),
            Self::Tile => tile::consider(task, launch),
            Self::Fields => fields::consider(task, launch),
            Self::Quads => quads::consider(task, launch),
            Self::Boxes => boxes::consider(task, launch),
            Self::Elements => elements::consider(task, launch),
        }
    }

    /// Considers the task where its class asks. Strategies of large arrays decline others.
    fn ask(self, task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
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

/// Returns the strategies that a task's class asks, those first that are more often the fastest or
/// plan in less time. Where all of them decline, `elements` takes the task.
///
/// `benches/record/2026-11-27-h100/choices.md` has the measurements behind each row.
fn asked(task: &Task<'_>) -> &'static [Strategy] {
    use Strategy::{Boxes, Copy, Elements, Fields, Quads, Rows, Small, Tile};

    let (width, small) = (task.widened().canonical.width, &task.permutes().small);
    if task.may_be_small() && task.bytes() <= small.bytes[width_log2(width)] {
        return &[Copy, Small];
    }
    let (is_narrow, is_vector) = (width < WORD, width == VECTOR);
    // The L2 cache joins the parts of sectors that elements of smaller arrays are.
    let is_cached = task.bytes() < small.cached;
    match task.class() {
        Class::Alike => &[Copy, Rows],
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

/// Writes the launch of the strategy with the best estimate, and returns its offer.
pub(super) fn choose(task: &Task<'_>, launch: &mut Option<Launch>) -> Offer {
    let (estimates, mut best) = (&task.permutes().estimates, None::<Offer>);
    for &strategy in asked(task) {
        let mut next = None;
        let Ok(offer) = strategy.ask(task, &mut next) else { continue };
        // An estimate is not exact, and those that come first are more often right.
        if best.is_none_or(|best| offer.time < estimates.gain * best.time) {
            (best, *launch) = (Some(offer), next);
        }
        let is_given = strategy == Strategy::Tile && task.has_given_tiles();
        if is_given || best.is_some_and(|best| best.time <= estimates.enough * task.traffic()) {
            break;
        }
    }
    best.unwrap_or_else(|| elements::consider(task, launch).expect("this strategy takes every task"))
}

/// Returns the verdicts of the strategies that are asked: of the chosen one first, then of the
/// others that take the task, the fastest first.
pub(super) fn verdicts(task: &Task<'_>) -> Vec<Verdict> {
    let chosen = choose(task, &mut None);
    let considered = |strategy: &Strategy| (strategy.name(), strategy.ask(task, &mut None));
    let mut all: Vec<_> = asked(task).iter().map(considered).collect();
    if all.iter().all(|(_, considered)| considered.is_err()) {
        all.push(considered(&Strategy::Elements));
    }
    let place = |considered: &Considered| match considered {
        Ok(offer) if *offer == chosen => 0.0,
        Ok(offer) => offer.time,
        Err(_) => f64::INFINITY,
    };
    all.sort_by(|(_, a), (_, b)| place(a).total_cmp(&place(b)));
    let verdict = |(name, considered): (&'static str, Considered)| {
        let said =
            considered.map(|Offer { reason, time }| format!("about {time:.2} times as long as a copy: {reason}"));
        Verdict::of(name, said.as_deref().map_err(|decline| *decline))
    };
    all.into_iter().map(verdict).collect()
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
