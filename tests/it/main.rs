//! Tests that need no device: one binary, one module a subject.

mod architecture;
mod build_script;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "interp")]
mod examples;
mod ptx;
