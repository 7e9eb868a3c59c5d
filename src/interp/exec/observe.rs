//! What is written down of each access before it is done: how much of the memory system it takes.

use super::Context;
use super::lanes::each;
use super::memory::Addresses;
use super::registers::{FULL, LANES};
use super::warp::Warp;
use crate::interp::code::Ins;
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
