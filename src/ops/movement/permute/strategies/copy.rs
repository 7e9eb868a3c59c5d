//! Copies bytes that lie alike in memory on both sides. Other kernels are compared with this one.
//!
//! Worth: this is the best copy that was found on an H100. From 32 MiB on no other shape of a copy
//! is faster by more than the noise between runs. Hints to the L2 cache take a copy of 1 GiB from
//! 3039 to 3060 GB/s, and one of 128 MiB from 2911 to 2925 (benches/record/experiments.md).

use std::fmt;

use super::{Considered, Launch, Offer, Step, Task, at_least, grid, power_of_two};
use crate::abi::{COPY, CopyParams, Key};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::ops::units::VECTOR;

/// Takes bytes that lie alike on both sides, without gaps and aligned to 16 bytes.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
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
    Ok(Offer { reason, time: 1.0 })
}

impl fmt::Display for Step<CopyParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params } = self;
        write!(f, "{entry}: {}, {shape}: both sides lie alike in memory", counted(params.bytes, "byte"))
    }
}
