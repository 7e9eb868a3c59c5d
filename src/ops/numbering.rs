//! How kernels count: blocks of a grid, the axes that they walk, and the arithmetic of indices.

use super::canonical::{Axis as Walk, Canonical};
use crate::abi::{Axis, Divisor, Index, MAX_AXES};
use crate::launch_shape::MAX_GRID_X;
use crate::layout::Layout;

/// So many blocks, numbered along x and then y. More than a grid allows are refused by the launch.
///
/// Of more than x has, y is rounded up. What the blocks beyond do, where they are not left out, is
/// the first image again, with the same values: those of tiles, stacked or not, packed axes and
/// fields, which takes storages of 4 TB.
pub(super) fn grid(blocks: u64) -> [u32; 3] {
    let x = blocks.clamp(1, u64::from(MAX_GRID_X));
    [x as u32, u32::try_from(blocks.div_ceil(x)).unwrap_or(u32::MAX), 1]
}

/// The axes as kernels walk them.
pub(super) fn axes<'a>(walks: impl IntoIterator<Item = &'a Walk>, divisor: fn(u64) -> Divisor) -> [Axis; MAX_AXES] {
    let mut axes = [Axis { extent: divisor(1), src_stride: 0, dst_stride: 0 }; MAX_AXES];
    for (to, walk) in axes.iter_mut().zip(walks) {
        let extent = divisor(walk.extent as u64);
        *to = Axis { extent, src_stride: walk.src as i64, dst_stride: walk.dst as i64 };
    }
    axes
}

/// How to divide in that arithmetic.
pub(super) fn divisor(index: Index) -> fn(u64) -> Divisor {
    match index {
        Index::Narrow => Divisor::narrow,
        Index::Wide => Divisor::wide,
    }
}

/// More elements than any tile is long.
pub(super) const BEYOND: usize = 1 << 16;

/// Narrow arithmetic where it counts every element, and reaches it on both sides from any other:
/// kernels may start their walk at another corner than the axes do, as tiles do where the source
/// runs backwards.
pub(super) fn index(canonical: &Canonical) -> Index {
    let reach = |stride: fn(&Walk) -> isize| -> usize {
        // No overflow: it is the distance of two elements of one storage.
        canonical.axes().iter().map(|axis| stride(axis).unsigned_abs() * (axis.extent - 1)).sum()
    };
    let most = canonical.len().max(reach(|axis| axis.src)).max(reach(|axis| axis.dst));
    // A tile at an edge also computes, without using them, addresses of elements beyond it.
    if most <= i32::MAX as usize - BEYOND { Index::Narrow } else { Index::Wide }
}

/// Narrow arithmetic where it reaches every element of a layout from any other, and counts every
/// index.
pub(super) fn index_of(layout: &Layout) -> Index {
    let reach = layout.storage_range().len();
    let most = layout.shape().iter().fold(reach.saturating_sub(1), |most, &extent| most.max(extent));
    if most <= i32::MAX as usize { Index::Narrow } else { Index::Wide }
}
