//! Moves small arrays by patches, one a block: one element a thread, few parameters, no shared
//! memory.
//!
//! Worth, on an H100 (benches/record/2026-11-23-h100/strategies.md): seven arrays of 16 to 256 KiB
//! take 0.93 to 1.14 times as long by the next strategy of then, in the median 1.01. All take about
//! as long as a launch, so runs differ by more than that.

use std::fmt;

use super::{is_small_allowed, shape};
use crate::abi::{Divisor, Index, PATCH, PATCH_BLOCK, PatchParams};
use crate::layout::walk::Axis;
use crate::ops::movement::permute::strategies::tile::fold;
use crate::ops::movement::permute::strategies::{Decline, Launch, Step, Task, Widened, at_most};

/// Takes arrays so small that the launch takes most of the time.
pub(super) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Result<&'static str, Decline> {
    let widened @ Widened { canonical, len, .. } = task.widened();
    let (width, constants) = (canonical.width, &task.permutes().small);
    is_small_allowed(task, widened)?;
    let axes = canonical.axes();
    let most = if axes.len() > 2 {
        constants.patches_elements
    } else {
        constants.patch_elements.min(constants.patch_bytes / width)
    };
    at_most(*len, most, "elements", "the array is too large for one element a thread")?;
    // A patch has one axis of rows, one of columns and two of the batch.
    at_most(axes.len(), 4, "axes", "a patch has no parameters for more axes")?;
    // Lanes follow the source first: written elements wait in the L2 cache until their sectors
    // are whole.
    let first = (0..axes.len()).min_by_key(|&axis| axes[axis].src.unsigned_abs());
    let cols = first.map_or(Axis::ONE, |first| axes[first]);
    let mut others = (0..axes.len()).filter(|&axis| Some(axis) != first).map(|axis| axes[axis]);
    let [rows, inner, outer] = [(); 3].map(|()| others.next().unwrap_or(Axis::ONE));
    let ceil_log2 = |extent: usize| extent.next_power_of_two().trailing_zeros();
    let across = constants.patch_across_log2[usize::from(width >= 8)];
    let across = across.max(PATCH_BLOCK.ilog2().saturating_sub(ceil_log2(rows.extent)));
    let across_log2 = across.min(ceil_log2(cols.extent)).min(PATCH_BLOCK.ilog2());
    let [across, down] = [1 << across_log2, PATCH_BLOCK as usize >> across_log2];
    let grid = [cols.extent.div_ceil(across), rows.extent.div_ceil(down), inner.extent * outer.extent];
    let threads = grid.iter().product::<usize>() * PATCH_BLOCK as usize;
    let empty = "most of each patch would be empty, and there are many";
    at_most(threads, constants.patch_threads * most, "threads, most of them idle", empty)?;
    let images =
        |stride: fn(Axis) -> isize| fold(Divisor::narrow, [inner, outer].map(|axis| (axis.extent, stride(axis))));
    let params = PatchParams {
        src: (canonical.src_start * width) as u64,
        dst: (canonical.dst_start * width) as u64,
        across_log2: u64::from(across_log2),
        rows: rows.extent as u64,
        cols: cols.extent as u64,
        src_row_stride: rows.src as i64,
        src_col_stride: cols.src as i64,
        dst_row_stride: rows.dst as i64,
        dst_col_stride: cols.dst as i64,
        src_images: images(|axis| axis.src),
        dst_images: images(|axis| axis.dst),
    };
    let entry = task.kernel(PATCH, width, Index::Narrow)?;
    let step = Step { entry, shape: shape(grid, [PATCH_BLOCK, 1, 1])?, params };
    let reason = "the array is so small that the launch takes most of the time: one element a thread, no shared memory";
    *launch = Some(Launch::Patch(step));
    Ok(reason)
}

impl fmt::Display for Step<PatchParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: PatchParams { rows, cols, .. } } = self;
        write!(f, "{entry}: {} of {rows} x {cols} elements, {shape}", shape.grid[2])
    }
}
