//! Describes where the thresholds of a device's plans come from, for people and in JSON.

use serde_json::{Value, json};
use warpstride::device::TuningFile;
use warpstride::driver::DeviceInfo;
use warpstride::ops::Target;

use super::output::Output;

/// The policy of a device.
pub(super) struct Policy {
    pub(super) text: String,
    pub(super) json: Value,
}

/// Describes a device's policy, and notes why the user's file is not part of it.
pub(super) fn of(info: &DeviceInfo, file: &TuningFile, output: &Output) -> Policy {
    let policy = Target::of_info(info, file.row()).policy();
    let path = file.path().map(|path| path.display().to_string());
    output.note(file.note().unwrap_or_default());
    let text = match &path {
        Some(path) => format!("{policy}, from {path}"),
        None => policy.to_string(),
    };
    let json = json!({ "from": policy.name(), "text": policy.to_string(), "file": path, "note": file.note() });
    Policy { text, json }
}
