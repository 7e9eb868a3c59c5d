//! Chooses among the strategies that can do the same work: those that the work asks, and of these
//! the fastest by their estimates.

use super::plan::{Decline, Verdict};
use crate::device::{Estimated, MOST_COSTS, Weights};

/// The offer of a strategy that takes the work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Offer {
    /// Why it takes the work.
    pub(super) reason: &'static str,
    /// The estimated time, relative to that of a copy of the same bytes.
    pub(super) time: f64,
    /// The costs that the estimate weighs; `None` where no weights of the policy give the time.
    pub(super) costs: Option<Costs>,
}

/// The costs of layouts for a kernel.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// The kernel.
    pub kernel: Estimated,
    /// The base-2 logarithm of the width of its elements.
    pub width_log2: usize,
    /// The costs, and 0 in place of those that the kernel does not have.
    pub costs: [f64; MOST_COSTS],
    /// The least time that the layouts allow, relative to that of a copy of the same bytes.
    pub least: f64,
}

impl Costs {
    /// The least estimate, relative to a copy. Every kernel writes the destination, and that is
    /// half of the bytes that a copy moves. A cost may be less than 0, and a user's file may give
    /// it any weight, or all costs the weight 0.
    const LEAST: f64 = 0.5;

    /// Returns the costs of a kernel for elements of this width.
    pub(super) fn new<const COSTS: usize>(
        (kernel, width): (Estimated, usize),
        least: f64,
        costs: [f64; COSTS],
    ) -> Self {
        let mut all = [0.0; MOST_COSTS];
        all[..COSTS].copy_from_slice(&costs);
        Self { kernel, width_log2: width.trailing_zeros() as usize, costs: all, least }
    }

    /// Returns the estimated time, relative to that of a copy of the same bytes: the sum of the
    /// costs, each by its weight.
    pub fn time(&self, weights: &Weights) -> f64 {
        let weights = weights.of_kernel(self.kernel, self.width_log2);
        let sum: f64 = weights.iter().zip(self.costs).map(|(weight, cost)| weight * cost).sum();
        sum.max(Self::LEAST)
    }

    /// Returns whether all of them have weights that `bench --tune` fits.
    pub fn are_fitted(&self) -> bool {
        self.costs[self.kernel.fitted()..].iter().all(|&cost| cost == 0.0)
    }
}

/// The answer of a strategy: an offer, or the reason to decline.
pub(super) type Considered = Result<Offer, Decline>;

/// Work that several strategies can do.
pub(super) trait Choosable {
    /// The launch of a strategy, by its parameters.
    type Launch;

    /// The names of the strategies.
    type Strategy: Copy + 'static;

    /// The strategy that does the work where all that are asked decline it.
    const LAST: Self::Strategy;

    /// Returns the name of a strategy in explanations.
    fn name(strategy: Self::Strategy) -> &'static str;

    /// Returns the strategies that the work asks, those first that are more often the fastest or
    /// plan in less time.
    fn asked(&self) -> &'static [Self::Strategy];

    /// Asks a strategy. It takes the work: it writes the launch in place, because it is large, and
    /// returns an offer. Or it declines the work and writes nothing.
    fn ask(&self, strategy: Self::Strategy, launch: &mut Option<Self::Launch>) -> Considered;

    /// Returns the part of the best time so far that a strategy which is asked later may take.
    fn gain(&self) -> f64;

    /// Returns true if no other strategy is asked after this one, given the best offer so far.
    fn is_enough(&self, strategy: Self::Strategy, best: Option<Offer>) -> bool;
}

/// Writes the launch of the strategy with the best estimate, and returns its offer. If all decline,
/// this is the answer of the last.
pub(super) fn choose<T: Choosable>(task: &T, launch: &mut Option<T::Launch>) -> Considered {
    let mut best = None::<Offer>;
    for &strategy in task.asked() {
        let mut next = None;
        let Ok(offer) = task.ask(strategy, &mut next) else { continue };
        // An estimate is not exact, and those that come first are more often right.
        if best.is_none_or(|best| offer.time < task.gain() * best.time) {
            (best, *launch) = (Some(offer), next);
        }
        if task.is_enough(strategy, best) {
            break;
        }
    }
    best.map_or_else(|| task.ask(T::LAST, launch), Ok)
}

/// Returns the verdicts of the strategies that are asked: of the chosen one first, then of the
/// others that take the work, the fastest first.
pub(super) fn verdicts<T: Choosable>(task: &T) -> Vec<Verdict> {
    let chosen = choose(task, &mut None);
    let considered = |strategy: T::Strategy| (T::name(strategy), task.ask(strategy, &mut None));
    let mut all: Vec<_> = task.asked().iter().map(|&strategy| considered(strategy)).collect();
    if all.iter().all(|(_, considered)| considered.is_err()) {
        all.push(considered(T::LAST));
    }
    let place = |considered: &Considered| match considered {
        Ok(_) if *considered == chosen => 0.0,
        Ok(offer) => offer.time,
        Err(_) => f64::INFINITY,
    };
    all.sort_by(|(_, a), (_, b)| place(a).total_cmp(&place(b)));
    let verdict = |(name, considered): (&'static str, Considered)| {
        let said =
            considered.map(|Offer { reason, time, .. }| format!("about {time:.2} times as long as a copy: {reason}"));
        Verdict::of(name, said.as_deref().map_err(|decline| *decline))
    };
    all.into_iter().map(verdict).collect()
}
