//! Moves runs of bytes that are contiguous on both sides.
//!
//! One run that both sides hold from 16 bytes on is a copy. Other runs may start anywhere: a thread
//! stores 16 aligned bytes of the destination. It joins them from two aligned accesses of the
//! source, shifted by the difference of the two sides' alignments.
//!
//! Worth of the copy: this is the best copy that was found on an H100. Other kernels are compared
//! with it. From 32 MiB on no other shape of a copy is faster by more than the noise between runs.
//! Hints to the L2 cache take a copy of 1 GiB from 3039 to 3060 GB/s, and one of 128 MiB from 2911
//! to 2925 (benches/record/experiments.md).
//!
//! Worth of other runs, on an H100 (benches/record/2026-11-23-h100/strategies.md): 1.8 to 1.9 times
//! the speed of `elements` with runs of 3001 and 16381 bytes of 1-byte elements, and 1.12 times
//! with 16380 bytes of 2-byte elements. `elements` moves wider elements as fast or faster.

use std::fmt;

use super::{
    Considered, Estimated, Launch, Layouts, Offer, Step, Task, at_least, at_most, axes, divisor, grid, index, launch,
    power_of_two, weighed,
};
use crate::abi::{COPY, CopyParams, Key, ROWS, ROWS_BLOCK, ROWS_PER_THREAD, RowsParams};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::units::{LINE, VECTOR};

/// Takes bytes that lie alike on both sides, and runs of unaligned bytes that are long enough.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    alike(task, launch).or_else(|_| shifted(task, launch))
}

/// Takes bytes that lie alike on both sides, without gaps and aligned to 16 bytes.
pub(in crate::ops::movement::permute) fn alike(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let canonical = task.canonical;
    let (together, len) = (canonical.together(), canonical.len());
    at_least(together, len, "elements that follow each other on both sides", "a side has gaps or another order")?;
    let in_bytes = |elements: usize| (elements * canonical.width) as u64;
    let (src, dst, bytes) = (in_bytes(canonical.src_start), in_bytes(canonical.dst_start), in_bytes(len));
    let start = power_of_two((src | dst) as usize | task.align());
    at_least(start, VECTOR, "known alignment of both sides in bytes", "a side is not aligned to 16 bytes")?;
    let block = task.tuning.copy_block;
    // A lane moves one access or one byte of the tail. A small copy may be all tail.
    let lanes = (bytes / VECTOR as u64).max(bytes % VECTOR as u64);
    let blocks = lanes.div_ceil(u64::from(block));
    let step = Step {
        entry: task.hinted(COPY.get(Key::ONLY)),
        shape: LaunchShape { grid: grid(blocks), block: [block, 1, 1], dynamic_shared: 0 },
        params: CopyParams { src, dst, bytes },
    };
    let reason = "both sides lie alike in memory, without gaps and aligned to 16 bytes";
    *launch = Some(Launch::Copy(step));
    Ok(Offer { reason, time: 1.0, costs: None })
}

/// Takes runs of unaligned bytes that are long enough on both sides.
fn shifted(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let constants = &task.permutes().rows;
    let together = task.widened().canonical.width;
    at_most(together, VECTOR / 2, "bytes that are one element of both sides", "the runs already are whole vectors")?;
    // The run counts the elements before they are widened.
    let run = task.canonical.together() * task.canonical.width;
    let short = "no run that is contiguous on both sides is long enough to shift";
    at_least(run, constants.shortest, "bytes of a run that is contiguous on both sides", short)?;
    let bytes = task.canonical.in_bytes();
    let outer = &bytes.axes()[1..];
    // Stores of whole lines are worth a few idle lanes if a run is long.
    let grain = if run < constants.long { VECTOR } else { LINE };
    // The largest distance of a run's start from the aligned address before it. Only a common
    // divisor of all starts is known.
    let strides = outer.iter().fold(bytes.dst_start, |bits, axis| bits | axis.dst as usize);
    let known = strides.trailing_zeros().min(task.dst_align.bytes().trailing_zeros());
    let vectors = (run + grain - (1 << known.min(grain.trailing_zeros()))).div_ceil(VECTOR);
    let runs: usize = outer.iter().map(|axis| axis.extent).product();
    let recipe = Recipe { grain: grain as u64, vectors: vectors as u64, len: vectors as u64 * runs as u64 };
    let blocks = recipe.len.div_ceil(u64::from(ROWS_BLOCK * ROWS_PER_THREAD));
    let shape = LaunchShape { grid: grid(blocks), block: [ROWS_BLOCK, 1, 1], dynamic_shared: 0 };
    let reason = "runs are contiguous on both sides but start or end off 16 bytes: 16-byte accesses shifted to \
                  where each run starts in the destination";
    let step = Step { entry: task.hinted(ROWS.get(Key::index(index(&bytes)))), shape, params: recipe };
    *launch = Some(Launch::Rows(step));
    let costs = [1.0, VECTOR as f64 / run as f64];
    Ok(weighed(task, reason, (Estimated::Rows, together), task.traffic(), costs))
}

/// How vectors are numbered; see [`RowsParams`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::movement::permute) struct Recipe {
    grain: u64,
    /// Vectors of a run.
    vectors: u64,
    /// Vectors of all runs.
    len: u64,
}

impl launch::Recipe for Recipe {
    type Params = RowsParams;

    fn params(&self, layouts: &Layouts<'_>) -> RowsParams {
        let bytes = layouts.canonical.in_bytes();
        let (divisor, outer) = (divisor(index(&bytes)), &bytes.axes()[1..]);
        RowsParams {
            src: bytes.src_start as u64,
            dst: bytes.dst_start as u64,
            run: bytes.together() as u64,
            grain: self.grain,
            quads: divisor(self.vectors),
            len: self.len,
            rank: outer.len() as u64,
            axes: axes(outer, divisor),
        }
    }
}

impl fmt::Display for Step<CopyParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params } = self;
        write!(f, "{entry}: {}, {shape}: both sides lie alike in memory", counted(params.bytes, "byte"))
    }
}

impl fmt::Display for Step<RowsParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: RowsParams { run, quads, len, rank, .. } } = self;
        let runs = len / quads.value;
        write!(
            f,
            "{entry}: {runs} of {run} along {rank}, {shape}",
            runs = counted(runs, "run"),
            run = counted(*run, "byte"),
            rank = counted(*rank, "axis")
        )
    }
}
