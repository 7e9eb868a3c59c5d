//! The software GPU through its public interface: PTX in, memory, counters and stops out. One
//! binary, one module a subject.

mod arrivals;
mod barriers;
mod bulk;
mod bulk_races;
mod check;
mod clusters;
mod contract;
mod cooperative;
mod copies;
mod counters;
mod cuda;
mod determinism;
mod dialect;
mod divergence;
mod drawings;
mod expect;
mod faults;
mod forms;
mod fragments;
mod frontiers;
mod functions;
mod heap;
mod limits;
#[path = "../../../tests/long.rs"]
mod long;
mod mutations;
#[cfg(feature = "serde")]
mod patterns;
mod policies;
mod probes;
mod products;
#[path = "../programs/mod.rs"]
mod programs;
mod progress;
mod races;
mod random;
mod record;
mod report;
mod tensors;
mod text;
mod together;
mod widths;

use warpstride_interp::launch_shape::LaunchShape;
use warpstride_interp::{Config, Error, Memory, Module, Report, Stop, run};

/// A grid of `blocks` blocks and `threads` threads in x.
fn shape(blocks: u32, threads: u32) -> LaunchShape {
    LaunchShape { grid: [blocks, 1, 1], block: [threads, 1, 1], dynamic_shared: 0 }
}

/// The directives that a module begins with.
const PRELUDE: &str = ".version 7.8\n.target sm_80\n.address_size 64\n";

/// Runs the only kernel of `text`.
fn launch(text: &str, shape: LaunchShape, params: &[u8], memory: &Memory) -> Result<Report, Box<Stop>> {
    launch_with(&Config::default(), text, shape, params, memory)
}

/// Does the same under a configuration.
fn launch_with(
    config: &Config,
    text: &str,
    shape: LaunchShape,
    params: &[u8],
    memory: &Memory,
) -> Result<Report, Box<Stop>> {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    run(module.kernels().next().expect("it has a kernel"), &shape, params, memory, config)
}

/// Does the same on a buffer of these words, the only parameter, and returns the words afterwards.
fn run_on(text: &str, shape: LaunchShape, words: &[u32], config: &Config) -> Result<(Report, Vec<u32>), Box<Stop>> {
    let memory = Memory::new(1 << 20);
    let buffer = memory.upload(words).expect("it fits");
    let report = launch_with(config, text, shape, &buffer.to_le_bytes(), &memory)?;
    Ok((report, memory.download(buffer, words.len()).expect("it is there")))
}

/// Returns why the only kernel of `text` cannot run.
#[track_caller]
fn refusal(text: &str) -> Error {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    module.kernels().next().expect("it has a kernel").supported().expect_err(text)
}

/// The results of `body` on 1, 2, 3 and 8 host threads, in a pool of 8 threads whatever the number
/// of cores.
fn on_threads<T: Send>(config: &Config, body: impl Fn(&Config) -> T + Sync) -> Vec<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().expect("threads");
    let on = |threads| body(&Config { threads, ..config.clone() });
    pool.install(|| [1, 2, 3, 8].into_iter().map(on).collect())
}
