//! What is written down of each access before it is done: how much of the memory system it takes; and what the checkers are
//! shown, where there are any.

use super::Context;
use super::lanes::each;
use super::memory::{Addresses, Change};
use super::tally::Sample;
use super::warp::Warp;
use crate::counters::SharedCounters;
use crate::interp::check::{self, Checker};
use crate::interp::code::{self, Code, Ins};
use crate::interp::mem::Allocation;
use crate::interp::model::atomics::{self, Cost, Update};
use crate::interp::model::banks::{self, Wavefronts};
use crate::interp::model::coalesce::{SECTOR_BYTES, ideal_sectors, sectors};
use crate::interp::vocabulary::{AccessKind, FULL, LANES};

/// An instruction that accesses memory, executed by the lanes of `mask`: once, whatever spaces its addresses lead to.
#[inline(always)]
pub(super) fn execution(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) {
    let executed = &mut warp.executed[ins.site as usize];
    executed.times += 1;
    executed.lanes += u64::from(mask.count_ones());
    if let Some(checker) = &mut cx.checker {
        warp.work += checker.access_work(mask.count_ones(), ins.access);
    }
}

/// An access to global memory by the lanes of `mask`; the others have a neighbour's address.
#[inline(always)]
pub(super) fn global(cx: &mut Context, warp: &Warp, ins: &Ins, mask: u32, addresses: &Addresses) {
    let bytes = ins.access.bytes();
    let touched = match cx.code.sites[ins.site as usize].kind {
        AccessKind::Atomic | AccessKind::Reduction => atomics::sectors(addresses, mask),
        AccessKind::Load | AccessKind::Store => distinct_sectors(addresses, bytes),
    };
    let ideal = ideal_sectors(touched, mask.count_ones(), bytes);
    let tally = &mut cx.tallies[ins.site as usize];
    tally.global.instructions += 1;
    tally.global.requests += 1;
    tally.global.sectors += u64::from(touched);
    tally.ideal_sectors += u64::from(ideal);
    tally.worst_global.note(touched, touched - ideal, sample(cx.block, cx.warp, warp, ins, mask, addresses));
}

/// An access to shared memory by the lanes of `mask`.
#[inline(always)]
pub(super) fn shared(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32, offsets: &Addresses, kind: AccessKind) {
    let access = match kind {
        AccessKind::Load => banks::Access::Load,
        AccessKind::Store => banks::Access::Store,
        AccessKind::Atomic | AccessKind::Reduction => return shared_update(cx, warp, ins, mask, offsets),
    };
    let within = each(|lane| offsets[lane] as u32);
    let bytes = ins.access.bytes();
    let passes = warp.patterns.wavefronts(warp.pc - 1, &within, mask, bytes, access);
    let tally = &mut cx.tallies[ins.site as usize];
    tally.shared.instructions += 1;
    tally.shared.wavefronts += u64::from(passes.taken);
    tally.shared.bank_conflicts += u64::from(passes.taken - passes.ideal);
    tally.ideal_wavefronts += u64::from(banks::ideal_wavefronts(passes.taken, mask.count_ones(), bytes));
    let sample = sample(cx.block, cx.warp, warp, ins, mask, offsets);
    tally.worst_shared.note(passes.taken, passes.taken - passes.ideal, sample);
}

/// An update of shared memory by the lanes of `mask`.
fn shared_update(cx: &mut Context, warp: &Warp, ins: &Ins, mask: u32, offsets: &Addresses) {
    let within = each(|lane| offsets[lane] as u32);
    let update = cx.code.sites[ins.site as usize].update;
    let bytes = ins.access.bytes();
    let Cost { turns, updates, loads } = atomics::shared(&within, mask, bytes, update);
    let tally = &mut cx.tallies[ins.site as usize];
    let counted = |passes: Wavefronts, instructions: u32| SharedCounters {
        instructions: u64::from(instructions),
        wavefronts: u64::from(passes.taken),
        bank_conflicts: u64::from(passes.taken - passes.ideal),
    };
    tally.shared += counted(updates, turns);
    if update == Update::Loop {
        tally.loop_loads += counted(loads, turns);
    }
    tally.ideal_wavefronts += u64::from(atomics::ideal_wavefronts(updates.taken, mask.count_ones(), bytes, update));
    let sample = sample(cx.block, cx.warp, warp, ins, mask, offsets);
    tally.worst_shared.note(updates.taken, updates.taken - updates.ideal, sample);
}

/// The access, in case that it is the worst.
#[inline(always)]
fn sample(
    block: u64,
    index: u32,
    warp: &Warp,
    ins: &Ins,
    lanes: u32,
    addresses: &Addresses,
) -> impl FnOnce() -> Sample {
    move || Sample {
        block,
        warp: index,
        execution: warp.executed[ins.site as usize].times,
        bytes: ins.access.bytes(),
        lanes,
        addresses: *addresses,
    }
}

/// Shows the checkers an access to an allocation, at these offsets.
#[inline(always)]
pub(super) fn check_global(
    cx: &mut Context,
    warp: &mut Warp,
    ins: &Ins,
    mask: u32,
    allocation: &Allocation,
    offsets: &Addresses,
) {
    let (code, global) = (cx.code, cx.global);
    if let Some(checker) = &mut cx.checker {
        warp_barriers(checker, cx.warp, warp);
        let access = access(code, cx.warp, warp, ins, mask, offsets);
        let change = Change { cells: allocation, warp, ins, mask, offsets };
        checker.global(&access, allocation, global.knows(allocation), |lane| change.by(lane));
    }
}

/// Shows the checkers an access to shared memory.
#[inline(always)]
pub(super) fn check_shared(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32, offsets: &Addresses) {
    let (code, cells) = (cx.code, cx.shared);
    if let Some(checker) = &mut cx.checker {
        warp_barriers(checker, cx.warp, warp);
        let access = access(code, cx.warp, warp, ins, mask, offsets);
        let change = Change { cells, warp, ins, mask, offsets };
        checker.shared(&access, |lane| change.by(lane));
    }
}

/// Shows the checkers an access to local memory. Where functions are called it is a stack whose places change their meaning,
/// and nobody follows it.
#[inline(always)]
pub(super) fn check_local(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32, offsets: &Addresses) {
    let code = cx.code;
    if let Some(checker) = cx.checker.as_mut().filter(|_| code.calls.is_empty()) {
        checker.local(&access(code, cx.warp, warp, ins, mask, offsets), code.local_stride());
    }
}

/// Shows the checkers which lanes have waited for each other within the warp since they were last shown.
#[inline]
pub(super) fn warp_barriers(checker: &mut Checker, index: u32, warp: &mut Warp) {
    for (lanes, all) in warp.synced.drain(..) {
        checker.warp_barrier(index, lanes, all);
    }
}

/// A fence of the lanes of `mask`.
pub(super) fn fence(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) {
    if let Some(checker) = &mut cx.checker {
        warp_barriers(checker, cx.warp, warp);
        checker.fence(cx.warp, mask, ins.access.sync);
    }
}

fn access<'a>(code: &Code, index: u32, warp: &Warp, ins: &Ins, mask: u32, offsets: &'a Addresses) -> check::Access<'a> {
    let (kind, bytes) = (code.sites[ins.site as usize].kind, ins.access.bytes());
    let code::Access { width, sync, .. } = ins.access;
    check::Access { warp: index, pc: warp.pc - 1, mask, offsets, bytes, width, kind, sync }
}

#[inline(always)]
fn distinct_sectors(addresses: &Addresses, bytes: u32) -> u32 {
    let each_bytes = u64::from(bytes);
    let side_by_side = (1..LANES).fold(true, |side_by_side, lane| {
        side_by_side & (addresses[lane] == addresses[lane - 1].wrapping_add(each_bytes))
    });
    if side_by_side {
        let end = addresses[LANES - 1] + each_bytes - 1;
        return (end / SECTOR_BYTES - addresses[0] / SECTOR_BYTES) as u32 + 1;
    }
    sectors(addresses, FULL, bytes)
}
