//! Launches of an exchange: no wait, no allocation, any threads, and any work before and after.

use std::sync::Arc;
use std::thread;

use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution};
use warpstride::{ErrorKind, ops};

use super::{gpus, permuted, split};

const SHAPE: [usize; 2] = [9, 8];

fn elements(from: u16) -> Vec<f32> {
    (from..from + 72).map(f32::from).collect()
}

fn turned(elements: &[f32]) -> Vec<f32> {
    permuted(elements, &SHAPE, &[1, 0])
}

/// A transpose of a matrix that is cut by rows.
fn transpose(gpus: &Arc<Gpus>) -> Exchange {
    let cuts = format!("0:{}", gpus.len());
    Exchange::new(gpus, &Redistribution::new(&split(&SHAPE, &cuts), [1, 0], &split(&[8, 9], &cuts), 4).unwrap())
        .unwrap()
}

/// The source and the result of [`transpose`].
fn operands(gpus: &Arc<Gpus>, elements: &[f32]) -> [Distributed<f32>; 2] {
    let cuts = format!("0:{}", gpus.len());
    let source = Distributed::scatter(gpus, &split(&SHAPE, &cuts), elements).unwrap();
    [source, Distributed::alloc(gpus, &split(&[8, 9], &cuts)).unwrap()]
}

#[test]
fn a_launch_neither_waits_nor_allocates() {
    for limited in [false, true] {
        let gpus = gpus(3, 0, limited);
        let exchange = transpose(&gpus);
        let [source, mut result] = operands(&gpus, &elements(0));
        // The first launch loads kernels.
        exchange.launch(&source, &mut result).unwrap();
        for rank in 0..gpus.len() {
            assert!(gpus.device(rank).stats().calls_of("launch") > 0, "rank {rank}");
        }
        let before: Vec<_> = (0..gpus.len()).map(|rank| gpus.device(rank).stats()).collect();
        for _ in 0..100 {
            exchange.launch(&source, &mut result).unwrap();
        }
        for (rank, before) in before.iter().enumerate() {
            let calls = gpus.device(rank).stats().since(before);
            assert_eq!(calls.can_synchronize, 0, "rank {rank}: {calls}");
            assert_eq!(calls.memory, before.memory, "rank {rank}: {calls}");
            let made = ["launch", "event_record", "event_wait"].map(|method| calls.calls_of(method));
            assert_eq!(made.iter().sum::<u64>(), calls.calls.values().sum::<u64>(), "rank {rank}: {calls}");
            // The copies of rank 2 to the others are alike. The part of rank 2 has fewer rows.
            assert_eq!(made[0], if limited || rank < 2 { 300 } else { 200 }, "rank {rank} pushes to each");
        }
        assert_eq!(result.gather().unwrap(), turned(&elements(0)));
    }
}

#[test]
fn threads_may_launch_on_the_same_gpus() {
    for seed in 0..8 {
        let gpus = gpus(2, seed, seed % 4 < 2);
        let exchange = transpose(&gpus);
        let [shared, _] = operands(&gpus, &elements(500));
        let work = |from: u16| {
            let [source, mut result] = operands(&gpus, &elements(from));
            for _ in 0..20 {
                exchange.launch(&shared, &mut result).unwrap();
                exchange.launch(&source, &mut result).unwrap();
            }
            assert_eq!(result.gather().unwrap(), turned(&elements(from)), "seed {seed}");
            exchange.launch(&shared, &mut result).unwrap();
            drop(source);
            assert_eq!(result.gather().unwrap(), turned(&elements(500)), "seed {seed}");
        };
        thread::scope(|threads| [0, 100].map(|from| threads.spawn(move || work(from))).map(|thread| thread.join()))
            .into_iter()
            .for_each(|joined| joined.expect("the thread ends"));
    }
}

#[test]
fn other_streams_use_the_parts_before_and_after() {
    for seed in 0..64 {
        let gpus = gpus(3, seed, seed % 4 < 2);
        let exchange = transpose(&gpus);
        let [plain, mut result] = operands(&gpus, &elements(1));
        let [mut source, mut scaled] = operands(&gpus, &elements(200));
        let streams: Vec<_> = (0..3).map(|rank| gpus.device(rank).stream().unwrap()).collect();
        for _ in 0..2 {
            for (rank, stream) in streams.iter().enumerate() {
                ops::scale_into(2.0, plain.part(rank), source.part_mut(rank), stream).unwrap();
            }
            exchange.launch(&source, &mut result).unwrap();
            for (rank, stream) in streams.iter().enumerate().rev() {
                // The source is overwritten while peers may still read what the exchange made of
                // it.
                ops::scale_into(0.0, plain.part(rank), source.part_mut(rank), stream).unwrap();
                ops::scale_into(3.0, result.part(rank), scaled.part_mut(rank), stream).unwrap();
            }
        }
        let error = ops::scale_into(1.0, plain.part(0), source.part_mut(1), &streams[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "a part belongs to its GPU alone: {error}");
        drop((streams, source));
        let expected: Vec<f32> = turned(&elements(1)).iter().map(|element| 6.0 * element).collect();
        assert_eq!(scaled.gather().unwrap(), expected, "seed {seed}");
    }
}

/// Ranks may share a device, so a program for several GPUs runs on one.
#[test]
fn ranks_may_share_a_device() {
    for seed in 0..8 {
        let two = gpus(2, seed, false);
        let devices = [0, 1, 1, 0].map(|number: usize| two.device(number).clone()).to_vec();
        let gpus = Gpus::over(devices).unwrap();
        let gpus = Arc::new(if seed % 4 < 2 { gpus.limited_to(1).unwrap() } else { gpus });
        let [source, mut result] = operands(&gpus, &elements(7));
        transpose(&gpus).launch(&source, &mut result).unwrap();
        drop(source);
        assert_eq!(result.gather().unwrap(), turned(&elements(7)), "seed {seed}");
    }
}
