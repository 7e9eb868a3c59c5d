//! The policy of a GPU that was not measured: the H100's, with what depends on the L2 cache, on
//! shared memory and on bytes in flight in proportion.

use super::{Fields, Quads, Tiles, Tuning, h100, multiprocessor};
use crate::launch_shape::MAX_BLOCK_THREADS;
use crate::ops::Target;
use crate::ops::units::wide::VECTOR;

/// Bytes that an H100's multiprocessor must have in flight for the full speed of its memory. CUB
/// has the same number, and numbers near the rule's for other GPUs.
const IN_FLIGHT: u64 = 32 << 10;

/// Bytes of shared memory that a block needs beside a matrix: its tables, and what it reserves.
const TABLES: u32 = 4 << 10;

/// Threads in a block of a copy if all threads of a multiprocessor together have too few bytes in
/// flight. The next block should come soon then, which waits for all threads of one before it.
const SMALL_BLOCK: u32 = 256;

/// Returns the policy. A number that depends on a figure that is not known stays as on an H100.
pub(super) const fn of(target: Target) -> Tuning {
    let (h100, multiprocessor) = (&h100::H100, multiprocessor::of(target.compute_capability));
    let mut tuning = h100.tuning;
    if target.l2_bytes != 0 {
        let (to, from) = (target.l2_bytes, h100.target.l2_bytes);
        let Tiles { small, column, .. } = tuning.permutes.tiles;
        tuning.unhinted = scaled(tuning.unhinted, to, from);
        tuning.permutes.tiles.small = scaled(small as u64, to, from) as usize;
        tuning.permutes.small.cached = scaled(tuning.permutes.small.cached as u64, to, from) as usize;
        tuning.permutes.tiles.column = scaled(column as u64, to, from) as usize;
    }
    let (to, from) = (target.bandwidth_per_multiprocessor, h100.target.bandwidth_per_multiprocessor);
    if to != 0 {
        // A multiprocessor has about the clock of an H100's.
        tuning.permutes.boxes.memory.byte *= from as f64 / to as f64;
    }
    let Fields { in_flight, shared, .. } = tuning.permutes.fields;
    tuning.permutes.fields.shared = multiprocessor.shared;
    tuning.permutes.fields.shared_of_block = multiprocessor.shared_of_block;
    tuning.permutes.boxes.threads = multiprocessor.threads;
    tuning.permutes.boxes.room = [multiprocessor.shared, multiprocessor.shared_of_block];
    // More bytes in flight than the best cost an H100 little, and too few leave the memory idle. So
    // this is at least the H100's part of shared memory, which it is where the speed is unknown.
    let part = scaled(in_flight as u64, multiprocessor.shared as u64, shared as u64);
    let wanted = scaled(in_flight as u64, to, from);
    let wanted = if wanted < part { part } else { wanted };
    let wanted = if wanted > multiprocessor.shared as u64 { multiprocessor.shared as u64 } else { wanted };
    tuning.permutes.fields.in_flight = wanted as u32;
    let Quads { kept, .. } = tuning.permutes.quads;
    // Two blocks must fit on a multiprocessor, so that one loads while the other stores.
    let half = (multiprocessor.shared / 2 - TABLES) as usize;
    tuning.permutes.quads.kept = if kept > half { half } else { kept };
    let block = block(multiprocessor.threads);
    tuning.arithmetic.elementwise_block = block;
    tuning.arithmetic.fill_block = block;
    let most_in_flight = multiprocessor.threads as u64 * VECTOR;
    tuning.copy_block = if scaled(IN_FLIGHT, to, from) > most_in_flight { SMALL_BLOCK } else { block };
    tuning
}

/// Returns the most threads of a block, a power of two, of which at least two fill a
/// multiprocessor: with one alone, the multiprocessor is idle at its end.
const fn block(threads: u32) -> u32 {
    let mut block = MAX_BLOCK_THREADS;
    while threads < 2 * block || !threads.is_multiple_of(block) {
        block /= 2;
    }
    block
}

/// Returns the threshold of a GPU with the figure `to`, from that of one with the figure `from`.
const fn scaled(threshold: u64, to: u64, from: u64) -> u64 {
    let scaled = threshold as u128 * to as u128 / from as u128;
    if scaled > u64::MAX as u128 { u64::MAX } else { scaled as u64 }
}

#[cfg(test)]
mod tests;
