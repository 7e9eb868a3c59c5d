//! Instructions that control a warp, and instructions that read its state.

use std::sync::atomic::{self, Ordering};
use std::time::Duration;

use super::registers::Value;
use super::warp::Warp;
use super::{Context, Fault, Flow, Issue, NEXT, observe};
use crate::gpu::reason::Reason;
use crate::gpu::vocabulary::lanes_of;

/// Sends the lanes of `taken` to the target and the others to the next instruction.
#[inline(always)]
pub(super) fn branch(cx: &mut Context, warp: &mut Warp, Issue { ins, mask: taken }: Issue) -> Flow {
    if taken == warp.mask {
        warp.jump(ins.imm as u32);
    } else {
        let meet = cx.code.reconvergence[warp.pc as usize - 1];
        warp.diverge(taken, ins.imm as u32, meet);
    }
    NEXT
}

/// `brx.idx`: sends each lane to the target that its index selects.
pub(super) fn branch_table(cx: &mut Context, warp: &mut Warp, Issue { ins, mask }: Issue) -> Flow {
    let targets = &cx.code.tables[ins.imm as usize];
    let indices = u32::read(&warp.registers, ins.s[0]);
    let mut groups = vec![(warp.pc, warp.mask & !mask)];
    for lane in lanes_of(mask) {
        let index = indices[lane];
        let Some(&target) = targets.get(index as usize) else {
            let reason = Reason::BranchIndex { index, targets: targets.len() as u32 };
            return Err(Fault::new(lane as u32, reason).into());
        };
        match groups.iter_mut().find(|(pc, _)| *pc == target) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => groups.push((target, 1 << lane)),
        }
    }
    groups.retain(|&(_, lanes)| lanes != 0);
    let meet = cx.code.reconvergence[warp.pc as usize - 1];
    match groups[..] {
        [(pc, _)] => warp.jump(pc),
        _ => warp.scatter(&groups, meet),
    }
    NEXT
}

#[inline(always)]
pub(super) fn exit(_: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    warp.exit(issue.mask)
}

pub(super) fn trap(_: &mut Context, _: &mut Warp, Issue { mask, .. }: Issue) -> Flow {
    Err(Fault::new(mask.trailing_zeros(), Reason::Trap).into())
}

/// Orders the accesses of this host thread's blocks to global memory for the blocks of other
/// threads.
pub(super) fn fence(cx: &mut Context, warp: &mut Warp, issue: Issue) -> Flow {
    atomic::fence(Ordering::SeqCst);
    observe::fence(cx, warp, issue);
    warp.poll()
}

/// `nanosleep`: a sleeping warp waits for others.
pub(super) fn sleep(_: &mut Context, warp: &mut Warp, _: Issue) -> Flow {
    warp.poll()
}

/// Instructions without effect here: cache hints, and the control of overlapping launches.
pub(super) fn nothing(_: &mut Context, _: &mut Warp, _: Issue) -> Flow {
    NEXT
}

/// Reads a special register, which has one value for the warp.
pub(super) fn read<T: Value>(warp: &mut Warp, Issue { ins, mask }: Issue, value: impl Fn(&Warp) -> T) -> Flow {
    let value = value(warp);
    T::write(&mut warp.registers, ins.d, &T::row(|_| value), mask);
    NEXT
}

/// The host's time in nanoseconds.
pub(super) fn nanoseconds(warp: &Warp) -> u64 {
    // Without a clock time passes as on `%clock`, so that a thread that waits for it gets there.
    since_1970().map_or(warp.issued, |time| time.as_nanos() as u64)
}

/// Time since 1970, by a clock that may be set; `None` where it is set before 1970, and in
/// WebAssembly without a system, where there is no clock and the standard library panics.
fn since_1970() -> Option<Duration> {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    return std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok();
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    return None;
}
