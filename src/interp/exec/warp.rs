//! A warp: 32 lanes under one program counter, and the stack that divergence leaves.
//!
//! Where lanes part at a branch, one path runs until the branch's immediate post-dominator, then the other, and there they
//! go on together. The stack is the classic one, as in GPGPU-Sim's `simt_stack`; its top is the warp's own fields.
//!
//! A barrier that only some lanes reach parks them, and the other paths run on without waiting for them: since Volta each
//! thread arrives for itself. When nothing is left to run, `settle` looks whether those who are parked wait for each other.

use super::barrier::{BARRIERS, Vote, Wait};
use super::exchange::{self, Offer};
use super::patterns::Patterns;
use super::registers::Registers;
use super::tally::{Executed, Seen};
use super::{Fault, Flow};
use crate::interp::code::{Ins, NOWHERE};
use crate::interp::isa::Op;
use crate::interp::mem::cells::Scratch;
use crate::interp::reason::Reason;
use crate::interp::vocabulary::{FULL, LANES};

/// Looks at memory in vain, after which others have their turn.
const PATIENCE: u32 = 1 << 8;
/// The same of a warp that has waited before, and of one that waits still when its block has
/// another turn.
const LESS_PATIENCE: u32 = 16;
const LEAST_PATIENCE: u32 = 2;
/// The work of having lanes wait for others, or go on in another order, besides that for each place on the stack.
const REORDER_WORK: u64 = 64;
/// Places on the stack that are a unit of work to look at.
const PLACES: u64 = 4;

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
    /// Lanes whose predicate holds in the reduction that the warp waits for.
    pub(super) votes: u32,
    /// Registers that its result goes to, and in which lanes.
    pub(super) results: Vec<(u16, u32)>,
    /// Of each barrier of the block, the lanes that have arrived without waiting.
    pub(super) arrived: [u32; BARRIERS],
    /// Looks at memory since one of them saw something new or changed it: atomics, and loads that
    /// may not be cached.
    polls: u32,
    /// How many of them there may be.
    patience: u32,
    /// Whether there was one in this turn of the block.
    pub(super) has_looked: bool,
    /// Lanes of which some wait for memory to change, and others have gone on meanwhile from where
    /// they were to meet them. Hardware may hold those there: none is missing at a barrier that the
    /// others come to.
    parted: u32,
    /// Whether there were so many of them that it waits for others.
    pub(super) waits: bool,
    /// Work done in this block.
    pub(super) work: u64,
    /// Warp instructions executed in this block.
    pub(super) issued: u64,
    /// The same, times active lanes.
    pub(super) lanes_issued: u64,
    /// Where checkers look: of the barriers within the warp that they have yet to be shown, the lanes, and whether no others were
    /// left.
    pub(super) synced: Vec<(u32, bool)>,
    /// Whether they do.
    checked: bool,
    /// For each of the code's sites, how the warp executed it in this block.
    pub(super) executed: Vec<Executed>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Point {
    pub(super) pc: u32,
    pub(super) meet: u32,
    pub(super) frame: Frame,
}

/// Lanes that go on together.
#[derive(Debug, Default)]
struct Group {
    /// Where.
    at: Point,
    mask: u32,
    /// The places on the stack where they meet others or return to, outermost first.
    outer: Vec<Point>,
}

impl Group {
    /// The places that they return to from functions. Where lanes meet others it is at the enclosing place; a function
    /// begins with none.
    fn returns(&self) -> impl Iterator<Item = u32> {
        let inner = self.outer.iter().skip(1).chain([&self.at]);
        let calls = self.outer.iter().zip(inner).filter(|(_, inner)| inner.meet == NOWHERE);
        calls.map(|(outer, _)| outer.pc)
    }
}

/// Lanes that wait for others of the warp.
#[derive(Debug)]
pub(super) struct Parked {
    group: Group,
    at: Halt,
    /// What they put in where values are exchanged.
    pub(super) offer: Option<Box<Offer>>,
}

/// What lanes can be parked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// A barrier of the block. An aligned one wants all lanes of the warp at the same instruction.
    Block { wait: Wait, aligned: bool },
    /// What these lanes of the warp do together.
    Lanes { members: u32, op: Op },
}

impl Warp {
    pub(super) fn new(registers: Registers, local: Scratch, stride: u64, sites: usize, checked: bool) -> Self {
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
            votes: 0,
            results: Vec::new(),
            arrived: [0; BARRIERS],
            polls: 0,
            patience: PATIENCE,
            has_looked: false,
            parted: 0,
            waits: false,
            work: 0,
            issued: 0,
            lanes_issued: 0,
            synced: Vec::new(),
            checked,
            executed: vec![Executed::default(); sites],
        }
    }

    /// Back to the kernel's first instruction with the lanes of `live`, which have `local_bytes` of local memory. Registers
    /// stay as they are.
    pub(super) fn restart(&mut self, live: u32, local_bytes: u32) {
        (self.pc, self.mask, self.live, self.meet) = (0, live, live, NOWHERE);
        self.frame = Frame { base: 0, end: local_bytes };
        (self.wait, self.work, self.issued, self.lanes_issued) = (None, 0, 0, 0);
        (self.votes, self.polls, self.waits, self.parted, self.arrived) = (0, 0, false, 0, [0; BARRIERS]);
        self.patience = PATIENCE;
        self.results.clear();
        self.synced.clear();
        self.executed.fill(Executed::default());
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

    /// How many calls within calls the lanes of `lanes` are in.
    pub(super) fn depth(&self, lanes: u32) -> u32 {
        let group = Group { at: self.here(), mask: lanes, outer: self.outer(self.stack.len(), lanes) };
        group.returns().count() as u32
    }

    /// Where the function that ends returns to. Other lanes that are to return there may have to run before.
    pub(super) fn caller(&self) -> Option<Point> {
        self.stack.iter().rev().find(|path| path.mask & self.mask != 0).map(|path| path.at)
    }

    /// The lanes have come to where they meet others: on with the next path. Whether there was one.
    #[cold]
    pub(super) fn join(&mut self) -> bool {
        while let Some(Path { mask, at }) = self.stack.pop() {
            let mask = mask & self.live;
            if mask != 0 {
                (self.pc, self.mask, self.meet, self.frame) = (at.pc, mask, at.meet, at.frame);
                if mask == self.live {
                    self.parted = 0;
                }
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

    /// Holds the lanes of `lanes` where others of the warp have yet to come.
    pub(super) fn park(&mut self, lanes: u32, at: Halt, offer: Option<Box<Offer>>) -> Flow {
        let group = Group { at: self.here(), mask: lanes, outer: self.outer(self.stack.len(), lanes) };
        self.work += REORDER_WORK + self.stack.len() as u64 / PLACES;
        self.stack.iter_mut().for_each(|path| path.mask &= !lanes);
        self.parked.push(Parked { group, at, offer });
        self.leave(lanes)
    }

    /// Where the lanes are that run.
    pub(super) fn here(&self) -> Point {
        Point { pc: self.pc, meet: self.meet, frame: self.frame }
    }

    /// Where lanes of the path at this place of the stack are to meet others or to return to, outermost first.
    fn outer(&self, place: usize, lanes: u32) -> Vec<Point> {
        self.stack[..place].iter().filter(|path| path.mask & lanes != 0).map(|path| path.at).collect()
    }

    /// On without the lanes of `lanes`.
    fn leave(&mut self, lanes: u32) -> Flow {
        self.mask &= !lanes;
        if self.mask != 0 || self.join() { Flow::Next } else { self.settle() }
    }

    /// Every lane is parked or has ended: lets go on who waits for nobody else, or has the warp wait for others.
    #[cold]
    fn settle(&mut self) -> Flow {
        let Some(&Parked { at, group: Group { at: Point { pc, .. }, mask, .. }, .. }) = self.parked.first() else {
            return Flow::Yield;
        };
        let released = self.complete();
        if !released.is_empty() {
            self.resume(released);
            return Flow::Next;
        }
        self.pc = pc;
        if let Halt::Block { wait, aligned } = at
            && self.parked.iter().all(|parked| parked.at == at && (parked.group.at.pc == pc || !aligned))
        {
            self.wait = Some(wait);
            return Flow::Yield;
        }
        let same = self.parked.iter().filter(|parked| parked.group.at.pc == pc && parked.at == at);
        let arrived = same.fold(0, |lanes, parked| lanes | parked.group.mask);
        let reason = Reason::DivergentBarrier { arrived, elsewhere: self.live & !arrived };
        Flow::Stop(Fault::new(mask.trailing_zeros(), reason))
    }

    /// The parked groups whose lanes have all come, with what they came for.
    fn complete(&mut self) -> Vec<Group> {
        let mut released = Vec::new();
        let all_here = |at: &Halt| {
            let Halt::Lanes { members, .. } = *at else { return false };
            let arrived = self.parked.iter().filter(|parked| parked.at == *at);
            members & self.live & !arrived.fold(0, |lanes, parked| lanes | parked.group.mask) == 0
        };
        let complete: Vec<Halt> = self.parked.iter().map(|parked| parked.at).filter(all_here).collect();
        for at in complete {
            let together: Vec<Parked> = self.parked.extract_if(.., |parked| parked.at == at).collect();
            if let Halt::Lanes { members, op } = at {
                self.met(op, together.iter().fold(0, |lanes, parked| lanes | parked.group.mask), members);
            }
            exchange::settle_parked(&mut self.registers, &together);
            released.extend(together.into_iter().map(|parked| parked.group));
        }
        released
    }

    /// Lanes have done together what those of `members` do. Memory is in order after `bar.warp.sync` alone, as PTX has it; for
    /// those that have ended too, which have come further.
    pub(super) fn met(&mut self, op: Op, lanes: u32, members: u32) {
        if self.checked && op == Op::WarpSync {
            self.synced.push((lanes | members & !self.live, self.live & !lanes == 0));
        }
    }

    /// The block's barrier is complete; of a reduction, with this result.
    pub(super) fn release(&mut self, result: u32) {
        let wait = self.wait.take();
        self.parted = 0;
        self.go_on();
        for (slot, lanes) in std::mem::take(&mut self.results) {
            match wait.map(|wait| wait.vote) {
                Some(Vote::Count) => self.registers.write32(slot, &[result; LANES], lanes),
                _ => self.registers.write_pred(slot, if result == 0 { 0 } else { FULL }, lanes),
            }
        }
        self.votes = 0;
        if !self.parked.is_empty() {
            let mut groups: Vec<Group> = self.parked.drain(..).map(|parked| parked.group).collect();
            groups.sort_by(|a, b| (&b.outer, b.at).cmp(&(&a.outer, a.at)));
            self.resume(groups);
        }
    }

    /// A look at memory has seen something new, or changed it.
    pub(super) fn go_on(&mut self) {
        (self.polls, self.waits) = (0, false);
    }

    /// Whether an instruction that looks at memory saw something else the last time; remembers what
    /// it has seen now.
    pub(super) fn has_news(&mut self, ins: &Ins, seen: Seen) -> bool {
        std::mem::replace(&mut self.executed[ins.site as usize].seen, seen) != seen
    }

    /// Its block has another turn.
    pub(super) fn begin_turn(&mut self) {
        self.has_looked = false;
        if std::mem::take(&mut self.waits) {
            self.polls = self.patience - LEAST_PATIENCE;
        }
    }

    /// Another look at memory: after many in vain, what is waited for may be for others to do.
    #[inline(always)]
    pub(super) fn poll(&mut self) -> Flow {
        self.has_looked = true;
        self.polls += 1;
        if self.polls < self.patience { Flow::Next } else { self.take_turns() }
    }

    /// The lanes that are to come to an aligned barrier with those of `mask`.
    pub(super) fn expected_with(&self, mask: u32) -> u32 {
        if mask & !self.parted == 0 { mask | self.live & !self.parted } else { self.live }
    }

    /// Lets the warp's other paths go on first, those included that only wait where this one is to meet them, and then the
    /// other warps and blocks. Since Volta every thread has a program counter of its own, and so each goes on at last.
    #[cold]
    fn take_turns(&mut self) -> Flow {
        (self.polls, self.patience, self.waits) = (0, LESS_PATIENCE, true);
        let mut groups = self.complete();
        let mut above = 0;
        self.stack.push(Path { mask: self.mask, at: self.here() });
        self.work += self.stack.len() as u64 / PLACES;
        for (place, path) in self.stack.iter().enumerate().rev() {
            let mask = path.mask & self.live & !above;
            above |= path.mask;
            if mask != 0 && mask != self.mask && path.mask & self.mask != 0 {
                self.parted |= mask | self.mask;
            }
            if mask != 0 {
                groups.push(Group { at: path.at, mask, outer: self.outer(place, mask) });
            }
        }
        let spinning = groups.iter().position(|group| group.mask & self.mask != 0).map(|place| groups.remove(place));
        groups.extend(spinning);
        self.stack.clear();
        self.resume(groups);
        Flow::Yield
    }

    /// Puts groups of lanes on the empty stack, so that they meet where they were to: those at one place at once, the others
    /// path by path, in this order as far as meeting places allow. Outer places that they share become one.
    fn resume(&mut self, groups: Vec<Group>) {
        let groups = merged(groups);
        let deepest = groups.iter().map(|group| group.outer.len()).max().unwrap_or(0);
        // Each is gone through some times, and compared with each.
        self.work += REORDER_WORK + (groups.len() * (groups.len() + 4) * deepest) as u64 / PLACES;
        let shared = shared(&groups);
        let order = in_order(&groups, &shared);
        let mut before = None;
        for (place, &index) in order.iter().enumerate() {
            let group = &groups[index];
            let known = before.map_or(0, |before: usize| shared[before][index]);
            for depth in known..group.outer.len() {
                let inside = order[place..].iter().take_while(|&&other| shared[index][other] > depth);
                let mask = inside.fold(0, |lanes, &other| lanes | groups[other].mask);
                self.stack.push(Path { mask, at: group.outer[depth] });
            }
            before = Some(index);
            if group.at.pc != group.at.meet {
                self.stack.push(Path { mask: group.mask, at: group.at });
            }
        }
        self.join();
    }
}

/// Groups at one place, and in one activation of its function, become one.
fn merged(groups: Vec<Group>) -> Vec<Group> {
    let mut merged: Vec<Group> = Vec::new();
    for group in groups {
        match merged.iter_mut().find(|other| other.at.pc == group.at.pc && other.returns().eq(group.returns())) {
            Some(other) => other.mask |= group.mask,
            None => merged.push(group),
        }
    }
    merged
}

/// How many outer places each two groups share, from the outermost on.
fn shared(groups: &[Group]) -> Vec<Vec<usize>> {
    let of = |a: &Group, b: &Group| a.outer.iter().zip(&b.outer).take_while(|(a, b)| a == b).count();
    groups.iter().map(|a| groups.iter().map(|b| of(a, b)).collect()).collect()
}

/// The order of the stack, from its bottom, for groups that are to run in the order given: those that meet somewhere stand
/// together, where the last of them would.
fn in_order(groups: &[Group], shared: &[Vec<usize>]) -> Vec<usize> {
    // The last of those that go on with a group where it leaves another one: itself, where it meets no others there.
    let last = |group: usize, depth: usize| match groups[group].outer.len() == depth {
        true => Some(group),
        false => shared[group].iter().rposition(|&places| places > depth),
    };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|&a, &b| last(b, shared[a][b]).cmp(&last(a, shared[a][b])));
    order
}
