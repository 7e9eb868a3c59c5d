//! The special registers: their values, or the reason why the software GPU does not have one.

use super::Refusal;
use crate::gpu::code::PresetValue;

/// The value of a special register that stays constant while a block runs, in a kernel whose
/// clusters have this shape. A kernel without clusters runs as if each block were its own.
pub(super) fn special(name: &str, cluster: Option<[u8; 3]>) -> Option<PresetValue> {
    let mask = |below, equal, above| PresetValue::LaneMask { below, equal, above };
    let shape = cluster.unwrap_or([1; 3]);
    Some(match name {
        "%laneid" => PresetValue::Lane,
        "%warpid" => PresetValue::Warp,
        "%nwarpid" => PresetValue::Warps,
        "WARP_SZ" => PresetValue::Bits(32),
        // The software GPU has one multiprocessor and one launch, which does not belong to a graph.
        "%smid" | "%gridid" | "%current_graph_exec" => PresetValue::Bits(0),
        "%nsmid" => PresetValue::Bits(1),
        "%is_explicit_cluster" => PresetValue::Bits(u64::from(cluster.is_some())),
        "%cluster_ctarank" => PresetValue::ClusterCtarank(shape),
        "%cluster_nctarank" => PresetValue::Bits(shape.into_iter().map(u64::from).product()),
        "%dynamic_smem_size" => PresetValue::SharedBytes { fixed: false },
        "%total_smem_size" => PresetValue::SharedBytes { fixed: true },
        "%envreg1" => PresetValue::Workspace { high: true },
        "%envreg2" => PresetValue::Workspace { high: false },
        "%lanemask_lt" => mask(true, false, false),
        "%lanemask_le" => mask(true, true, false),
        "%lanemask_eq" => mask(false, true, false),
        "%lanemask_ge" => mask(false, true, true),
        "%lanemask_gt" => mask(false, false, true),
        _ => {
            let (register, axis) = name.split_once('.')?;
            let known = VECTORS.iter().any(|(vector, _)| *vector == register);
            // The fourth element of these vectors is 0.
            if known && axis == "w" {
                return Some(PresetValue::Bits(0));
            }
            let axis = ["x", "y", "z"].iter().position(|known| *known == axis)?;
            let (number, extent) = (axis as u8, shape[axis]);
            match register {
                "%tid" => PresetValue::Tid(number),
                "%ntid" => PresetValue::Ntid(number),
                "%ctaid" => PresetValue::Ctaid(number),
                "%nctaid" => PresetValue::Nctaid(number),
                "%clusterid" => PresetValue::Clusterid(number, extent),
                "%nclusterid" => PresetValue::Nclusterid(number, extent),
                "%cluster_ctaid" => PresetValue::ClusterCtaid(number, extent),
                "%cluster_nctaid" => PresetValue::Bits(u64::from(extent)),
                _ => return None,
            }
        }
    })
}

/// The special registers that are vectors, and the names of their elements.
pub(super) const VECTORS: [(&str, [&str; 4]); 8] = [
    ("%tid", ["%tid.x", "%tid.y", "%tid.z", "%tid.w"]),
    ("%ntid", ["%ntid.x", "%ntid.y", "%ntid.z", "%ntid.w"]),
    ("%ctaid", ["%ctaid.x", "%ctaid.y", "%ctaid.z", "%ctaid.w"]),
    ("%nctaid", ["%nctaid.x", "%nctaid.y", "%nctaid.z", "%nctaid.w"]),
    ("%clusterid", ["%clusterid.x", "%clusterid.y", "%clusterid.z", "%clusterid.w"]),
    ("%nclusterid", ["%nclusterid.x", "%nclusterid.y", "%nclusterid.z", "%nclusterid.w"]),
    ("%cluster_ctaid", ["%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_ctaid.w"]),
    ("%cluster_nctaid", ["%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z", "%cluster_nctaid.w"]),
];

/// The reason why a special register has no value here.
pub(super) fn absent(name: &str) -> Option<Refusal> {
    let (meaning, rest) = [
        ("%envreg", "a value that the driver sets for the program"),
        ("%pm", "a performance counter of a multiprocessor"),
        ("%reserved_smem_offset_", "a bound of the shared memory that the system keeps"),
        ("%aggr_smem_size", "the shared memory that the system takes with the block's"),
    ]
    .into_iter()
    .find_map(|(stem, meaning)| Some((meaning, name.strip_prefix(stem)?)))?;
    let is_one = rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()) || name.starts_with("%reserved");
    is_one.then(|| format!("it reads the special register {name}, {meaning}, which the software GPU does not have"))
}
