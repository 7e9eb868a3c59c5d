//! GPUs that do not use each other's memory: their copies go through pinned host memory.

use std::sync::Arc;

use warpstride::ErrorKind;
use warpstride::distributed::{Communicator, Distributed, Exchange, Gpus, Redistribution};
use warpstride::interp::Checks;

use super::{devices, islands, redistribute_in_pieces, split};

const SHAPE: [usize; 3] = [6, 5, 4];

fn elements(from: u16) -> Vec<u16> {
    (from..from + 120).collect()
}

/// GPUs of which those of an island use each other's memory.
fn gpus(count: usize, seed: u64, island: usize) -> Arc<Gpus> {
    Arc::new(Gpus::over(devices(&islands(count, seed, Checks::NONE, island)).unwrap()).unwrap())
}

#[test]
fn a_rank_uses_the_memory_of_its_island() {
    let gpus = gpus(5, 0, 2);
    let reached = |rank| (0..5).filter(|&peer| gpus.reaches(rank, peer)).collect::<Vec<_>>();
    assert_eq!([0, 1, 2, 4].map(reached), [vec![0, 1], vec![0, 1], vec![2, 3], vec![4]]);
}

#[test]
fn values_are_right_in_pieces_of_any_size() {
    [(0, 1), (1, 1), (2, 2), (3, 2)]
        .into_iter()
        .for_each(|(seed, island)| redistribute_in_pieces(&gpus(3, seed, island)));
}

#[test]
fn an_exchange_says_which_pairs_go_through_the_host() {
    let gpus = gpus(3, 0, 2);
    let plan = Redistribution::new(&split(&[6, 6], "0:3"), [1, 0], &split(&[6, 6], "0:3"), 4).unwrap();
    let exchange = Exchange::in_pieces(&gpus, &plan, 8).unwrap();
    let mut pairs = exchange.through_host();
    pairs.sort_unstable();
    assert_eq!(pairs, [(0, 2), (1, 2), (2, 0), (2, 1)]);
    let text = exchange.to_string();
    let line = "rank 2 to 0: 16 bytes in 2 pieces through pinned host memory, because these GPUs do not use each other's memory";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("\n  packed by "), "{text}");
    assert!(Exchange::new(&gpus, &plan).unwrap().to_string().contains("in 1 piece through pinned"));
    let near = super::gpus(3, 0, false);
    assert_eq!(Exchange::new(&near, &plan).unwrap().through_host(), []);
}

#[test]
fn a_launch_through_the_host_neither_waits_nor_allocates() {
    let gpus = gpus(3, 0, 1);
    let plan = Redistribution::new(&split(&[9, 9], "0:3"), [1, 0], &split(&[9, 9], "0:3"), 4).unwrap();
    let exchange = Exchange::in_pieces(&gpus, &plan, 12).unwrap();
    let source = Distributed::scatter(&gpus, plan.source(), &[1.5_f32; 81]).unwrap();
    let mut result = Distributed::alloc(&gpus, plan.result()).unwrap();
    exchange.launch(&source, &mut result).unwrap();
    let before: Vec<_> = (0..3).map(|rank| gpus.device(rank).stats()).collect();
    for _ in 0..20 {
        exchange.launch(&source, &mut result).unwrap();
    }
    for (rank, before) in before.iter().enumerate() {
        let calls = gpus.device(rank).stats().since(before);
        assert_eq!(calls.memory, before.memory, "rank {rank}: {calls}");
        let queued = ["launch", "copy_h2d", "copy_d2h", "event_record", "event_wait"];
        let made = queued.map(|method| calls.calls_of(method));
        assert_eq!(made.iter().sum::<u64>(), calls.calls.values().sum::<u64>(), "rank {rank}: {calls}");
        assert_eq!(made[1..3], [20 * 2 * 3; 2], "rank {rank}: three pieces from and to each other one");
    }
    assert_eq!(result.gather().unwrap(), [1.5; 81]);
}

/// An exchange that is dropped leaves its pinned memory to the copies that are queued. The host,
/// which no stream orders, gets other memory until these have run.
#[test]
fn pinned_memory_outlasts_the_exchange() {
    for seed in 0..16 {
        let gpus = gpus(2, seed, 1);
        let (rows, columns) = (split(&SHAPE, "0:2"), split(&SHAPE, "1:2"));
        let array = Distributed::scatter(&gpus, &rows, &elements(0)).unwrap();
        let result = array.redistribute(&columns).unwrap();
        let written = [0, 1].map(|rank| gpus.device(rank).pinned_from(&[u8::MAX; 512]).unwrap());
        assert_eq!(result.gather().unwrap(), elements(0), "seed {seed}");
        drop(array);
        assert!(written.iter().all(|written| written[..] == [u8::MAX; 512]), "seed {seed}");
    }
}

#[test]
fn messages_need_gpus_that_use_each_others_memory() {
    let error = Communicator::local(&gpus(3, 0, 2)).expect_err("rank 2 is alone");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("rank 0 does not use that of rank 2; use an Exchange"), "{error}");
}
