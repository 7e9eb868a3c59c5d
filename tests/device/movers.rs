//! The table of permutes: sorts of layouts, each with the kernels that it is there for. Every row
//! is a case: it copies its layouts by every plan for them, and compares all bytes of the
//! destination's storage with the oracle. On the software GPU tiles and structs meet no bank
//! conflict.

use std::collections::BTreeMap;

use warpstride::device::Device;
use warpstride::layout::Layout;
use warpstride::ops::{self, Align, PermutePlan, Plan, Target, TileShape};

use crate::backend::{Case, Needs, Setup};
use crate::long::is_long;
use crate::matrices::Random;
use crate::naive;
use crate::permutes::{OLDEST, by_boxes, device, family};

mod draws;
mod table;

use draws::{Draw, Pair};

/// A sort of layouts: its claim, the first plan, widths of elements in bytes, the kernels, how many
/// in a hundred of the pairs of a width they must take by one of the plans, and what draws these.
struct Row(&'static str, By, &'static [usize], &'static [&'static str], usize, fn(&mut Draw));

/// Kernels whose tiles in shared memory meet no bank conflict, wherever the rows start.
const WITHOUT_CONFLICTS: [&str; 8] = [
    "vector_tile",
    "ragged_tile",
    "small_tile",
    "staggered",
    "deinterleave",
    "deinterleave_quads",
    "interleave",
    "interleave_quads",
];

/// A plan for a pair of layouts.
#[derive(Clone, Copy)]
pub(crate) enum By {
    /// That of the kernels for large arrays.
    Large,
    /// That for the array's size.
    Size,
    /// In the short form, that for the array's size as if it were large.
    AsIfLarge,
}

/// Returns a case for each row, and one for the table.
pub(crate) fn cases() -> Vec<Case> {
    let case = |row: &'static Row| {
        // Cases are listed once and live as long as the program.
        let name = format!("{}::{}", module_path!(), row.0).leak();
        Case { name, needs: Needs::Any, body: Box::leak(Box::new(|setup: &Setup| hold(row, setup))) }
    };
    let name = concat!(module_path!(), "::every_strategy_has_rows");
    let all = Case { name, needs: Needs::Any, body: &every_strategy_has_rows };
    table::ROWS.iter().map(case).chain([all]).collect()
}

/// Copies the pairs of a row, and counts those that one of their kernels took.
fn hold(row @ &Row(_, by, widths, _, percent, _): &Row, setup: &Setup) {
    let device = device(setup);
    for &width in widths {
        let Draw { pairs, mut random, .. } = Draw::new(row, width, setup.is_soft());
        let has_kernels = percent == 0 || pairs.iter().any(|pair| !pair.kernels.is_empty());
        assert!(has_kernels && !pairs.is_empty(), "no pairs of {width} bytes, or a share without a kernel");
        let (mut known, mut taken, mut others) = (0, 0, BTreeMap::new());
        for pair in &pairs {
            let families = copied(&device, by, pair, width, &mut random, true);
            if !pair.kernels.is_empty() {
                known += 1;
                taken += usize::from(families.iter().any(|family| pair.kernels.contains(family)));
                others.entry(families).or_insert(pair);
            }
        }
        assert!(taken * 100 >= percent * known, "{taken} of {known} pairs of {width} bytes: {others:?}");
    }
}

/// Returns the first plan, and others for the same pair: one by each kernel that can take it,
/// whatever the array's size, and one that every device can run that we support.
fn plans(target: Target, by: By, Pair { src, dst, starts, .. }: &Pair, width: usize) -> Vec<PermutePlan> {
    // Allocations are aligned to this.
    let [src_align, dst_align] = starts.map(|start| Align::of(256 + start as u64));
    let new = |target| PermutePlan::new(src, src_align, dst, dst_align, width, target).unwrap();
    let tuned =
        |target| PermutePlan::tuned(src, src_align, dst, dst_align, width, target, &TileShape::of(target)).unwrap();
    let mut plans = match by {
        By::AsIfLarge => {
            let large = [target, OLDEST].map(|target| new(target).as_if_large());
            let mut plans = vec![large[0], large[1], large[0].without_gaps()];
            // In the long form, arrays are larger.
            if is_long() {
                plans.extend([tuned(target), new(target), tuned(OLDEST)]);
            }
            plans
        }
        By::Size => vec![new(target), tuned(target), tuned(OLDEST)],
        By::Large => vec![tuned(target), new(target), tuned(OLDEST)],
    };
    // Kernels that another one beats by its estimate take the pair, too.
    let mut ways = new(target).ways();
    ways.push(new(target).as_if_large());
    let mut families: Vec<_> = plans.iter().map(|plan| family(plan.entry())).collect();
    for way in ways {
        let of = family(way.entry());
        if !families.contains(&of) {
            families.push(of);
            plans.push(way);
        }
    }
    plans.extend([target, OLDEST].into_iter().filter_map(|target| by_boxes(new(target)).next()));
    plans
}

/// Copies one layout to the other by each plan, with elements of `width` bytes.
pub(crate) fn check(device: &Device, by: By, [src, dst]: [Layout; 2], width: usize, random: &mut Random) {
    let pair = Pair { src, dst, starts: [0, 0], kernels: &[] };
    copied(device, by, &pair, width, random, false);
}

/// Copies a pair by each of its plans, and returns their kernels. The counters are looked at if
/// there are some and `is_counted`.
fn copied(
    device: &Device,
    by: By,
    pair: &Pair,
    width: usize,
    random: &mut Random,
    is_counted: bool,
) -> Vec<&'static str> {
    let Pair { src, dst, starts: [from, to], .. } = pair;
    let elements = random.bytes(from + src.storage_len() * width);
    let before = random.bytes(to + dst.storage_len() * width);
    let mut expected = before.clone();
    naive::copy_bytes(&elements[*from..], src, &mut expected[*to..], dst, width);
    let (source, stream) = (device.upload(&elements).unwrap(), device.default_stream());
    let mut plans = plans(Target::of(device), by, pair, width);
    for at in (1..plans.len()).rev() {
        if plans[..at].contains(&plans[at]) {
            plans.remove(at);
        }
    }
    let families = plans.iter().map(|plan| family(plan.entry())).collect();
    for (at, plan) in plans.into_iter().enumerate() {
        let result = device.upload(&before).unwrap();
        let counted = if is_counted { device.counters().unwrap() } else { None };
        let (from, to) = (source.address() + *from as u64, result.address() + *to as u64);
        let launched = match by {
            // SAFETY: both buffers hold the layouts after these starts, and live until the stream
            // is synchronised.
            By::Size if at == 0 => unsafe { ops::copy_into_raw(device, from, src, to, dst, width, stream.handle()) },
            // SAFETY: as above.
            _ => unsafe { plan.launch_raw(device, from, to, stream.handle()) },
        };
        launched.unwrap();
        stream.synchronize().unwrap();
        let about = || format!("{width} bytes, {pair:?}, by {plan}");
        assert!(result.download().unwrap() == expected, "{}", about());
        let Some((after, before)) = device.counters().unwrap().zip(counted) else { continue };
        let counters = after - before;
        if WITHOUT_CONFLICTS.contains(&family(plan.entry())) {
            let is_shared = counters.shared_load.wavefronts > 0 && counters.shared_store.wavefronts > 0;
            // Structs that fill no word do not go through shared memory.
            let may_be_few = at > 0 && family(plan.entry()).contains("interleave");
            assert!(is_shared || may_be_few, "{}", about());
            assert_eq!(counters.bank_conflicts(), 0, "{}", about());
        }
    }
    families
}

/// Returns some pairs of every row and width, with elements, in storages of at most this number of
/// bytes.
#[cfg(feature = "interp")]
pub(crate) fn samples(most: usize, bytes: usize) -> impl Iterator<Item = (usize, Layout, Layout)> {
    let of = move |row: &Row, width: usize| {
        let mut pairs = Draw::new(row, width, true).pairs;
        pairs.retain(|Pair { src, dst, .. }| {
            !src.is_empty() && src.storage_len().max(dst.storage_len()) * width <= bytes
        });
        let step = (pairs.len() / most).max(1);
        pairs.into_iter().step_by(step).take(most).map(move |pair| (width, pair.src, pair.dst))
    };
    table::ROWS.iter().flat_map(move |row| row.2.iter().flat_map(move |&width| of(row, width)))
}

/// The fewest pairs of each strategy.
const FEWEST: usize = 8;

/// A strategy without rows would be tested by chance alone.
fn every_strategy_has_rows(setup: &Setup) {
    let target = Target::of(&device(setup));
    let mut pairs = BTreeMap::<&str, usize>::new();
    for row @ &Row(_, by, widths, ..) in table::ROWS {
        for &width in widths {
            // Some rows have hundreds.
            for pair in Draw::new(row, width, true).pairs.iter().take(20) {
                let explanation = plans(target, by, pair, width)[0].explain();
                explanation.verdicts.iter().for_each(|verdict| *pairs.entry(verdict.strategy).or_default() += 0);
                // No strategy takes no elements.
                let first = explanation.verdicts.iter().find(|verdict| verdict.takes);
                first.into_iter().for_each(|first| *pairs.entry(first.strategy).or_default() += 1);
            }
        }
    }
    assert!(pairs.values().all(|&pairs| pairs >= FEWEST), "some have fewer than {FEWEST} pairs: {pairs:?}");
}
