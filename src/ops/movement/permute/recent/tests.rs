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
            let src = Layout::row_major(&[shape[2], shape[0], shape[1]]).unwrap().permuted_axes(&[1, 2, 0]).unwrap();
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
        assert_eq!(plan([&other, &dst], 4, target).unwrap().entry(), plan([&other, &dst], 4, TARGET).unwrap().entry());
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
