//! Names the features of PTX that the software GPU does not have, by the instructions that use
//! them.

use super::Refusal;
use crate::gpu::isa;

/// Opcodes, or their beginnings up to a dot, and the feature that they use.
const FEATURES: [(&str, &[&str]); 12] = [
    ("textures", &["tex", "tld4", "txq", "istypep"]),
    ("surfaces", &["suld", "sust", "sured", "suq"]),
    ("tensor cores", &["wgmma", "tcgen05"]),
    ("bulk copies", &["cp.async.bulk", "cp.reduce.async.bulk", "tensormap", "st.bulk", "prefetch.tensormap"]),
    ("clusters of blocks", &["st.async", "red.async", "clusterlaunchcontrol"]),
    ("memory of several GPUs", &["multimem"]),
    (
        "video instructions",
        &[
            "vadd",
            "vsub",
            "vabsdiff",
            "vmin",
            "vmax",
            "vshl",
            "vshr",
            "vmad",
            "vset",
            "vadd2",
            "vsub2",
            "vavrg2",
            "vabsdiff2",
            "vmin2",
            "vmax2",
            "vset2",
            "vadd4",
            "vsub4",
            "vavrg4",
            "vabsdiff4",
            "vmin4",
            "vmax4",
            "vset4",
        ],
    ),
    ("stack allocation", &["alloca", "stacksave", "stackrestore"]),
    ("breakpoints", &["brkpt"]),
    ("events of profilers", &["pmevent"]),
    ("a count of registers that a warp changes", &["setmaxnreg"]),
    ("indirect branches", &["brx"]),
];

/// The reason why an instruction of double precision is refused where `.target` maps it to single.
pub(super) const DEMOTED: &str =
    "it computes in single precision in place of double (`map_f64_to_f32`), which the software GPU does not have";

/// The reason why an opcode of a feature that the software GPU does not have is refused.
pub(super) fn refusal(opcode: &str) -> Option<Refusal> {
    if opcode.contains(".im2col") {
        return Some(format!("it copies in the mode im2col (`{opcode}`), which the software GPU does not have"));
    }
    let begins = |name: &&str| opcode.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let (feature, name) =
        FEATURES.iter().find_map(|(feature, names)| Some((feature, names.iter().find(|n| begins(n))?)))?;
    // The feature's name, and one modifier where that is all the name.
    let parts = name.split('.').count().max(2);
    let named: Vec<&str> = opcode.split('.').take(parts).collect();
    Some(format!("it uses {feature} (`{}`), which the software GPU does not have", named.join(".")))
}

/// The reason why an opcode that is not in the table is refused.
pub(super) fn unknown(opcode: &str) -> Refusal {
    let name = opcode.split('.').next().unwrap_or_default();
    match isa::has_instruction(name) {
        true => format!("the software GPU does not support this form of `{name}`, `{opcode}`"),
        false => format!("the software GPU does not support this instruction, `{opcode}`"),
    }
}
