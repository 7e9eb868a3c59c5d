//! Moves tiles of several axes by vectors, for sides whose runs start anywhere.
//!
//! A block loads the vectors that hold its part of the source, keeps them in shared memory as they
//! lie, and gathers the destination's vectors from there. Where a few whole matrices are contiguous
//! on both sides, a tile is one run of memory on either side.
//!
//! Worth, on an H100 (benches/record/2026-11-23-h100/quads.md): batches of 33 x 33 floats 2934 GB/s
//! (structs 1919), of 127 x 129 of 2 bytes 2564 (tiles 1617).

use std::fmt;

use super::{Considered, Estimated, Launch, Layouts, Step, Task, Widened, grid, index, launch, weighed};
use crate::abi::{PACKED_QUADS, PackedQuadsParams};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::movement::packing::{Cut, Kept, Packing};

/// Takes arrays with a run on either side.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let constants = &task.permutes().quads;
    let Widened { canonical, index, .. } = task.widened();
    let mut packing = Packing::new(canonical, [canonical.width; 2])?;
    let aligns = [task.src_align, task.dst_align];
    let is_kept = packing.grow_quads(constants, aligns);
    let Cut { kept, blocks, threads, shared, costs, .. } = packing.cut(canonical, *index, aligns, constants, None)?;
    let shape = LaunchShape { grid: grid(blocks), block: [threads, 1, 1], dynamic_shared: shared };
    let entry = task.kernel(PACKED_QUADS, canonical.width, *index)?;
    *launch = Some(Launch::Quads(Step { entry, shape, params: Recipe(kept) }));
    let reason = if is_kept {
        "a few matrices are contiguous on both sides: they go through shared memory whole, by vectors on either side"
    } else {
        "each side has runs, which may start or end between 16-byte vectors: tiles of several axes, moved by vectors \
         as they lie"
    };
    Ok(weighed(task, reason, (Estimated::Quads, canonical.width), task.traffic(), costs))
}

/// The tile, whose parameters a launch places again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::movement::permute) struct Recipe(Kept);

impl launch::Recipe for Recipe {
    type Params = PackedQuadsParams;

    fn params(&self, layouts: &Layouts<'_>) -> PackedQuadsParams {
        let canonical = layouts.widened();
        self.0.params(&canonical, [canonical.width; 2], index(&canonical), layouts.aligns, None)
    }
}

impl fmt::Display for Step<PackedQuadsParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: PackedQuadsParams { src_side, dst_side, .. } } = self;
        let (runs, len) = (counted(src_side.runs, "run"), counted(src_side.len, "element"));
        write!(f, "{entry}: tiles of {runs} of {len}, stored as {} of {}, {shape}", dst_side.runs, dst_side.len)
    }
}
