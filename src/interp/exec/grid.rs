//! A launch: its blocks on the host's threads.
//!
//! Threads take blocks in order from one counter. Counts are sums, so they do not depend on who ran what; and when a block
//! stops, all blocks before it have been taken and run to their end, so the lowest stop is the same for any number of
//! threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::block::{Launch, Worker};
use super::dispatch::Engine;
use crate::abi::{LaunchShape, MAX_GRID_X, MAX_GRID_YZ};
use crate::interp::code::{Code, Kernel};
use crate::interp::mem::Memory;
use crate::interp::stop::{Reason, Stop};
use crate::interp::{Config, MAX_BLOCK_THREADS, MAX_SHARED_BYTES, Report};

/// Runs a kernel; see [`crate::interp::run`].
pub(crate) fn run(
    kernel: &Kernel,
    shape: &LaunchShape,
    params: &[u8],
    memory: &Memory,
    config: &Config,
) -> Result<Report, Box<Stop>> {
    run_on(Engine::detect(), kernel, shape, params, memory, config)
}

fn run_on(
    engine: Engine,
    kernel: &Kernel,
    shape: &LaunchShape,
    params: &[u8],
    memory: &Memory,
    config: &Config,
) -> Result<Report, Box<Stop>> {
    let code = check(kernel, shape, params)?;
    let global = memory.snapshot();
    let launch = Launch {
        kernel: &kernel.inner,
        code,
        shape,
        params,
        global: &global,
        engine,
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

/// The kernel's code, if it can be launched so; see [`crate::interp::check_launch`].
pub(crate) fn check<'a>(kernel: &'a Kernel, shape: &LaunchShape, params: &[u8]) -> Result<&'a Code, Box<Stop>> {
    let refuse = |reason| Box::new(Stop { kernel: kernel.name().to_owned(), place: None, reason });
    let code = kernel.inner.code.as_ref().map_err(|error| refuse(Reason::Unsupported(error.clone())))?;
    possible(kernel, code, shape, params).map_err(|context| refuse(Reason::Launch(context)))?;
    Ok(code)
}

/// What a CUDA driver would refuse.
fn possible(kernel: &Kernel, code: &Code, shape: &LaunchShape, params: &[u8]) -> Result<(), String> {
    let LaunchShape { grid, block, dynamic_shared } = *shape;
    let most = [MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ];
    if grid.iter().zip(most).any(|(&extent, most)| extent == 0 || extent > most) {
        return Err(format!(
            "a grid of {grid:?} blocks; x may be 1 to {MAX_GRID_X}, y and z 1 to {MAX_GRID_YZ}: use another shape"
        ));
    }
    let most = u64::from(MAX_BLOCK_THREADS);
    let extents = block.map(u64::from);
    let possible = extents.iter().all(|extent| (1..=most).contains(extent));
    if !possible || extents.iter().product::<u64>() > most {
        return Err(format!("a block of {block:?} threads; there may be 1 to {most} in all: use another shape"));
    }
    if params.len() != kernel.param_bytes() {
        return Err(format!(
            "{} bytes of parameters were passed; it takes {}: pass what the entry declares",
            params.len(),
            kernel.param_bytes()
        ));
    }
    let shared = u64::from(code.dynamic_base()) + u64::from(dynamic_shared);
    if shared > u64::from(MAX_SHARED_BYTES) {
        return Err(format!(
            "a block of it needs {shared} bytes of shared memory, {dynamic_shared} of them dynamic; there are \
             {MAX_SHARED_BYTES}: use less"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::Module;

    /// Integers, floats, a part of the lanes, shared memory: what the two copies of the table compile differently.
    const TEXT: &str = "
        .version 7.0
        .target sm_80
        .address_size 64
        .visible .entry k(.param .u64 cells) {
            .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<3>; .shared .align 4 .b8 tile[1024];
            ld.param.u64 %rd1, [cells]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
            ld.global.f32 %f1, [%rd2]; cvt.rn.f32.u32 %f2, %r1; fma.rn.f32 %f3, %f1, %f2, 0f3DCCCCCD;
            setp.gt.f32 %p, %f3, 0f40000000; @%p div.rn.f32 %f3, %f1, %f3;
            mul.lo.u32 %r2, %r1, 256; and.b32 %r2, %r2, 1020; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;
            @!%p st.shared.f32 [%r2], %f3; bar.sync 0; @!%p ld.shared.f32 %f3, [%r2];
            st.global.f32 [%rd2], %f3;
        }";

    #[test]
    fn every_processor_gets_the_same_results_and_counters() {
        let module = Module::parse(TEXT).unwrap();
        let kernel = module.kernel("k").unwrap();
        let results = [Engine::BASELINE, Engine::detect()].map(|engine| {
            let memory = Memory::new(1 << 20);
            let address = memory.alloc(800).unwrap();
            let cells: Vec<u8> = (0..200).flat_map(|i| (i as f32 / 37.0).to_le_bytes()).collect();
            memory.write(address, &cells).unwrap();
            let shape = LaunchShape { grid: [1, 1, 1], block: [200, 1, 1], dynamic_shared: 0 };
            let params = address.to_le_bytes();
            let report = run_on(engine, kernel, &shape, &params, &memory, &Config::default()).unwrap();
            let mut out = vec![0; 800];
            memory.read(address, &mut out).unwrap();
            (report, out)
        });
        assert_eq!(results[0], results[1]);
        assert!(results[0].0.counters.shared_store.bank_conflicts > 0);
    }
}
