//! Reads records of Nsight Compute, as `scripts/counters measure` writes them: launches, their
//! arguments in the notation of `run-ptx`, and the counters of an H100.

use serde_json::Value;
use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Args, Config, Kernel, Memory, Module, Report, run};

/// The launches of a record.
pub(super) fn launches(record: &str) -> Vec<Value> {
    let mut record: Value = serde_json::from_str(record).expect("a record is JSON");
    match record["launches"].take() {
        Value::Array(launches) => launches,
        other => panic!("launches are an array, not {other}"),
    }
}

/// The kernel that a launch runs.
fn kernel<'m>(module: &'m Module, launch: &Value) -> &'m Kernel {
    module.kernel(launch["kernel"].as_str().expect("a name")).expect("a kernel")
}

/// The name of a launch in messages.
pub(super) fn case(launch: &Value) -> String {
    format!("{} {} {} {}", launch["kernel"], launch["grid"], launch["block"], launch["args"])
}

/// The software GPU's report of a launch.
pub(super) fn report(module: &Module, launch: &Value) -> Report {
    let kernel = kernel(module, launch);
    let memory = Memory::new(1 << 30);
    let arguments = launch["args"].as_array().expect("arguments").iter();
    let params =
        arguments.fold(Args::new(kernel), |params, text| argument(text.as_str().expect("text"), &memory, params));
    let params = params.finish().expect("they are all");
    let shape = LaunchShape { grid: triple(&launch["grid"]), block: triple(&launch["block"]), dynamic_shared: 0 };
    run(kernel, &shape, &params, &memory, &Config::default()).unwrap_or_else(|stop| panic!("{}: {stop}", case(launch)))
}

fn triple(value: &Value) -> [u32; 3] {
    let extents: Vec<u32> =
        value.as_array().expect("an array").iter().map(|e| e.as_u64().expect("a number") as u32).collect();
    extents.try_into().expect("three extents")
}

/// Passes an argument: `f32[N]=zeros` and `i32[N]=iota` are buffers, `i32:V` is a number.
fn argument<'k>(text: &str, memory: &Memory, params: Args<'k>) -> Args<'k> {
    if let Some((kind, value)) = text.split_once(':') {
        let whole = || value.parse::<i128>().expect("a number");
        return match kind {
            "f32" => params.value(value.parse::<f32>().expect("a number")),
            "i32" | "u32" => params.value(whole() as u32),
            _ => params.value(whole() as u64),
        }
        .expect("it is its size");
    }
    let (kind, rest) = text.split_once('[').expect("a buffer");
    let (count, fill) = rest.split_once("]=").expect("a buffer");
    let (count, bits): (u32, usize) = (count.parse().expect("a length"), kind[1..].parse().expect("a width"));
    let address = match (fill, bits) {
        ("zeros", _) => memory.upload(&vec![0_u8; count as usize * bits / 8]),
        ("iota", 32) => memory.upload(&(0..count).collect::<Vec<u32>>()),
        _ => panic!("records have no buffer {text}"),
    };
    params.value(address.expect("it fits")).expect("it is an address")
}
