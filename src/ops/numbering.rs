//! Numbers the blocks of a grid and the axes that kernels walk, and chooses the arithmetic of
//! indices.

use crate::abi::{self, Divisor, Index};
use crate::launch_shape::{MAX_GRID_X, MAX_GRID_YZ};
use crate::layout::Layout;
use crate::layout::walk::{Axis, Canonical};

/// Returns a grid of `blocks`, numbered along x and then y. The launch refuses more blocks than a
/// grid allows.
///
/// With more blocks than x allows, y is rounded up. The surplus blocks of tiles and fields move
/// the first image again with the same values; the other kernels skip them. This takes storages of
/// 4 TB.
pub(super) fn grid(blocks: u64) -> [u32; 3] {
    let x = blocks.clamp(1, u64::from(MAX_GRID_X));
    [x as u32, u32::try_from(blocks.div_ceil(x)).unwrap_or(u32::MAX), 1]
}

/// Returns a grid of these extents if CUDA allows it.
pub(super) fn checked_grid([x, y, z]: [u64; 3]) -> Option<[u32; 3]> {
    let most = u64::from(MAX_GRID_YZ);
    (x <= u64::from(MAX_GRID_X) && y <= most && z <= most).then_some([x as u32, y as u32, z as u32])
}

/// Returns the axes in the form that kernels walk.
pub(super) fn axes<'a, const AXES: usize>(
    walks: impl IntoIterator<Item = &'a Axis>,
    divisor: fn(u64) -> Divisor,
) -> [abi::Axis; AXES] {
    let mut axes = [abi::Axis { extent: divisor(1), src_stride: 0, dst_stride: 0 }; AXES];
    for (to, walk) in axes.iter_mut().zip(walks) {
        let extent = divisor(walk.extent as u64);
        *to = abi::Axis { extent, src_stride: walk.src as i64, dst_stride: walk.dst as i64 };
    }
    axes
}

/// Returns the constructor of divisors for this arithmetic.
pub(super) fn divisor(index: Index) -> fn(u64) -> Divisor {
    match index {
        Index::Narrow => Divisor::narrow,
        Index::Wide => Divisor::wide,
    }
}

/// More elements than any tile is long.
const BEYOND: usize = 1 << 16;

/// Returns narrow arithmetic if it counts every element and spans each side from any element to any
/// other. Kernels may start at another corner than the axes do, as tiles do if the source runs
/// backwards.
pub(super) fn index(canonical: &Canonical) -> Index {
    let reach = |stride: fn(&Axis) -> isize| -> usize {
        // This cannot overflow: it is the distance of two elements of one storage.
        canonical.axes().iter().map(|axis| stride(axis).unsigned_abs() * (axis.extent - 1)).sum()
    };
    let most = canonical.len().max(reach(|axis| axis.src)).max(reach(|axis| axis.dst));
    // A tile at an edge also computes the addresses of elements beyond it, without using them.
    if most <= i32::MAX as usize - BEYOND { Index::Narrow } else { Index::Wide }
}

/// Returns narrow arithmetic if it spans a layout from any element to any other and counts every
/// index.
pub(super) fn index_of(layout: &Layout) -> Index {
    let reach = layout.storage_range().len();
    let most = layout.shape().iter().fold(reach.saturating_sub(1), |most, &extent| most.max(extent));
    if most <= i32::MAX as usize { Index::Narrow } else { Index::Wide }
}
