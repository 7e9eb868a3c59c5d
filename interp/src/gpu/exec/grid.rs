//! Checks whether a launch is possible, and runs its blocks on the host's threads.

use std::sync::Arc;

use super::block::Launch;
use super::dispatch::Engine;
use super::turns::{Blocks, Part};
use crate::error::{Error, counted};
use crate::gpu::check::{Check, MAX_RACECHECK_BLOCKS};
use crate::gpu::code::Code;
use crate::gpu::config::Config;
use crate::gpu::mem::{Memory, Touched};
use crate::gpu::module::Kernel;
use crate::gpu::parse::ast::Bounds;
use crate::gpu::reason::Reason;
use crate::gpu::report::{Footprint, Report};
use crate::gpu::stop::Stop;
use crate::launch_shape::{LaunchShape, MAX_BLOCK_THREADS, MAX_GRID_X, MAX_GRID_YZ};

/// The largest extent of a block in z.
const MAX_BLOCK_Z: u32 = 64;
/// Bytes that all begun blocks together may take on the host, unless a single one takes more.
const BLOCKS_BYTES: u64 = 768 << 20;
/// Bytes of the memory that a cooperative launch has for its grid: two words, the second of which
/// is the barrier of cooperative groups.
const WORKSPACE_BYTES: u64 = 8;
/// Why a launch whose footprint is counted cannot begin.
const NO_FOOTPRINT: &str = "the host has no memory to record the bytes that it touches, three eighths of its buffers' bytes; use smaller buffers";

/// Runs a kernel; see [`crate::gpu::run`].
pub(crate) fn run(
    engine: Engine,
    kernel: &Kernel,
    shape: &LaunchShape,
    params: &[u8],
    memory: &Memory,
    config: &Config,
) -> Result<Report, Box<Stop>> {
    let code = if config.contract { kernel.inner.contracted() } else { kernel.inner.code() };
    let code = checked(kernel, code, shape, params)?;
    let refuse = |error: Error| refusal(kernel.name(), Reason::Launch(error.to_string()));
    let variables = kernel.inner.source.variables.addresses(memory).map_err(refuse)?;
    let heap = code.uses_heap().then(|| memory.heap()).transpose().map_err(refuse)?;
    let workspace = Workspace::of(code, memory, config).map_err(refuse)?;
    let global = memory.snapshot_for_launch(config.checks.contains(Check::Initcheck));
    let touched = match config.footprint {
        true => Some(global.untouched().ok_or_else(|| refusal(kernel.name(), Reason::Launch(NO_FOOTPRINT.into())))?),
        false => None,
    };
    let launch = Launch {
        kernel: &kernel.inner,
        code,
        shape,
        params,
        global: &global,
        heap: heap.and_then(|base| global.find(base)),
        workspace: workspace.address,
        variables: &variables,
        engine,
        limit: config.work_limit,
        checks: config.checks,
        touched: touched.as_ref(),
    };
    let blocks: u64 = shape.grid.iter().map(|&extent| u64::from(extent)).product();
    if config.checks.contains(Check::Racecheck) && blocks > MAX_RACECHECK_BLOCKS {
        let context = format!(
            "racecheck follows at most {MAX_RACECHECK_BLOCKS} blocks, and the grid has {blocks}; use a smaller grid, or leave \
             racecheck out"
        );
        return Err(refusal(kernel.name(), Reason::Launch(context)));
    }
    // Checkers see one block at a time, in order; see `check`.
    let threads = if config.checks.is_empty() { config.threads } else { 1 };
    let (clusters, most) = (blocks / code.cluster_blocks(), config.most_blocks / code.cluster_blocks());
    let report = run_blocks(&launch, Part { blocks: clusters, taken: clusters.min(most.max(1)) }, threads)?;
    let touched_sectors = touched.as_ref().map(|touched| touched.sectors());
    let footprint = touched.as_ref().map(Touched::counts).map(|[read, written]| Footprint { read, written });
    Ok(Report { footprint, touched_sectors, touched: touched.map(Arc::new), ..report })
}

/// The memory that a cooperative launch has for its grid while it runs. In other launches the
/// address is 0.
struct Workspace<'m> {
    memory: &'m Memory,
    address: u64,
}

impl<'m> Workspace<'m> {
    fn of(code: &Code, memory: &'m Memory, config: &Config) -> crate::error::Result<Self> {
        let address = match config.cooperative && code.uses_workspace() {
            true => memory.alloc_variable(WORKSPACE_BYTES, false)?,
            false => 0,
        };
        Ok(Self { memory, address })
    }
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        if self.address != 0 {
            // The program may have freed it, though it did not allocate it.
            let _ = self.memory.free(self.address);
        }
    }
}

fn run_blocks(launch: &Launch, part: Part, threads: usize) -> Result<Report, Box<Stop>> {
    // Every warp executes at least one instruction.
    let least =
        (u64::from(launch.warps()) + launch.preparation()).saturating_mul(part.taken * launch.code.cluster_blocks());
    if least > launch.limit {
        let reason = Reason::GridLimit { limit: launch.limit, grid: launch.shape.grid, least };
        return Err(refusal(&launch.kernel.name, reason));
    }
    let fit = (BLOCKS_BYTES / launch.cluster_bytes().max(1)).max(1);
    let workers = workers(part.taken, threads, fit);
    let blocks = Blocks::new(launch, part, fit / workers);
    on_each(workers, || blocks.work());
    blocks.into_report()
}

/// The kernel's code, if this launch of it is possible; see [`crate::gpu::check_launch`].
pub(crate) fn check<'a>(kernel: &'a Kernel, shape: &LaunchShape, params: &[u8]) -> Result<&'a Code, Box<Stop>> {
    checked(kernel, kernel.inner.code(), shape, params)
}

fn checked<'a>(
    kernel: &Kernel,
    code: &'a Result<Code, Error>,
    shape: &LaunchShape,
    params: &[u8],
) -> Result<&'a Code, Box<Stop>> {
    let refuse = |reason| refusal(kernel.name(), reason);
    let code = code.as_ref().map_err(|error| refuse(Reason::Unsupported(error.clone())))?;
    possible(kernel, code, shape, params).map_err(|context| refuse(Reason::Launch(context)))?;
    Ok(code)
}

/// The number of host threads that work on a launch. It is at most the number requested, the number
/// available, the number of blocks, and the number of blocks that fit into the host's memory at
/// once.
fn workers(blocks: u64, threads: usize, fit: u64) -> u64 {
    let threads = match threads {
        // No thread is started for a launch that takes the caller's alone.
        1 => 1,
        0 => host_threads(),
        _ => threads.min(host_threads()),
    };
    blocks.min(threads as u64).min(fit).max(1)
}

/// Returns the threads of launches outside of any pool; `None` where the system starts none.
/// Rayon's global pool would panic there.
#[cfg(feature = "parallel")]
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: std::sync::OnceLock<Option<rayon::ThreadPool>> = std::sync::OnceLock::new();
    POOL.get_or_init(|| rayon::ThreadPoolBuilder::new().build().ok()).as_ref()
}

/// The number of the host's threads: with the feature `parallel` those of the caller's rayon pool,
/// or of one for all launches; else the caller's alone.
fn host_threads() -> usize {
    #[cfg(feature = "parallel")]
    return match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => pool().map_or(1, rayon::ThreadPool::current_num_threads),
    };
    #[cfg(not(feature = "parallel"))]
    return 1;
}

/// Does `work` on `count` host threads at a time; on the caller's, if it is one.
fn on_each(count: u64, work: impl Fn() + Sync) {
    #[cfg(feature = "parallel")]
    if count > 1 {
        let on_all = || {
            rayon::scope(|scope| {
                for _ in 1..count {
                    scope.spawn(|_| work());
                }
                work();
            });
        };
        return match (rayon::current_thread_index(), pool()) {
            (None, Some(pool)) => pool.install(on_all),
            _ => on_all(),
        };
    }
    debug_assert_eq!(count, 1);
    work();
}

/// A stop that belongs to no instruction, because the launch did not begin or exceeded its limit.
pub(super) fn refusal(kernel: &str, reason: Reason) -> Box<Stop> {
    let (findings, printed) = (Vec::new(), String::new());
    Box::new(Stop { kernel: kernel.to_owned(), place: None, reason, findings, more_findings: 0, printed })
}

/// Refuses a launch that a CUDA driver would refuse.
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
    if block[2] > MAX_BLOCK_Z {
        return Err(format!("a block of {block:?} threads; z may be 1 to {MAX_BLOCK_Z}: use another shape"));
    }
    check_bounds(&kernel.inner.bounds, extents, grid)?;
    if params.len() != kernel.param_bytes() {
        return Err(format!(
            "{} of parameters were given, but it takes {}: pass what the entry declares",
            counted(params.len(), "byte"),
            kernel.param_bytes()
        ));
    }
    let shared = u64::from(code.dynamic_base()) + u64::from(dynamic_shared);
    let most = kernel.shared_limit();
    if shared > u64::from(most) {
        return Err(format!(
            "a block of it needs {shared} bytes of shared memory, {dynamic_shared} of them dynamic; there are {most} on \
             sm_{}: use less",
            kernel.architecture
        ));
    }
    Ok(())
}

/// Checks the shapes of a block and of the grid against the kernel's own requirements.
fn check_bounds(bounds: &Bounds, block: [u64; 3], grid: [u32; 3]) -> Result<(), String> {
    let threads = block.iter().product::<u64>();
    if let Some(required) = bounds.required.filter(|required| *required != block) {
        return Err(format!("a block of {block:?} threads; it requires {required:?}: use that shape"));
    }
    if let Some(most) = bounds.max_threads.filter(|&most| threads > most) {
        return Err(format!(
            "a block of {threads}; it was compiled for at most {most}: use a smaller block",
            threads = counted(threads, "thread")
        ));
    }
    if bounds.has_clusters && bounds.cluster.is_none() {
        return Err("no clusters; its PTX says `.explicitcluster`: give the launch a shape of clusters".to_owned());
    }
    let is_multiple =
        |cluster: [u64; 3]| cluster.iter().zip(grid).all(|(of, blocks)| u64::from(blocks).is_multiple_of(*of));
    if let Some(cluster) = bounds.cluster.filter(|&cluster| !is_multiple(cluster)) {
        return Err(format!(
            "a grid of {grid:?} blocks; its clusters have {cluster:?}: use a multiple of that in each direction"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
