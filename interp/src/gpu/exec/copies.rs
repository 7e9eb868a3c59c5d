//! Copies from global to shared memory that a warp does not wait for: `cp.async`.
//!
//! A copy reads when it is issued, and writes as late as the hardware may: where its lane waits for
//! it. A kernel that reads the tile without a wait therefore reads what was there before, and
//! initcheck finds it. A copy that no lane waits for does not write. The hardware may also write as
//! early as the issue, so racecheck sees the write twice. Counters have the read alone, as on an
//! H100.

use super::memory::{self, Action, Addresses, Load, Store, active};
use super::warp::Warp;
use super::{Context, Fault, Flow, Issue, NEXT, observe};
use crate::gpu::code::{Access, Code, Ins};
use crate::gpu::isa::Op;
use crate::gpu::mem::Allocation;
use crate::gpu::mem::cells::Cells;
use crate::gpu::reason::Reason;
use crate::gpu::vocabulary::{AccessKind, LANES, Space, each, lanes_where};

/// The most copies that a warp may have under way: those of 16 bytes fill 64 KiB.
const MOST: usize = 128;

/// The copies of a warp that have not written yet.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pending: Vec<Copy>,
    /// The number of groups that each lane has committed.
    groups: [u32; LANES],
}

/// The bytes that an instruction copies for some lanes.
#[derive(Debug)]
struct Copy {
    ins: Ins,
    /// The pc after it.
    pc: u32,
    /// Lanes whose copy has not written yet.
    mask: u32,
    /// The group of each lane, by its number.
    groups: [u32; LANES],
    /// Offsets in shared memory, which are in bounds.
    places: [u32; LANES],
    /// The words, one after the other.
    rows: Box<[[u32; LANES]]>,
}

/// The most bytes that the copies of a warp take on the host while they are under way.
pub(super) fn most_bytes(code: &Code) -> u64 {
    let copies = code.instructions.iter().filter(|ins| ins.op == Op::CopyWrite);
    let words = copies.map(|ins| usize::from(ins.access.count)).max();
    words.map_or(0, |words| (MOST * (size_of::<Copy>() + words * size_of::<[u32; LANES]>())) as u64)
}

impl Copies {
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.groups = [0; LANES];
    }
}

/// Reads the words into registers side by side, the first of which is `ins.s[0]`. A lane reads only
/// the bytes that `ins.s[1]` has for it, and zeros for the rest. A lane without bytes has no
/// source, so its address may be any.
pub(super) fn read(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    observe::execution(cx, warp, issue);
    let Issue { ins, mask } = issue;
    let (first, words, all) = (ins.s[0], u16::from(ins.access.count), ins.access.bytes());
    let sizes = warp.registers.b32[usize::from(ins.s[1])].map(|size| size.min(all));
    for word in 0..words {
        warp.registers.write32(first + word, &[0; LANES], mask);
    }
    let whole = Ins { s: std::array::from_fn(|word| first + (word as u16).min(words - 1)), ..*ins };
    let readers = Issue { ins: &whole, mask: lanes_where(mask, |lane| sizes[lane] != 0) };
    match readers.mask {
        0 => NEXT,
        lanes if lanes == lanes_where(mask, |lane| sizes[lane] == all) => {
            memory::global(cx, warp, readers, memory::addresses(warp, readers), Load)
        }
        _ => read_parts(cx, warp, readers, &sizes),
    }
}

/// Reads some bytes for each lane. The address is that of the whole copy, so it has its alignment.
fn read_parts(cx: &mut Context, warp: &mut Warp, issue: Issue, sizes: &[u32; LANES]) -> Flow {
    let (ins, global, align) = (issue.ins, cx.global, issue.ins.access.bytes());
    let mut addresses = memory::addresses(warp, issue);
    let wrong = |lane: usize| memory::bad_global(global, AccessKind::Load, addresses[lane], sizes[lane], align);
    let Some(issue) = memory::permitted(cx, warp, issue, wrong)? else { return NEXT };
    let mut rest = issue.mask;
    memory::lend(&mut addresses, rest);
    observe::global_parts(cx, warp, issue, &addresses, sizes);
    let base = |lane: usize| global.find(addresses[lane]).map(|live| live.base);
    while let Some(allocation) = (rest != 0).then(|| global.find(addresses[rest.trailing_zeros() as usize])).flatten() {
        warp.work += memory::SCATTERED_WORK;
        let size = sizes[rest.trailing_zeros() as usize];
        let same = lanes_where(rest, |lane| sizes[lane] == size && base(lane) == Some(allocation.base));
        let part = Ins { access: Access { width: 1, count: size as u8, ..ins.access }, ..*ins };
        let part = Issue { ins: &part, mask: same };
        let mut offsets = each(|lane| allocation.place(addresses[lane]));
        memory::lend(&mut offsets, same);
        observe::touched(cx, warp, part, allocation, &addresses);
        observe::check_global(cx, warp, part, allocation, &offsets);
        read_bytes(warp, part, size, allocation, &offsets);
        rest &= !same;
    }
    NEXT
}

/// Reads `size` bytes: words, and then single bytes.
fn read_bytes(warp: &mut Warp, Issue { ins, mask }: Issue, size: u32, cells: &Allocation, offsets: &Addresses) {
    for word in 0..size.div_ceil(4) {
        let row = &mut warp.registers.b32[usize::from(ins.s[word as usize])];
        let at = |lane: usize| offsets[lane] + u64::from(4 * word);
        let byte = |lane: usize, index: u32| u32::from(cells.load8(at(lane) + u64::from(index))) << (8 * index);
        match size - 4 * word {
            left @ 1..4 => active(mask, |lane| row[lane] = (0..left).fold(0, |bits, index| bits | byte(lane, index))),
            _ => active(mask, |lane| row[lane] = cells.load32(at(lane))),
        }
    }
}

/// Takes up the copy of the words that were read, for a later write.
pub(super) fn issue(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    observe::execution(cx, warp, issue);
    let (mut places, space) = (memory::addresses(warp, issue), (Space::Shared, cx.shared.bytes));
    let Some(issue) = memory::within(cx, warp, issue, &mut places, AccessKind::Store, space)? else { return NEXT };
    let Issue { ins, mask } = issue;
    if warp.copies.pending.len() == MOST {
        return Err(Fault::new(mask.trailing_zeros(), Reason::TooManyCopies { limit: MOST as u32 }).into());
    }
    observe::check_shared(cx, warp, issue, &places, true);
    let slots = &ins.s[..usize::from(ins.access.count)];
    let rows = slots.iter().map(|&slot| warp.registers.b32[usize::from(slot)]).collect();
    let (groups, places) = (warp.copies.groups, places.map(|place| place as u32));
    warp.copies.pending.push(Copy { ins: *ins, pc: warp.pc, mask, groups, places, rows });
    NEXT
}

/// `cp.async.commit_group`
pub(super) fn commit(_: &mut Context, warp: &mut Warp, Issue { mask, .. }: Issue) -> Flow {
    active(mask, |lane| warp.copies.groups[lane] = warp.copies.groups[lane].wrapping_add(1));
    NEXT
}

/// `cp.async.wait_group`: the lanes wait for all their groups but the latest `ins.imm`.
pub(super) fn wait_group(cx: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    let (groups, left) = (warp.copies.groups, ins.imm as u32);
    write(cx, warp, |copy| lanes_where(copy.mask & mask, |lane| groups[lane].wrapping_sub(copy.groups[lane]) > left))
}

/// `cp.async.wait_all`: the lanes wait for all their copies, in a group or not.
pub(super) fn wait_all(cx: &mut Context, warp: &mut Warp, Issue { mask, .. }: Issue) -> Flow {
    write(cx, warp, |copy| copy.mask & mask)
}

/// Writes what each copy has for the lanes that `due` names.
fn write(cx: &mut Context, warp: &mut Warp, due: impl Fn(&Copy) -> u32) -> Flow {
    let pc = warp.pc;
    let mut pending = std::mem::take(&mut warp.copies.pending);
    for copy in &mut pending {
        let lanes = due(copy);
        if lanes == 0 {
            continue;
        }
        copy.mask &= !lanes;
        warp.work += u64::from(copy.ins.work);
        // No instruction but the copy uses these registers. The access belongs to the copy.
        for (slot, row) in copy.ins.s.iter().zip(&copy.rows) {
            warp.registers.write32(*slot, row, lanes);
        }
        warp.pc = copy.pc;
        let mut places = copy.places.map(u64::from);
        memory::lend(&mut places, lanes);
        let issue = Issue { ins: &copy.ins, mask: lanes };
        observe::check_shared(cx, warp, issue, &places, false);
        Store.act(cx.shared, warp, issue, &places);
    }
    pending.retain(|copy| copy.mask != 0);
    (warp.copies.pending, warp.pc) = (pending, pc);
    NEXT
}
