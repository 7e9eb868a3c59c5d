//! Groups the loads for which a warp waits at once: how often a kernel waits for memory decides how
//! many bytes it keeps in flight.
//!
//! Loads from global memory that need nothing from each other are in flight together, and a warp
//! waits for them once: they are a round. So a load has a depth: the number of loads that must have
//! ended before it can begin, because its address comes from them, or because a barrier, a branch
//! or a store stands between that waits for them. NVIDIA's assembler moves loads up to where their
//! operands are known, but not across these. Loads of one depth are a round, if no barrier and no
//! end of a loop stands between them.

use std::collections::{HashMap, HashSet};

use super::{Slot, Touched};
use crate::gpu::code::{Code, Ins};
use crate::gpu::isa::{self, Op, Shape};
use crate::gpu::vocabulary::{AccessKind, Space};

/// Numbers the rounds of the code's sites. `may_pass` tells which loads, by their pc, may pass
/// earlier stores.
pub(super) fn number(code: &mut Code, touched: &[Touched], may_pass: impl Fn(usize) -> bool) {
    let branches = code.instructions.iter().enumerate().filter(|(_, ins)| ins.op == Op::Bra);
    let back = branches.map(|(pc, ins)| (pc, ins.imm as usize)).filter(|(pc, target)| target <= pc);
    let (ends, heads): (HashSet<usize>, HashSet<usize>) = back.unzip();
    let mut walk = Walk::default();
    for (pc, touched) in touched.iter().enumerate().take(code.instructions.len()) {
        if heads.contains(&pc) {
            walk.rounds.clear();
        }
        let ins = code.instructions[pc];
        let waits = code.sites.get(ins.site as usize).filter(|site| site.pc as usize == pc).is_some_and(|site| {
            let is_global = matches!(ins.access.space, None | Some(Space::Global));
            is_global && matches!(site.kind, AccessKind::Load | AccessKind::Atomic) && ins.op != Op::CopyWrite
        });
        if waits {
            code.sites[ins.site as usize].round = Some(walk.load(&ins, touched, may_pass(pc)));
        } else {
            walk.step(&ins, touched);
        }
        if ends.contains(&pc) || is_barrier(&ins) {
            walk.rounds.clear();
        }
    }
}

fn is_barrier(ins: &Ins) -> bool {
    matches!(isa::FORMS[ins.op as usize].shape, Shape::Barrier | Shape::BarrierCount | Shape::BarrierVote)
}

/// A walk through the code in its order.
#[derive(Default)]
struct Walk {
    /// The depth of the values in registers; 0 if no load comes before them.
    depths: HashMap<Slot, u32>,
    /// The least depth of the next instruction.
    now: u32,
    /// The depth of what was stored in global memory, which a load does not pass.
    stored: u32,
    /// The depth of what was stored in shared memory, for which a barrier waits.
    shared: u32,
    /// The depth of the copies to shared memory that are under way.
    copies: u32,
    /// The round of each depth, since the last barrier or head of a loop.
    rounds: HashMap<u32, u32>,
    /// The number of rounds in all.
    count: u32,
}

impl Walk {
    /// Passes a load for which a warp waits, and returns its round.
    fn load(&mut self, ins: &Ins, touched: &Touched, may_pass: bool) -> u32 {
        let depth = self.depth(touched).max(self.now).max(if may_pass { 0 } else { self.stored });
        if ins.op == Op::CopyRead {
            self.copies = self.copies.max(depth + 1);
        }
        self.write(touched, depth + 1);
        let count = &mut self.count;
        *self.rounds.entry(depth).or_insert_with(|| {
            *count += 1;
            *count - 1
        })
    }

    /// Passes another instruction.
    fn step(&mut self, ins: &Ins, touched: &Touched) {
        let depth = self.depth(touched);
        let to_shared = ins.access.space == Some(Space::Shared);
        match isa::FORMS[ins.op as usize].shape {
            Shape::Store | Shape::Atomic(_) if to_shared => self.shared = self.shared.max(depth),
            Shape::Store | Shape::Atomic(_) => self.stored = self.stored.max(depth),
            Shape::Branch | Shape::BranchTable | Shape::Exit => self.now = self.now.max(depth),
            Shape::CopyWait => self.wait_for_copies(),
            _ if ins.op == Op::CopyWaitAll => self.wait_for_copies(),
            _ if is_barrier(ins) => self.now = self.now.max(self.shared),
            _ => {}
        }
        self.write(touched, depth.max(self.now));
    }

    fn wait_for_copies(&mut self) {
        self.now = self.now.max(std::mem::take(&mut self.copies));
    }

    /// The depth at which the operands of an instruction are known.
    fn depth(&self, touched: &Touched) -> u32 {
        touched.reads.iter().filter_map(|slot| self.depths.get(slot)).copied().max().unwrap_or(0)
    }

    fn write(&mut self, touched: &Touched, depth: u32) {
        for slot in &touched.writes {
            let old = self.depths.get(slot).copied().filter(|_| touched.conditional);
            self.depths.insert(*slot, depth.max(old.unwrap_or(0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::gpu::{Args, Config, Memory, Module, run};
    use crate::launch_shape::LaunchShape;

    /// Returns how often one warp waits, in a kernel with this body.
    fn rounds(body: &str) -> u64 {
        let text = format!(
            ".version 7.0 .target sm_80 .address_size 64
            .visible .entry k(.param .u64 a) {{
                .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
                .shared .align 4 .b32 tile[64];
                ld.param.u64 %rd1, [a];
                {body}
                ret;
            }}"
        );
        let module = Module::parse(&text).unwrap();
        let kernel = module.kernel("k").unwrap();
        let memory = Memory::new(1 << 20);
        let params = Args::new(kernel).value(memory.upload(&[0_u32; 256]).unwrap()).unwrap().finish().unwrap();
        let shape = LaunchShape { grid: [1; 3], block: [32, 1, 1], dynamic_shared: 0 };
        run(kernel, &shape, &params, &memory, &Config::default()).unwrap().rounds()
    }

    #[test]
    fn loads_that_need_nothing_from_each_other_are_one_round() {
        assert_eq!(rounds(""), 0);
        assert_eq!(rounds("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; add.u32 %r3, %r1, %r2;"), 1);
        // Shared memory is near.
        assert_eq!(rounds("ld.global.u32 %r1, [%rd1]; st.shared.u32 [tile], %r1; ld.shared.u32 %r2, [tile];"), 1);
        assert_eq!(rounds("cvta.shared.u64 %rd2, tile; st.u32 [%rd2], 1; ld.u32 %r1, [%rd2];"), 0);
    }

    #[test]
    fn a_load_waits_for_its_address_for_stores_and_for_barriers() {
        let chased =
            "ld.global.u32 %r1, [%rd1]; cvt.u64.u32 %rd2, %r1; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r2, [%rd3];";
        assert_eq!(rounds(chased), 2);
        let stored = "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1; ld.global.u32 %r2, [%rd1+4];";
        assert_eq!(rounds(stored), 2);
        assert_eq!(rounds(&stored.replace("ld.global.u32 %r2", "ld.global.nc.u32 %r2")), 1);
        let tiles = "ld.global.u32 %r1, [%rd1]; st.shared.u32 [tile], %r1; bar.sync 0; ld.global.u32 %r2, [%rd1+4];";
        assert_eq!(rounds(tiles), 2);
    }

    #[test]
    fn each_turn_of_a_loop_waits() {
        let looped = "mov.u32 %r2, 0;
            again: ld.global.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 5; @%p1 bra again;";
        assert_eq!(rounds(looped), 5);
        let four = "mov.u32 %r2, 0;
            again: ld.global.u32 %r1, [%rd1]; ld.global.u32 %r3, [%rd1+4]; add.u32 %r2, %r2, 1;
            setp.lt.u32 %p1, %r2, 5; @%p1 bra again;";
        assert_eq!(rounds(four), 5);
    }
}
