//! `mbarrier`: barriers in shared memory, at which threads arrive without waiting.
//!
//! Each is an atomic on the barrier's 64 bits. A thread that arrives gets the bits from before,
//! from which it later knows whether the phase has ended; a thread that waits looks again and
//! again, and lets the other warps run in between.

use super::warp::Warp;
use super::{Context, Flow, Issue, atomic, bulk};
use crate::gpu::semantics::arrivals;

/// Adds the arrivals in the second register and the bytes in the third.
pub(super) fn arrive(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    atomic::apply::<u64>(cx, warp, issue, arrivals::arrive)
}

/// Does the same for threads that no later phase expects.
pub(super) fn drop_out(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    atomic::apply::<u64>(cx, warp, issue, arrivals::drop_out)
}

/// Looks at a barrier, where copies in bulk may end.
pub(super) fn look(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    bulk::land(cx, warp, issue);
    atomic::apply::<u64>(cx, warp, issue, |bits, _, _| bits)
}
