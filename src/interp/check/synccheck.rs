//! synccheck: barriers that cannot be passed, or that are used as they must not be.
//!
//! A deadlock, and a barrier that names what there is not, ends the block: the others go on. A use that hardware since Volta
//! happens to survive, where each thread arrives for itself, is told of and goes on.

use super::{Check, Checker, What};
use crate::interp::reason::Reason;

impl Checker {
    /// Takes note of why a block cannot go on; false where that is not synccheck's, or is not to be looked for.
    pub(crate) fn stuck(&mut self, warp: u32, lane: u32, pc: u32, reason: &Reason) -> bool {
        let barrier = matches!(
            reason,
            Reason::DivergentBarrier { .. }
                | Reason::Deadlock { .. }
                | Reason::BadBarrier { .. }
                | Reason::MixedBarrier { .. }
        );
        if !barrier || !self.checks.contains(Check::Synccheck) {
            return false;
        }
        self.log.add(self.who(warp, lane, pc), What::Fault(Check::Synccheck, reason.clone()));
        true
    }

    /// Lanes `arrived` execute an aligned barrier, which all of `expected` should.
    pub(crate) fn aligned_barrier(&mut self, warp: u32, pc: u32, arrived: u32, expected: u32) {
        if arrived != expected && self.checks.contains(Check::Synccheck) {
            let what = What::Unaligned { arrived, absent: expected & !arrived };
            self.log.add(self.who(warp, arrived.trailing_zeros(), pc), what);
        }
    }

    /// Lanes `executing` of a warp synchronise with those of `members`, of which they must be.
    pub(crate) fn members(&mut self, warp: u32, pc: u32, executing: u32, members: u32) {
        let outside = executing & !members;
        if outside != 0 && self.checks.contains(Check::Synccheck) {
            self.log.add(self.who(warp, outside.trailing_zeros(), pc), What::NoMember { members });
        }
    }
}
