//! Tests that need no device: one binary, one module a subject.

mod architecture;
