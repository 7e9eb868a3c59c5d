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
mod tests {
    use super::*;
    #[cfg(feature = "interp")]
    use crate::device::Device;
    use crate::device::MeasuredPlans;
    use crate::ops::Plan;

    const TARGET: Target = Target::new((9, 0));

    #[test]
    fn a_kept_plan_equals_a_new_one_however_many_there_are() {
        let shapes: Vec<[usize; 3]> = (0..3 * MOST).map(|n| [3 + n % 7, 5 + n % 5, 64]).collect();
        for round in 0..3 {
            for (n, shape) in shapes.iter().enumerate() {
                let dst = Layout::row_major(shape).unwrap();
                let src =
                    Layout::row_major(&[shape[2], shape[0], shape[1]]).unwrap().permuted_axes(&[1, 2, 0]).unwrap();
                let width = [1, 2, 4, 8, 16][(n + round) % 5];
                let target = Target::new(if n % 2 == 0 { (9, 0) } else { (7, 5) });
                for _ in 0..2 {
                    let kept = copy([&src, &dst], width, target).unwrap();
                    assert_eq!(kept.plan, plan([&src, &dst], width, target).unwrap());
                }
            }
        }
        assert_eq!(COPIES.take().kept.len(), MOST);
    }

    #[test]
    fn layouts_that_cannot_be_planned_are_refused_and_not_kept() {
        let [two, three] = [[2], [3]].map(|shape| Layout::row_major(&shape).unwrap());
        for _ in 0..2 {
            assert!(copy([&two, &three], 4, TARGET).is_err());
        }
        assert!(COPIES.take().kept.is_empty());
    }

    #[test]
    fn a_copy_within_a_launch_gets_a_plan_too() {
        let layout = Layout::row_major(&[8, 8]).unwrap();
        let (from, to) = (layout.t(), layout);
        let outer = copy([&from, &to], 4, TARGET).unwrap();
        assert_eq!(copy([&from, &to], 4, TARGET).unwrap().plan, outer.plan);
    }

    #[test]
    fn a_kept_permute_equals_a_new_one_for_its_axes_alone() {
        let source = Layout::row_major(&[6, 10, 35]).unwrap();
        let texts = ["0,1,2", "2,0,1", "-1,0,1", "a b c -> b c a", "abc->bca", "1,0,2"];
        let named = texts.into_iter().map(|text| Some(text.parse::<Axes>().unwrap()));
        let orders: Vec<Option<Axes>> = std::iter::once(None).chain(named).collect();
        for turn in 0..50 {
            let axes = orders[turn * 5 % orders.len()].as_ref();
            let order = axes.map_or(vec![0, 1, 2], |axes| axes.of(source.shape()).unwrap());
            let from = source.permuted_axes(&order).unwrap();
            for _ in 0..2 {
                let kept = permute(&source, axes, 4, TARGET).unwrap();
                assert_eq!(kept.result, Layout::row_major(from.shape()).unwrap());
                assert_eq!(kept.plan, plan([&from, &kept.result], 4, TARGET).unwrap());
            }
        }
        let wrong = "0,1".parse().unwrap();
        assert!(permute(&source, Some(&wrong), 4, TARGET).is_err());
    }

    #[test]
    fn a_measured_way_is_taken_by_plans_of_its_work_alone() {
        let dst = Layout::row_major(&[64, 48, 512]).unwrap();
        let src = Layout::row_major(&[512, 64, 48]).unwrap().permuted_axes(&[1, 2, 0]).unwrap();
        let other = Layout::row_major(&[64, 512, 48]).unwrap().permuted_axes(&[0, 2, 1]).unwrap();
        let planned = plan([&src, &dst], 4, TARGET).unwrap();
        let ways = planned.ways();
        assert_eq!((ways[0].entry(), ways[0].shape()), (planned.entry(), planned.shape()));
        assert!(ways.len() > 2);
        for way in ways {
            let target = Target { measured: MeasuredPlans::of(vec![way.kept_as().unwrap()]), ..TARGET };
            let measured = copy([&src, &dst], 4, target).unwrap();
            assert_eq!((measured.plan.entry(), measured.plan.shape()), (way.entry(), way.shape()));
            assert_eq!(plan([&src, &dst], 4, TARGET).unwrap(), planned);
            assert_eq!(
                plan([&other, &dst], 4, target).unwrap().entry(),
                plan([&other, &dst], 4, TARGET).unwrap().entry()
            );
        }
        // A way that no strategy has, or that declines the work, changes nothing.
        for way in ["none", "boxes 99", "boxes -1", "rows", "rows 1"] {
            let target = Target { measured: MeasuredPlans::of(vec![(planned.key(), way.into())]), ..TARGET };
            assert_eq!(plan([&src, &dst], 4, target).unwrap().entry(), planned.entry(), "{way}");
        }
    }

    #[cfg(feature = "interp")]
    #[test]
    fn every_way_moves_parts_of_buffers() {
        let device = Device::open(crate::device::Backend::Soft).unwrap();
        let stream = device.default_stream();
        // The first elements lie behind others, in storages that start off vectors.
        let dst = Layout::row_major(&[33, 6, 40]).unwrap().slice(2, 2.., 1).unwrap();
        let src = Layout::row_major(&[38, 33, 6]).unwrap().permuted_axes(&[1, 2, 0]).unwrap();
        let planned = PermutePlan::new(&src, Align::of(4), &dst, Align::of(8), 2, Target::of(&device)).unwrap();
        let [from, to] = planned.rooms();
        let bytes: Vec<u8> = (0..512 + from).map(|byte| (byte * 7 + byte / 251) as u8).collect();
        let source = device.upload(&bytes).unwrap();
        let mut results = planned.ways().into_iter().map(|way| {
            let mut result = device.zeros::<u8>(256 + to).unwrap();
            way.launch_between(&source, &mut result, [512, 256], stream).unwrap();
            (way, result.download().unwrap())
        });
        let (_, first) = results.next().unwrap();
        assert_eq!(first[256 + 8 + 4..][..2], bytes[512 + 4..][..2]);
        assert_eq!(first[first.len() - 2..], bytes[bytes.len() - 2..]);
        results.for_each(|(way, result)| assert!(result == first, "{way}"));
        let mut short = device.zeros::<u8>(255 + to).unwrap();
        let refused = planned.launch_between(&source, &mut short, [512, 256], stream).unwrap_err();
        assert!(refused.to_string().contains("the destination of "), "{refused}");
    }

    #[test]
    fn a_copy_while_the_threads_values_are_dropped_gets_a_plan_too() {
        struct Copies;
        impl Drop for Copies {
            fn drop(&mut self) {
                let layout = Layout::row_major(&[8, 8]).unwrap();
                copy([&layout.t(), &layout], 4, TARGET).unwrap();
            }
        }
        thread_local! { static LAST: Copies = const { Copies }; }
        // Whichever of the two is dropped first, one of the threads copies without kept plans.
        for first in [true, false] {
            let copies = move || {
                if first {
                    LAST.with(|_| ());
                }
                drop(Copies);
                LAST.with(|_| ());
            };
            std::thread::spawn(copies).join().unwrap();
        }
    }
}
