//! Kernels of one access pattern each, compiled by NVIDIA's compiler and counted by Nsight Compute on an H100: our counters
//! must be the same.

use serde_json::Value;
use warpstride::abi::LaunchShape;
use warpstride::counters::Counters;
use warpstride::interp::{Config, Memory, Module, run};

fn triple(value: &Value) -> [u32; 3] {
    let extents: Vec<u32> =
        value.as_array().expect("an array").iter().map(|e| e.as_u64().expect("a number") as u32).collect();
    extents.try_into().expect("three extents")
}

/// `f32[N]=zeros` is a buffer, `i32:V` a number.
fn push_argument(argument: &str, memory: &Memory, params: &mut Vec<u8>) {
    if let Some(number) = argument.strip_prefix("i32:") {
        params.extend(number.parse::<i32>().expect("a number").to_le_bytes());
        return;
    }
    let count = argument.strip_prefix("f32[").and_then(|rest| rest.strip_suffix("]=zeros")).expect("a buffer");
    let bytes = 4 * count.parse::<u64>().expect("a length");
    let address = memory.alloc(bytes).expect("it fits");
    memory.fill(address, 0, bytes).expect("it is there");
    params.resize(params.len().next_multiple_of(8), 0);
    params.extend(address.to_le_bytes());
}

/// The counters that the record names; it leaves out those it did not measure.
fn compare(expected: &Value, got: &Counters, case: &str) {
    let got = [
        ("global_load", vec![got.global_load.instructions, got.global_load.requests, got.global_load.sectors]),
        ("global_store", vec![got.global_store.instructions, got.global_store.requests, got.global_store.sectors]),
        ("shared_load", vec![got.shared_load.instructions, got.shared_load.wavefronts, got.shared_load.bank_conflicts]),
        (
            "shared_store",
            vec![got.shared_store.instructions, got.shared_store.wavefronts, got.shared_store.bank_conflicts],
        ),
    ];
    for (kind, figures) in expected.as_object().expect("an object") {
        let names = if kind.starts_with("global") {
            ["instructions", "requests", "sectors"]
        } else {
            ["instructions", "wavefronts", "bank_conflicts"]
        };
        let wanted: Vec<u64> = names.iter().map(|name| figures[name].as_u64().expect("a number")).collect();
        let (_, had) = got.iter().find(|(name, _)| name == kind).expect("a counter");
        assert_eq!(*had, wanted, "{kind} of {case}");
    }
}

#[test]
fn every_launch_counts_what_an_h100_counts() {
    let module = Module::parse(include_str!("../../data/probes.ptx")).expect("it parses");
    let record: Value = serde_json::from_str(include_str!("../../data/probes-h100.json")).expect("it is JSON");
    let launches = record["launches"].as_array().expect("launches");
    assert_eq!(launches.len(), 64);
    for launch in launches {
        let kernel = module.kernel(launch["kernel"].as_str().expect("a name")).expect("a kernel");
        let memory = Memory::new(1 << 30);
        let mut params = Vec::new();
        for argument in launch["args"].as_array().expect("arguments") {
            push_argument(argument.as_str().expect("text"), &memory, &mut params);
        }
        let shape = LaunchShape { grid: triple(&launch["grid"]), block: triple(&launch["block"]), dynamic_shared: 0 };
        let case = format!("{} {}", kernel.name(), launch["args"]);
        let report = run(kernel, &shape, &params, &memory, &Config::default());
        let report = report.unwrap_or_else(|stop| panic!("{case}: {stop}"));
        compare(&launch["counters"], &report.counters, &case);
    }
}

#[test]
fn every_kernel_of_the_probes_is_supported() {
    let module = Module::parse(include_str!("../../data/probes.ptx")).expect("it parses");
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
