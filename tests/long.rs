//! Short and long forms of tests: `cargo test` runs the short ones, `WARPSTRIDE_LONG=1 cargo test`
//! and `.ci/run` the long ones.
//!
//! Test binaries share this file, and with few features none uses all of it.

#![allow(dead_code)]

/// What a variable must be for long forms: `1`.
pub(crate) const LONG: &str = "WARPSTRIDE_LONG";

/// Whether tests run their long form.
pub(crate) fn is_long() -> bool {
    std::env::var_os(LONG).is_some_and(|value| value == "1")
}

/// How many of something: `short` of them, or `long`.
pub(crate) fn short_or_long<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}
