//! Small arrays, which take little longer than a launch: kernels with few parameters, and threads enough for every
//! multiprocessor.

use std::fmt;

use super::tile::fold;
use crate::abi::{
    Divisor, EntryId, Index, PATCH, PATCH_BLOCK, PatchParams, SMALL_TILE, SMALL_TILE_ACROSS, SMALL_TILE_DOWN,
    STAGGERED, TILE, TILE_ROWS, TransposeParams,
};
use crate::launch_shape::{LaunchShape, MAX_GRID_YZ};
use crate::ops::Align;
use crate::ops::canonical::{Axis as Walk, Canonical};
use crate::ops::numbering::index;
use crate::ops::tuning::{
    PATCH_BYTES, PATCH_ELEMENTS, PATCHES_ELEMENTS, SMALL_MATRIX, SMALL_SQUARES, SMALL_SQUARES_WIDTH, patch_across_log2,
};
use crate::ops::units::VECTOR;

/// A launch of `patch`, `small_tile` or `staggered`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Small {
    pub(super) entry: EntryId,
    pub(super) shape: LaunchShape,
    pub(super) params: Params,
}

/// Addresses are from the starts of the storages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Params {
    Patch(PatchParams),
    Matrix(TransposeParams),
}

const NONE: Walk = Walk { extent: 1, src: 0, dst: 0 };

impl Small {
    /// The plan, where the array is small enough for the gain.
    pub(super) fn of(canonical: &Canonical, src_align: Align, dst_align: Align) -> Option<Self> {
        let (axes, len) = (canonical.axes(), canonical.len());
        let most = if axes.len() > 2 { PATCHES_ELEMENTS } else { PATCH_ELEMENTS.min(PATCH_BYTES / canonical.width) };
        match axes {
            _ if index(canonical) == Index::Wide => None,
            _ if len <= most => Self::patch(canonical, most),
            &[rows, cols] if len * canonical.width <= SMALL_MATRIX => {
                Self::matrix(canonical, rows, cols, src_align.min(dst_align).bytes() >= VECTOR as u64)
            }
            _ => None,
        }
    }

    /// One element a thread; at most two axes of images, and not many more than `most` threads.
    fn patch(canonical: &Canonical, most: usize) -> Option<Self> {
        // Lanes go along the source first: what is written waits in the L2 cache until its sectors are whole.
        let axes = canonical.axes();
        let first = (0..axes.len()).min_by_key(|&axis| axes[axis].src.unsigned_abs());
        let cols = first.map_or(NONE, |first| axes[first]);
        let mut others = (0..axes.len()).filter(|&axis| Some(axis) != first).map(|axis| axes[axis]);
        let [rows, inner, outer] = [(); 3].map(|()| others.next().unwrap_or(NONE));
        if others.next().is_some() {
            return None;
        }
        let ceil_log2 = |extent: usize| extent.next_power_of_two().trailing_zeros();
        let across = patch_across_log2(canonical.width).max(PATCH_BLOCK.ilog2().saturating_sub(ceil_log2(rows.extent)));
        let across_log2 = across.min(ceil_log2(cols.extent)).min(PATCH_BLOCK.ilog2());
        let [across, down] = [1 << across_log2, PATCH_BLOCK as usize >> across_log2];
        let grid = [cols.extent.div_ceil(across), rows.extent.div_ceil(down), inner.extent * outer.extent];
        // Where a patch would be mostly empty, there are too many.
        if grid.iter().product::<usize>() * PATCH_BLOCK as usize > 4 * most {
            return None;
        }
        let images =
            |stride: fn(Walk) -> isize| fold(Divisor::narrow, [inner, outer].map(|axis| (axis.extent, stride(axis))));
        let params = PatchParams {
            src: (canonical.src_start * canonical.width) as u64,
            dst: (canonical.dst_start * canonical.width) as u64,
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
        let entry = PATCH.entry(canonical.width, Index::Narrow)?;
        Some(Self { entry, shape: shape(grid, [PATCH_BLOCK, 1, 1])?, params: Params::Patch(params) })
    }

    /// A matrix by tiles, where both sides are contiguous, each along one of the axes, and tiles are not mostly empty.
    fn matrix(canonical: &Canonical, rows: Walk, cols: Walk, aligned: bool) -> Option<Self> {
        let Canonical { width, src_start, dst_start, .. } = *canonical;
        if rows.dst != 1 || cols.src.unsigned_abs() != 1 {
            return None;
        }
        let lanes = VECTOR / width;
        let bits = rows.extent | cols.extent | rows.src as usize | cols.dst as usize | src_start | dst_start;
        let whole = aligned && cols.src == 1 && bits.is_multiple_of(lanes);
        let worth = width >= SMALL_SQUARES_WIDTH || canonical.len() * width >= SMALL_SQUARES;
        let squares = [SMALL_TILE_ACROSS, SMALL_TILE_DOWN].map(|squares| squares as usize * lanes);
        let fills = |[across, down]: [usize; 2]| 2 * cols.extent >= across && 2 * rows.extent >= down;
        let (family, tile, block) = if whole && worth && fills(squares) {
            (SMALL_TILE, squares, [SMALL_TILE_ACROSS * SMALL_TILE_DOWN, 1, 1])
        } else {
            (STAGGERED, [TILE as usize; 2], [TILE, TILE_ROWS, 1])
        };
        let params = TransposeParams {
            src: (src_start * width) as u64,
            dst: (dst_start * width) as u64,
            rows: rows.extent as u64,
            cols: cols.extent as u64,
            src_row_stride: rows.src as i64,
            src_col_stride: cols.src as i64,
            dst_row_stride: cols.dst as i64,
            dst_col_stride: rows.dst as i64,
        };
        let shape = shape([cols.extent.div_ceil(tile[0]), rows.extent.div_ceil(tile[1]), 1], block)?;
        let entry = family.entry(width, Index::Narrow)?;
        fills(tile).then_some(Self { entry, shape, params: Params::Matrix(params) })
    }

    pub(super) fn reason(&self) -> &'static str {
        match self.params {
            Params::Patch(_) => {
                "it is so small that the launch takes the time: one element a thread, few parameters, no shared memory"
            }
            Params::Matrix(_) => {
                "it is one small matrix, which few parameters describe: tiles in shared memory, with threads for every \
                 multiprocessor"
            }
        }
    }
}

/// The shape, where a grid may be as long in y and z.
fn shape([x, y, z]: [usize; 3], block: [u32; 3]) -> Option<LaunchShape> {
    let [y, z] = [y, z].map(|extent| u32::try_from(extent).ok().filter(|&extent| extent <= MAX_GRID_YZ));
    Some(LaunchShape { grid: [u32::try_from(x).ok()?, y?, z?], block, dynamic_shared: 0 })
}

impl fmt::Display for Small {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (images, rows, cols) = match &self.params {
            Params::Patch(PatchParams { rows, cols, .. }) => (self.shape.grid[2], rows, cols),
            Params::Matrix(TransposeParams { rows, cols, .. }) => (1, rows, cols),
        };
        write!(f, "{}: {images} of {rows} x {cols} elements, {}", self.entry, self.shape)
    }
}
