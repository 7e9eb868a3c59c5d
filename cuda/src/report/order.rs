//! The accesses of streams without an order between them, which racecheck finds.

use serde_json::{Value, json};

use crate::process::process;

/// Returns the findings. The GPUs of a process share the order of their streams.
pub(super) fn json() -> Value {
    let gpu = process().ok().and_then(|process| process.gpus.first());
    let (list, more) = gpu.map(|gpu| gpu.soft.unordered()).unwrap_or_default();
    let findings: Value = list.iter().map(|found| json!({ "text": found.to_string(), "count": found.times })).collect();
    json!({ "findings": findings, "more": more })
}
