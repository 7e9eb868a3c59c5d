//! Moves tiles of several axes from a source whose nearest elements lie apart, such as every second
//! column: loaded element by element, stored by vectors.
//!
//! No vector of the source is read, so the destination may lie between the elements. `elements`
//! would fetch a sector for each element where the destination has another order, and store bytes
//! one by one. Boxes, which read all bytes, are faster with large arrays of 1 and 2 bytes.
//!
//! Worth, on an H100, relative to a copy of the bytes that are touched: six drawn cases of 2 to 8
//! bytes reach 0.842 to 1.011 (benches/record/2026-11-27-h100/random.json). Two of bytes
//! reach 0.571 and 0.344, where `elements` has 0.152 and 0.251
//! (benches/record/2026-11-24-h100/choices.md).

use super::growth::Packing;
use super::quads::{Lanes, step};
use crate::abi::PackedQuadsParams;
use crate::ops::movement::permute::strategies::{Considered, Decline, Launch, Step, Task, Widened, at_least, at_most};
use crate::ops::tuning;
use crate::ops::units::{SECTOR, VECTOR, WORD};

/// Takes large arrays whose nearest elements of the source lie at most a sector apart.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let Widened { canonical, .. } = task.widened();
    let strides = canonical.axes().iter().map(|axis| axis.src).filter(|&stride| stride != 0);
    let gap = strides.min_by_key(|stride| stride.unsigned_abs()).unwrap_or(1);
    at_least(
        gap.unsigned_abs(),
        2,
        "elements from one of the source to the next",
        "the source has runs that move by vectors",
    )?;
    at_most(canonical.width, VECTOR / 2, "bytes of an element", "elements of 16 bytes are vectors")?;
    let apart = gap.unsigned_abs().saturating_mul(canonical.width);
    let far = "elements of the source lie more than a sector apart";
    at_most(apart, SECTOR, "bytes from one element of the source to the next", far)?;
    let constants = &task.permutes().quads;
    at_least(task.bytes(), constants.smallest, "bytes of a side", "the multiprocessors would not be busy")?;
    let packing = Packing::of_stepped(canonical, gap)?;
    let same = packing.src.axes[..packing.rank] == packing.dst.axes[..packing.rank];
    let in_order = "elements that keep their order move one by one at a copy's speed";
    at_most(usize::from(same), 0, "sources whose axes are in the destination's order", in_order)?;
    let together = if packing.is_together() { canonical.width } else { 0 };
    at_most(together, WORD - 1, "bytes of elements that keep their order", "they move one by one at a copy's speed")?;
    // The tables of short runs may need as much shared memory as the tile.
    let half = tuning::Quads { tile: constants.tile.map(|tile| tile.map(|bytes| bytes / 2)), ..*constants };
    let step = tiles(&packing, constants, task).or_else(|_| tiles(&packing, &half, task))?;
    *launch = Some(Launch::PackedQuads(step));
    Ok("the source's elements lie apart: tiles of several axes, loaded element by element and stored by vectors")
}

/// Returns the launch with tiles that these constants cut.
fn tiles(packing: &Packing, constants: &tuning::Quads, task: &Task<'_>) -> Result<Step<PackedQuadsParams>, Decline> {
    let mut packing = Packing { word: packing.width, longest: usize::MAX, ..packing.clone() };
    let aligns = [task.src_align, task.dst_align];
    packing.grow_quads(constants, aligns);
    let aligned = [true, packing.grains(aligns)[1] >= VECTOR];
    let room = packing.room(aligned[0], None, 0);
    let lanes = Lanes::of(&packing, &room);
    step(&packing, &room, aligned, &lanes, task)
}
