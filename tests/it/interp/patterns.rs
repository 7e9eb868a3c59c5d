//! Patterns of every kind, and textbook kernels, compiled by NVIDIA's compiler and counted by Nsight Compute on an H100: our
//! counters must be the same, but for what is named here with its reason.

use serde_json::{Value, json};
use warpstride::interp::Module;

use super::record;

const PTX: &str = include_str!("../../data/patterns.ptx");
const RECORD: &str = include_str!("../../data/patterns-h100.json");

/// Kinds of access that Nsight Compute counts and we do not.
const NOT_COUNTED: [&str; 2] = ["local_load", "local_store"];

/// Launches of atomics that the hardware counts otherwise. Adds of a whole warp at one address become the add of one lane in
/// SASS; an atomic without a space counts passes of shared memory without an instruction; where two warps fight for one place
/// in a loop, its turns depend on timing; and a histogram of random words had 13 sectors more than the rule gives.
fn differs(launch: &Value) -> bool {
    let name = launch["kernel"].as_str().expect("a name");
    let has = |argument: &str| launch["args"].as_array().is_some_and(|args| args.iter().any(|arg| arg == argument));
    let fights = name.ends_with("_add_u64") && name.starts_with("s_") && has("u32:5");
    let odd = name == "histogram_global" && has("u32:256");
    name == "count_all" || name == "generic_atom" && !expected(launch)["shared_atomic"].is_null() || fights || odd
}

/// The kernel whose SASS accesses memory otherwise than its PTX does: NVIDIA's assembler merges its loads of neighbouring words
/// of shared memory. `matmul_tiled_merged` has in PTX what it makes of it.
const MERGED: &str = "matmul_tiled";

fn module() -> Module {
    Module::parse(PTX).expect("it parses")
}

/// What the software GPU counts, as the record says it: without the kinds of which there was nothing.
fn counted(module: &Module, launch: &Value) -> Value {
    let mut kinds = serde_json::to_value(record::report(module, launch).counters).expect("counters are JSON");
    let kinds = kinds.as_object_mut().expect("an object");
    kinds.retain(|_, figures| figures.as_object().expect("an object").values().any(|figure| figure != 0));
    json!(kinds)
}

/// What the H100 counted of the kinds that we count.
fn expected(launch: &Value) -> Value {
    let mut kinds = launch["counters"].as_object().expect("an object").clone();
    kinds.retain(|kind, _| !NOT_COUNTED.contains(&kind.as_str()));
    json!(kinds)
}

#[test]
fn every_launch_counts_what_an_h100_counts() {
    let module = module();
    let mut compared = 0;
    for launch in record::launches(RECORD) {
        let name = launch["kernel"].as_str().expect("a name");
        if name == MERGED || differs(&launch) {
            continue;
        }
        assert_eq!(counted(&module, &launch), expected(&launch), "{}", record::case(&launch));
        compared += 1;
    }
    assert_eq!(compared, 680);
}

/// What Nsight Compute's source page takes for ideal, over all instructions of a launch.
#[test]
fn ideal_sectors_are_nsight_computes() {
    let module = module();
    let launches = record::launches(include_str!("../../data/patterns-ideal-h100.json"));
    assert_eq!(launches.len(), 230);
    for launch in launches {
        let report = record::report(&module, &launch);
        let ideal: u64 = report.instructions.iter().map(|instruction| instruction.ideal_sectors).sum();
        let sectors = report.global_load.sectors + report.global_store.sectors;
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
    let ours = serde_json::to_value(warpstride::counters::Counters::default()).expect("counters are JSON");
    for kind in NOT_COUNTED {
        assert!(ours.get(kind).is_none(), "{kind} is counted now");
    }
}

/// The difference is the assembler's doing and nothing else: the H100 counts the same for the kernel that is written with the
/// wider loads, and there so do we.
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
