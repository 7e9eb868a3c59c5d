//! The clusters of blocks of launches: the shapes that are possible.

use std::ffi::c_uint;

use warpstride::error::counted;
use warpstride::interp::launch_shape::LaunchShape;

use crate::code::{Failure, Outcome, code};
use crate::module::Function;

/// The architecture from which on there are clusters.
const CLUSTERS: u32 = 90;
/// The most blocks of a cluster on every GPU that has clusters, and on this one.
pub(super) const PORTABLE: u64 = 8;
pub(super) const LARGEST: u64 = 16;

/// Refuses to use clusters on a model that has none.
pub(super) fn check_model(function: &Function) -> Outcome {
    if function.gpu()?.model.architecture < CLUSTERS {
        return Err(Failure::unsupported("the model of GPU has no clusters of blocks; h100 has them"));
    }
    Ok(())
}

/// Returns the most blocks of a cluster of a kernel's launches.
pub(super) fn most(function: &Function) -> u64 {
    let possible = if function.allows_non_portable() { LARGEST } else { PORTABLE };
    function.kernel.max_cluster().map_or(possible, |own| own.min(possible))
}

/// Refuses clusters of a launch that are not possible; `given` is the shape that the launch gives.
pub(super) fn check(function: &Function, shape: &LaunchShape, given: Option<[c_uint; 3]>) -> Outcome {
    let (own, name) = (function.kernel.cluster(), function.kernel.name());
    let refused = |why: String| Err(Failure::new(code::INVALID_CLUSTER_SIZE, why));
    let Some(cluster) = given.map(|extents| extents.map(u64::from)).or(own) else {
        if function.kernel.asks_for_clusters() {
            return refused(format!("kernel {name:?} asks for clusters without a shape; give the launch a shape"));
        }
        return Ok(());
    };
    if cluster.contains(&0) || shape.grid.iter().zip(cluster).any(|(grid, extent)| u64::from(*grid) % extent != 0) {
        let grid = shape.grid;
        return refused(format!(
            "a grid of {grid:?} blocks does not consist of clusters of {cluster:?}; use a multiple"
        ));
    }
    if let Some(own) = own.filter(|&own| own != cluster) {
        return refused(format!(
            "a launch of kernel {name:?} asks for clusters of {cluster:?} blocks, and the kernel was compiled for those \
             of {own:?}; launch it without a shape of clusters"
        ));
    }
    let blocks = cluster.iter().fold(1_u64, |blocks, &extent| blocks.saturating_mul(extent));
    if blocks > most(function) {
        return refused(format!(
            "a launch of kernel {name:?} has clusters of {}, and at most {} are possible; clusters of up to {LARGEST} need \
             CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, and a kernel whose `.maxclusterrank` allows them",
            counted(blocks, "block"),
            most(function)
        ));
    }
    if blocks > 1 { check_model(function) } else { Ok(()) }
}
