//! Moves tiles of several axes, for sides whose runs are many short axes or not aligned to 16
//! bytes.
//!
//! A block takes a part of several axes that is a few runs of memory on either side. It loads the
//! source's runs into shared memory and stores the destination's from there. Tables give the
//! position of each run and of each word in it.
//!
//! Worth, on an H100 (benches/record/2026-11-23-h100/strategies.md): bytes 1024 x 1024 x 100 by 1,
//! 0, 2 reach 2563 GB/s, by `rows` 1881, and 2 bytes 262144 x 16 x 8 by 0, 2, 1 2580, by stacked
//! tiles 2553.

mod growth;
pub(in crate::ops::movement::permute) mod quads;
mod room;
mod side;
pub(in crate::ops::movement::permute) mod stepped;

use std::fmt;

use super::tile::Tiling;
use super::{Considered, Decline, Launch, Step, Task, Widened, at_least, at_most, grid, power_of_two};
use crate::abi::{PACKED, PackedParams, PackedQuadsParams};
use crate::error::counted;
use crate::launch_shape::{LaunchShape, MAX_SHARED_BYTES};
use crate::ops::tuning::Permutes;
use crate::ops::units::{VECTOR, WORD};
use growth::Packing;

/// Takes permutes with runs on both sides, if packing beats one-axis tiles and single elements.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let Widened { canonical, .. } = task.widened();
    let constants = &task.permutes().packed;
    if task.tiling().is_ok() {
        // With two axes, only the other side's run could extend a short one.
        at_least(canonical.axes().len(), 3, "axes", "no third axis makes a short run longer")?;
    }
    let packing = Packing::forwards(canonical)?;
    is_better(&packing, task)?;
    let aligns = [task.src_align, task.dst_align];
    let (packing, threads) = packing.grown(aligns, constants);
    // Gaps on both sides end a tile early: from images without one channel a tile would take
    // one pixel.
    let taken = packing.taken[..packing.rank].iter().product::<usize>() * canonical.width;
    at_least(taken, constants.smallest_tile, "bytes of a tile", "gaps on both sides make tiles too small")?;
    let step = step(&packing, threads, task)?;
    let reason = "the sides are contiguous along different axes, several of which make a run: tiles of those axes, moved in \
                  the runs of either side";
    *launch = Some(Launch::Packed(step));
    Ok(reason)
}

/// Declines if tiles of one axis per side, or `elements`, were faster on an H100.
fn is_better(packing: &Packing, task: &Task<'_>) -> Result<(), Decline> {
    let Permutes { packed, tiles, stacked, .. } = task.permutes();
    let (bytes, width) = (task.bytes(), packing.width);
    let shortest = [&packing.src, &packing.dst].map(|order| packing.axes[order.axes[0]].extent * width);
    let shortest = shortest[0].min(shortest[1]);
    let long = |most: usize| at_most(shortest, most - 1, "bytes of the shorter side's nearest axis", LONG);
    match task.tiling() {
        Ok(tiling) if tiling.is_ragged => beside_ragged_tiles(packing, task, tiling, shortest),
        Ok(_) => {
            at_least(width, VECTOR, "bytes of an element", "tiles of narrow elements are whole vectors")?;
            long(packed.short_run_of_16)?;
            at_least(bytes, tiles.small + 1, "bytes of a side", SMALL)
        }
        Err(_) => {
            at_least(bytes, packed.smallest, "bytes of a side", "a tile would be most of the array")?;
            if packing.src.axes[0] == packing.dst.axes[0] {
                packing.goes_on(&task.permutes().quads.shortest_with_gaps)?;
                return long(packed.short_run);
            }
            if width < WORD {
                return Ok(());
            }
            let cached = "wide elements of small matrices move one by one at a copy's speed";
            let kept = packing.kept() * width;
            at_least(
                kept,
                stacked.cached_matrix + 1,
                "bytes of the smallest block that is contiguous on both sides",
                cached,
            )
        }
    }
}

const LONG: &str = "one axis makes runs that are long enough";
const SMALL: &str = "the L2 cache joins partly written sectors";

/// Declines if ragged tiles were faster on an H100.
fn beside_ragged_tiles(packing: &Packing, task: &Task<'_>, tiling: &Tiling, shortest: usize) -> Result<(), Decline> {
    let Permutes { packed, tiles, .. } = task.permutes();
    let (bytes, width) = (task.bytes(), packing.width);
    let (filled, full) = (tiling.filled(width), tiling.full_but(tiles.empty_part));
    // Small arrays were tuned apart: the L2 cache joins what tiles of short axes store in parts.
    if width < WORD || bytes > tiles.small {
        tiling.leaves_to_others(task)?;
    }
    let is_large = || at_least(bytes, tiles.small + 1, "bytes of a side", SMALL);
    let long = |most: usize| at_most(shortest, most - 1, "bytes of the shorter side's nearest axis", LONG);
    // Folded rows are long: 24 x 25 x 26 x 27 x 28 by 4, 2, 0, 3, 1 reaches 0.91 of the copy
    // packed, 1.02 by tiles.
    if width == 4 && bytes > tiles.small && tiling.has_folded_rows() {
        at_most(filled, full.saturating_sub(1), "micro-tiles that elements fill", "tiles of folded rows are full")?;
    }
    if shortest < packed.short_run {
        let stored = packing.axes[packing.dst.axes[0]].extent * width;
        let stored = if width <= WORD { stored } else { 0 };
        let whole = "ragged tiles store long runs, and the L2 cache joins the short ones that they load";
        return at_most(stored, packed.long_stored - 1, "bytes of the destination's nearest axis", whole);
    }
    match width {
        1 => {
            is_large()?;
            at_least(
                dst_start(packing, task),
                packing.word,
                "alignment of the destination's runs in bytes",
                "words are split",
            )?;
            if tiling.halo() > 0 {
                return Ok(());
            }
            // Tiles without a halo: 512 x 512 x 511 backwards reaches 0.89 packed, 0.95 by tiles.
            at_most(filled, full.saturating_sub(1), "micro-tiles that elements fill", "tiles without a halo are full")
        }
        8 => {
            is_large()?;
            long(packed.short_run_of_8)
        }
        _ => long(packed.short_run),
    }
}

/// Returns the largest power of two of bytes that all runs of the destination start on.
fn dst_start(packing: &Packing, task: &Task<'_>) -> usize {
    let Packing { dst, axes, rank, dst_start, width, .. } = packing;
    let starts = dst.axes[1..*rank].iter().fold(*dst_start, |bits, &axis| bits | axes[axis].dst as usize);
    power_of_two(starts.wrapping_mul(*width) | task.dst_align.bytes() as usize)
}

/// Returns the launch of a grown tile.
fn step(packing: &Packing, threads: usize, task: &Task<'_>) -> Result<Step<PackedParams>, Decline> {
    let Widened { canonical, index, .. } = task.widened();
    let width = canonical.width;
    let aligned = packing.grains([task.src_align, task.dst_align]).map(|grain| grain >= packing.word);
    let (room, turn) = packing.arrangement(aligned, task.permutes().packed.spread_part);
    let chunks = packing.chunks();
    let src_side = packing.side(&packing.src, &room, chunks, aligned[0], threads, |axis| axis.src)?;
    let mut dst_side = packing.side(&packing.dst, &room, chunks, aligned[1], threads, |axis| axis.dst)?;
    let lanes = (packing.word / width) as u64;
    dst_side.run_table = src_side.entries * 8;
    dst_side.table = dst_side.run_table + dst_side.entries * 8;
    let table = if lanes > 1 { dst_side.words * lanes * 2 } else { 0 };
    let tile = (dst_side.table + table).next_multiple_of(VECTOR as u64);
    let shared = tile as usize + room.bytes + VECTOR;
    at_most(
        shared,
        MAX_SHARED_BYTES as usize,
        "bytes of shared memory",
        "a block has less than the tile and its tables need",
    )?;
    let (tiles, blocks) = packing.tiles(canonical, chunks, *index);
    let params = PackedParams { tiles, tile, turn: turn as u64, src_side, dst_side };
    let shape = LaunchShape { grid: grid(blocks), block: [threads as u32, 1, 1], dynamic_shared: shared as u32 };
    let entry = task.kernel(PACKED, width, *index)?;
    Ok(Step { entry, shape, params })
}

macro_rules! tiles_as_text {
    ($($Params:ident),*) => {$(
        impl fmt::Display for Step<$Params> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Self { entry, shape, params: $Params { src_side, dst_side, .. } } = self;
                let (runs, len) = (counted(src_side.runs, "run"), counted(src_side.len, "element"));
                write!(f, "{entry}: tiles of {runs} of {len}, stored as {} of {}, {shape}", dst_side.runs, dst_side.len)
            }
        }
    )*};
}
tiles_as_text!(PackedParams, PackedQuadsParams);

#[cfg(test)]
mod tests;
