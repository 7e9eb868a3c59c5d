//! Patterns of every kind, and textbook kernels, compiled by NVIDIA's compiler and counted by
//! Nsight Compute on an H100. Our counters must be equal, except for the differences named here
//! with their reasons.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use warpstride_interp::Module;

use super::record;

const PTX: &str = include_str!("../data/patterns.ptx");
const RECORD: &str = include_str!("../data/patterns-h100.json");

/// Kinds of access that Nsight Compute counts and the software GPU does not.
const NOT_COUNTED: [&str; 2] = ["local_load", "local_store"];

/// The kernel whose SASS accesses memory differently from its PTX: NVIDIA's assembler merges its
/// loads of neighbouring words of shared memory. `matmul_tiled_merged` writes the merged loads in
/// PTX.
const MERGED: &str = "matmul_tiled";

/// Kernels for which some launch's counters differ from the H100's, each with the reason.
const DIFFERENT: [(&str, &str); 7] = [
    (MERGED, "the assembler merges loads"),
    ("count_all", "the assembler lets one lane add for the warp"),
    (
        "generic_atom",
        "the H100 has a wavefront of shared memory for a generic atomic whose lanes are all in global memory",
    ),
    ("histogram_global", "of 256 bins, 512 bytes and more apart in one access, the H100 takes 2 % more sectors"),
    ("s_atom_add_u64", "lane 0 adds 0: the compare of the next lane succeeds in the same turn of the assembler's loop"),
    ("s_dead_add_u64", "as s_atom_add_u64"),
    ("s_red_add_u64", "as s_atom_add_u64"),
];

fn module() -> Module {
    Module::parse(PTX).expect("it parses")
}

/// The software GPU's counters in the record's notation: without the kinds whose counts are zero,
/// and without the ideals, which the record of the source page has.
fn counted(module: &Module, launch: &Value) -> Value {
    let mut kinds = serde_json::to_value(record::report(module, launch).counters).expect("counters are JSON");
    let kinds = kinds.as_object_mut().expect("an object");
    kinds.remove("ideal").expect("it is counted");
    kinds.retain(|_, figures| figures.as_object().expect("an object").values().any(|figure| figure != 0));
    json!(kinds)
}

/// The H100's counters of the kinds that the software GPU counts.
fn expected(launch: &Value) -> Value {
    let mut kinds = launch["counters"].as_object().expect("an object").clone();
    kinds.retain(|kind, _| !NOT_COUNTED.contains(&kind.as_str()));
    json!(kinds)
}

#[test]
fn every_launch_counts_what_an_h100_counts() {
    let module = module();
    let (mut equal, mut different, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for launch in record::launches(RECORD) {
        let name = launch["kernel"].as_str().expect("a name").to_string();
        let (ours, theirs) = (counted(&module, &launch), expected(&launch));
        if ours == theirs {
            equal += 1;
        } else if DIFFERENT.iter().any(|(kernel, _)| *kernel == name) {
            different.insert(name);
        } else {
            wrong.push(format!("{}: ours {ours}, the H100's {theirs}", record::case(&launch)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let named = DIFFERENT.map(|(kernel, _)| kernel.to_string()).into();
    assert_eq!((equal, different), (681, named), "launches that are equal, and kernels that are named and differ");
}

/// Compares the ideal of Nsight Compute's source page, summed over all instructions of a launch.
#[test]
fn ideal_sectors_are_nsight_computes() {
    let module = module();
    let launches = record::launches(include_str!("../data/patterns-ideal-h100.json"));
    assert_eq!(launches.len(), 230);
    // The assembler unrolls this kernel's loop further, so its lanes diverge differently; the
    // sectors happen to be equal.
    let unrolled = |launch: &Value| launch["kernel"] == "lane_loop" && launch["args"][2] == "u32:32";
    for launch in launches.into_iter().filter(|launch| !unrolled(launch)) {
        let report = record::report(&module, &launch);
        let ideal: u64 = report.instructions.iter().map(|instruction| instruction.ideal_sectors).sum();
        let sectors = report.global_load.sectors + report.global_store.sectors;
        assert_eq!(report.ideal.sectors(), ideal, "the launch's ideal is that of its instructions");
        assert_eq!(
            json!([sectors, ideal]),
            json!([launch["sectors"], launch["ideal_sectors"]]),
            "{}",
            record::case(&launch)
        );
    }
}

#[test]
fn what_is_left_out_is_what_cannot_be_compared() {
    let module = module();
    for kernel in module.kernels() {
        kernel.supported().unwrap_or_else(|error| panic!("{error}"));
    }
    let ours = serde_json::to_value(warpstride_interp::counters::Counters::default()).expect("counters are JSON");
    for kind in NOT_COUNTED {
        assert!(ours.get(kind).is_none(), "{kind} is counted now");
    }
}

/// Only the assembler causes the difference: for the kernel written with the wider loads, the H100
/// counts the same as for the original, and so does the software GPU.
#[test]
fn merged_loads_are_all_that_differs_between_ptx_and_sass() {
    let (module, launches) = (module(), record::launches(RECORD));
    let of = |name: &str| launches.iter().find(|launch| launch["kernel"] == name).expect("it was measured");
    let (plain, wide) = (of(MERGED), of("matmul_tiled_merged"));
    assert_eq!(expected(plain), expected(wide));
    assert_eq!(counted(&module, wide), expected(wide));

    let mut ours = counted(&module, plain);
    // 16 blocks of 8 warps load a row's 64 elements four at a time.
    let loads = 16 * 8 * 64 / 4;
    let instructions = ours["shared_load"]["instructions"].as_u64().expect("a number");
    assert_eq!(expected(plain)["shared_load"]["instructions"], instructions - 3 * loads);
    ours["shared_load"] = expected(plain)["shared_load"].clone();
    assert_eq!(ours, expected(plain), "nothing but the loads from shared memory differs");
}
