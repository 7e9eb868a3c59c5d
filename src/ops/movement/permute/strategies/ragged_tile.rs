//! Moves tiles of ragged rows: accesses are shifted to the aligned middle of each row.
//!
//! Each tile writes whole sectors only. For that it reads a halo again, some rows of the tile
//! above, which costs less than sectors that two tiles write. Tiles take the shape that fills them
//! best, because an H100 takes about as long for an empty micro-tile.
//!
//! Rows and columns of narrow elements take all axes that continue their runs. On an H100 bytes
//! 101 x 5001 x 33 x 11 by 2, 3, 1, 0 so reach 0.85 of the copy, and 0.35 by `packed_quads`
//! (benches/record/2026-11-24-h100/choices.md).
//!
//! Worth, on an H100, relative to the copy: bytes 16383 x 16385 0.888, 2 bytes 12287 x 12289 0.912,
//! 4 and 8 bytes 0.940 and 0.935. f32 33 x 65 x 127 x 129 by 3, 1, 0, 2 reaches 2586 GB/s since
//! tiles adapt to be full (2174 before), and 24 x 25 x 26 x 27 x 28 by 4, 2, 0, 3, 1 2334 (2003 by
//! `packed`) (benches/record/experiments.md).

use super::{Considered, Launch, Task, at_least};
use crate::abi::RAGGED_TILE;

/// Takes matrices whose rows start or end between vectors, or between the sectors that are written.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let tiling = task.tiling().as_ref().map_err(|decline| *decline)?;
    let whole = "every row is whole vectors, and no access needs a shift";
    at_least(usize::from(tiling.is_ragged), 1, "sides with ragged rows", whole)?;
    let reason = "the sides are contiguous along different axes, and rows start or end between 16-byte vectors or the sectors that \
         are written: tiles whose accesses are shifted to the aligned middle of each row";
    *launch = Some(Launch::Tile(tiling.step(task, RAGGED_TILE)?));
    Ok(reason)
}
