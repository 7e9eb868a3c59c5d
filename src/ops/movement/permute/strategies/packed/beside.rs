//! Says for which tasks tiles of several axes are better than those of one axis per side and than
//! single elements.

use super::growth::Packing;
use crate::ops::movement::permute::strategies::tile::Tiling;
use crate::ops::movement::permute::strategies::{Decline, Task, Widened, at_least, at_most, power_of_two};
use crate::ops::tuning::Permutes;
use crate::ops::units::{VECTOR, WORD};

/// Returns the runs of a task's sides, or declines where other kernels are better.
pub(super) fn packing(task: &Task<'_>) -> Result<Packing, Decline> {
    let Widened { canonical, .. } = task.widened();
    if task.tiling().is_ok() {
        // With two axes, only the other side's run could extend a short one.
        at_least(canonical.axes().len(), 3, "axes", "no third axis makes a short run longer")?;
    }
    let packing = Packing::forwards(canonical)?;
    is_better(&packing, task)?;
    Ok(packing)
}

/// Declines if tiles of one axis per side, or `elements`, were faster on an H100.
pub(super) fn is_better(packing: &Packing, task: &Task<'_>) -> Result<(), Decline> {
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
pub(super) fn dst_start(packing: &Packing, task: &Task<'_>) -> usize {
    let Packing { dst, axes, rank, dst_start, width, .. } = packing;
    let starts = dst.axes[1..*rank].iter().fold(*dst_start, |bits, &axis| bits | axes[axis].dst as usize);
    power_of_two(starts.wrapping_mul(*width) | task.dst_align.bytes() as usize)
}
