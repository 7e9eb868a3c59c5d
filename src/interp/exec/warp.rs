//! A warp: 32 lanes under one program counter, and the stack that divergence leaves.
//!
//! Where lanes part at a branch, one path runs until the branch's immediate post-dominator, then the other, and there they
//! go on together. The stack is the classic one, as in GPGPU-Sim's `simt_stack`; its top is the warp's own fields.
//!
//! A barrier that only some lanes reach parks them, and the other paths run on without waiting for them: since Volta each
//! thread arrives for itself. When nothing is left to run, `settle` looks whether those who are parked wait for each other.

use super::patterns::Patterns;
use super::registers::Registers;
use super::{Fault, Flow};
use crate::interp::code::NOWHERE;
use crate::interp::mem::cells::Scratch;
use crate::interp::stop::Reason;

/// One warp.
#[derive(Debug)]
pub(super) struct Warp {
    pub(super) registers: Registers,
    /// Local memory of all lanes, one lane's after the other's.
    pub(super) local: Scratch,
    /// What its accesses to shared memory cost last.
    pub(super) patterns: Patterns,
    /// The next instruction.
    pub(super) pc: u32,
    /// Lanes that execute it.
    pub(super) mask: u32,
    /// Where they wait for others.
    pub(super) meet: u32,
    /// Lanes that have not ended.
    pub(super) live: u32,
    /// Paths to run later.
    stack: Vec<Path>,
    /// Lanes that a barrier holds while others of the warp run.
    parked: Vec<Parked>,
    /// The barrier that holds the warp.
    pub(super) wait: Option<Wait>,
    /// Warp instructions executed in this block.
    pub(super) issued: u64,
    /// The same, times active lanes.
    pub(super) lanes_issued: u64,
    /// For each of the code's sites, how many times the warp executed it in this block.
    pub(super) executions: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Path {
    pc: u32,
    mask: u32,
    meet: u32,
}

/// Lanes at a barrier.
#[derive(Debug)]
struct Parked {
    /// Where they go on.
    pc: u32,
    mask: u32,
    at: Halt,
    /// Where they are to meet others, outermost first: [`NOWHERE`] and what was on the stack.
    meets: Vec<u32>,
}

/// What lanes can be parked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// A barrier of the block. An aligned one wants all lanes of the warp at the same instruction.
    Block { wait: Wait, aligned: bool },
    /// A barrier of these lanes of the warp.
    Lanes(u32),
}

/// A barrier waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) barrier: u32,
    /// How many threads it waits for, or 0 for all.
    pub(super) threads: u32,
}

impl Warp {
    pub(super) fn new(registers: Registers, local: Scratch, sites: usize) -> Self {
        Self {
            registers,
            local,
            patterns: Patterns::new(),
            pc: 0,
            mask: 0,
            meet: NOWHERE,
            live: 0,
            stack: Vec::new(),
            parked: Vec::new(),
            wait: None,
            issued: 0,
            lanes_issued: 0,
            executions: vec![0; sites],
        }
    }

    /// Back to the kernel's first instruction with the lanes of `live`. Registers stay as they are.
    pub(super) fn restart(&mut self, live: u32) {
        (self.pc, self.mask, self.live, self.meet) = (0, live, live, NOWHERE);
        (self.wait, self.issued, self.lanes_issued) = (None, 0, 0);
        self.executions.fill(0);
        self.stack.clear();
        self.parked.clear();
    }

    /// Parts the lanes: those of `taken` to `target`, the rest to the next instruction, together again at `meet`.
    pub(super) fn diverge(&mut self, taken: u32, target: u32, meet: u32) {
        // Lanes that never meet again before their end still wait for whom the enclosing branch parted.
        let meet = if meet == NOWHERE { self.meet } else { meet };
        let rest = self.mask & !taken;
        // Where the enclosing branch's lanes meet at the same place, they wait there already.
        if meet != self.meet {
            self.stack.push(Path { pc: meet, mask: self.mask, meet: self.meet });
        }
        (self.meet, self.mask) = (meet, rest);
        if self.pc == meet {
            (self.pc, self.mask) = (target, taken);
        } else if target != meet {
            self.stack.push(Path { pc: target, mask: taken, meet });
        }
    }

    /// The lanes have come to where they meet others: on with the next path. Whether there was one.
    #[cold]
    pub(super) fn join(&mut self) -> bool {
        while let Some(path) = self.stack.pop() {
            let mask = path.mask & self.live;
            if mask != 0 {
                (self.pc, self.mask, self.meet) = (path.pc, mask, path.meet);
                return true;
            }
        }
        false
    }

    /// Ends the lanes of `lanes`.
    pub(super) fn exit(&mut self, lanes: u32) -> Flow {
        self.live &= !lanes;
        self.leave(lanes)
    }

    /// Holds the lanes of `lanes` at a barrier that others of the warp have not reached.
    pub(super) fn park(&mut self, lanes: u32, at: Halt) -> Flow {
        let enclosing = self.stack.iter().filter(|path| path.mask & lanes != 0).map(|path| path.meet);
        let mut meets: Vec<u32> = enclosing.chain([self.meet]).collect();
        meets.dedup();
        self.stack.iter_mut().for_each(|path| path.mask &= !lanes);
        self.parked.push(Parked { pc: self.pc, mask: lanes, at, meets });
        self.leave(lanes)
    }

    /// On without the lanes of `lanes`.
    fn leave(&mut self, lanes: u32) -> Flow {
        self.mask &= !lanes;
        if self.mask != 0 || self.join() { Flow::Next } else { self.settle() }
    }

    /// Every lane is parked or has ended: lets go on who waits for nobody else, or has the warp wait for others.
    #[cold]
    fn settle(&mut self) -> Flow {
        let Some(&Parked { pc, at, mask, .. }) = self.parked.first() else { return Flow::Yield };
        let synced = self.parked.iter().filter(|parked| matches!(parked.at, Halt::Lanes(_)));
        let absent = self.live & !synced.fold(0, |lanes, parked| lanes | parked.mask);
        let complete = |parked: &mut Parked| matches!(parked.at, Halt::Lanes(members) if members & absent == 0);
        let released: Vec<Parked> = self.parked.extract_if(.., complete).collect();
        if !released.is_empty() {
            self.resume(released);
            return Flow::Next;
        }
        self.pc = pc;
        if let Halt::Block { wait, aligned } = at
            && self.parked.iter().all(|parked| parked.at == at && (parked.pc == pc || !aligned))
        {
            self.wait = Some(wait);
            return Flow::Yield;
        }
        let same = self.parked.iter().filter(|parked| parked.pc == pc && parked.at == at);
        let arrived = same.fold(0, |lanes, parked| lanes | parked.mask);
        let reason = Reason::DivergentBarrier { arrived, elsewhere: self.live & !arrived };
        Flow::Stop(Fault::new(mask.trailing_zeros(), reason))
    }

    /// The block's barrier is complete.
    pub(super) fn release(&mut self) {
        self.wait = None;
        if !self.parked.is_empty() {
            let parked = std::mem::take(&mut self.parked);
            self.resume(parked);
        }
    }

    /// Puts parked lanes back on the empty stack, so that they meet where they were to: those at one place at once, the
    /// others path by path. Meeting places that they share become one.
    fn resume(&mut self, mut groups: Vec<Parked>) {
        groups.sort_by_key(|group| group.pc);
        groups.dedup_by(|next, group| {
            let same = next.pc == group.pc;
            group.mask |= if same { next.mask } else { 0 };
            same
        });
        groups.sort_by(|a, b| a.meets.cmp(&b.meets));
        let mut open: &[u32] = &[NOWHERE];
        for (index, group) in groups.iter().enumerate() {
            let known = open.iter().zip(&group.meets).take_while(|(a, b)| a == b).count();
            for depth in known..group.meets.len() {
                let inside = groups[index..].iter().take_while(|other| other.meets.starts_with(&group.meets[..=depth]));
                let mask = inside.fold(0, |lanes, other| lanes | other.mask);
                self.stack.push(Path { pc: group.meets[depth], mask, meet: group.meets[depth - 1] });
            }
            open = &group.meets;
            let meet = open.last().copied().unwrap_or(NOWHERE);
            if group.pc != meet {
                self.stack.push(Path { pc: group.pc, mask: group.mask, meet });
            }
        }
        self.join();
    }
}
