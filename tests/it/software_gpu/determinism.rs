//! Kernels without races give the same results and counters for any order in which the software
//! GPU's driver executes independent work, and for any number of host threads.

use std::sync::Arc;

use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::driver::soft::{self, Soft};
use warpstride::interp::Config;
use warpstride::ops::{self, Variant};

/// Two chains of transposes on two streams that join: results and counters, for this seed and
/// number of threads.
fn chains(seed: u64, threads: usize) -> (Vec<u32>, Option<Counters>) {
    let interp = Config { threads, ..Config::default() };
    let device = Device::with_driver(Arc::new(Soft::with_config(soft::Config { seed, interp, ..Default::default() })));
    let device = device.expect("a device");
    let (rows, cols) = (70, 45);
    let data: Vec<u32> = (0..rows * cols).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
    let source = device.upload(&data).expect("it fits");
    let streams = [device.stream().expect("a stream"), device.stream().expect("a stream")];
    let mut ends = Vec::new();
    for (stream, variants) in
        streams.iter().zip([[Variant::Naive, Variant::Padded], [Variant::Tiled, Variant::Staggered]])
    {
        let mut there = device.alloc::<u32>(rows * cols).expect("it fits");
        let mut back = device.alloc::<u32>(rows * cols).expect("it fits");
        let view = source.view(&[rows, cols]).expect("a view");
        ops::transpose_into(view, there.view_mut(&[cols, rows]).expect("a view"), Some(variants[0]), stream)
            .expect("1");
        let view = there.view(&[cols, rows]).expect("a view");
        ops::transpose_into(view, back.view_mut(&[rows, cols]).expect("a view"), Some(variants[1]), stream).expect("2");
        ends.push((there, back));
    }
    streams.iter().for_each(|stream| stream.synchronize().expect("it ends"));
    let results = ends.iter().flat_map(|(there, back)| [there, back]);
    let results = results.flat_map(|buffer| buffer.download().expect("it is there")).collect();
    (results, device.counters().expect("they are there"))
}

#[test]
fn streams_end_alike_for_any_seed_and_number_of_threads() {
    let first = chains(0, 1);
    assert!(first.1.is_some_and(|counters| counters.bank_conflicts() > 0));
    for seed in 0..12 {
        for threads in [1, 2, 0] {
            assert!(chains(seed, threads) == first, "seed {seed}, {threads} threads");
        }
    }
}
