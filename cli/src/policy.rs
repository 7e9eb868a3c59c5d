//! Describes where the thresholds of a device's plans come from, for people and in JSON.

use serde_json::{Value, json};
use warpstride::device::TuningFile;
use warpstride::driver::DeviceInfo;
use warpstride::roofline::run;

use super::output::Output;

/// The policy of a device.
pub(super) struct Policy {
    pub(super) text: String,
    pub(super) json: Value,
}

/// Describes a device's policy, and notes why the user's file is not part of it.
pub(super) fn of(info: &DeviceInfo, file: &TuningFile, output: &Output) -> Policy {
    let policy = run::Policy::of(info, file);
    output.note(file.note().unwrap_or_default());
    let mut json = json!(policy);
    json["note"] = file.note().into();
    Policy { text: policy.to_string(), json }
}
