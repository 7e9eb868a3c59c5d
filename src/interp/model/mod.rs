//! What the memory system does with the addresses of a warp: the counters that the lessons show.
//!
//! The rules are Nsight Compute's for compute capability 7.0 and later, checked against an H100.

pub mod atomics;
pub mod banks;
pub mod coalesce;
