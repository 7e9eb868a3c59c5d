//! Records each access before it happens: its cost in the memory system. Also passes the access to
//! the checkers, if there are any.

use super::block::cluster::Peer;
use super::memory::{Addresses, Change};
use super::tally::Sample;
use super::warp::Warp;
use super::{Context, Issue};
use crate::counters::{SECTOR_BYTES, SharedCounters};
use crate::gpu::check::{self, Checker};
use crate::gpu::code::{self, Code, Ins};
use crate::gpu::isa::Op;
use crate::gpu::mem::{Allocation, Touched, Ways};
use crate::gpu::model::atomics::{self, Cost, Update};
use crate::gpu::model::banks::Wavefronts;
use crate::gpu::model::coalesce::{LINE_BYTES, distinct, ideal_sectors};
use crate::gpu::vocabulary::{AccessKind, FULL, LANES, each, lanes_of};

/// The work of marking bytes that lie side by side as touched; lanes elsewhere take a quarter each.
const MARKING_WORK: u64 = 2;

/// Records the execution of an instruction that accesses memory by its lanes: once,
/// whatever spaces its addresses lead to.
#[inline(always)]
pub(super) fn execution(cx: &mut Context, warp: &mut Warp, issue: Issue) {
    let Issue { ins, mask } = issue;
    let executed = &mut warp.executed[ins.site as usize];
    executed.times += 1;
    executed.lanes += u64::from(mask.count_ones());
    if let Some(checker) = &mut cx.checker {
        warp.work += checker.access_work(mask.count_ones(), ins.access);
    }
}

/// Records an access to global memory by its lanes; the other lanes have a neighbour's
/// address.
#[inline(always)]
pub(super) fn global(cx: &mut Context, warp: &Warp, issue: Issue, addresses: &Addresses) {
    let Issue { ins, mask } = issue;
    let bytes = ins.access.bytes();
    let touched = match cx.code.sites[ins.site as usize].kind {
        AccessKind::Atomic | AccessKind::Reduction => atomics::sectors(addresses, mask),
        AccessKind::Load | AccessKind::Store => touched_units::<SECTOR_BYTES>(addresses, bytes),
    };
    cx.tallies[ins.site as usize].cache_lines += u64::from(touched_units::<LINE_BYTES>(addresses, bytes));
    request(cx, warp, issue, addresses, [touched, ideal_sectors(touched, mask.count_ones(), bytes)]);
}

/// Records a load of `sizes` bytes from global memory by its lanes, each within a sector;
/// the other lanes have a neighbour's address.
pub(super) fn global_parts(cx: &mut Context, warp: &Warp, issue: Issue, addresses: &Addresses, sizes: &[u32; LANES]) {
    let Issue { ins, mask } = issue;
    let of_lanes = || lanes_of(mask).map(|lane| sizes[lane]);
    let touched = touched_units::<SECTOR_BYTES>(addresses, 1);
    cx.tallies[ins.site as usize].cache_lines += u64::from(touched_units::<LINE_BYTES>(addresses, 1));
    let ideal = ideal_sectors(touched, 1, of_lanes().sum());
    // The drawing of the access has one size for all lanes.
    let count = of_lanes().max().unwrap_or_default() as u8;
    let largest = Ins { access: code::Access { width: 1, count, ..ins.access }, ..*ins };
    request(cx, warp, Issue { ins: &largest, mask }, addresses, [touched, ideal]);
}

/// Counts a request that touches and would ideally touch these numbers of sectors.
#[inline(always)]
fn request(cx: &mut Context, warp: &Warp, issue: Issue, addresses: &Addresses, [touched, ideal]: [u32; 2]) {
    let ins = issue.ins;
    let tally = &mut cx.tallies[ins.site as usize];
    // Nsight Compute has an instruction of another name for it.
    tally.counted.global.instructions += u64::from(ins.op != Op::CopyRead);
    tally.counted.global.requests += 1;
    tally.counted.global.sectors += u64::from(touched);
    tally.counted.ideal_sectors += u64::from(ideal);
    tally.worst_global.note(touched, touched - ideal, sample(cx.block, cx.warp, warp, issue, addresses));
}

/// Records the bytes of an allocation that its lanes access, if they are counted.
#[inline(always)]
pub(super) fn touched(cx: &Context, warp: &mut Warp, issue: Issue, allocation: &Allocation, addresses: &Addresses) {
    if let Some(touched) = cx.touched {
        let Issue { ins, mask } = issue;
        let kind = cx.code.sites[ins.site as usize].kind;
        let ways = Ways { loads: kind.reads(), stores: kind.writes(), is_strong: ins.access.sync.is_strong() };
        warp.work += mark(touched, ways, ins.access.bytes(), mask, allocation, addresses);
    }
}

/// Marks bytes as touched, and returns the work of that.
#[cold]
#[inline(never)]
fn mark(touched: &Touched, ways: Ways, bytes: u32, mask: u32, allocation: &Allocation, addresses: &Addresses) -> u64 {
    let bytes = u64::from(bytes);
    let side_by_side = mask == FULL && (1..LANES).all(|lane| addresses[lane] == addresses[lane - 1] + bytes);
    if side_by_side {
        touched.mark(allocation, ways, addresses[0], LANES as u64 * bytes);
        return MARKING_WORK;
    }
    lanes_of(mask).for_each(|lane| touched.mark(allocation, ways, addresses[lane], bytes));
    MARKING_WORK + u64::from(mask.count_ones()) / 4
}

/// Records an access to shared memory by its lanes.
#[inline(always)]
pub(super) fn shared(cx: &mut Context, warp: &mut Warp, issue: Issue, offsets: &Addresses, kind: AccessKind) {
    let Issue { ins, mask } = issue;
    // Another unit serves barriers, and no counter of shared memory has them, as an H200 showed.
    if ins.op.is_of_mbarrier() {
        return;
    }
    let within = each(|lane| offsets[lane] as u32);
    let bytes = ins.access.bytes();
    let update = if kind.is_update() { cx.code.sites[ins.site as usize].update } else { Update::Native };
    let Cost { turns, updates: passes, loads } = if kind.is_update() {
        atomics::shared(&within, mask, bytes, update)
    } else {
        let updates = warp.patterns.wavefronts(warp.pc - 1, &within, mask, bytes, kind);
        Cost { turns: 1, updates, loads: Wavefronts::default() }
    };
    let tally = &mut cx.tallies[ins.site as usize];
    let counted = |passes: Wavefronts| SharedCounters {
        instructions: u64::from(turns),
        wavefronts: u64::from(passes.taken),
        bank_conflicts: u64::from(passes.taken - passes.ideal),
    };
    tally.counted.shared += counted(passes);
    if update == Update::Loop {
        tally.counted.loop_loads += counted(loads);
    }
    let ideal = atomics::ideal_wavefronts(passes.taken, mask.count_ones(), bytes, update);
    tally.counted.ideal_wavefronts += u64::from(ideal);
    let sample = sample(cx.block, cx.warp, warp, issue, offsets);
    tally.worst_shared.note(passes.taken, passes.taken - passes.ideal, sample);
}

/// Copies the access, in case it is the worst one.
#[inline(always)]
fn sample(block: u64, index: u32, warp: &Warp, issue: Issue, addresses: &Addresses) -> impl FnOnce() -> Sample {
    move || Sample {
        block,
        warp: index,
        execution: warp.executed[issue.ins.site as usize].times,
        bytes: issue.ins.access.bytes(),
        lanes: issue.mask,
        addresses: *addresses,
    }
}

/// Passes the checkers an access to an allocation, at these offsets.
#[inline(always)]
pub(super) fn check_global(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue,
    allocation: &Allocation,
    offsets: &Addresses,
) {
    let (code, global) = (cx.code, cx.global);
    if let Some(checker) = &mut cx.checker {
        warp_barriers(checker, cx.warp, warp);
        let access = access(code, cx.warp, warp, issue, offsets);
        let change = Change { cells: allocation, warp, issue, offsets };
        checker.global(&access, allocation, global.knows(allocation), |lane| change.differs(lane));
    }
}

/// Passes the checkers an access to shared memory, or if it is `issued` a copy that may write from
/// now on, whose end is another access.
#[inline(always)]
pub(super) fn check_shared(cx: &mut Context, warp: &mut Warp, issue: Issue, offsets: &Addresses, issued: bool) {
    let (code, cells) = (cx.code, cx.shared);
    if let Some(checker) = &mut cx.checker {
        warp_barriers(checker, cx.warp, warp);
        if issued {
            warp.work += checker.access_work(issue.mask.count_ones(), issue.ins.access);
        }
        let access = access(code, cx.warp, warp, issue, offsets);
        let change = Change { cells, warp, issue, offsets };
        checker.shared(&access, issued, |lane| change.differs(lane));
    }
}

/// Passes the checkers an access to the shared memory of another block of the cluster.
pub(super) fn check_peer(cx: &mut Context, warp: &mut Warp, issue: Issue, offsets: &Addresses, peer: &Peer) {
    let code = cx.code;
    if let Some(checker) = &mut cx.checker {
        warp_barriers(checker, cx.warp, warp);
        let access = access(code, cx.warp, warp, issue, offsets);
        let change = Change { cells: &peer.shared, warp, issue, offsets };
        peer.checked(|peer| checker.peer(&access, peer, |lane| change.differs(lane)));
    }
}

/// Passes the checkers an access to local memory, unless the kernel calls functions. Local memory
/// is then a stack whose places change their meaning, and the checkers do not follow that.
#[inline(always)]
pub(super) fn check_local(cx: &mut Context, warp: &mut Warp, issue: Issue, offsets: &Addresses) {
    let code = cx.code;
    if let Some(checker) = cx.checker.as_mut().filter(|_| code.calls.is_empty()) {
        checker.local(&access(code, cx.warp, warp, issue, offsets), code.local_stride());
    }
}

/// Tells the checkers which lanes have waited for each other within the warp since the last call.
#[inline]
pub(super) fn warp_barriers(checker: &mut Checker, index: u32, warp: &mut Warp) {
    for (lanes, all) in warp.synced.drain(..) {
        if let Some(order) = checker.order() {
            order.warp_barrier(index, lanes, all);
        }
    }
}

/// Passes the checkers a fence of its lanes.
pub(super) fn fence(cx: &mut Context, warp: &mut Warp, issue: Issue) {
    if let Some(checker) = &mut cx.checker {
        warp_barriers(checker, cx.warp, warp);
        if let Some(order) = checker.order() {
            order.fence(cx.warp, issue.mask, issue.ins.access.sync);
        }
    }
}

fn access<'a>(code: &Code, index: u32, warp: &Warp, issue: Issue, offsets: &'a Addresses) -> check::Access<'a> {
    let Issue { ins, mask } = issue;
    let (kind, bytes) = (code.sites[ins.site as usize].kind, ins.access.bytes());
    let code::Access { width, sync, .. } = ins.access;
    check::Access { warp: index, pc: warp.pc - 1, mask, offsets, bytes, width, kind, sync }
}

#[inline(always)]
fn touched_units<const UNIT: u64>(addresses: &Addresses, bytes: u32) -> u32 {
    let each_bytes = u64::from(bytes);
    let side_by_side = (1..LANES).fold(true, |side_by_side, lane| {
        side_by_side & (addresses[lane] == addresses[lane - 1].wrapping_add(each_bytes))
    });
    if side_by_side {
        let end = addresses[LANES - 1] + each_bytes - 1;
        return (end / UNIT - addresses[0] / UNIT) as u32 + 1;
    }
    distinct::<UNIT>(addresses, FULL, bytes)
}
