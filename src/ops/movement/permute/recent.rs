//! Keeps a thread's latest plans, so that a loop of equal copies plans once.
//!
//! A plan depends on nothing but what it is looked up by, so a kept plan equals a new one. Where
//! short axes need a search, a new plan takes microseconds. A launch of a kept one takes less than
//! a tenth of one for small arrays, and a third for large ones (`benches/launch.rs`).

use std::cell::Cell;
use std::mem;
use std::ops::Deref;
use std::thread::LocalKey;

use super::PermutePlan;
use crate::error::Result;
use crate::layout::{Axes, Layout, MAX_RANK};
use crate::ops::{Align, Target};

/// Plans of one kind that a thread keeps. A loop body rarely has more copies of different layouts,
/// and a search through these costs little beside a launch.
const MOST: usize = 4;

/// A plan between allocations, and all that it depends on.
pub(super) struct CopyEntry {
    layouts: [Layout; 2],
    width: usize,
    target: Target,
    pub(super) plan: PermutePlan,
}

/// A plan into a new allocation, and all that it depends on.
pub(super) struct PermuteEntry {
    source: Layout,
    axes: Option<Axes>,
    width: usize,
    target: Target,
    /// The layout of the result, in C order.
    pub(super) result: Layout,
    pub(super) plan: PermutePlan,
}

thread_local! {
    static COPIES: Cell<Recent<CopyEntry>> = const { Cell::new(Recent::NONE) };
    static PERMUTES: Cell<Recent<PermuteEntry>> = const { Cell::new(Recent::NONE) };
}

/// Returns a plan for elements of `width` bytes between layouts of whole allocations.
///
/// # Errors
///
/// Those of [`PermutePlan::new`].
#[inline]
pub(super) fn copy(layouts: [&Layout; 2], width: usize, target: Target) -> Result<Kept<CopyEntry>> {
    let is_for = |kept: &CopyEntry| {
        kept.width == width && kept.target == target && layouts.iter().zip(&kept.layouts).all(|(a, b)| *a == b)
    };
    let make =
        || Ok(CopyEntry { layouts: layouts.map(|layout| *layout), width, target, plan: plan(layouts, width, target)? });
    Kept::new(&COPIES, is_for, make)
}

/// Returns a plan for elements of `width` bytes from a layout of a whole allocation to a new one in
/// C order, with the axes in another order if there is one.
///
/// # Errors
///
/// Those of [`Axes::of`] and [`PermutePlan::new`].
#[inline]
pub(super) fn permute(
    source: &Layout,
    axes: Option<&Axes>,
    width: usize,
    target: Target,
) -> Result<Kept<PermuteEntry>> {
    let is_for = |kept: &PermuteEntry| {
        kept.width == width && kept.target == target && kept.source == *source && kept.axes.as_ref() == axes
    };
    let make = || {
        let mut from = *source;
        if let Some(axes) = axes {
            let mut order = [0; MAX_RANK];
            let order = &mut order[..from.rank()];
            axes.write_to(order, from.shape())?;
            from = from.permuted_axes(order)?;
        }
        let result = from.in_c_order();
        let plan = plan([&from, &result], width, target)?;
        Ok(PermuteEntry { source: *source, axes: axes.cloned(), width, target, result, plan })
    };
    Kept::new(&PERMUTES, is_for, make)
}

fn plan([src, dst]: [&Layout; 2], width: usize, target: Target) -> Result<PermutePlan> {
    PermutePlan::new(src, Align::ALLOCATION, dst, Align::ALLOCATION, width, target)
}

/// One of a thread's latest. The thread has none of that kind meanwhile: a driver that copies by
/// itself plans anew. So does a destructor that runs when the thread's own values are gone.
pub(super) struct Kept<K: 'static> {
    of: &'static LocalKey<Cell<Recent<K>>>,
    recent: Recent<K>,
    place: usize,
}

impl<K> Kept<K> {
    /// Finds the one that `is_for` accepts, or else keeps what `make` returns.
    #[inline]
    fn new(
        of: &'static LocalKey<Cell<Recent<K>>>,
        is_for: impl Fn(&K) -> bool,
        make: impl FnOnce() -> Result<K>,
    ) -> Result<Self> {
        let recent = of.try_with(Cell::take).unwrap_or_default();
        // From here on a drop gives them back.
        let mut kept = Self { of, recent, place: 0 };
        match kept.recent.kept.iter().position(is_for) {
            Some(place) => kept.place = place,
            None => kept.make(make)?,
        }
        Ok(kept)
    }

    /// Makes one and keeps it. The function stays out of its caller, whose usual path is short that
    /// way: a launch of the driver evicts instructions from the processor's caches.
    #[cold]
    #[inline(never)]
    fn make(&mut self, make: impl FnOnce() -> Result<K>) -> Result<()> {
        self.place = self.recent.keep(make()?);
        Ok(())
    }
}

impl<K> Deref for Kept<K> {
    type Target = K;

    #[inline]
    fn deref(&self) -> &K {
        &self.recent.kept[self.place]
    }
}

impl<K> Drop for Kept<K> {
    #[inline]
    fn drop(&mut self) {
        let recent = mem::take(&mut self.recent);
        // Without the thread's values there is nothing to keep them for.
        let _ = self.of.try_with(|kept| kept.set(recent));
    }
}

/// The latest of one kind, and the place of the one that goes next.
struct Recent<K> {
    kept: Vec<K>,
    oldest: usize,
}

impl<K> Default for Recent<K> {
    #[inline]
    fn default() -> Self {
        Self::NONE
    }
}

impl<K> Recent<K> {
    const NONE: Self = Self { kept: Vec::new(), oldest: 0 };

    /// Keeps one in place of the oldest, and returns its place.
    fn keep(&mut self, made: K) -> usize {
        if self.kept.len() < MOST {
            self.kept.reserve_exact(MOST - self.kept.len());
            self.kept.push(made);
            return self.kept.len() - 1;
        }
        let place = self.oldest;
        self.kept[place] = made;
        self.oldest = (place + 1) % MOST;
        place
    }
}

#[cfg(test)]
mod tests;
