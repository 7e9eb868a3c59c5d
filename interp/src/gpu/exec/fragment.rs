//! `wmma.load` and `wmma.store`: a warp loads or stores a small matrix, whose elements lie in
//! registers of all lanes as `mma` has them.
//!
//! A tile has 8 rows, of which each lane has a few elements side by side. If these lie side by side
//! in memory too, the tile is one access. If not, one of halves is loaded by its columns and
//! transposed, and another element by element. That is what NVIDIA's compiler makes of it, but for
//! columns of bytes.

use super::matrix::transposed_halves;
use super::memory::{self, Action, Addresses, Load, Store};
use super::warp::Warp;
use super::{Context, Flow, Issue, NEXT, observe};
use crate::gpu::code::{Access, Fragment, Ins, registers_of_tile};
use crate::gpu::vocabulary::{LANES, Space, each};

/// The memory of a matrix: the address for each lane, and the elements between its lines, which are
/// rows or columns.
struct Memory {
    base: Addresses,
    stride: [u32; LANES],
    bytes: u64,
}

impl Memory {
    fn of(warp: &Warp, ins: &Ins, fragment: &Fragment) -> Self {
        let (slot, offset) = (usize::from(ins.d), fragment.offset);
        let base = match ins.access.wide_address {
            true => warp.registers.b64[slot].map(|base| base.wrapping_add_signed(offset.into())),
            false => warp.registers.b32[slot].map(|base| base.wrapping_add_signed(offset).into()),
        };
        Self { base, stride: warp.registers.b32[usize::from(ins.s[0])], bytes: fragment.bytes.into() }
    }

    /// The address of an element of a line, for each lane.
    fn address(&self, mask: u32, place: impl Fn(usize) -> (usize, usize)) -> Addresses {
        let mut addresses = each(|lane| {
            let (line, at) = place(lane);
            let elements = (line as u64).wrapping_mul(self.stride[lane].into()).wrapping_add(at as u64);
            self.base[lane].wrapping_add(elements.wrapping_mul(self.bytes))
        });
        memory::lend(&mut addresses, mask);
        addresses
    }
}

/// `wmma.load`
pub(super) fn load(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    let (code, mask) = (cx.code, issue.mask);
    let fragment = &code.fragments[issue.ins.imm as usize];
    tiles(cx, warp, issue, fragment, Load)?;
    // Registers beyond those that the elements need have copies.
    let needed = fragment.tiles.len() * registers_of_tile(fragment.bytes, fragment.side_by_side);
    for (number, &slot) in fragment.slots.iter().enumerate().skip(needed) {
        let row = warp.registers.b32[usize::from(fragment.slots[number % needed])];
        warp.registers.write32(slot, &row, mask);
    }
    NEXT
}

/// `wmma.store`
pub(super) fn store(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    let code = cx.code;
    tiles(cx, warp, issue, &code.fragments[issue.ins.imm as usize], Store)
}

/// Accesses each tile.
fn tiles<A: Action>(cx: &mut Context, warp: &mut Warp, issue: Issue, fragment: &Fragment, act: A) -> Flow {
    let Issue { ins, mask } = issue;
    observe::execution(cx, warp, issue);
    if let Some(checker) = &mut cx.checker {
        checker.aligned(cx.warp, warp.pc - 1, mask, warp.expected_with(mask));
    }
    let memory = Memory::of(warp, ins, fragment);
    let (count, beside) =
        (registers_of_tile(fragment.bytes, fragment.side_by_side), usize::from(fragment.side_by_side));
    for (&(down, right), slots) in fragment.tiles.iter().zip(fragment.slots.chunks(count)) {
        let (down, right) = (usize::from(down), usize::from(right));
        let row = |lane: usize| 8 * down + lane / 4;
        let column = |lane: usize| (4 * right + lane % 4) * beside;
        if fragment.along {
            let access = Access { width: fragment.bytes.max(4), count: count as u8, ..ins.access };
            let addresses = memory.address(mask, |lane| (row(lane), column(lane)));
            access_to(cx, warp, issue, access, slots, addresses, act)?;
        } else if fragment.bytes == 2 {
            let addresses = memory.address(mask, |lane| (8 * right + lane / 4, 8 * down + 2 * (lane % 4)));
            let access = Access { width: 4, count: 1, ..ins.access };
            by_columns(cx, warp, issue, slots[0], |cx, warp| {
                access_to(cx, warp, issue, access, slots, addresses, act)
            })?;
        } else {
            let access = Access { width: fragment.bytes, count: 1, ..ins.access };
            let mut packed = [0; LANES];
            for element in 0..beside {
                let slot = &slots[if count == beside { element } else { 0 }..][..1];
                let addresses = memory.address(mask, |lane| (column(lane) + element, row(lane)));
                access_to(cx, warp, issue, access, slot, addresses, act)?;
                if count < beside {
                    let loaded = &warp.registers.b32[usize::from(slot[0])];
                    packed = each(|lane| packed[lane] | loaded[lane] << (8 * element));
                }
            }
            if count < beside {
                warp.registers.write32(slots[0], &packed, mask);
            }
        }
    }
    NEXT
}

/// Loads or stores a register by the columns of its tile.
fn by_columns(
    cx: &mut Context,
    warp: &mut Warp,
    Issue { ins, mask }: Issue,
    slot: u16,
    access: impl FnOnce(&mut Context, &mut Warp) -> Flow,
) -> Flow {
    let row = usize::from(slot);
    let before = warp.registers.b32[row];
    let loads = cx.code.sites[ins.site as usize].kind.reads();
    if !loads {
        warp.registers.b32[row] = transposed_halves(&before);
    }
    access(cx, warp)?;
    if loads {
        let columns = warp.registers.b32[row];
        warp.registers.write32(slot, &transposed_halves(&columns), mask);
    } else {
        warp.registers.b32[row] = before;
    }
    NEXT
}

fn access_to<A: Action>(
    cx: &mut Context,
    warp: &mut Warp,
    Issue { ins, mask }: Issue,
    access: Access,
    slots: &[u16],
    addresses: Addresses,
    act: A,
) -> Flow {
    let mut s = [slots[0]; 4];
    s[..slots.len()].copy_from_slice(slots);
    let ins = Ins { s, access, ..*ins };
    let issue = Issue { ins: &ins, mask };
    match access.space {
        Some(Space::Global) => memory::global(cx, warp, issue, addresses, act),
        Some(Space::Shared) => memory::shared(cx, warp, issue, addresses, act),
        _ => memory::generic(cx, warp, issue, addresses, act),
    }
}
