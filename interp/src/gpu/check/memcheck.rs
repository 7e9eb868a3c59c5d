//! memcheck finds accesses that are not possible.
//!
//! `exec/memory.rs` checks every access in any case. Without memcheck, a bad access stops the
//! launch. With memcheck, it becomes a finding: the thread skips the access, a load returns 0, and
//! the thread continues, so that one launch shows every error. A 0 in place of a real value may
//! cause further findings later.

use super::{Check, Checker, What};
use crate::gpu::reason::Reason;

impl Checker {
    /// Records an access that is not possible; returns false if memcheck is off.
    #[cold]
    pub(crate) fn bad_access(&mut self, warp: u32, lane: u32, pc: u32, reason: &Reason) -> bool {
        if !self.checks.contains(Check::Memcheck) {
            return false;
        }
        self.log.add(self.who(warp, lane, pc), What::Fault(Check::Memcheck, reason.clone()));
        true
    }
}
