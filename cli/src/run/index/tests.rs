use super::*;
use crate::export::json;
use std::cell::Cell;
use std::fs;

#[test]
fn the_fastest_case_is_found_without_a_look_at_all() {
    let parts = (0..8000).map(|at| (at as f64 / 8000.0, at)).collect();
    let fastest = Fastest::of(HashMap::from([(Some("a"), parts), (Some("b"), vec![(0.5, 8000)])]));
    let looks = Cell::new(0);
    let fits = |_| {
        looks.set(looks.get() + 1);
        true
    };
    assert_eq!(fastest.beyond(0.4, Some("c"), fits), Some((7999.0 / 8000.0, 7999)));
    assert_eq!(fastest.beyond(0.4, Some("a"), fits), Some((0.5, 8000)));
    assert_eq!(fastest.beyond(0.6, Some("a"), fits), None);
    assert_eq!(looks.get(), 2);
}

/// A recorded run with the cases of these names alone, each as often as it says, and each time
/// with another kernel.
fn recorded(of: &[(&'static str, usize)]) -> Run {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/record/2026-11-25-h100/all.json");
    let mut run = json::read(&fs::read(path).expect("the record")).expect("a run");
    let cases = run.records.cases.clone();
    let named = |name: &str| cases.iter().find(|case| case.name == name).expect("a case").clone();
    let with_kernel = |name: &str, at| Record { kernel: Some(format!("{name} {at}")), ..named(name) };
    let each = |&(name, times): &(&'static str, usize)| (0..times).map(move |at| (name, at));
    run.records.cases = of.iter().flat_map(each).map(|(name, at)| with_kernel(name, at)).collect();
    run
}

#[test]
fn a_case_of_one_launch_is_found_without_a_look_at_all() {
    let run = recorded(&[("transpose column_loop f32 4096x4096", 4000), ("transpose naive f32 4096x4096", 4000)]);
    let index = Index::of(&run);
    let found = |at: usize| index.one_launch(&run.cases[at]);
    assert!((0..4000).all(|at| index.launches(&run.cases[at]).is_some() && found(at) == Some(4000)));
    assert!(found(4000) == Some(4001) && (4001..8000).all(|at| found(at) == Some(4000)));
    // A look at each case of a list finds it.
    assert_eq!(index.single.values().map(Vec::len).collect::<Vec<_>>(), [2]);
}

#[test]
fn the_launches_of_a_like_case_are_those_of_a_case_that_lacks_their_number() {
    let mut run = recorded(&[("transpose column_loop f32 4096x4096", 2)]);
    let first = run.records.cases[0].clone();
    run.records.cases[1] = Record { predicted: None, ..first };
    let launches = |run: &Run| Index::of(run).launches(&run.cases[1]);
    assert_eq!(launches(&run).map(|launches| launches.count), Some(4096));
    assert_eq!(launches(&run), launches::limiting(&run, &run.cases[0]).map(launches::Launches::of_like));
    run.records.cases[1].launches = Some(1);
    assert_eq!(launches(&run), None);
}

#[test]
fn a_graph_of_launches_has_their_counters() {
    let mut run = recorded(&[("transpose column_loop f32 4096x4096", 2)]);
    let first = run.records.cases[0].clone();
    run.records.cases[1] = Record { predicted: None, ..first };
    assert!(Index::of(&run).graph(&run.cases[0]).is_some());
    run.records.cases.iter_mut().for_each(|case| case.counters = None);
    assert!(Index::of(&run).graph(&run.cases[0]).is_none());
}
