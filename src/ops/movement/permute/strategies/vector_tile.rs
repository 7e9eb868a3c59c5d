//! Moves tiles of whole vectors, which are transposed in registers.
//!
//! A thread loads a micro-tile by vectors and transposes it in registers. Shared memory only
//! exchanges vectors, so one design serves all widths.
//!
//! Worth, on an H100: 16384 x 16384 of 4 bytes reaches 2945 GB/s, bytes 2847, f64 8192 x 8192 2936;
//! the order and the folding of axes take 2 bytes 384 x 512 x 640 by 2, 1, 0 from 0.859 to 0.937 of
//! the copy, f64 256 x 384 x 320 from 0.900 to 0.945 (benches/record/experiments.md).

use super::{Considered, Launch, Task, at_most};
use crate::abi::VECTOR_TILE;

/// Takes matrices whose rows are whole vectors on both sides.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let tiling = task.tiling().as_ref().map_err(|decline| *decline)?;
    let ragged = "rows start or end between vectors, or between the sectors that are written";
    at_most(usize::from(tiling.is_ragged), 0, "sides with ragged rows", ragged)?;
    let reason = "the sides are contiguous along different axes, and every row is whole 16-byte accesses: tiles transposed in registers";
    *launch = Some(Launch::Tile(tiling.step(task, VECTOR_TILE)?));
    Ok(reason)
}
