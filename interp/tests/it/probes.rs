//! Kernels with one access pattern each, compiled by NVIDIA's compiler and counted by Nsight
//! Compute on an H100. Our counters must be equal.

use serde_json::Value;
use warpstride_interp::Module;
use warpstride_interp::counters::{Counters, table};

use super::record;

const PTX: &str = include_str!("../data/probes.ptx");

/// The counters that the record names; it leaves out those it did not measure.
fn compare(expected: &Value, got: &Counters, case: &str) {
    for (kind, figures) in expected.as_object().expect("an object") {
        let access = table::accesses().find(|access| access.name == kind).expect("a kind of access");
        for counter in access.counters() {
            assert_eq!(figures[counter.figure().name], counter.of(got), "{} of {case}", counter.name());
        }
    }
}

#[test]
fn every_launch_counts_what_an_h100_counts() {
    let module = Module::parse(PTX).expect("it parses");
    let launches = record::launches(include_str!("../data/probes-h100.json"));
    assert_eq!(launches.len(), 64);
    for launch in launches {
        compare(&launch["counters"], &record::report(&module, &launch).counters, &record::case(&launch));
    }
}

#[test]
fn every_kernel_of_the_probes_is_supported() {
    let module = Module::parse(PTX).expect("it parses");
    assert_eq!(module.kernels().count(), 17);
    for kernel in module.kernels() {
        kernel.supported().unwrap_or_else(|error| panic!("{error}"));
    }
    let gather = module.kernel("g_gather").expect("it is there");
    let offsets: Vec<(usize, usize, usize)> = gather.params().iter().map(|p| (p.offset, p.size, p.align)).collect();
    assert_eq!((offsets, gather.param_bytes()), (vec![(0, 8, 8), (8, 8, 8), (16, 8, 8)], 24));
    let bytes = |name: &str| module.kernel(name).expect("it is there").shared_bytes();
    assert_eq!([bytes("s_ld32"), bytes("s_ld128"), bytes("g_ld")], [16384, 32768, 0]);
}
