//! Keeps a thread's latest plans, so that a loop of copies between equal layouts plans once.
//!
//! A plan depends on nothing but what it is looked up by, so a kept plan equals a new one. Where
//! short axes need a search, a new plan takes microseconds, and a launch of a kept one less than a
//! tenth of one (`benches/launch.rs`).

use std::cell::RefCell;

use super::PermutePlan;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::{Align, Target};

/// Plans that a thread keeps. A loop body rarely has more copies of different layouts, and a search
/// through these costs little beside a launch.
const MOST: usize = 4;

/// A plan between allocations, and all that it depends on.
struct Kept {
    layouts: [Layout; 2],
    width: usize,
    target: Target,
    plan: PermutePlan,
}

/// The latest plans, and the place of the one that goes next.
struct Recent {
    plans: Vec<Kept>,
    oldest: usize,
}

thread_local! {
    static RECENT: RefCell<Recent> = const { RefCell::new(Recent { plans: Vec::new(), oldest: 0 }) };
}

/// Calls `launch` with a plan for elements of `width` bytes between layouts of whole allocations.
///
/// # Errors
///
/// Those of [`PermutePlan::new`], and of `launch`.
pub(super) fn with_plan<R>(
    layouts: [&Layout; 2],
    width: usize,
    target: Target,
    launch: impl FnOnce(&PermutePlan) -> Result<R>,
) -> Result<R> {
    RECENT.with(|recent| match recent.try_borrow_mut() {
        Ok(mut recent) => launch(recent.plan(layouts, width, target)?),
        // A driver that copies by itself while it launches.
        Err(_) => launch(&plan(layouts, width, target)?),
    })
}

fn plan([src, dst]: [&Layout; 2], width: usize, target: Target) -> Result<PermutePlan> {
    PermutePlan::new(src, Align::ALLOCATION, dst, Align::ALLOCATION, width, target)
}

impl Recent {
    fn plan(&mut self, layouts: [&Layout; 2], width: usize, target: Target) -> Result<&PermutePlan> {
        let is_for = |kept: &Kept| {
            kept.width == width && kept.target == target && layouts.iter().zip(&kept.layouts).all(|(a, b)| *a == b)
        };
        let place = match self.plans.iter().position(is_for) {
            Some(place) => place,
            None => self.keep(Kept {
                layouts: layouts.map(|layout| *layout),
                width,
                target,
                plan: plan(layouts, width, target)?,
            }),
        };
        Ok(&self.plans[place].plan)
    }

    /// Keeps a plan in place of the oldest, and returns its place.
    fn keep(&mut self, kept: Kept) -> usize {
        if self.plans.len() < MOST {
            self.plans.reserve_exact(MOST - self.plans.len());
            self.plans.push(kept);
            return self.plans.len() - 1;
        }
        let place = self.oldest;
        self.plans[place] = kept;
        self.oldest = (place + 1) % MOST;
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { compute_capability: (9, 0) };

    #[test]
    fn a_kept_plan_equals_a_new_one_however_many_there_are() {
        let shapes: Vec<[usize; 3]> = (0..3 * MOST).map(|n| [3 + n % 7, 5 + n % 5, 64]).collect();
        for round in 0..3 {
            for (n, shape) in shapes.iter().enumerate() {
                let dst = Layout::row_major(shape).unwrap();
                let src =
                    Layout::row_major(&[shape[2], shape[0], shape[1]]).unwrap().permuted_axes(&[1, 2, 0]).unwrap();
                let width = [1, 2, 4, 8, 16][(n + round) % 5];
                let target = Target { compute_capability: if n % 2 == 0 { (9, 0) } else { (7, 5) } };
                for _ in 0..2 {
                    let kept = with_plan([&src, &dst], width, target, |plan| Ok(*plan)).unwrap();
                    assert_eq!(kept, plan([&src, &dst], width, target).unwrap());
                }
            }
        }
        RECENT.with_borrow(|recent| assert_eq!(recent.plans.len(), MOST));
    }

    #[test]
    fn layouts_that_cannot_be_planned_are_refused_and_not_kept() {
        let [two, three] = [[2], [3]].map(|shape| Layout::row_major(&shape).unwrap());
        for _ in 0..2 {
            with_plan([&two, &three], 4, TARGET, |_| Ok(())).unwrap_err();
        }
        RECENT.with_borrow(|recent| assert!(recent.plans.is_empty()));
    }

    #[test]
    fn a_copy_within_a_launch_gets_a_plan_too() {
        let layout = Layout::row_major(&[8, 8]).unwrap();
        let (from, to) = (layout.t(), layout);
        let inner =
            with_plan([&from, &to], 4, TARGET, |outer| with_plan([&from, &to], 4, TARGET, |inner| Ok(inner == outer)));
        assert!(inner.unwrap());
    }
}
