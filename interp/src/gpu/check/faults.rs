//! memcheck finds accesses that are not possible, and synccheck finds barriers that cannot
//! complete, or that are used wrongly.
//!
//! `exec/memory.rs` checks every access in any case. Without memcheck, a bad access stops the
//! launch. With memcheck, it becomes a finding: the thread skips the access, a load returns 0, and
//! the thread continues, so that one launch shows every error. A 0 in place of a real value may
//! cause further findings later.
//!
//! A deadlock, or a barrier with an invalid number or count, ends its block; the other blocks
//! continue. Some wrong uses happen to work on hardware since Volta, where each thread arrives on
//! its own: those are reported, and the block continues.

use super::{Check, Checker, Problem, What};
use crate::gpu::reason::Reason;

impl Checker {
    /// Records what would stop the launch; returns false if this checker is off.
    #[cold]
    pub(crate) fn fault(&mut self, check: Check, warp: u32, lane: u32, pc: u32, reason: &Reason) -> bool {
        let is_on = self.checks.contains(check);
        if is_on {
            self.log.add(self.who(warp, lane, pc), What::Named(check, Problem::Fault(reason.clone())));
        }
        is_on
    }

    /// Records why a block cannot continue; returns false if synccheck is off or the reason is not
    /// a barrier.
    pub(crate) fn stuck(&mut self, warp: u32, lane: u32, pc: u32, reason: &Reason) -> bool {
        let barrier = matches!(
            reason,
            Reason::DivergentBarrier { .. }
                | Reason::Deadlock { .. }
                | Reason::BadBarrier { .. }
                | Reason::MixedBarrier { .. }
                | Reason::ClusterBarrier { .. }
        );
        barrier && self.fault(Check::Synccheck, warp, lane, pc, reason)
    }

    /// Checks that the lanes at an aligned barrier or `ldmatrix`, `arrived`, are all of `expected`.
    pub(crate) fn aligned(&mut self, warp: u32, pc: u32, arrived: u32, expected: u32) {
        if arrived != expected && self.checks.contains(Check::Synccheck) {
            let problem = Problem::Unaligned { arrived, absent: expected & !arrived };
            self.log.add(self.who(warp, arrived.trailing_zeros(), pc), What::Named(Check::Synccheck, problem));
        }
    }

    /// Checks that the lanes `executing`, which synchronise with those of `members`, belong to
    /// `members`.
    pub(crate) fn members(&mut self, warp: u32, pc: u32, executing: u32, members: u32) {
        let outside = executing & !members;
        if outside != 0 && self.checks.contains(Check::Synccheck) {
            let what = What::Named(Check::Synccheck, Problem::NoMember { members });
            self.log.add(self.who(warp, outside.trailing_zeros(), pc), what);
        }
    }
}
