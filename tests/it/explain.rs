//! A launch does what an explanation expects.

use warpstride::ErrorKind;
use warpstride::counters::{Counters, GlobalCounters};
use warpstride::device::{Backend, Device};
use warpstride::layout::Layout;
use warpstride::ops::{Align, Limit, PermutePlan, Plan, Quantity, Requested, Target, Walk};

/// The requests of a permute to C order, as they are explained and as a launch counts them.
struct Asked {
    kernel: &'static str,
    explained: Requested,
    /// The counters of the launch, if there was one.
    counted: Option<Counters>,
}

/// Plans a permute of elements of `width` bytes to C order, which begins `start` elements into its
/// source. Explains the plans of the same work that `ways` gives, and runs those of whose
/// explanation `runs` says so.
fn both(
    width: usize,
    (shape, axes, start): (&[usize], &[usize], usize),
    ways: fn(PermutePlan) -> Vec<PermutePlan>,
    runs: fn(&Requested) -> bool,
) -> Vec<Asked> {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    let packed = Layout::row_major(shape).expect("a shape").permuted_axes(axes).expect("a permutation");
    let src = Layout::new(packed.shape(), packed.strides(), start, start + packed.len()).expect("as long");
    let dst = Layout::row_major(src.shape()).expect("as many elements");
    let align = Align::ALLOCATION;
    let plan = PermutePlan::new(&src, align, &dst, align, width, Target::of(&device)).expect("a plan");
    let [source, result] = [src, dst].map(|side| device.zeros::<u8>(side.storage_len() * width).expect("it fits"));
    let (from, to, stream) = (source.address(), result.address(), device.default_stream().handle());
    let asked = |plan: PermutePlan| {
        let (kernel, explained) = (plan.entry().expect("there are elements"), plan.requested().expect("it is counted"));
        if !runs(&explained) {
            return Asked { kernel, explained, counted: None };
        }
        let before = device.counters().expect("nothing fails").expect("it counts");
        // SAFETY: both buffers hold the layouts, and live until the counters are read, which waits.
        unsafe { plan.launch_raw(&device, from, to, stream) }.expect("it runs");
        let counted = Some(device.counters().expect("nothing fails").expect("it counts") - before);
        Asked { kernel, explained, counted }
    };
    ways(plan).into_iter().map(asked).collect()
}

#[test]
fn every_kernel_asks_for_what_is_explained() {
    let mut kernels = std::collections::BTreeSet::new();
    for (shape, axes) in [
        (&[1000][..], &[0][..]),
        (&[256, 256], &[1, 0]),
        (&[200, 211], &[1, 0]),
        (&[1000, 3], &[1, 0]),
        (&[50_000, 3], &[1, 0]),
        (&[3, 50_000], &[1, 0]),
        (&[1024, 1024], &[1, 0]),
        (&[40, 32, 32], &[0, 2, 1]),
        (&[10, 37, 90], &[1, 0, 2]),
        (&[6, 5, 4, 3, 2, 7, 2], &[6, 4, 2, 0, 5, 3, 1]),
    ] {
        for width in [1, 2, 4, 8, 16] {
            for start in [0, 1] {
                // Kernels that another one beats are explained, too.
                for asked in both(width, (shape, axes, start), |plan| plan.ways(), |explained| explained.exact) {
                    // Grids of more blocks than are run for an explanation are compared below.
                    let Asked { kernel, explained, counted: Some(counted) } = asked else { continue };
                    let expected = (explained.load, explained.store);
                    let case = format!("{shape:?} {axes:?} of {width} bytes from {start} by {kernel}");
                    assert_eq!(expected, (counted.global_load, counted.global_store), "{case}");
                    kernels.insert(kernel.rsplit_once("_b").map_or(kernel, |(family, _)| family));
                }
            }
        }
    }
    for kernel in ["copy", "boxes", "rows", "patch", "small_tile", "staggered", "deinterleave", "interleave"] {
        assert!(kernels.contains(kernel), "none of {kernels:?} is {kernel}");
    }
}

#[test]
fn large_grids_ask_for_what_is_explained_within_a_few_per_cent() {
    let mut kernels = std::collections::BTreeSet::new();
    for (shape, axes, width) in [
        (&[2000, 1999][..], &[1, 0][..], 4),
        (&[2304, 2048], &[1, 0], 4),
        (&[999, 4003], &[1, 0], 1),
        (&[64, 64, 1024], &[1, 0, 2], 4),
        (&[2500, 64, 64], &[0, 2, 1], 1),
        (&[100, 90, 80], &[2, 1, 0], 8),
        (&[12, 12, 12, 12, 12, 12], &[4, 2, 0, 5, 3, 1], 2),
        (&[13, 11, 9, 12, 14], &[4, 3, 2, 1, 0], 8),
        (&[81_279, 3, 7, 3], &[3, 2, 1, 0], 4),
    ] {
        let [Asked { kernel, explained, counted }] =
            <[Asked; 1]>::try_from(both(width, (shape, axes, 0), |plan| vec![plan], |_| true)).ok().expect("one plan");
        let counted = counted.expect("it runs");
        kernels.insert(kernel.rsplit_once("_b").map_or(kernel, |(family, _)| family));
        for (expected, counted) in [(explained.load, counted.global_load), (explained.store, counted.global_store)] {
            let GlobalCounters { requests, sectors, .. } = counted;
            for (expected, counted) in [(expected.requests, requests), (expected.sectors, sectors)] {
                let case = format!("{shape:?} {axes:?} of {width} bytes by {kernel}: {expected}, but {counted}");
                assert!(expected.abs_diff(counted) * 20 <= counted, "{case}");
            }
        }
    }
    for kernel in ["vector_tile", "ragged_tile", "boxes", "packed_quads", "elements"] {
        assert!(kernels.contains(kernel), "none of {kernels:?} is {kernel}");
    }
}

#[test]
fn arrays_that_no_host_holds_are_explained() {
    let (shape, target) = ([64, 1080, 1920, 300], Target::new((9, 0)));
    let src = Layout::row_major(&shape).unwrap().permuted_axes(&[0, 3, 1, 2]).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    let align = Align::ALLOCATION;
    let plan = PermutePlan::new(&src, align, &dst, align, 8, target).unwrap();
    let requested = plan.requested().unwrap();
    let (expected, ideal) = (requested.load.sectors, plan.explain().walk.unwrap().read_sectors);
    assert!(!requested.exact && expected.abs_diff(ideal) * 20 <= ideal, "{requested:?} of {ideal}");
}

#[test]
fn an_explanation_that_was_changed_is_shown_too() {
    let (line, align) = (Layout::row_major(&[3]).unwrap(), Align::ALLOCATION);
    let plan = PermutePlan::new(&line, align, &line, align, 4, Target::new((9, 0))).unwrap();
    let walk = Walk { width: 0, axes: Vec::new(), read_sectors: 0, written_sectors: 0 };
    let mut explanation = plan.explain();
    explanation.walk = Some(walk);
    let shown = explanation.to_string();
    assert!(shown.starts_with("0 elements of 0 bytes along 0 axes"), "{shown}");
}

/// A layout for each strategy, by its name: what it is there for.
#[test]
fn every_strategy_takes_what_it_is_for_and_every_decline_names_a_quantity() {
    let c_order = |shape: &[usize]| Layout::row_major(shape).unwrap();
    let permuted = |shape: &[usize], axes: &[usize]| {
        let src = c_order(shape).permuted_axes(axes).unwrap();
        (src, c_order(src.shape()))
    };
    let flat = |len: usize, step: isize| (c_order(&[len]).slice(0, .., step).unwrap(), c_order(&[len]));
    let shifted = Layout::new(&[100_000_000], &[1], 1, 100_000_001).unwrap();
    let cases = [
        ("rows", flat(1000, 1), 4),
        ("rows", (shifted, c_order(shifted.shape())), 1),
        ("small", permuted(&[100, 100], &[1, 0]), 4),
        ("small", permuted(&[1024, 1024], &[1, 0]), 4),
        ("quads", permuted(&[50_000, 33, 33], &[0, 2, 1]), 4),
        ("fields", permuted(&[1 << 20, 3], &[1, 0]), 4),
        ("boxes", permuted(&[81_279, 3, 7, 3], &[3, 2, 1, 0]), 4),
        ("tile", permuted(&[4096, 4096], &[1, 0]), 4),
        ("tile", permuted(&[8191, 8193], &[1, 0]), 4),
        ("elements", flat(1_000_000, -1), 4),
    ];
    let (align, target) = (Align::ALLOCATION, Target::new((9, 0)));
    for (strategy, (src, dst), width) in &cases {
        let plan = PermutePlan::new(src, align, dst, align, *width, target).unwrap();
        let explanation = plan.explain();
        // The class, and the strategies that it asks, the chosen one first.
        let (class, reason) = explanation.reason.split_once(": ").unwrap();
        let first = explanation.verdicts.first().unwrap();
        assert!(class.starts_with("class ") && first.takes && first.reason.ends_with(reason), "{explanation}");
        assert_eq!(first.strategy, *strategy, "{explanation}");
        let is_case = |name: &str| cases.iter().any(|(strategy, ..)| *strategy == name);
        assert!(explanation.verdicts.iter().all(|verdict| is_case(verdict.strategy)), "{explanation}");
        for verdict in &explanation.verdicts {
            assert_eq!(verdict.takes, verdict.quantity.is_none(), "{verdict}");
            let missed = verdict.quantity.is_none_or(|Quantity { name, value, limit }| {
                !name.is_empty()
                    && match limit {
                        Limit::AtLeast(least) => value < least,
                        Limit::AtMost(most) => value > most,
                    }
            });
            assert!(missed, "{verdict}");
        }
    }
}

/// A plan that is kept launches on every pair of views that mean the planned work, and on no other.
#[test]
fn a_kept_plan_launches_on_the_views_that_it_was_made_for() {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    let stream = device.default_stream();
    let (src, dst) = (Layout::row_major(&[2, 3]).unwrap().t(), Layout::row_major(&[3, 2]).unwrap());
    let plan = PermutePlan::new(&src, Align::ALLOCATION, &dst, Align::ALLOCATION, 4, Target::of(&device)).unwrap();
    let (numbers, halves) = (device.upload(&[1_i32, 2, 3, 4, 5, 6]).unwrap(), device.zeros::<i16>(6).unwrap());
    let (mut result, mut short) = (device.zeros::<i32>(6).unwrap(), device.zeros::<i16>(6).unwrap());
    plan.launch(numbers.view_with(src).unwrap(), result.view_mut_with(dst).unwrap(), stream).unwrap();
    assert_eq!(result.download().unwrap(), [1, 4, 2, 5, 3, 6]);
    // The same work, said differently.
    plan.launch(numbers.view_with(src.t()).unwrap(), result.view_mut_with(dst.t()).unwrap(), stream).unwrap();
    let refused = [
        plan.launch(numbers.view(&[3, 2]).unwrap(), result.view_mut(&[3, 2]).unwrap(), stream),
        plan.launch(numbers.view(&[6]).unwrap(), result.view_mut(&[3, 2]).unwrap(), stream),
        plan.launch(halves.view_with(src).unwrap(), short.view_mut_with(dst).unwrap(), stream),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::Layout, "{error}");
    }
}
