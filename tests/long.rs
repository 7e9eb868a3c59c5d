//! The settings that tests take from where they run: their short or long form, the tools that are
//! installed, and how long they wait.
//!
//! `cargo test` and `.ci/run` run the short forms, `WARPSTRIDE_LONG=1 cargo test` and `.ci/full`
//! run the long ones.
//!
//! Test binaries share this file, and with few features none uses all of it.

#![allow(dead_code)]

use std::time::{Duration, Instant};

/// The variable runs the long forms where it is `1`.
pub(crate) const LONG: &str = "WARPSTRIDE_LONG";

/// The variable says that every tool is installed where it is `required`, as in `.ci/run` and
/// `.ci/full`.
pub(crate) const TOOLS: &str = "WARPSTRIDE_TOOLS";

/// The time that a test waits for what must happen. A busy machine needs seconds for what takes
/// milliseconds elsewhere, so only what never happens takes as long as this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Returns whether tests run their long form.
pub(crate) fn is_long() -> bool {
    std::env::var_os(LONG).is_some_and(|value| value == "1")
}

/// Returns `short` in the short form, and `long` in the long one.
pub(crate) fn short_or_long<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

/// Says that a tool is missing, and what installs it. A test that finds no tool calls this and
/// passes; it fails where every tool is required.
#[track_caller]
#[allow(dead_code, reason = "some tests need no tools")]
pub(crate) fn missing(tool: &str) {
    let line = format!("{tool} is not installed, and nothing is tested with it; scripts/tools installs it");
    let is_required = std::env::var_os(TOOLS).is_some_and(|value| value == "required");
    assert!(!is_required, "{line}");
    eprintln!("{line}");
}

/// Waits until a condition holds, and fails the test after [`PATIENCE`]. `what` names the
/// condition.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
