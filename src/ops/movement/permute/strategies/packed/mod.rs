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

mod beside;
mod growth;
pub(in crate::ops::movement::permute) mod quads;
mod room;
mod side;
pub(in crate::ops::movement::permute) mod stepped;

use std::fmt;

use super::{Considered, Decline, Launch, Step, Task, Widened, at_least, at_most, grid};
use crate::abi::{PACKED, PackedParams, PackedQuadsParams};
use crate::error::counted;
use crate::launch_shape::{LaunchShape, MAX_SHARED_BYTES};
use crate::ops::units::VECTOR;
use growth::Packing;

/// Declines where tiles of one axis per side, or `elements`, are better than tiles of several axes.
pub(super) fn suits(task: &Task<'_>) -> Result<(), Decline> {
    beside::packing(task).map(drop)
}

/// Takes permutes with runs on both sides, if packing beats one-axis tiles and single elements.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let constants = &task.permutes().packed;
    let packing = beside::packing(task)?;
    let aligns = [task.src_align, task.dst_align];
    let (packing, threads) = packing.grown(aligns, constants);
    // Gaps on both sides end a tile early: from images without one channel a tile would take
    // one pixel.
    let taken = packing.taken[..packing.rank].iter().product::<usize>() * packing.width;
    at_least(taken, constants.smallest_tile, "bytes of a tile", "gaps on both sides make tiles too small")?;
    let step = step(&packing, threads, task)?;
    let reason = "the sides are contiguous along different axes, several of which make a run: tiles of those axes, moved in \
                  the runs of either side";
    *launch = Some(Launch::Packed(step));
    Ok(reason)
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
