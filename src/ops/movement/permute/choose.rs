//! Chooses the strategy of a task: those that its class asks, and of these the fastest by their
//! estimates.

use std::fmt;

use super::class::Class;
use super::launch::{Decline, Launch, at_least};
use super::strategies::{boxes, copy, elements, fields, quads, rows, small, tile};
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
pub(super) struct Strategy {
    /// Its name in explanations.
    pub(super) name: &'static str,
    /// Takes the task: writes the launch in place, because it is large, and returns an offer. Or
    /// declines the task and writes nothing.
    pub(super) consider: fn(&Task<'_>, &mut Option<Launch>) -> Considered,
}

/// Every strategy. The last takes every task.
pub(super) static STRATEGIES: [Strategy; 8] = [
    Strategy { name: "copy", consider: copy::consider },
    Strategy { name: "rows", consider: rows::consider },
    Strategy { name: "small", consider: small::consider },
    Strategy { name: "tile", consider: tile::consider },
    Strategy { name: "fields", consider: fields::consider },
    Strategy { name: "quads", consider: quads::consider },
    Strategy { name: "boxes", consider: boxes::consider },
    Strategy { name: "elements", consider: elements::consider },
];

const COPY: u8 = 0;
const ROWS: u8 = 1;
const SMALL: u8 = 2;
const TILE: u8 = 3;
const FIELDS: u8 = 4;
const QUADS: u8 = 5;
const BOXES: u8 = 6;
const ELEMENTS: u8 = 7;

/// Returns the strategies that a task's class asks, those first that are more often the fastest or
/// plan in less time. Where all of them decline, `elements` takes the task.
///
/// `benches/record/2026-11-27-h100/choices.md` has the measurements behind each row.
fn asked(task: &Task<'_>) -> &'static [u8] {
    let (canonical, permutes) = (&task.widened().canonical, task.permutes());
    let width = canonical.width;
    if task.may_be_small() && task.bytes() <= permutes.small.bytes[width.trailing_zeros() as usize] {
        return &[COPY, SMALL];
    }
    let (is_narrow, is_vector) = (width < WORD, width == VECTOR);
    // The L2 cache joins the parts of sectors that elements of smaller arrays are.
    let is_cached = task.bytes() < permutes.small.cached;
    match Class::of(canonical, permutes.fields.most) {
        Class::Alike => &[COPY, ROWS],
        Class::Structs if is_cached => &[SMALL, FIELDS, TILE, QUADS, ELEMENTS],
        Class::Structs if is_vector => &[SMALL, QUADS, TILE],
        Class::Structs => &[SMALL, FIELDS, TILE, QUADS, BOXES],
        Class::Runs if is_vector => &[ELEMENTS, QUADS],
        // Elements that move one by one store part of a word each.
        Class::Runs if is_narrow => &[ROWS, QUADS, BOXES],
        Class::Runs if is_cached => &[ROWS, ELEMENTS, QUADS],
        Class::Runs => &[ROWS, QUADS, ELEMENTS, BOXES],
        Class::Turned if is_vector => &[ELEMENTS],
        Class::Turned if is_narrow => &[QUADS, BOXES],
        Class::Turned => &[ELEMENTS, QUADS, BOXES],
        Class::Crossed if is_cached => &[SMALL, TILE, QUADS, ELEMENTS],
        // A box of elements of 16 bytes has no more than short runs.
        Class::Crossed if is_vector => &[SMALL, TILE, QUADS],
        Class::Crossed => &[SMALL, TILE, QUADS, BOXES],
        Class::SteppedRuns => &[ELEMENTS, BOXES],
        Class::Stepped => &[BOXES],
        Class::Scattered => &[ELEMENTS],
    }
}

/// Asks a strategy that the table names. Those of large arrays decline others.
fn ask(strategy: u8, task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let Permutes { quads, boxes, .. } = task.permutes();
    match strategy {
        QUADS => at_least(task.bytes(), quads.smallest, "bytes of a side", "the multiprocessors would not be busy")?,
        BOXES => at_least(task.bytes(), boxes.smallest, "bytes of a side", "few boxes for each multiprocessor")?,
        _ => {}
    }
    (STRATEGIES[usize::from(strategy)].consider)(task, launch)
}

/// Writes the launch of the strategy with the best estimate, and returns its offer.
pub(super) fn choose(task: &Task<'_>, launch: &mut Option<Launch>) -> Offer {
    let (estimates, mut best) = (&task.permutes().estimates, None::<Offer>);
    for &strategy in asked(task) {
        let mut next = None;
        let Ok(offer) = ask(strategy, task, &mut next) else { continue };
        // An estimate is not exact, and those that come first are more often right.
        if best.is_none_or(|best| offer.time < estimates.gain * best.time) {
            (best, *launch) = (Some(offer), next);
        }
        let is_measured = strategy == TILE && task.has_given_tiles();
        if is_measured || best.is_some_and(|best| best.time <= estimates.enough * task.traffic()) {
            break;
        }
    }
    best.unwrap_or_else(|| elements::consider(task, launch).expect("this strategy takes every task"))
}

/// Returns the verdicts of the strategies that are asked: of the chosen one first, then of the
/// others that take the task, the fastest first.
pub(super) fn verdicts(task: &Task<'_>) -> Vec<Verdict> {
    let chosen = choose(task, &mut None);
    let considered = |&strategy: &u8| (STRATEGIES[usize::from(strategy)].name, ask(strategy, task, &mut None));
    let mut all: Vec<_> = asked(task).iter().map(considered).collect();
    if all.iter().all(|(_, considered)| considered.is_err()) {
        all.push(considered(&ELEMENTS));
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
/// one that [`Strategy::consider`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    strategy: u8,
    launch: u8,
}

impl Way {
    /// Returns all ways: each strategy's own, in their order, and the boxes by rank.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let own = (0..STRATEGIES.len() as u8).map(|strategy| Self { strategy, launch: 0 });
        own.chain((1..=boxes::KEPT as u8).map(|launch| Self { strategy: BOXES, launch }))
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
            None => (STRATEGIES[usize::from(self.strategy)].consider)(task, launch),
            Some(rank) => boxes::ranked(task, rank, launch),
        }
    }

    /// Returns the name of the strategy.
    pub(super) fn name(self) -> &'static str {
        STRATEGIES[usize::from(self.strategy)].name
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
