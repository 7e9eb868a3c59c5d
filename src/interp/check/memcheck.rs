//! memcheck: accesses that cannot be done.
//!
//! What is wrong with them is found where accesses are checked in any case (`exec/memory.rs`). Without memcheck it stops the
//! launch; with it, it is a finding, the thread's access is left out, a load gives 0, and the thread goes on, so that one
//! launch shows all that is wrong. What follows from a 0 where there should be a value may be found too, later.

use super::{Check, Checker, What};
use crate::interp::reason::Reason;

impl Checker {
    /// Takes note of an access that cannot be done; false where that is not to be looked for.
    #[cold]
    pub(crate) fn bad_access(&mut self, warp: u32, lane: u32, pc: u32, reason: &Reason) -> bool {
        if !self.checks.contains(Check::Memcheck) {
            return false;
        }
        self.log.add(self.who(warp, lane, pc), What::Fault(Check::Memcheck, reason.clone()));
        true
    }
}
