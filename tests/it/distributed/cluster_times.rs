//! The predicted times of plans over a cluster, against a simulation and against what was measured.

use std::fs;
use std::path::Path;

use warpstride::DType;
use warpstride::distributed::cluster::{Cluster, ClusterPlan, Link, Order, Port, Route};
use warpstride::distributed::{Redistribution, Split};
use warpstride::random::SplitMix64;

use super::random_layouts::Random;
use super::split;
use crate::long::short_or_long;

/// Rows and columns of a matrix.
const EXTENT: usize = 1 << 14;

/// The transpose of a square matrix whose rows are spread.
fn transpose(ranks: usize, extent: usize) -> Redistribution {
    let rows = split(&[extent, extent], &format!("0:{ranks}"));
    Redistribution::new(&rows, [1, 0], &rows, 4).unwrap()
}

fn clusters(ranks: usize) -> Vec<Cluster> {
    let link = Link { gbps: 359.0, start_us: 2.0 };
    let network = Link { gbps: 50.0, start_us: 1.0 };
    let with = |gpus: usize, per| Cluster::new([ranks.div_ceil(gpus), gpus], link, network, per, 3000.0).unwrap();
    vec![with(8, Port::Gpu), with(4, Port::Host), with(1, Port::Gpu)]
}

/// All ranks have as much, so the ports are idle during the starts alone.
#[test]
fn the_prediction_of_a_transpose_is_that_of_the_simulation() {
    for ranks in [8, 16, 64, 256] {
        for cluster in clusters(ranks) {
            let plan = ClusterPlan::new(&transpose(ranks, EXTENT), &cluster).unwrap();
            for way in plan.ways() {
                let simulated = plan.simulate_ms(way.route, Order::Planned).unwrap();
                let off = simulated / way.ms - 1.0;
                assert!(off.abs() < 1e-6, "{ranks} ranks, {cluster:?}, {}: {off}", way.route);
            }
        }
    }
}

/// Cuts an axis into parts whose extents are the usual one, more or less some percent, and a last
/// one with the rest.
fn cut(split: Split, (axis, parts): (usize, usize), percent: usize, random: &mut Random) -> Split {
    let (mut extents, mut left) = (Vec::new(), split.shape()[axis]);
    for _ in 1..parts {
        let usual = 100 * EXTENT / parts;
        let extent = left.min((usual * (100 - percent) + random.below(2 * usual * percent + 1)) / 10_000);
        extents.push(extent);
        left -= extent;
    }
    extents.push(left);
    split.cut_at(axis, &extents).unwrap()
}

/// A matrix of parts that differ, transposed or not.
fn uneven(ranks: usize, percent: usize, number: u64) -> Redistribution {
    let random = &mut Random(SplitMix64(number));
    let grids = [[(0, ranks), (1, 1)], [(1, ranks), (0, 1)], [(0, ranks / 4), (1, 4)], [(1, ranks / 2), (0, 2)]];
    let [from, to] = [(); 2].map(|()| {
        let grid = grids[random.below(4)];
        grid.into_iter().fold(Split::whole(&[EXTENT; 2]).unwrap(), |split, part| cut(split, part, percent, random))
    });
    Redistribution::new(&from, [[0, 1], [1, 0]][random.below(2)], &to, 4).unwrap()
}

/// Ranks with different parts wait for each other, so a simulation takes longer. Ranks that share a
/// port may also take less, where the bytes of one flow while another starts.
#[test]
fn the_prediction_of_uneven_layouts_is_near_that_of_the_simulation() {
    for (percent, low, median, high) in [(20, 0.95, 1.2, 3.0), (100, 0.95, 1.3, 3.0)] {
        let mut ratios = Vec::new();
        for ranks in [8, 16, 64, 256] {
            let cases = if ranks < 256 { short_or_long(12, 100) } else { short_or_long(3, 12) };
            for number in 0..cases {
                let plan = uneven(ranks, percent, number);
                for cluster in clusters(ranks) {
                    let plan = ClusterPlan::new(&plan, &cluster).unwrap();
                    for way in plan.ways().iter().filter(|way| way.ms > 0.0) {
                        let ratio = plan.simulate_ms(way.route, Order::Planned).unwrap() / way.ms;
                        assert!((low..high).contains(&ratio), "{ratio}: {plan}");
                        ratios.push(ratio);
                    }
                }
            }
        }
        ratios.sort_by(f64::total_cmp);
        let at = |part: usize| ratios[(ratios.len() - 1) * part / 100];
        println!("simulated over predicted, {} ways: {:.3?}", ratios.len(), [0, 5, 50, 95, 100].map(at));
        assert!(at(50) < median);
    }
}

/// The record of two H200, and the figures of its links.
fn record() -> (String, Link) {
    let file = "benches/record/2026-11-28-h200/redistribute.md";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let prose = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let before = |words: &str| -> f64 {
        let (before, _) = prose.split_once(words).expect(words);
        before.rsplit(' ').next().unwrap().parse().expect("a number")
    };
    let link = Link { gbps: before(" GB/s a direction and "), start_us: before(" us to start.") };
    (text, link)
}

/// The case of a row, such as `f16 16384x64x512 by 1,0,2` or `f32 8x8, `--to 1:2`, no axes`.
fn case(name: &str) -> Redistribution {
    let words: Vec<&str> = name.split([' ', ',', '`']).filter(|word| !word.is_empty()).collect();
    let shape: Vec<usize> = words[1].split('x').map(|extent| extent.parse().unwrap()).collect();
    let axes: Vec<usize> = match name.split_once(" by ") {
        Some((_, axes)) => axes.split([',', ' ']).map_while(|axis| axis.parse().ok()).collect(),
        None if name.contains("no axes") => (0..shape.len()).collect(),
        None => vec![1, 0],
    };
    let result: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    let to = if name.contains("--to 1:2") { "1:2" } else { "0:2" };
    let width = DType::ALL.iter().find(|dtype| dtype.name() == words[0]).expect("a type").width();
    Redistribution::new(&split(&shape, "0:2"), axes, &split(&result, to), width).unwrap()
}

/// The time of a kernel hides a part of the start, which a push of few bytes has in full; so short
/// exchanges take less than predicted.
#[test]
fn the_predictions_of_one_host_are_those_that_were_measured() {
    let (text, link) = record();
    // An H200 reads and writes 4,800 GB/s nominally. The links are far slower.
    let cluster = Cluster::new([1, 2], link, link, Port::Gpu, 4800.0).unwrap();
    let table = text.lines().skip_while(|line| !line.starts_with("| case")).skip(2);
    let mut compared = 0;
    for row in table.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (measured, printed): (f64, f64) = (cells[2].parse().unwrap(), cells[6].parse().unwrap());
        let predicted = ClusterPlan::new(&case(cells[1]), &cluster).unwrap().chosen().ms;
        let off = predicted / measured - 1.0;
        println!("{}: predicted {predicted:.4} ms, measured {measured}: {:+.1} %", cells[1], 100.0 * off);
        assert!((predicted / printed - 1.0).abs() < 0.005, "{row}: {predicted}");
        assert!(measured <= 0.1 || off.abs() < 0.1, "{row}: {predicted}");
        compared += 1;
    }
    assert!(compared >= 13, "only {compared} rows");
}

#[test]
fn the_planned_order_beats_others() {
    for ranks in [16, 64, 256] {
        let cluster = clusters(ranks)[0];
        let plan = ClusterPlan::new(&transpose(ranks, EXTENT), &cluster).unwrap();
        let of = |order| plan.simulate_ms(Route::Direct, order).unwrap();
        let [planned, after_own, by_number] = [Order::Planned, Order::AfterOwn, Order::ByNumber].map(of);
        println!("{ranks} ranks: planned {planned:.3} ms, after its own {after_own:.3}, by number {by_number:.3}");
        assert!(planned < after_own && planned < by_number);
    }
}

#[test]
fn what_is_not_simulated_is_refused() {
    let many = ClusterPlan::new(&transpose(512, 1024), &Cluster::h100x8(64).unwrap()).unwrap();
    let error = many.simulate_ms(Route::Direct, Order::Planned).unwrap_err();
    assert!(error.to_string().contains("takes 256 ranks at most, and this plan has 512"), "{error}");
    let one = ClusterPlan::new(&transpose(8, 1024), &Cluster::h100x8(1).unwrap()).unwrap();
    let error = one.simulate_ms(Route::ByHost, Order::Planned).unwrap_err();
    assert!(error.to_string().contains("has no way by host: all ranks are on one host"), "{error}");
}
