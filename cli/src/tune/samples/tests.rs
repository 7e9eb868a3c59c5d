use warpstride::device::{Backend, Estimated, Weights};

use super::*;

#[test]
fn every_kernel_gets_as_many_layouts_as_its_weights_need() {
    let target = Target::new((9, 0));
    let chosen = chosen(target, (DRAWN, Sizes::TIMED), BYTES).expect("layouts");
    assert!((150..=300).contains(&chosen.len()), "{} layouts", chosen.len());
    let mut have: BTreeMap<_, usize> = BTreeMap::new();
    for (_, costs) in chosen.iter().flat_map(|chosen| &chosen.ways).filter(|(_, costs)| costs.are_fitted()) {
        *have.entry((costs.kernel.name(), costs.width_log2)).or_default() += 1;
    }
    // Elements go one by one, and those of 16 bytes by boxes, only in layouts that are rare.
    for kernel in [
        Estimated::WholeTiles,
        Estimated::RaggedTiles,
        Estimated::Fields,
        Estimated::Quads,
        Estimated::Boxes,
        Estimated::Rows,
    ] {
        for width_log2 in 0..4 {
            let has = have.get(&(kernel.name(), width_log2)).copied().unwrap_or(0);
            assert!(has >= fewest(kernel), "{kernel:?} of 2^{width_log2} bytes: {have:?}");
        }
    }
}

#[test]
fn plans_choose_among_the_costs_as_planning_does() {
    let (target, align) = (Target::new((9, 0)), Align::ALLOCATION);
    let mut chose = [0; 4];
    for Chosen { task, ways } in chosen(target, (400, Sizes::TIMED), BYTES).expect("layouts") {
        let [from, to] = task.layouts().expect("it was planned");
        let plan = PermutePlan::new(&from, align, &to, align, task.dtype().width(), target).expect("a plan");
        let asked: Vec<Costs> = ways.iter().map(|(_, costs)| *costs).collect();
        let place = Costs::chosen(&asked, &Weights::of(target), target).expect("there are ways");
        assert_eq!(ways[place].0.to_string(), plan.to_string(), "{}", task.name);
        chose[place] += 1;
    }
    assert!(chose[..3].iter().all(|&count| count > 0), "{chose:?}");
}

#[test]
fn the_software_gpu_moves_every_layout_in_every_way() {
    let device = Device::open(Backend::Soft).expect("the software GPU is always there");
    let target = Target::of(&device);
    let chosen = chosen(target, (45, Sizes::COUNTED), 1 << 19).expect("layouts");
    for (number, chosen) in chosen.iter().enumerate() {
        let samples = by_width!(chosen.task.dtype(), T => {
            let elements = reference::random::<T>(chosen.task.storage_lens()[0]).expect("elements");
            timed(&device, target, (number, chosen), &elements, |run| run.verified.then_some(1.0))
        });
        let samples = samples.expect("every way is right");
        assert_eq!(samples.len(), chosen.ways.len());
        assert!(samples.iter().all(|sample| sample.layout == number && sample.time == 1.0));
    }
}
