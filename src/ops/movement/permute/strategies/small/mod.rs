//! Moves small arrays, whose launch takes most of the time.
//!
//! `patch` moves one element a thread, `matrix` moves a single matrix by tiles.

mod matrix;
mod patch;

use super::{Considered, Decline, Launch, Offer, Task, Widened, at_least, at_most};
use crate::abi::Index;
use crate::launch_shape::{LaunchShape, MAX_GRID_YZ};

/// Takes arrays that one of the kernels for small arrays suits.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let reason = patch::consider(task, launch).or_else(|_| matrix::consider(task, launch))?;
    Ok(Offer { reason, time: 1.0, costs: None })
}

/// Checks what both kernels require.
fn is_small_allowed(task: &Task<'_>, widened: &Widened) -> Result<(), Decline> {
    let tuned = "the plan measures kernels for large arrays";
    at_least(usize::from(task.may_be_small()), 1, "kernels for small arrays that the plan may use", tuned)?;
    let narrow = usize::from(widened.index == Index::Narrow);
    at_least(narrow, 1, "sides that 31-bit offsets reach", "an element is too far away for 31-bit offsets")
}

/// Returns the shape of this grid; CUDA limits a grid along y and z.
fn shape([x, y, z]: [usize; 3], block: [u32; 3]) -> Result<LaunchShape, Decline> {
    let long = "the grid would be longer than CUDA allows";
    at_most(y.max(z), MAX_GRID_YZ as usize, "blocks along y or z", long)?;
    at_most(x, u32::MAX as usize, "blocks along x", long)?;
    Ok(LaunchShape { grid: [x as u32, y as u32, z as u32], block, dynamic_shared: 0 })
}
