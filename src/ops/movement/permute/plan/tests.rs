use super::*;
use crate::device::{Estimated, TunedWeights, TuningFile, Weights};
use crate::driver::{DeviceInfo, DriverKind};

/// Threads keep plans, and callers copy them.
#[test]
fn a_plan_has_at_most_a_kilobyte() {
    assert!(size_of::<PermutePlan>() <= 1024, "{} bytes", size_of::<PermutePlan>());
}

/// The plan of a transpose of floats.
fn transpose(target: Target) -> PermutePlan {
    let to = Layout::row_major(&[8192, 4095]).unwrap();
    let from = Layout::row_major(&[4095, 8192]).unwrap().t();
    PermutePlan::new(&from, Align::ALLOCATION, &to, Align::ALLOCATION, 4, target).unwrap()
}

#[test]
fn tuned_weights_choose() {
    let mut target = Target::new((9, 0));
    let (mut weights, before) = (Weights::of(target), transpose(target));
    let chosen = |plan: &PermutePlan| plan.explain().verdicts[0].strategy;
    assert_eq!(chosen(&before), "tile");
    weights.ragged_tiles[2][0] += 1.0;
    target.weights = Some(TunedWeights::of(&weights));
    assert_eq!(chosen(&transpose(target)), "quads");
    // The weights of another width change nothing.
    weights.ragged_tiles[2][0] -= 1.0;
    weights.ragged_tiles[1][0] += 1.0;
    target.weights = Some(TunedWeights::of(&weights));
    assert!(transpose(target).launches_as(&before));
}

#[test]
fn an_estimate_is_the_sum_of_the_costs_by_their_weights() {
    let target = Target::new((9, 0));
    let (plan, weights) = (transpose(target), Weights::of(target));
    let (estimated, verdicts) = (plan.estimated(), plan.explain().verdicts);
    let name = |way: &PermutePlan| way.way().unwrap().name();
    let names: Vec<_> = estimated.iter().map(|(way, _)| name(way)).collect();
    assert_eq!(names, ["tile", "quads", "boxes"]);
    for (way, costs) in estimated {
        let says = format!("about {:.2} times as long", costs.time(&weights));
        let verdict = verdicts.iter().find(|verdict| verdict.strategy == name(&way)).unwrap();
        assert!(verdict.reason.starts_with(&says), "{says}: {verdict}");
        // The same in parts of larger buffers, which begin on lines.
        let [from, to] = [[4095, 8192], [8192, 4095]].map(|[rows, cols]| {
            let part = Layout::row_major(&[64 + rows * cols]).unwrap().slice(0, 64.., 1).unwrap();
            part.split_axis(0, &[rows, cols]).unwrap()
        });
        let other = way.like(&from.t(), &to).unwrap();
        assert_eq!((other.entry(), other.shape(), other.way()), (way.entry(), way.shape(), way.way()));
    }
    let none = Layout::row_major(&[0, 4]).unwrap();
    let none = PermutePlan::new(&none, Align::ALLOCATION, &none, Align::ALLOCATION, 4, target).unwrap();
    assert!(none.estimated().is_empty() && none.ways().is_empty());
}

#[test]
fn layouts_that_need_another_kernel_are_not_planned_alike() {
    let plan = |align| {
        let (from, to) = (Layout::row_major(&[4096, 8192]).unwrap().t(), Layout::row_major(&[8192, 4096]).unwrap());
        PermutePlan::new(&from, align, &to, align, 4, Target::new((9, 0))).unwrap()
    };
    let ways = plan(Align::ALLOCATION).estimated();
    // From the second element on, rows start between vectors.
    let [from, to] = [[4096, 8192], [8192, 4096]].map(|[rows, cols]| {
        let part = Layout::row_major(&[1 + rows * cols]).unwrap().slice(0, 1.., 1).unwrap();
        part.split_axis(0, &[rows, cols]).unwrap()
    });
    let says = ways[0].0.like(&from.t(), &to).unwrap_err().to_string();
    assert!(says.contains("vector_tile") && says.contains("ragged_tile"), "{says}");
    // A source that repeats its elements has no boxes.
    let (boxes, _) = ways.iter().find(|(way, _)| way.way().unwrap().name() == "boxes").unwrap();
    let repeated = Layout::row_major(&[8192]).unwrap().broadcast(&[4096, 8192]).unwrap();
    let says = boxes.like(&repeated.t(), &Layout::row_major(&[8192, 4096]).unwrap()).unwrap_err().to_string();
    assert!(says.contains("does not take these layouts"), "{says}");
}

/// Boxes have a cost that is less than 0.
#[test]
fn no_weights_of_a_file_make_a_time_of_less_than_half_a_copy() {
    let mut target = Target::new((9, 0));
    let before = transpose(target).estimated();
    let (_, costs) = before.iter().find(|(_, costs)| costs.kernel == Estimated::Boxes).unwrap();
    assert!(costs.costs[2] < 0.0, "{costs:?}");
    for largest in [0.0, Weights::LARGEST] {
        let mut weights = Weights::of(target);
        for kernel in Estimated::ALL {
            weights.of_kernel_mut(*kernel, 2).fill(0.0);
        }
        weights.boxes[2][2] = largest;
        let info = DeviceInfo::of_none("NVIDIA H200", DriverKind::Cuda);
        let text = TuningFile::with_weights(b"", &info, &weights).unwrap();
        let read = TuningFile::parse_weights(text.as_bytes(), &info).unwrap().unwrap();
        target.weights = Some(TunedWeights::of(&read));
        let plan = transpose(target);
        assert!(plan.estimated().iter().all(|(_, costs)| costs.time(&read) == 0.5), "{largest}");
        let reason = &plan.explain().verdicts[0].reason;
        assert!(reason.starts_with("about 0.50 times as long"), "{reason}");
    }
}
