//! The model of the memory system: the counters that the addresses of a warp cause.
//!
//! The rules are Nsight Compute's for compute capability 7.0 and later, checked against an H100.

pub(crate) mod atomics;
pub(crate) mod banks;
pub(crate) mod coalesce;
