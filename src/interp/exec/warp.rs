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
    /// Bytes from one lane's local memory to the next one's.
    pub(super) stride: u64,
    /// What of it the function has that runs.
    pub(super) frame: Frame,
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

/// The part of a thread's local memory that an activation of a function has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Frame {
    pub(super) base: u32,
    /// Its end, and that of the memory in use.
    pub(super) end: u32,
}

/// Lanes that are to go on at a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) mask: u32,
    pub(super) at: Point,
}

/// Where lanes are: where they go on, where they meet others then, and with which frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) pc: u32,
    pub(super) meet: u32,
    pub(super) frame: Frame,
}

/// Lanes at a barrier.
#[derive(Debug)]
struct Parked {
    /// Where they go on.
    at: Point,
    mask: u32,
    halt: Halt,
    /// The places on the stack where they meet others or return to, outermost first.
    outer: Vec<Point>,
}

impl Parked {
    /// The places that they return to from functions. Where lanes meet others it is at the enclosing place; a function
    /// begins with none.
    fn returns(&self) -> Vec<u32> {
        let inner = self.outer.iter().skip(1).chain([&self.at]);
        let calls = self.outer.iter().zip(inner).filter(|(_, inner)| inner.meet == NOWHERE);
        calls.map(|(outer, _)| outer.pc).collect()
    }
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
    pub(super) fn new(registers: Registers, local: Scratch, stride: u64, sites: usize) -> Self {
        Self {
            registers,
            local,
            stride,
            frame: Frame::default(),
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

    /// Back to the kernel's first instruction with the lanes of `live`, which have `local_bytes` of local memory. Registers
    /// stay as they are.
    pub(super) fn restart(&mut self, live: u32, local_bytes: u32) {
        (self.pc, self.mask, self.live, self.meet) = (0, live, live, NOWHERE);
        self.frame = Frame { base: 0, end: local_bytes };
        (self.wait, self.issued, self.lanes_issued) = (None, 0, 0);
        self.executions.fill(0);
        self.stack.clear();
        self.parked.clear();
    }

    /// Parts the lanes: those of `taken` to `target`, the rest to the next instruction, together again at `meet`.
    pub(super) fn diverge(&mut self, taken: u32, target: u32, meet: u32) {
        let meet = self.part(meet);
        self.mask &= !taken;
        if self.pc == meet {
            (self.pc, self.mask) = (target, taken);
        } else if target != meet {
            self.later(target, taken);
        }
    }

    /// Parts the lanes into `groups` of a pc and a mask each, together again at `meet`.
    pub(super) fn scatter(&mut self, groups: &[(u32, u32)], meet: u32) {
        let meet = self.part(meet);
        groups.iter().filter(|(pc, _)| *pc != meet).for_each(|&(pc, mask)| self.later(pc, mask));
        self.join();
    }

    /// Has the lanes go on together at `meet` when they have been parted.
    #[inline(always)]
    fn part(&mut self, meet: u32) -> u32 {
        // Lanes that never meet again before their end still wait for whom the enclosing branch parted.
        let meet = if meet == NOWHERE { self.meet } else { meet };
        // Where the enclosing branch's lanes meet at the same place, they wait there already.
        if meet != self.meet {
            let at = Point { pc: meet, meet: self.meet, frame: self.frame };
            self.stack.push(Path { mask: self.mask, at });
        }
        self.meet = meet;
        meet
    }

    /// Has lanes go on at `pc` when those that run have come to where they meet.
    #[inline(always)]
    pub(super) fn later(&mut self, pc: u32, mask: u32) {
        self.stack.push(Path { mask, at: Point { pc, meet: self.meet, frame: self.frame } });
    }

    /// Has lanes begin or return somewhere else, when those that run have ended what they do.
    pub(super) fn push(&mut self, path: Path) {
        self.stack.push(path);
    }

    /// Where the function that ends returns to.
    pub(super) fn caller(&self) -> Option<Point> {
        self.stack.last().map(|path| path.at)
    }

    /// The lanes have come to where they meet others: on with the next path. Whether there was one.
    #[cold]
    pub(super) fn join(&mut self) -> bool {
        while let Some(Path { mask, at }) = self.stack.pop() {
            let mask = mask & self.live;
            if mask != 0 {
                (self.pc, self.mask, self.meet, self.frame) = (at.pc, mask, at.meet, at.frame);
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
    pub(super) fn park(&mut self, lanes: u32, halt: Halt) -> Flow {
        let outer = self.stack.iter().filter(|path| path.mask & lanes != 0).map(|path| path.at).collect();
        self.stack.iter_mut().for_each(|path| path.mask &= !lanes);
        let at = Point { pc: self.pc, meet: self.meet, frame: self.frame };
        self.parked.push(Parked { at, mask: lanes, halt, outer });
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
        let Some(&Parked { at: Point { pc, .. }, halt, mask, .. }) = self.parked.first() else { return Flow::Yield };
        let synced = self.parked.iter().filter(|parked| matches!(parked.halt, Halt::Lanes(_)));
        let absent = self.live & !synced.fold(0, |lanes, parked| lanes | parked.mask);
        let complete = |parked: &mut Parked| matches!(parked.halt, Halt::Lanes(members) if members & absent == 0);
        let released: Vec<Parked> = self.parked.extract_if(.., complete).collect();
        if !released.is_empty() {
            self.resume(released);
            return Flow::Next;
        }
        self.pc = pc;
        if let Halt::Block { wait, aligned } = halt
            && self.parked.iter().all(|parked| parked.halt == halt && (parked.at.pc == pc || !aligned))
        {
            self.wait = Some(wait);
            return Flow::Yield;
        }
        let same = self.parked.iter().filter(|parked| parked.at.pc == pc && parked.halt == halt);
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

    /// Puts parked lanes back on the empty stack, so that they meet where they were to: those at one place in one activation
    /// at once, the others path by path. Outer places that they share become one.
    fn resume(&mut self, mut groups: Vec<Parked>) {
        groups.sort_by_key(|group| (group.at.pc, group.returns()));
        groups.dedup_by(|next, group| {
            let same = next.at.pc == group.at.pc && next.returns() == group.returns();
            group.mask |= if same { next.mask } else { 0 };
            same
        });
        groups.sort_by(|a, b| a.outer.cmp(&b.outer));
        let mut open: &[Point] = &[];
        for (index, group) in groups.iter().enumerate() {
            let known = open.iter().zip(&group.outer).take_while(|(a, b)| a == b).count();
            for depth in known..group.outer.len() {
                let inside = groups[index..].iter().take_while(|other| other.outer.starts_with(&group.outer[..=depth]));
                let mask = inside.fold(0, |lanes, other| lanes | other.mask);
                self.stack.push(Path { mask, at: group.outer[depth] });
            }
            open = &group.outer;
            if group.at.pc != group.at.meet {
                self.stack.push(Path { mask: group.mask, at: group.at });
            }
        }
        self.join();
    }
}
