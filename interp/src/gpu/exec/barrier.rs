//! Barriers of a block: 16 of them. Each waits for all threads of the block, or for a number of
//! them in whole warps.
//!
//! A warp that arrives marks its lanes and continues. A warp that waits contributes its lanes'
//! predicates, if the barrier is a reduction, and stops; `block` checks which warps are there.

use super::registers::Value;
use super::warp::{Halt, Warp};
use super::{Break, Context, Fault, Flow, Issue, NEXT, Result, observe};
use crate::gpu::reason::Reason;
use crate::gpu::vocabulary::{BARRIERS, LANES};

/// The number that stands for the barrier of the block's cluster.
pub(super) const OF_CLUSTER: u32 = BARRIERS as u32;

/// A barrier that a warp waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) barrier: u32,
    /// The number of threads that it waits for; 0 means all.
    pub(super) threads: u32,
    pub(super) vote: Vote,
}

/// The result that threads get from the predicates of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vote {
    /// `.sync`: no result.
    Nothing,
    /// `.red.popc`: the number of threads whose predicate holds.
    Count,
    /// `.red.and`
    All,
    /// `.red.or`
    Any,
}

impl Vote {
    /// Computes the result from each warp's active lanes and the lanes whose predicate holds.
    pub(super) fn result(self, warps: impl Iterator<Item = (u32, u32)>) -> u32 {
        let (lanes, votes) = warps
            .fold((0, 0), |sums, (lanes, votes)| (sums.0 + lanes.count_ones(), sums.1 + (votes & lanes).count_ones()));
        match self {
            Vote::Nothing => 0,
            Vote::Count => votes,
            Vote::All => u32::from(votes == lanes),
            Vote::Any => u32::from(votes != 0),
        }
    }
}

macro_rules! waiting {
    ($($name:ident $vote:ident $aligned:literal;)*) => {$(
        pub(super) fn $name(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
            if $aligned && let Some(checker) = &mut cx.checker {
                checker.aligned(cx.warp, warp.pc - 1, issue.mask, warp.expected_with(issue.mask));
            }
            wait(warp, issue, Vote::$vote, $aligned)
        }
    )*};
}

// The warp waits once all of its lanes do: wherever they are, or for an aligned barrier at this
// instruction.
waiting! {
    sync Nothing false;
    sync_aligned Nothing true;
    count Count false;
    count_aligned Count true;
    all All false;
    all_aligned All true;
    any Any false;
    any_aligned Any true;
}

fn wait(warp: &mut Warp, issue: Issue, vote: Vote, aligned: bool) -> Flow {
    let (barrier, threads) = named(warp, issue)?;
    let Issue { ins, mask } = issue;
    if vote != Vote::Nothing {
        warp.votes |= bool::read(&warp.registers, ins.s[2]) & mask;
        warp.results.push((ins.d, mask));
    }
    let wait = Wait { barrier, threads, vote };
    if mask != warp.live {
        return warp.park(mask, Halt::Block { wait, aligned }, None);
    }
    warp.wait = Some(wait);
    Err(Break::Yield)
}

/// `bar.arrive`: the lanes arrive and do not wait.
pub(super) fn arrive(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    let (barrier, _) = named(warp, issue)?;
    warp.arrived[barrier as usize] |= issue.mask;
    if let Some(checker) = &mut cx.checker {
        observe::warp_barriers(checker, cx.warp, warp);
        if let Some(order) = checker.order() {
            order.arrive(barrier, cx.warp, issue.mask);
        }
    }
    NEXT
}

/// `barrier.cluster.arrive`. The lanes arrive and do not wait.
pub(super) fn arrive_cluster(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    let Issue { ins, mask } = issue;
    let again = mask & (warp.arrived[OF_CLUSTER as usize] | warp.passed);
    if again != 0 {
        return Err(Fault::new(again.trailing_zeros(), Reason::ClusterBarrier { again: true }).into());
    }
    warp.arrived[OF_CLUSTER as usize] |= mask;
    if let Some(checker) = cx.checker.as_mut().filter(|_| ins.access.sync.releases()) {
        observe::warp_barriers(checker, cx.warp, warp);
        if let Some(order) = checker.order() {
            order.arrive(OF_CLUSTER, cx.warp, mask);
        }
    }
    NEXT
}

/// `barrier.cluster.wait`
pub(super) fn wait_cluster(_: &mut Context, warp: &mut Warp, Issue { mask, .. }: Issue) -> Flow {
    let stray = mask & !(warp.arrived[OF_CLUSTER as usize] | warp.passed);
    if stray != 0 {
        return Err(Fault::new(stray.trailing_zeros(), Reason::ClusterBarrier { again: false }).into());
    }
    let passed = mask & warp.passed;
    warp.passed &= !passed;
    if passed == mask {
        return NEXT;
    }
    let wait = Wait { barrier: OF_CLUSTER, threads: 0, vote: Vote::Nothing };
    // The lanes that go on may be the ones that the next phase waits for.
    if passed != 0 || mask != warp.live {
        return warp.park(mask & !passed, Halt::Block { wait, aligned: false }, None);
    }
    warp.wait = Some(wait);
    Err(Break::Yield)
}

/// The barrier and its number of threads, which must be the same in all lanes.
fn named(warp: &Warp, Issue { ins, mask }: Issue) -> Result<(u32, u32)> {
    let lane = mask.trailing_zeros();
    let [numbers, counts] = [ins.s[0], ins.s[1]].map(|slot| u32::read(&warp.registers, slot));
    let (barrier, threads) = (numbers[lane as usize], counts[lane as usize]);
    let differs = |other: usize| mask >> other & 1 == 1 && (numbers[other], counts[other]) != (barrier, threads);
    if let Some(other) = (0..LANES).find(|&other| differs(other)) {
        let (lanes, barriers) = ([lane, other as u32], [barrier, numbers[other]]);
        return Err(Fault::new(lane, Reason::MixedBarrier { lanes, barriers }));
    }
    if barrier >= BARRIERS as u32 || threads % LANES as u32 != 0 {
        return Err(Fault::new(lane, Reason::BadBarrier { barrier, threads }));
    }
    Ok((barrier, threads))
}
