//! Counts instruction by instruction; a launch's counters are their sums.

use crate::counters::{Counters, GlobalCounters, SharedCounters};
use crate::interp::code::Site;
use crate::interp::stop::AccessKind;

/// What one instruction that accesses memory did. A generic address may have led it to several spaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Active lanes, summed over the executions.
    pub(crate) lanes: u64,
    /// Its accesses to global memory.
    pub(crate) global: GlobalCounters,
    /// Its accesses to shared memory.
    pub(crate) shared: SharedCounters,
}

/// What all instructions did together.
pub(super) fn totals(sites: &[Site], tallies: &[Tally]) -> Counters {
    let mut total = Counters::default();
    for (site, tally) in sites.iter().zip(tallies) {
        let (global, shared) = match site.kind {
            AccessKind::Load => (&mut total.global_load, &mut total.shared_load),
            AccessKind::Store => (&mut total.global_store, &mut total.shared_store),
        };
        *global += tally.global;
        *shared += tally.shared;
    }
    total
}
