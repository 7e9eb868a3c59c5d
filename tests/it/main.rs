//! Tests that need no device: one binary, one module a subject.

mod architecture;
mod build_script;
#[cfg(feature = "interp")]
mod interp;
mod ptx;
