//! A launch: its blocks on the host's threads.
//!
//! Threads take blocks in order from one counter. Counts are sums, so they do not depend on who ran what; and when a block
//! stops, all blocks before it have been taken and run to their end, so the lowest stop is the same for any number of
//! threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::block::{Launch, Worker};
use super::dispatch::Engine;
use crate::abi::LaunchShape;
use crate::interp::code::{Code, Kernel};
use crate::interp::mem::Memory;
use crate::interp::stop::{Reason, Stop};
use crate::interp::{Config, Report};

/// Shared memory of a block on compute capability 9.0, in bytes.
const MAX_SHARED: u64 = 227 << 10;
/// Threads of a block.
const MAX_THREADS: u64 = 1024;
/// Blocks in y and z.
const MAX_GRID_YZ: u32 = 65_535;

/// Runs a kernel; see [`crate::interp::run`].
pub(crate) fn run(
    kernel: &Kernel,
    shape: &LaunchShape,
    params: &[u8],
    memory: &Memory,
    config: &Config,
) -> Result<Report, Box<Stop>> {
    let refuse = |reason| Box::new(Stop { kernel: kernel.name().to_owned(), place: None, reason });
    let code = kernel.inner.code.as_ref().map_err(|error| refuse(Reason::Unsupported(error.clone())))?;
    check(kernel, code, shape, params).map_err(|context| refuse(Reason::Launch(context)))?;
    let global = memory.snapshot();
    let launch = Launch {
        kernel: &kernel.inner,
        code,
        shape,
        params,
        global: &global,
        engine: Engine::detect(),
        limit: config.warp_instruction_limit,
    };
    run_blocks(&launch, shape.grid.iter().map(|&extent| u64::from(extent)).product(), config.threads)
}

fn run_blocks(launch: &Launch, blocks: u64, threads: usize) -> Result<Report, Box<Stop>> {
    let threads = if threads == 0 { rayon::current_num_threads() } else { threads };
    let next = AtomicU64::new(0);
    let first_stop = AtomicU64::new(u64::MAX);
    let total = Mutex::new((Report::default(), None::<(u64, Box<Stop>)>));
    let work = || {
        let mut worker = Worker::new(launch);
        let mut stopped = None;
        loop {
            let block = next.fetch_add(1, Relaxed);
            if block >= blocks || block > first_stop.load(Relaxed) {
                break;
            }
            if let Err(stop) = worker.run(block) {
                first_stop.fetch_min(block, Relaxed);
                stopped = Some((block, stop));
                break;
            }
        }
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        total.0.counters += worker.counters;
        total.0.warp_instructions += worker.warp_instructions;
        total.0.thread_instructions += worker.thread_instructions;
        if let Some(new) = stopped
            && total.1.as_ref().is_none_or(|known| new.0 < known.0)
        {
            total.1 = Some(new);
        }
    };
    let helpers = (threads as u64).min(blocks).saturating_sub(1);
    if helpers == 0 {
        work();
    } else {
        rayon::scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|_| work());
            }
            work();
        });
    }
    match total.into_inner().unwrap_or_else(PoisonError::into_inner) {
        (_, Some((_, stop))) => Err(stop),
        (report, None) => Ok(report),
    }
}

/// What a CUDA driver would refuse.
fn check(kernel: &Kernel, code: &Code, shape: &LaunchShape, params: &[u8]) -> Result<(), String> {
    let LaunchShape { grid, block, dynamic_shared } = *shape;
    if grid.contains(&0) || grid[0] > i32::MAX as u32 || grid[1] > MAX_GRID_YZ || grid[2] > MAX_GRID_YZ {
        return Err(format!(
            "a grid of {grid:?} blocks; x may be 1 to {}, y and z 1 to {MAX_GRID_YZ}: use another shape",
            i32::MAX
        ));
    }
    let threads = block.iter().map(|&extent| u64::from(extent)).product::<u64>();
    if block.contains(&0) || block.iter().any(|&extent| u64::from(extent) > MAX_THREADS) || threads > MAX_THREADS {
        return Err(format!("a block of {block:?} threads; there may be 1 to {MAX_THREADS} in all: use another shape"));
    }
    if params.len() != kernel.param_bytes() {
        return Err(format!("{} bytes of parameters were passed; it takes {}", params.len(), kernel.param_bytes()));
    }
    let shared = u64::from(code.dynamic_base()) + u64::from(dynamic_shared);
    if shared > MAX_SHARED {
        return Err(format!("a block of it needs {shared} bytes of shared memory; there are {MAX_SHARED}"));
    }
    Ok(())
}
