//! Occupancy: how many blocks a multiprocessor of the model holds.

use std::ffi::{c_int, c_uint};
use warpstride::error::counted;

use warpstride::interp::launch_shape::{MAX_BLOCK_THREADS, WARP};

use super::clusters;
use super::config::{Config, Extras};
use crate::arguments::{Handle, In, Out};
use crate::code::{Failure, Outcome};
use crate::export::export;
use crate::module::{Function, function};

/// The flags of the functions that take some: a kernel that caches globally may have a lower
/// occupancy.
const KNOWN_FLAGS: c_uint = 1;
/// Shared memory is given out in pieces of so many bytes.
const SHARED_PIECE: u64 = 128;
/// The architecture from which on a block takes a piece of shared memory for the system.
const RESERVES: u32 = 80;
const RESERVED: u64 = 1 << 10;

/// The bytes of dynamic shared memory of a block of so many threads.
type SharedOf = Option<unsafe extern "C" fn(c_int) -> usize>;

/// Returns the bytes of shared memory that a block takes from a multiprocessor.
fn taken(function: &Function, dynamic: u64) -> Outcome<u64> {
    let reserved = if function.gpu()?.model.architecture >= RESERVES { RESERVED } else { 0 };
    let bytes = u64::from(function.kernel.shared_bytes()).saturating_add(dynamic).saturating_add(reserved);
    Ok(bytes.checked_next_multiple_of(SHARED_PIECE).unwrap_or(u64::MAX))
}

/// Returns the blocks that a multiprocessor holds at a time; 0 if a block cannot run at all.
pub(super) fn blocks(function: &Function, threads: u32, dynamic: u64) -> Outcome<u32> {
    let model = &function.gpu()?.model;
    let most_shared = u64::from(function.kernel.shared_limit().saturating_sub(function.kernel.shared_bytes()));
    if threads > function.max_threads() || dynamic > most_shared {
        return Ok(0);
    }
    let by_warps = model.warps / threads.div_ceil(WARP).max(1);
    let by_shared = match taken(function, dynamic)? {
        0 => u64::from(u32::MAX),
        bytes => u64::from(model.shared_bytes) / bytes,
    };
    Ok(u64::from(model.blocks.min(by_warps)).min(by_shared) as u32)
}

fn threads_of(block: c_int) -> Outcome<u32> {
    let threads = u32::try_from(block).ok().filter(|&threads| threads > 0);
    threads.ok_or_else(|| {
        Failure::value(format!("a block cannot have {block}; ask for 1 or more", block = counted(block, "thread")))
    })
}

fn max_active(count: Out<c_int>, of: Handle<Function>, block: c_int, dynamic: usize, flags: c_uint) -> Outcome {
    count.check()?;
    check_flags(flags)?;
    count.set(blocks(&*function(of)?, threads_of(block)?, dynamic as u64)? as c_int)
}

fn check_flags(flags: c_uint) -> Outcome {
    if flags & !KNOWN_FLAGS == 0 {
        return Ok(());
    }
    Err(Failure::value(format!("{flags:#x} are not flags of an occupancy")))
}

/// Returns the grid and the block that fill the GPU with the most threads: the largest such block.
fn potential(of: Handle<Function>, shared_of: SharedOf, dynamic: usize, limit: c_int) -> Outcome<[c_int; 2]> {
    let function = function(of)?;
    let most = u32::try_from(limit)
        .map_err(|_| Failure::value(format!("a block has no limit of {limit}", limit = counted(limit, "thread"))))?;
    let most = if most == 0 { MAX_BLOCK_THREADS } else { most }.min(function.max_threads());
    let (mut best, mut best_threads) = ([0, 0], 0);
    let mut threads = most;
    while threads > 0 {
        let dynamic = match shared_of {
            // SAFETY: the caller promises a function that returns the bytes for a number of
            // threads.
            Some(shared_of) => unsafe { shared_of(threads as c_int) },
            None => dynamic,
        };
        let blocks = blocks(&function, threads, dynamic as u64)?;
        if blocks * threads > best_threads {
            best_threads = blocks * threads;
            best = [(blocks * function.gpu()?.model.multiprocessors) as c_int, threads as c_int];
        }
        threads = (threads - 1) / WARP * WARP;
    }
    Ok(best)
}

/// Returns the blocks of a launch's clusters.
fn cluster_blocks(function: &Function, extras: &Extras) -> Outcome<u64> {
    clusters::check_model(function)?;
    let given = extras.cluster.or_else(|| function.set_cluster()).map(|extents| extents.map(u64::from));
    let shape = given.or_else(|| function.kernel.cluster());
    Ok(shape.unwrap_or([1; 3]).iter().fold(1, |a: u64, b| a.saturating_mul(*b)).max(1))
}

/// Returns the blocks of a launch that run at a time on the whole GPU.
fn active(function: &Function, config: &Config) -> Outcome<u64> {
    let threads = config.block.iter().fold(1_u32, |a, b| a.saturating_mul(*b));
    let each = blocks(function, threads.max(1), config.dynamic_shared.into())?;
    Ok(u64::from(each) * u64::from(function.gpu()?.model.multiprocessors))
}

export! {
    /// Returns the blocks that a multiprocessor holds.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<c_int>, of: Handle<Function>, block: c_int, dynamic: usize,
    ) {
        max_active(count, of, block, dynamic, 0)
    }

    /// Returns the blocks that a multiprocessor holds, with flags that change nothing here.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<c_int>, of: Handle<Function>, block: c_int, dynamic: usize, flags: c_uint,
    ) {
        max_active(count, of, block, dynamic, flags)
    }

    /// Returns a grid and a block that fill the GPU.
    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>, block: Out<c_int>, of: Handle<Function>, shared_of: SharedOf, dynamic: usize, limit: c_int,
    ) {
        let [blocks, threads] = potential(of, shared_of, dynamic, limit)?;
        grid.set(blocks)?;
        block.set(threads)
    }

    /// Returns a grid and a block that fill the GPU, with flags that change nothing here.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>, block: Out<c_int>, of: Handle<Function>, shared_of: SharedOf, dynamic: usize, limit: c_int,
        flags: c_uint,
    ) {
        check_flags(flags)?;
        let [blocks, threads] = potential(of, shared_of, dynamic, limit)?;
        grid.set(blocks)?;
        block.set(threads)
    }

    /// Returns the dynamic shared memory that each of so many blocks of a multiprocessor may have.
    fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, of: Handle<Function>, count: c_int, block: c_int) {
        bytes.check()?;
        let function = function(of)?;
        let (count, threads) = (threads_of(count)?, threads_of(block)?);
        if blocks(&function, threads, 0)? < count {
            return Err(Failure::value(format!("a multiprocessor does not hold {count} of {threads}", count = counted(count, "block"), threads = counted(threads, "thread"))));
        }
        let each = u64::from(function.gpu()?.model.shared_bytes) / u64::from(count) / SHARED_PIECE * SHARED_PIECE;
        let most = function.kernel.shared_limit().saturating_sub(function.kernel.shared_bytes());
        // The bytes that a block takes without any are the system's and its static ones.
        let own = u64::from(function.kernel.shared_bytes());
        let reserved = taken(&function, 0)?.saturating_sub(own.next_multiple_of(SHARED_PIECE));
        bytes.set(each.saturating_sub(own + reserved).min(most.into()) as usize)
    }

    /// Returns the most blocks of a cluster of a launch.
    fn cuOccupancyMaxPotentialClusterSize(size: Out<c_int>, of: Handle<Function>, config: In<Config>) {
        size.check()?;
        let (function, config) = (function(of)?, config.get()?);
        cluster_blocks(&function, &Extras::read(&config)?)?;
        size.set(clusters::most(&function).min(active(&function, &config)?) as c_int)
    }

    /// Returns the clusters of a launch that run at a time on the whole GPU.
    fn cuOccupancyMaxActiveClusters(count: Out<c_int>, of: Handle<Function>, config: In<Config>) {
        count.check()?;
        let (function, config) = (function(of)?, config.get()?);
        let each = cluster_blocks(&function, &Extras::read(&config)?)?;
        count.set((active(&function, &config)? / each) as c_int)
    }
}
