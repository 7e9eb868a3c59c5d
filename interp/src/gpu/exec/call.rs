//! Calls of functions, and the stack of frames that they keep in each thread's local memory.
//!
//! A call pushes its return point on the warp's stack, like a meeting point of lanes, and copies
//! its arguments into the new frame. A function's lanes meet at its last instruction, which copies
//! the results back. If lanes call different functions through a pointer, the functions run one
//! after the other.

use super::memory::{Load, Store, in_local};
use super::registers::Value;
use super::runtime;
use super::warp::{Frame, Path, Point, Warp};
use super::{Context, Fault, Flow, Issue, NEXT, Result};
use crate::gpu::code::{Call, FRAME_ALIGN, Function, Layout, MAX_LOCAL, NOWHERE, Target};
use crate::gpu::mem::cells::{Cells, Scratch};
use crate::gpu::mem::space;
use crate::gpu::reason::Reason;
use crate::gpu::vocabulary::{File, LANES, each, lanes_of, lanes_where};

/// Bytes of local memory that one unit of work allocates.
const GROWN_BYTES: u64 = 32;

/// `call`
pub(super) fn call(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    let Issue { ins, mask } = issue;
    let code = cx.code;
    let call = &code.calls[ins.imm as usize];
    match &call.target {
        Target::Function(number) => direct(code.functions[*number as usize].as_ref(), call, warp, mask)?,
        Target::Pointer(among) => through_pointer(cx, warp, issue, call, among.as_deref())?,
        Target::Print => runtime::print(cx, warp, mask, &call.passed)?,
        Target::Malloc => runtime::allocate(cx, warp, mask, &call.passed),
        Target::Free => runtime::free(cx, warp, mask, &call.passed)?,
        Target::Assert => return Err(runtime::assertion(cx, warp, mask, &call.passed).into()),
    }
    NEXT
}

fn direct(function: Option<&Function>, call: &Call, warp: &mut Warp, mask: u32) -> Result<()> {
    let Some(function) = function else { return Ok(()) };
    let back = warp.here();
    let to = enter(warp, call, function, mask)?;
    warp.stack.push(Path { mask: warp.mask, at: back });
    warp.mask = mask;
    warp.enter(to);
    Ok(())
}

/// Calls one function after the other; each returns to the point where all lanes meet.
fn through_pointer(cx: &mut Context, warp: &mut Warp, issue: Issue, call: &Call, among: Option<&[u32]>) -> Result<()> {
    let Issue { ins, mask } = issue;
    let addresses = u64::read(&warp.registers, ins.s[0]);
    let here = warp.here();
    warp.stack.push(Path { mask: warp.mask, at: here });
    let mut rest = mask;
    while rest != 0 {
        let lane = rest.trailing_zeros();
        let address = addresses[lane as usize];
        let lanes = lanes_where(rest, |lane| addresses[lane] == address);
        rest &= !lanes;
        let number =
            space::function_number(address).filter(|number| among.is_none_or(|all| all.binary_search(number).is_ok()));
        let function = number.and_then(|number| cx.code.functions.get(number as usize)?.as_ref());
        let fits = |function: &&Function| function.layout == call.layout;
        let Some(function) = function.filter(fits) else {
            return Err(Fault::new(lane, Reason::BadCall { address, other: function.is_some() }));
        };
        let to = enter(warp, call, function, lanes)?;
        let back = Point { pc: here.pc, meet: here.pc, frame: here.frame };
        warp.stack.push(Path { mask: lanes, at: back });
        warp.stack.push(Path { mask: lanes, at: to });
    }
    warp.join();
    Ok(())
}

/// Makes the frame of a function for the lanes of `mask`; returns where they begin.
fn enter(warp: &mut Warp, call: &Call, function: &Function, mask: u32) -> Result<Point> {
    // A kernel's own variables may end at any offset.
    let (caller, base) = (warp.frame, warp.frame.end.next_multiple_of(FRAME_ALIGN as u32));
    let end = base.saturating_add(function.frame_bytes.max(FRAME_ALIGN as u32));
    if end > MAX_LOCAL || !reserve(warp, u64::from(end)) {
        let (function, depth) = (function.name.to_string(), warp.depth(mask) + 1);
        let reason = Reason::StackOverflow { function, depth, bytes: end, limit: MAX_LOCAL };
        return Err(Fault::new(mask.trailing_zeros(), reason));
    }
    warp.work += function.call_work();
    let places = call.passed.params.iter().zip(&call.layout.params);
    for (&(from, bytes), &(to, _)) in places {
        copy(&warp.local, warp.stride, mask, caller.base + from, base + to, bytes);
    }
    saved(function, |at, file, slot| save(warp, mask, base + at, file, slot));
    Ok(Point { pc: function.entry, meet: NOWHERE, frame: Frame { base, end } })
}

/// Ends a function.
pub(super) fn ret(cx: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    let code = cx.code;
    let caller = warp.caller();
    let call = caller.and_then(|at| code.calls.get(code.instructions[at.pc as usize - 1].imm as usize));
    if let (Some(caller), Some(call), Some(function)) = (caller, call, &code.functions[ins.imm as usize]) {
        let base = warp.frame.base;
        for (&(from, _), &(to, bytes)) in function.layout.results.iter().zip(&call.passed.results) {
            copy(&warp.local, warp.stride, mask, base + from, caller.frame.base + to, bytes);
        }
        saved(function, |at, file, slot| restore(warp, mask, base + at, file, slot));
        warp.work += function.call_work();
    }
    warp.join();
    NEXT
}

/// Visits each register that a function saves, with its offset in the frame.
fn saved(function: &Function, mut each: impl FnMut(u32, File, u16)) {
    let mut at = function.saved_at;
    for &(file, slot) in &function.saved {
        each(at, file, slot);
        at += if file == File::B64 { 8 } else { 4 };
    }
}

fn save(warp: &Warp, mask: u32, at: u32, file: File, slot: u16) {
    let slot = usize::from(slot);
    for lane in lanes_of(mask) {
        let place = lane as u64 * warp.stride + u64::from(at);
        match file {
            File::Pred => warp.local.store32(place, warp.registers.pred[slot] >> lane & 1),
            File::B32 => warp.local.store32(place, warp.registers.b32[slot][lane]),
            File::B64 => warp.local.store64(place, warp.registers.b64[slot][lane]),
        }
    }
}

fn restore(warp: &mut Warp, mask: u32, at: u32, file: File, slot: u16) {
    let Warp { registers, local, stride, .. } = warp;
    registers.set_lanes(file, slot, mask, |lane| {
        let place = lane as u64 * *stride + u64::from(at);
        if file == File::B64 { local.load64(place) } else { u64::from(local.load32(place)) }
    });
}

/// Copies bytes within the local memory of each lane.
fn copy(local: &Scratch, stride: u64, mask: u32, from: u32, to: u32, bytes: u32) {
    let words = if from.is_multiple_of(4) && to.is_multiple_of(4) { bytes / 4 } else { 0 };
    for lane in lanes_of(mask) {
        let start = lane as u64 * stride;
        let (from, to) = (start + u64::from(from), start + u64::from(to));
        for word in 0..u64::from(words) {
            local.store32(to + 4 * word, local.load32(from + 4 * word));
        }
        for byte in u64::from(4 * words)..u64::from(bytes) {
            local.store8(to + byte, local.load8(from + byte));
        }
    }
}

/// Makes sure that every lane has `bytes` bytes of local memory; returns false if the host has too
/// little.
fn reserve(warp: &mut Warp, bytes: u64) -> bool {
    if bytes <= warp.stride {
        return true;
    }
    // The size doubles each time, so even a deep recursion is copied only a few times.
    let stride = bytes.next_power_of_two();
    let Some(larger) = super::block::poisoned(LANES as u64 * stride) else { return false };
    warp.work += LANES as u64 * stride / GROWN_BYTES;
    for lane in 0..LANES as u64 {
        for offset in (0..warp.stride).step_by(4) {
            larger.store32(lane * stride + offset, warp.local.load32(lane * warp.stride + offset));
        }
    }
    (warp.local, warp.stride) = (larger, stride);
    true
}

/// The offset of a frame's item in each lane's local memory.
fn place(warp: &Warp, offset: i32) -> u64 {
    u64::from(warp.frame.base).wrapping_add_signed(i64::from(offset))
}

/// The offsets of a frame's item in local memory, for all lanes.
fn places(warp: &Warp, offset: i32) -> [u64; LANES] {
    each(|lane| lane as u64 * warp.stride + place(warp, offset))
}

/// `ld.param` in a function: loads an argument, or the result of a call.
pub(super) fn load(_: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    in_local(warp, issue, &[place(warp, issue.ins.imm); LANES], Load)
}

/// `st.param`
pub(super) fn store(_: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    in_local(warp, issue, &[place(warp, issue.ins.imm); LANES], Store)
}

/// The address of a function's variable.
pub(super) fn address64(_: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    warp.registers.write64(ins.d, &[place(warp, ins.imm); LANES], mask);
    NEXT
}

/// The same address in 32 bits.
pub(super) fn address32(_: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    warp.registers.write32(ins.d, &[warp.frame.base.wrapping_add_signed(ins.imm); LANES], mask);
    NEXT
}

/// A numeric argument of a call, for each lane.
pub(super) fn passed(warp: &Warp, layout: &Layout, index: usize) -> [u64; LANES] {
    let (offset, bytes) = layout.params[index];
    let places = places(warp, offset as i32);
    each(|lane| match bytes {
        8 => warp.local.load64(places[lane]),
        _ => u64::from(warp.local.load32(places[lane])),
    })
}

/// Stores the numeric result of a call.
pub(super) fn give(warp: &mut Warp, layout: &Layout, mask: u32, value: impl Fn(usize) -> u64) {
    let (offset, bytes) = layout.results[0];
    let places = places(warp, offset as i32);
    for lane in lanes_of(mask) {
        match bytes {
            8 => warp.local.store64(places[lane], value(lane)),
            _ => warp.local.store32(places[lane], value(lane) as u32),
        }
    }
}
