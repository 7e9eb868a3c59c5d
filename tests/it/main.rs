//! Tests that need no device: one binary, one module a subject.

mod architecture;
mod build_script;
#[cfg(feature = "cli")]
mod cli;
mod compile_fail;
#[cfg(feature = "interp")]
mod examples;
mod layout;
mod naive;
mod plan;
mod ptx;
