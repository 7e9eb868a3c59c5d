//! Copies from global to shared memory that a warp does not wait for: `cp.async`.
//!
//! A copy reads when it is issued, and writes as late as the hardware may: where its lane waits for
//! it. A kernel that reads the tile without a wait therefore reads what was there before, and
//! initcheck finds it. A copy for which nobody waits does not write.

use super::memory::{self, Addresses, Load, Store, active};
use super::warp::Warp;
use super::{Context, Flow, observe};
use crate::interp::code::{Access, Ins};
use crate::interp::vocabulary::LANES;

/// The copies that a warp may have under way; the oldest one writes when there are more.
const MOST: usize = 128;
/// Words that a copy moves for a lane.
const WORDS: usize = 4;

/// The copies of a warp that have not written yet.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pending: Vec<Copy>,
    /// The number of groups that each lane has committed.
    groups: [u32; LANES],
}

/// What an instruction copies for some lanes.
#[derive(Debug)]
struct Copy {
    ins: Ins,
    /// The pc after it.
    pc: u32,
    /// Lanes whose copy has not written yet.
    mask: u32,
    /// The group of each lane, by its number.
    groups: [u32; LANES],
    places: Addresses,
    rows: [[u32; LANES]; WORDS],
}

impl Copies {
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.groups = [0; LANES];
    }
}

/// Reads the words into registers side by side, the first of which is `ins.s[0]`. A lane reads only
/// the bytes that `ins.s[1]` has for it, and zeros for the rest.
pub(super) fn read(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    observe::execution(cx, warp, ins, mask);
    let (first, words) = (ins.s[0], u16::from(ins.access.count));
    let sizes = warp.registers.b32[usize::from(ins.s[1])].map(|size| size.min(ins.access.bytes()));
    for word in 0..words {
        warp.registers.write32(first + word, &[0; LANES], mask);
    }
    let mut rest = mask;
    while rest != 0 {
        let size = sizes[rest.trailing_zeros() as usize];
        let same = lanes(rest, |lane| sizes[lane] == size);
        rest &= !same;
        let flow = match size {
            0 => Flow::Next,
            size if size == ins.access.bytes() => {
                let whole = Ins { s: std::array::from_fn(|word| first + (word as u16).min(words - 1)), ..*ins };
                load(cx, warp, &whole, same)
            }
            size => read_part(cx, warp, ins, same, size),
        };
        if let Flow::Stop(_) = flow {
            return flow;
        }
    }
    Flow::Next
}

/// Reads `size` bytes: words, and then single bytes.
fn read_part(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32, size: u32) -> Flow {
    for word in 0..size.div_ceil(4) {
        let slot = ins.s[0] + word as u16;
        let (width, pieces) = if size - 4 * word >= 4 { (4, 1) } else { (1, size - 4 * word) };
        let mut bits = [0; LANES];
        for piece in 0..pieces {
            let access = Access { width, count: 1, ..ins.access };
            let part = Ins { s: [slot; 4], imm: ins.imm + (4 * word + piece) as i32, access, ..*ins };
            if let Flow::Stop(fault) = load(cx, warp, &part, mask) {
                return Flow::Stop(fault);
            }
            active(mask, |lane| bits[lane] |= warp.registers.b32[usize::from(slot)][lane] << (8 * piece));
        }
        warp.registers.write32(slot, &bits, mask);
    }
    Flow::Next
}

fn load(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    memory::global(cx, warp, ins, mask, memory::addresses(warp, ins, mask), Load)
}

/// Takes up the copy of the words that were read, for a later write.
pub(super) fn issue(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    observe::execution(cx, warp, ins, mask);
    let places = memory::addresses(warp, ins, mask);
    if !memory::all_fit(&places, 0, cx.shared.bytes(), ins.access.bytes()) {
        return memory::shared(cx, warp, ins, mask, places, Store);
    }
    let groups = warp.copies.groups;
    let rows = std::array::from_fn(|word| match word < usize::from(ins.access.count) {
        true => warp.registers.b32[usize::from(ins.s[word])],
        false => [0; LANES],
    });
    warp.copies.pending.push(Copy { ins: *ins, pc: warp.pc, mask, groups, places, rows });
    match warp.copies.pending.len() > MOST {
        true => write(cx, warp, |index, copy| if index == 0 { copy.mask } else { 0 }),
        false => Flow::Next,
    }
}

/// `cp.async.commit_group`
pub(super) fn commit(_: &mut Context, warp: &mut Warp, _: &Ins, mask: u32) -> Flow {
    active(mask, |lane| warp.copies.groups[lane] = warp.copies.groups[lane].wrapping_add(1));
    Flow::Next
}

/// `cp.async.wait_group`: the lanes wait for all their groups but the latest `ins.imm`.
pub(super) fn wait_group(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    let (groups, left) = (warp.copies.groups, ins.imm as u32);
    write(cx, warp, |_, copy| lanes(copy.mask & mask, |lane| groups[lane].wrapping_sub(copy.groups[lane]) > left))
}

/// `cp.async.wait_all`: the lanes wait for all their copies, in a group or not.
pub(super) fn wait_all(cx: &mut Context, warp: &mut Warp, _: &Ins, mask: u32) -> Flow {
    write(cx, warp, |_, copy| copy.mask & mask)
}

/// Writes what each copy has for the lanes that `due` names.
fn write(cx: &mut Context, warp: &mut Warp, due: impl Fn(usize, &Copy) -> u32) -> Flow {
    let pc = warp.pc;
    let mut pending = std::mem::take(&mut warp.copies.pending);
    for (index, copy) in pending.iter_mut().enumerate() {
        let lanes = due(index, copy);
        if lanes == 0 {
            continue;
        }
        copy.mask &= !lanes;
        warp.work += u64::from(copy.ins.work);
        // No instruction but the copy uses these registers. The access belongs to the copy.
        for (slot, row) in copy.ins.s.iter().zip(&copy.rows).take(usize::from(copy.ins.access.count)) {
            warp.registers.write32(*slot, row, lanes);
        }
        warp.pc = copy.pc;
        let mut places = copy.places;
        memory::lend(&mut places, lanes);
        if let Flow::Stop(fault) = memory::shared(cx, warp, &copy.ins, lanes, places, Store) {
            return Flow::Stop(fault);
        }
    }
    pending.retain(|copy| copy.mask != 0);
    (warp.copies.pending, warp.pc) = (pending, pc);
    Flow::Next
}

/// The lanes of `mask` for which `holds`.
fn lanes(mask: u32, holds: impl Fn(usize) -> bool) -> u32 {
    (0..LANES).filter(|&lane| mask >> lane & 1 == 1 && holds(lane)).fold(0, |lanes, lane| lanes | 1 << lane)
}
