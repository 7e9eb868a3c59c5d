//! What instructions compute: functions of plain values, one lane's worth. Where the standard library has the function the
//! table names that one; these are the rest, and where PTX differs from the obvious Rust the comment says so.
//!
//! All are total: a lane whose guard is off is computed like the others and its result dropped.

pub(super) mod approx;
pub(super) mod compare;
pub(super) mod convert;
pub(super) mod float;
pub(super) mod integer;
pub(super) mod native;
pub(super) mod packed;
