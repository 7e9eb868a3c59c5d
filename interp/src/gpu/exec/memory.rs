//! Loads and stores: checks, counts and accesses the addresses of 32 lanes together.
//!
//! An inactive lane borrows the address of the active lane before it, so checks, sector counts and
//! loads need no mask. A repeated address is in bounds if the first one was, touches no new sector,
//! keeps ascending addresses ascending, and its loaded value is not written to a register.

use std::sync::atomic::{self, Ordering};

use super::tally::Seen;
use super::warp::Warp;
use super::{Context, Fault, Flow, Issue, NEXT, Result, observe, peers};
use crate::gpu::check::Check;
use crate::gpu::code::{Access, Ins};
use crate::gpu::mem::cells::Cells;
use crate::gpu::mem::{Allocation, Snapshot, space};
use crate::gpu::reason::{BadAccess, Reason};
use crate::gpu::vocabulary::{AccessKind, FULL, File, LANES, Space, each, lanes_of, lanes_where};

/// The work of serving the lanes of one allocation, if the lanes of an instruction access several.
pub(super) const SCATTERED_WORK: u64 = 24;

pub(super) type Addresses = [u64; LANES];

/// An action at addresses that have been checked and counted.
pub(super) trait Action: Copy {
    /// The kind of access, which depends on the instruction.
    fn kind(self, cx: &Context, ins: &Ins) -> AccessKind {
        cx.code.sites[ins.site as usize].kind
    }
    /// Performs the action for the lanes of the instruction.
    fn act<C: Cells>(self, cells: &C, warp: &mut Warp, issue: Issue, offsets: &Addresses);
}

/// Loads from memory to registers.
#[derive(Clone, Copy)]
pub(super) struct Load;

/// Stores registers to memory.
#[derive(Clone, Copy)]
pub(super) struct Store;

macro_rules! instructions {
    ($($load:ident $store:ident $space:ident;)*) => {$(
        #[inline(always)]
        pub(super) fn $load(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
            observe::execution(cx, warp, issue);
            let flow = $space(cx, warp, issue, addresses(warp, issue), Load);
            if !issue.ins.access.sync.is_strong() {
                return flow;
            }
            if issue.ins.access.sync.acquires() {
                atomic::fence(Ordering::Acquire);
            }
            look(warp, issue);
            after_poll(flow, warp)
        }
        #[inline(always)]
        pub(super) fn $store(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
            if issue.ins.access.sync.releases() {
                atomic::fence(Ordering::Release);
            }
            observe::execution(cx, warp, issue);
            $space(cx, warp, issue, addresses(warp, issue), Store)
        }
    )*};
}

// A block's threads see each other's writes in program order, because one host thread runs them.
// Blocks on other host threads do not, hence the fences.
instructions! {
    load_generic store_generic generic;
    load_global store_global global;
    load_shared store_shared shared;
    load_local store_local local;
}

/// Notes whether a load has seen a new value.
fn look(warp: &mut Warp, Issue { ins, mask }: Issue) {
    let mut seen = Seen::NOTHING;
    for &slot in &ins.s[..usize::from(ins.access.count)] {
        let slot = usize::from(slot);
        let registers = &warp.registers;
        match ins.access.wide || ins.access.width == 8 {
            true => active(mask, |lane| seen.add(registers.b64[slot][lane])),
            false => active(mask, |lane| seen.add(u64::from(registers.b32[slot][lane]))),
        }
    }
    if warp.has_news(ins, seen) {
        warp.go_on();
    }
}

/// Counts a load that bypasses the caches as a look at memory: it may be one of many that wait for
/// a value.
pub(super) fn after_poll(flow: Flow, warp: &mut Warp) -> Flow {
    flow.and_then(|()| warp.poll())
}

/// `atom` and `red`
pub(super) fn update<A: Action>(cx: &mut Context, warp: &mut Warp, issue: Issue, act: A) -> Flow {
    observe::execution(cx, warp, issue);
    let addresses = addresses(warp, issue);
    match issue.ins.access.space {
        Some(Space::Global) => global(cx, warp, issue, addresses, act),
        Some(Space::Shared) => shared(cx, warp, issue, addresses, act),
        _ => generic(cx, warp, issue, addresses, act),
    }
}

/// `ld.param` with a computed address; parameters at known addresses are constants of the launch.
pub(super) fn load_param(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    observe::execution(cx, warp, issue);
    param(cx, warp, issue, addresses(warp, issue), Load)
}

/// `ld.const`: the data lies in global memory, but a separate cache serves it, so it does not count
/// as an access to global memory.
pub(super) fn load_const(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    observe::execution(cx, warp, issue);
    let addresses = addresses(warp, issue);
    scattered(cx, warp, issue, addresses, Load, false)
}

#[inline(always)]
pub(super) fn addresses(warp: &Warp, Issue { ins, mask }: Issue) -> Addresses {
    let slot = usize::from(ins.d);
    let mut addresses = if ins.access.wide_address {
        let base = warp.registers.b64[slot];
        each(|lane| base[lane].wrapping_add(i64::from(ins.imm) as u64))
    } else {
        let base = warp.registers.b32[slot];
        each(|lane| u64::from(base[lane].wrapping_add(ins.imm as u32)))
    };
    lend(&mut addresses, mask);
    addresses
}

/// Gives each inactive lane the address of the active lane before it, or of the first active lane.
#[inline(always)]
pub(super) fn lend(addresses: &mut Addresses, mask: u32) {
    if mask == FULL {
        return;
    }
    let mut last = addresses[mask.trailing_zeros() as usize % LANES];
    for (lane, address) in addresses.iter_mut().enumerate() {
        if mask >> lane & 1 == 1 {
            last = *address;
        } else {
            *address = last;
        }
    }
}

/// Accesses an address without a state space, which is nearly always global.
#[inline(always)]
pub(super) fn generic<A: Action>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue,
    addresses: Addresses,
    act: A,
) -> Flow {
    let lowest = addresses.iter().fold(u64::MAX, |lowest, &address| lowest.min(address));
    if space::is_beyond_windows(lowest) {
        global(cx, warp, issue, addresses, act)
    } else {
        windows(cx, warp, issue, addresses, act)
    }
}

/// Accesses generic addresses of which some lie in windows: each space's lanes separately, as the
/// hardware does.
fn windows<A: Action>(cx: &mut Context, warp: &mut Warp, issue: Issue, addresses: Addresses, act: A) -> Flow {
    let mut rest = issue.mask;
    while rest != 0 {
        let base = space::window(addresses[rest.trailing_zeros() as usize]);
        let lanes = lanes_where(rest, |lane| space::window(addresses[lane]) == base);
        let mut within = each(|lane| addresses[lane].wrapping_sub(base));
        lend(&mut within, lanes);
        let issue = Issue { mask: lanes, ..issue };
        match base {
            space::SHARED => peers::shared(cx, warp, issue, within, act),
            space::LOCAL => local(cx, warp, issue, within, act),
            space::PARAM => param(cx, warp, issue, within, act),
            _ => global(cx, warp, issue, within, act),
        }?;
        rest &= !lanes;
    }
    NEXT
}

#[inline(always)]
pub(super) fn global<A: Action>(cx: &mut Context, warp: &mut Warp, issue: Issue, addresses: Addresses, act: A) -> Flow {
    let reads = act.kind(cx, issue.ins) == AccessKind::Load;
    let fits = |live: &&Allocation| {
        // `scattered` looks up the chunks of a heap.
        all_fit(&addresses, live.base, live.bytes, issue.ins.access.bytes())
            && (reads || !live.constant)
            && !live.is_heap()
    };
    let Some(allocation) = cx.global.find(addresses[0]).filter(fits) else {
        return scattered(cx, warp, issue, addresses, act, true);
    };
    observe::global(cx, warp, issue, &addresses);
    observe::touched(cx, warp, issue, allocation, &addresses);
    let offsets = each(|lane| allocation.place(addresses[lane]));
    observe::check_global(cx, warp, issue, allocation, &offsets);
    act.act(allocation, warp, issue, &offsets);
    NEXT
}

/// Returns whether `bytes` bytes at each address are aligned, and within `size` bytes from `base`.
#[inline(always)]
pub(super) fn all_fit(addresses: &Addresses, base: u64, size: u64, bytes: u32) -> bool {
    let bytes = u64::from(bytes);
    let Some(last) = size.checked_sub(bytes) else { return false };
    let wrong = |address: u64| {
        let offset = address.wrapping_sub(base);
        u64::from(offset > last) | offset & (bytes - 1)
    };
    addresses.iter().fold(0, |any, &address| any | wrong(address)) == 0
}

/// Accesses global memory for lanes in several allocations, or finds the fault.
#[cold]
fn scattered<A: Action>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue,
    mut at: Addresses,
    act: A,
    counted: bool,
) -> Flow {
    let (global, bytes, access) = (cx.global, issue.ins.access.bytes(), act.kind(cx, issue.ins));
    let wrong = |lane: usize| bad_global(global, access, at[lane], bytes, bytes);
    let Some(issue) = permitted(cx, warp, issue, wrong)? else { return NEXT };
    lend(&mut at, issue.mask);
    if counted {
        observe::global(cx, warp, issue, &at);
    }
    let homes: [Option<&Allocation>; LANES] = std::array::from_fn(|lane| global.find(at[lane]));
    let base = |lane: usize| homes[lane].map_or(0, |live| live.base);
    let mut rest = issue.mask;
    while let Some(allocation) = (rest != 0).then(|| homes[rest.trailing_zeros() as usize]).flatten() {
        warp.work += SCATTERED_WORK;
        let issue = Issue { mask: lanes_where(rest, |lane| base(lane) == allocation.base), ..issue };
        let mut offsets = each(|lane| allocation.place(at[lane]));
        lend(&mut offsets, issue.mask);
        if counted {
            observe::touched(cx, warp, issue, allocation, &at);
        }
        observe::check_global(cx, warp, issue, allocation, &offsets);
        act.act(allocation, warp, issue, &offsets);
        rest &= !issue.mask;
    }
    NEXT
}

/// Why an access to `bytes` bytes of global memory is not possible, if it is not. Its address is to
/// be a multiple of `align`.
pub(super) fn bad_global(
    global: &Snapshot,
    access: AccessKind,
    address: u64,
    bytes: u32,
    align: u32,
) -> Option<Reason> {
    let allocation = global.find(address).filter(|live| live.offset(address, u64::from(bytes)).is_some());
    let (inside, aligned) = (allocation.is_some(), address.is_multiple_of(u64::from(align)));
    let read_only = access.writes() && allocation.is_some_and(|live| live.constant);
    if inside && aligned && !read_only {
        return None;
    }
    let nearest = global.nearest(address);
    let bad = BadAccess { access, space: Space::Global, bytes, address, nearest, space_bytes: 0 };
    Some(match (inside, aligned) {
        (false, _) => Reason::OutOfBounds(bad),
        (true, false) => Reason::Misaligned(BadAccess { bytes: align, ..bad }),
        (true, true) => Reason::ReadOnly(bad),
    })
}

#[inline(always)]
pub(super) fn shared<A: Action>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue,
    mut offsets: Addresses,
    act: A,
) -> Flow {
    let (memory, kind) = (cx.shared, act.kind(cx, issue.ins));
    let Some(issue) = within(cx, warp, issue, &mut offsets, kind, (Space::Shared, memory.bytes))? else { return NEXT };
    observe::shared(cx, warp, issue, &offsets, kind);
    observe::check_shared(cx, warp, issue, &offsets, false);
    act.act(memory, warp, issue, &offsets);
    NEXT
}

/// Finds the lanes whose access lies within a space of this size, if there are any, and lends the
/// other lanes their offsets.
#[inline(always)]
pub(super) fn within<'i>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue<'i>,
    offsets: &mut Addresses,
    access: AccessKind,
    (space, space_bytes): (Space, u64),
) -> Result<Option<Issue<'i>>> {
    let (bytes, read_only) = (issue.ins.access.bytes(), space == Space::Param && access.writes());
    if !read_only && all_fit(offsets, 0, space_bytes, bytes) {
        return Ok(Some(issue));
    }
    let bad = BadAccess { access, space, bytes, address: 0, nearest: None, space_bytes };
    beyond(cx, warp, issue, offsets, bad)
}

fn local<A: Action>(cx: &mut Context, warp: &mut Warp, issue: Issue, mut offsets: Addresses, act: A) -> Flow {
    let (size, kind) = (u64::from(warp.frame.end), act.kind(cx, issue.ins));
    let Some(issue) = within(cx, warp, issue, &mut offsets, kind, (Space::Local, size))? else { return NEXT };
    observe::check_local(cx, warp, issue, &offsets);
    in_local(warp, issue, &offsets, act)
}

/// Acts on local memory at these offsets of each lane's own, which have been checked.
#[inline(always)]
pub(super) fn in_local<A: Action>(warp: &mut Warp, issue: Issue, offsets: &Addresses, act: A) -> Flow {
    let places = each(|lane| lane as u64 * warp.stride + offsets[lane]);
    let memory = std::mem::take(&mut warp.local);
    act.act(&memory, warp, issue, &places);
    warp.local = memory;
    NEXT
}

fn param<A: Action>(cx: &mut Context, warp: &mut Warp, issue: Issue, mut offsets: Addresses, act: A) -> Flow {
    let (memory, kind) = (cx.params, act.kind(cx, issue.ins));
    let Some(issue) = within(cx, warp, issue, &mut offsets, kind, (Space::Param, memory.bytes))? else { return NEXT };
    act.act(memory, warp, issue, &offsets);
    NEXT
}

/// Finds the lanes whose access lies within their space, and lends the other lanes their offsets.
/// `bad` describes a fault except for its address.
#[cold]
fn beyond<'i>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue<'i>,
    offsets: &mut Addresses,
    bad: BadAccess,
) -> Result<Option<Issue<'i>>> {
    let wrong = |lane: usize| {
        let bad = BadAccess { address: offsets[lane], ..bad };
        let read_only = bad.space == Space::Param && bad.access.writes();
        bad.beyond(u64::from(bad.bytes)).or(read_only.then_some(Reason::OutOfBounds(bad)))
    };
    let permitted = permitted(cx, warp, issue, wrong)?;
    if let Some(issue) = permitted {
        lend(offsets, issue.mask);
    }
    Ok(permitted)
}

/// Finds the lanes whose access is not `wrong`, if there are any. A wrong access stops the launch;
/// with memcheck it is a finding, and it reads 0.
pub(super) fn permitted<'i>(
    cx: &mut Context,
    warp: &mut Warp,
    issue: Issue<'i>,
    wrong: impl Fn(usize) -> Option<Reason>,
) -> Result<Option<Issue<'i>>> {
    let Issue { ins, mask } = issue;
    let mut permitted = mask;
    for lane in lanes_of(mask) {
        let Some(reason) = wrong(lane) else { continue };
        let (index, pc) = (cx.warp, warp.pc - 1);
        if !cx.checker.as_mut().is_some_and(|checker| checker.fault(Check::Memcheck, index, lane as u32, pc, &reason)) {
            return Err(Fault::new(lane as u32, reason));
        }
        permitted &= !(1 << lane);
    }
    let kind = cx.code.sites[ins.site as usize].kind;
    if kind.reads() {
        for element in 0..ins.access.count {
            let slot = if kind.is_update() { ins.s[0] + u16::from(element) } else { ins.s[usize::from(element)] };
            let file = if ins.access.width == 8 || ins.access.wide { File::B64 } else { File::B32 };
            warp.registers.set_lanes(file, slot, mask & !permitted, |_| 0);
        }
    }
    Ok((permitted != 0).then_some(Issue { mask: permitted, ..issue }))
}

/// A store, before it happens.
pub(super) struct Change<'a, C> {
    pub(super) cells: &'a C,
    pub(super) warp: &'a Warp,
    pub(super) issue: Issue<'a>,
    pub(super) offsets: &'a Addresses,
}

impl<C: Cells> Change<'_, C> {
    /// Returns whether a lane stores a value that differs from the one already there, after the
    /// lanes before it have stored.
    pub(super) fn differs(&self, lane: usize) -> bool {
        let Self { cells, warp, issue: Issue { ins, mask }, offsets } = *self;
        let Access { width, count, wide, .. } = ins.access;
        let before = (0..lane).rev().find(|&other| mask >> other & 1 == 1 && offsets[other] == offsets[lane]);
        let unused = 64 - 8 * u32::from(width);
        (0..usize::from(count)).any(|element| {
            let slot = usize::from(ins.s[element]);
            let stored = |lane: usize| match width == 8 || wide {
                true => warp.registers.b64[slot][lane],
                false => u64::from(warp.registers.b32[slot][lane]),
            };
            let offset = offsets[lane] + element as u64 * u64::from(width);
            let there = || match width {
                1 => u64::from(cells.load8(offset)),
                2 => u64::from(cells.load16(offset)),
                4 => u64::from(cells.load32(offset)),
                _ => cells.load64(offset),
            };
            (stored(lane) ^ before.map_or_else(there, stored)) << unused != 0
        })
    }
}

impl Action for Load {
    #[inline(always)]
    fn kind(self, _: &Context, _: &Ins) -> AccessKind {
        AccessKind::Load
    }
    #[inline(always)]
    fn act<C: Cells>(self, cells: &C, warp: &mut Warp, Issue { ins, mask }: Issue, offsets: &Addresses) {
        for element in 0..usize::from(ins.access.count) {
            let offset = |lane: usize| offsets[lane] + element as u64 * u64::from(ins.access.width);
            load(cells, warp, ins.s[element], ins.access, mask, offset);
        }
    }
}

impl Action for Store {
    #[inline(always)]
    fn kind(self, _: &Context, _: &Ins) -> AccessKind {
        AccessKind::Store
    }
    #[inline(always)]
    fn act<C: Cells>(self, cells: &C, warp: &mut Warp, Issue { ins, mask }: Issue, offsets: &Addresses) {
        for element in 0..usize::from(ins.access.count) {
            let offset = |lane: usize| offsets[lane] + element as u64 * u64::from(ins.access.width);
            store(cells, warp, ins.s[element], ins.access, mask, offset);
        }
    }
}

#[inline(always)]
fn load<C: Cells>(cells: &C, warp: &mut Warp, slot: u16, access: Access, mask: u32, offset: impl Fn(usize) -> u64) {
    let row = match (access.width, access.signed) {
        (1, false) => each(|lane| u32::from(cells.load8(offset(lane)))),
        (1, true) => each(|lane| cells.load8(offset(lane)) as i8 as u32),
        (2, false) => each(|lane| u32::from(cells.load16(offset(lane)))),
        (2, true) => each(|lane| cells.load16(offset(lane)) as i16 as u32),
        (4, _) => each(|lane| cells.load32(offset(lane))),
        _ if access.sync.is_strong() => {
            return warp.registers.write64(slot, &each(|lane| cells.load64_whole(offset(lane))), mask);
        }
        _ => return warp.registers.write64(slot, &each(|lane| cells.load64(offset(lane))), mask),
    };
    match (access.wide, access.signed) {
        (false, _) => warp.registers.write32(slot, &row, mask),
        (true, false) => warp.registers.write64(slot, &each(|lane| u64::from(row[lane])), mask),
        (true, true) => warp.registers.write64(slot, &each(|lane| row[lane] as i32 as u64), mask),
    }
}

/// Stores lane by lane in order: if several lanes store to one place, the last one wins.
#[inline(always)]
fn store<C: Cells>(cells: &C, warp: &Warp, slot: u16, access: Access, mask: u32, offset: impl Fn(usize) -> u64) {
    let slot = usize::from(slot);
    if access.width == 8 {
        let row = &warp.registers.b64[slot];
        if access.sync.is_strong() {
            return active(mask, |lane| cells.store64_whole(offset(lane), row[lane]));
        }
        return active(mask, |lane| cells.store64(offset(lane), row[lane]));
    }
    let row = if access.wide {
        let row = &warp.registers.b64[slot];
        each(|lane| row[lane] as u32)
    } else {
        warp.registers.b32[slot]
    };
    match access.width {
        1 => active(mask, |lane| cells.store8(offset(lane), row[lane] as u8)),
        2 => active(mask, |lane| cells.store16(offset(lane), row[lane] as u16)),
        _ => active(mask, |lane| cells.store32(offset(lane), row[lane])),
    }
}

#[inline(always)]
pub(super) fn active(mask: u32, mut act: impl FnMut(usize)) {
    for lane in 0..LANES {
        if mask >> lane & 1 == 1 {
            act(lane);
        }
    }
}
