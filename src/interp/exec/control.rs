//! Instructions that steer a warp, and those that look at it.

use std::sync::atomic::{self, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::registers::{LANES, Value};
use super::warp::{Halt, Wait, Warp};
use super::{Context, Fault, Flow, observe};
use crate::interp::code::Ins;
use crate::interp::stop::Reason;

/// Named barriers of a block.
const BARRIERS: u32 = 16;

/// Lanes of `taken` go to the target, the others on.
#[inline(always)]
pub(super) fn branch(cx: &mut Context, warp: &mut Warp, ins: &Ins, taken: u32) -> Flow {
    if taken == warp.mask {
        warp.pc = ins.imm as u32;
    } else {
        let meet = cx.code.reconvergence[warp.pc as usize - 1];
        warp.diverge(taken, ins.imm as u32, meet);
    }
    Flow::Next
}

#[inline(always)]
pub(super) fn exit(_: &mut Context, warp: &mut Warp, _: &Ins, lanes: u32) -> Flow {
    warp.exit(lanes)
}

pub(super) fn trap(_: &mut Context, _: &mut Warp, _: &Ins, mask: u32) -> Flow {
    Flow::Stop(Fault::new(mask.trailing_zeros(), Reason::Trap))
}

/// `barrier.sync`: the warp waits once all of its lanes do, wherever they are.
pub(super) fn barrier(_: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    arrive(warp, ins, mask, false)
}

/// `bar.sync`: the warp waits once all of its lanes do, at this instruction.
pub(super) fn aligned_barrier(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    if let Some(checker) = &mut cx.checker {
        checker.aligned_barrier(cx.warp, warp.pc - 1, mask, warp.live);
    }
    arrive(warp, ins, mask, true)
}

fn arrive(warp: &mut Warp, ins: &Ins, mask: u32, aligned: bool) -> Flow {
    let lane = mask.trailing_zeros();
    let [numbers, counts] = [ins.s[0], ins.s[1]].map(|slot| u32::read(&warp.registers, slot));
    let (barrier, threads) = (numbers[lane as usize], counts[lane as usize]);
    let differs = |other: usize| mask >> other & 1 == 1 && (numbers[other], counts[other]) != (barrier, threads);
    if let Some(other) = (0..LANES).find(|&other| differs(other)) {
        let (lanes, barriers) = ([lane, other as u32], [barrier, numbers[other]]);
        return Flow::Stop(Fault::new(lane, Reason::MixedBarrier { lanes, barriers }));
    }
    if barrier >= BARRIERS || threads % LANES as u32 != 0 {
        return Flow::Stop(Fault::new(lane, Reason::BadBarrier { barrier, threads }));
    }
    let wait = Wait { barrier, threads };
    if mask != warp.live {
        return warp.park(mask, Halt::Block { wait, aligned });
    }
    warp.wait = Some(wait);
    Flow::Yield
}

/// `bar.warp.sync`: lanes wait for those that their mask names.
pub(super) fn warp_sync(cx: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    let members = u32::read(&warp.registers, ins.s[0])[mask.trailing_zeros() as usize];
    if let Some(checker) = &mut cx.checker {
        checker.members(cx.warp, warp.pc - 1, mask, members);
    }
    if members & warp.live & !mask != 0 {
        return warp.park(mask, Halt::Lanes(members));
    }
    warp.meet(mask);
    Flow::Next
}

/// Orders what this host thread's blocks do to global memory for those of others.
pub(super) fn fence(cx: &mut Context, warp: &mut Warp, _: &Ins, _: u32) -> Flow {
    atomic::fence(Ordering::SeqCst);
    observe::fence(cx, warp);
    Flow::Next
}

/// Warp instructions so far stand for cycles.
pub(super) fn clock(_: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    warp.registers.write32(ins.d, &[warp.issued as u32; LANES], mask);
    Flow::Next
}

pub(super) fn clock64(_: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    warp.registers.write64(ins.d, &[warp.issued; LANES], mask);
    Flow::Next
}

/// The host's time in nanoseconds.
pub(super) fn global_timer(_: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    warp.registers.write64(ins.d, &[nanoseconds(); LANES], mask);
    Flow::Next
}

pub(super) fn global_timer_low(_: &mut Context, warp: &mut Warp, ins: &Ins, mask: u32) -> Flow {
    warp.registers.write32(ins.d, &[nanoseconds() as u32; LANES], mask);
    Flow::Next
}

fn nanoseconds() -> u64 {
    // A clock set before 1970 reads 0.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
