//! A warp: 32 lanes under one program counter, and the stack that divergence leaves.
//!
//! Where lanes part at a branch, one path runs until the branch's immediate post-dominator, then the other, and there they
//! go on together. The stack is the classic one, as in GPGPU-Sim's `simt_stack`; its top is the warp's own fields.

use super::patterns::Patterns;
use super::registers::Registers;
use crate::interp::code::NOWHERE;
use crate::interp::mem::cells::Scratch;

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
    /// The barrier that holds the warp.
    pub(super) wait: Option<Wait>,
    /// Warp instructions executed in this block.
    pub(super) issued: u64,
    /// The same, times active lanes.
    pub(super) lanes_issued: u64,
}

#[derive(Debug, Clone, Copy)]
struct Path {
    pc: u32,
    mask: u32,
    meet: u32,
}

/// A barrier waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) barrier: u32,
    /// How many threads it waits for, or 0 for all.
    pub(super) threads: u32,
}

impl Warp {
    pub(super) fn new(registers: Registers, local: Scratch) -> Self {
        Self {
            registers,
            local,
            patterns: Patterns::new(),
            pc: 0,
            mask: 0,
            meet: NOWHERE,
            live: 0,
            stack: Vec::new(),
            wait: None,
            issued: 0,
            lanes_issued: 0,
        }
    }

    /// Back to the kernel's first instruction with the lanes of `live`. Registers stay as they are.
    pub(super) fn restart(&mut self, live: u32) {
        (self.pc, self.mask, self.live, self.meet) = (0, live, live, NOWHERE);
        (self.wait, self.issued, self.lanes_issued) = (None, 0, 0);
        self.stack.clear();
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

    /// Ends the lanes of `lanes`. Whether they were the last.
    pub(super) fn exit(&mut self, lanes: u32) -> bool {
        self.live &= !lanes;
        self.mask &= !lanes;
        self.mask == 0 && !self.join()
    }
}
