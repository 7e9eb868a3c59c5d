//! synccheck finds barriers that cannot complete, or that are used wrongly.
//!
//! A deadlock, or a barrier with an invalid number or count, ends its block; the other blocks
//! continue. Some wrong uses happen to work on hardware since Volta, where each thread arrives on
//! its own: those are reported, and the block continues.

use super::{Check, Checker, What};
use crate::gpu::reason::Reason;

impl Checker {
    /// Records why a block cannot continue; returns false if synccheck is off or the reason is not
    /// a barrier.
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

    /// Checks that the lanes at an aligned barrier or `ldmatrix`, `arrived`, are all of `expected`.
    pub(crate) fn aligned(&mut self, warp: u32, pc: u32, arrived: u32, expected: u32) {
        if arrived != expected && self.checks.contains(Check::Synccheck) {
            let what = What::Unaligned { arrived, absent: expected & !arrived };
            self.log.add(self.who(warp, arrived.trailing_zeros(), pc), what);
        }
    }

    /// Checks that the lanes `executing`, which synchronise with those of `members`, belong to
    /// `members`.
    pub(crate) fn members(&mut self, warp: u32, pc: u32, executing: u32, members: u32) {
        let outside = executing & !members;
        if outside != 0 && self.checks.contains(Check::Synccheck) {
            self.log.add(self.who(warp, outside.trailing_zeros(), pc), What::NoMember { members });
        }
    }
}
