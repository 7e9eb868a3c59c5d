//! Computes instructions: functions of plain values, for one lane. If the standard library has the
//! function, the table names that one; these are the others. Where PTX differs from the obvious
//! Rust, the comment says so.
//!
//! All functions are total: a lane whose guard is off is computed like the others, and its result
//! is dropped.

pub(super) mod approx;
pub(crate) mod arrivals;
pub(super) mod bytes;
pub(super) mod compare;
pub(super) mod convert;
pub(super) mod float;
pub(super) mod integer;
pub(super) mod native;
pub(super) mod packed;
pub(super) mod tensor;
