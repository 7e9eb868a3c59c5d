//! Tests that need no device: one binary, one module a subject.

mod architecture;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "interp")]
mod examples;
