//! What is written down of each access before it is done: how much of the memory system it takes; and what the checkers are
//! shown, where there are any.

use super::Context;
use super::lanes::each;
use super::memory::{self, Addresses};
use super::registers::{FULL, LANES};
use super::warp::Warp;
use crate::interp::check;
use crate::interp::code::Ins;
use crate::interp::mem::Allocation;
use crate::interp::model::banks;
use crate::interp::model::coalesce::{SECTOR_BYTES, sectors};
use crate::interp::stop::AccessKind;

/// An access to global memory by the lanes of `mask`; the others have a neighbour's address.
#[inline(always)]
pub(super) fn global(cx: &mut Context, ins: &Ins, mask: u32, addresses: &Addresses) {
    let tally = &mut cx.tallies[ins.site as usize];
    tally.lanes += u64::from(mask.count_ones());
    tally.global.instructions += 1;
    tally.global.requests += 1;
    tally.global.sectors += u64::from(distinct_sectors(addresses, ins.access.bytes()));
}

/// An access to shared memory by the lanes of `mask`.
#[inline(always)]
pub(super) fn shared(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32, offsets: &Addresses, kind: AccessKind) {
    let access = match kind {
        AccessKind::Load => banks::Access::Load,
        AccessKind::Store => banks::Access::Store,
    };
    let within = each(|lane| offsets[lane] as u32);
    let passes = warp.patterns.wavefronts(warp.pc - 1, &within, mask, ins.access.bytes(), access);
    let tally = &mut cx.tallies[ins.site as usize];
    tally.lanes += u64::from(mask.count_ones());
    tally.shared.instructions += 1;
    tally.shared.wavefronts += u64::from(passes.taken);
    tally.shared.bank_conflicts += u64::from(passes.taken - passes.ideal);
}

/// Shows the checkers an access to an allocation, at these offsets.
#[inline(always)]
pub(super) fn check_global(
    cx: &mut Context,
    warp: &Warp,
    ins: &Ins,
    mask: u32,
    allocation: &Allocation,
    offsets: &Addresses,
    kind: AccessKind,
) {
    if let Some(checker) = &mut cx.checker {
        let access = access(cx.warp, warp, ins, mask, offsets, kind);
        let known = cx.global.knows(allocation);
        checker.global(&access, allocation, known, |lane| memory::changes(allocation, warp, ins, mask, offsets, lane));
    }
}

/// Shows the checkers an access to shared memory.
#[inline(always)]
pub(super) fn check_shared(cx: &mut Context, warp: &Warp, ins: &Ins, mask: u32, offsets: &Addresses, kind: AccessKind) {
    if let Some(checker) = &mut cx.checker {
        let access = access(cx.warp, warp, ins, mask, offsets, kind);
        checker.shared(&access, |lane| memory::changes(cx.shared, warp, ins, mask, offsets, lane));
    }
}

/// Shows the checkers an access to local memory.
#[inline(always)]
pub(super) fn check_local(cx: &mut Context, warp: &Warp, ins: &Ins, mask: u32, offsets: &Addresses, kind: AccessKind) {
    if let Some(checker) = &mut cx.checker {
        checker.local(&access(cx.warp, warp, ins, mask, offsets, kind), cx.code.local_stride());
    }
}

/// A fence, or an access that is one too: what the warp did before is before what it does next, for whoever looks.
pub(super) fn fence(cx: &mut Context, warp: &mut Warp) {
    if let Some(checker) = &mut cx.checker {
        checker.fence(cx.warp, warp.clock);
    }
    warp.meet(0);
}

fn access<'a>(
    index: u32,
    warp: &'a Warp,
    ins: &Ins,
    mask: u32,
    offsets: &'a Addresses,
    kind: AccessKind,
) -> check::Access<'a> {
    let (bytes, strong) = (ins.access.bytes(), ins.access.strong);
    let (met, clock) = (&warp.met, warp.clock);
    check::Access { warp: index, pc: warp.pc - 1, mask, offsets, bytes, kind, strong, met, clock }
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
