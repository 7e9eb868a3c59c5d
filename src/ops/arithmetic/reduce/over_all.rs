//! Reduces all elements: each block leaves a value, and a second launch of one block joins these.

use super::Scratch;
use super::pass::{Pass, Passes};
use crate::abi::{EntryId, REDUCE_BLOCK, REDUCE_BLOCKS, REDUCE_STEPS, ReduceParams};
use crate::element::DType;
use crate::launch_shape::LaunchShape;
use crate::ops::plan::Step;
use crate::ops::span::{Phase, span};
use crate::ops::units::wide::VECTOR;

/// Most bytes of a block's value.
const VALUE: usize = 8;
const _: () = assert!(REDUCE_BLOCKS as usize * VALUE <= Scratch::BYTES);

/// Returns the launches for `len` elements of `width` bytes with these starts. `entries` reduce
/// them and join the blocks' values, which are of the type `outcome`.
pub(super) fn passes(
    [first, second]: [EntryId; 2],
    len: u64,
    width: u64,
    outcome: DType,
    starts: [Phase; 2],
) -> Passes {
    // Each run of vectors has a block, up to a limit.
    let run = u64::from(REDUCE_BLOCK * REDUCE_STEPS) * VECTOR;
    let blocks = len.saturating_mul(width).div_ceil(run).clamp(1, u64::from(REDUCE_BLOCKS)) as u32;
    let step = |entry, blocks, span| {
        let shape = LaunchShape { grid: [blocks, 1, 1], block: [REDUCE_BLOCK, 1, 1], dynamic_shared: 0 };
        Pass::All(Step { entry, shape, params: ReduceParams { a: 0, b: 0, partials: 0, span } })
    };
    let join = || {
        // The scratch starts on a vector.
        step(second, 1, span(u64::from(blocks), outcome.width() as u64, &[Phase::ALIGNED]))
    };
    let first = step(first, blocks, span(len, width, &starts));
    Passes { first: Some(first), second: (blocks > 1).then(join), indices: 0 }
}
