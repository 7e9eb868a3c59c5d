//! The rules that findings break, as names for tools: `memcheck/oob`, `racecheck/shared`.

use super::{Finding, Problem};
use crate::gpu::reason::Reason;

impl Finding {
    /// Returns the name of the rule that is broken. It is the same for every kernel and place.
    #[doc(hidden)]
    pub fn rule(&self) -> String {
        match &self.problem {
            Problem::Fault(reason) => reason.rule().into(),
            Problem::Uninitialised { space, .. } => format!("initcheck/{space}"),
            Problem::Race { space, .. } => format!("racecheck/{space}"),
            Problem::Unaligned { .. } => "synccheck/divergent".into(),
            Problem::NoMember { .. } => "synccheck/mask".into(),
        }
    }
}

impl Reason {
    /// Returns the name of the rule that a launch breaks if it stops for this reason.
    #[doc(hidden)]
    pub fn rule(&self) -> &'static str {
        match self {
            Reason::OutOfBounds(_)
            | Reason::OutsideCluster { .. }
            | Reason::EndedBlock { .. }
            | Reason::NoTensorMap { .. }
            | Reason::OtherTensor { .. }
            | Reason::TensorReduction => "memcheck/oob",
            Reason::Misaligned(_) | Reason::BulkAlignment { .. } => "memcheck/misaligned",
            Reason::ReadOnly(_) => "memcheck/read-only",
            Reason::BadFree { .. } => "memcheck/free",
            Reason::StackOverflow { .. } => "memcheck/stack",
            Reason::DivergentBarrier { .. } => "synccheck/divergent",
            Reason::Deadlock { .. } => "synccheck/deadlock",
            Reason::BadBarrier { .. } | Reason::MixedBarrier { .. } | Reason::ClusterBarrier { .. } => {
                "synccheck/barrier"
            }
            Reason::WorkLimit(_) | Reason::LaunchLimit { .. } | Reason::GridLimit { .. } => "launch/limit",
            Reason::Trap => "launch/trap",
            Reason::Assertion { .. } => "launch/assert",
            Reason::BadCall { .. } | Reason::BranchIndex { .. } => "launch/target",
            Reason::Launch(_) => "launch/arguments",
            Reason::TooManyCopies { .. } | Reason::Unsupported(_) => "launch/unsupported",
        }
    }
}
