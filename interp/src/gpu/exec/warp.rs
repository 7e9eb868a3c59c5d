//! A warp: 32 lanes under one program counter, and the stack of its divergent paths.
//!
//! When lanes diverge at a branch, both paths run to the branch's immediate post-dominator, and
//! from there they continue together. This is the classic reconvergence stack, as in GPGPU-Sim's
//! `simt_stack`; the warp's own fields are its top.
//!
//! The first path in program order runs before the others. So paths that lead to the same place
//! before the post-dominator meet there already, as in "SIMD Re-Convergence At Thread Frontiers"
//! (Diamos and others, 2011): the body behind `a || b` runs once.
//!
//! A barrier that only some lanes reach parks those lanes, and the other paths run on without
//! waiting for them: since Volta, each thread arrives on its own. When no path is left to run,
//! `settle` checks whether the parked lanes wait for each other.

use super::barrier::{Vote, Wait};
use super::copies::Copies;
use super::exchange::{self, Offer};
use super::patterns::Patterns;
use super::registers::Registers;
use super::tally::{Executed, Seen};
use super::{Break, Fault, Flow, NEXT};
use crate::gpu::code::{Ins, NOWHERE};
use crate::gpu::isa::Op;
use crate::gpu::mem::cells::Scratch;
use crate::gpu::reason::Reason;
use crate::gpu::vocabulary::{BARRIERS, FULL, LANES};

/// The number of looks at unchanged memory after which other warps have their turn.
const PATIENCE: u32 = 1 << 8;
/// The same for a warp that has waited before, and for one that still waits when its block has
/// another turn.
const LESS_PATIENCE: u32 = 16;
const LEAST_PATIENCE: u32 = 2;
/// The work of parking lanes or reordering paths, besides that for each entry of the stack.
const REORDER_WORK: u64 = 64;
/// Entries of the stack that one unit of work inspects.
const PLACES: u64 = 4;

/// One warp.
#[derive(Debug, Default)]
pub(super) struct Warp {
    pub(super) registers: Registers,
    /// Local memory of all lanes, one lane after the other.
    pub(super) local: Scratch,
    /// Bytes from one lane's local memory to the next lane's.
    pub(super) stride: u64,
    /// The part of local memory that belongs to the running function.
    pub(super) frame: Frame,
    /// The costs of its latest accesses to shared memory.
    pub(super) patterns: Patterns,
    /// The next instruction.
    pub(super) pc: u32,
    /// Lanes that execute it.
    pub(super) mask: u32,
    /// The pc where these lanes meet the others.
    pub(super) meet: u32,
    /// The pc before which the lanes stop: that of the next path which meets at the same place, or
    /// else `meet`.
    pub(super) stop: u32,
    /// Lanes that have not ended.
    pub(super) live: u32,
    /// Paths to run later, once the running lanes are done: the last one first. Those that meet at
    /// the same place stand in program order, the first of them last, unless they took turns.
    pub(super) stack: Vec<Path>,
    /// Lanes that a barrier holds while others of the warp run.
    parked: Vec<Parked>,
    /// The barrier that holds the warp.
    pub(super) wait: Option<Wait>,
    /// Lanes whose predicate holds in the reduction that the warp waits for.
    pub(super) votes: u32,
    /// Registers that receive the reduction's result, each with its lanes.
    pub(super) results: Vec<(u16, u32)>,
    /// For each barrier of the block, and for that of its cluster, the lanes that have arrived
    /// without waiting.
    pub(super) arrived: [u32; BARRIERS + 1],
    /// Lanes that all threads of the cluster have met, and that have not waited for them yet.
    pub(super) passed: u32,
    /// Copies to shared memory that lanes have not waited for yet.
    pub(super) copies: Copies,
    /// The number of looks at memory since one of them saw or made a change. Atomics count, and
    /// loads that may not be cached.
    polls: u32,
    /// The number of such looks before other warps have their turn.
    patience: u32,
    /// True if there was such a look in this turn of the block.
    pub(super) has_looked: bool,
    /// Lanes of paths that were separated: some wait for memory to change, and the others have
    /// meanwhile gone on past the place where they should have met. Hardware may hold those lanes
    /// at that place, so a barrier that the others reach does not miss them.
    parted: u32,
    /// True if the warp waits for others because it has looked too often.
    pub(super) waits: bool,
    /// Work done in this block.
    pub(super) work: u64,
    /// Warp instructions executed in this block.
    pub(super) issued: u64,
    /// The same, times active lanes.
    pub(super) lanes_issued: u64,
    /// With checkers: the barriers within the warp that they have not seen yet. Each has its lanes,
    /// and whether these were all remaining lanes.
    pub(super) synced: Vec<(u32, bool)>,
    /// True if the launch has checkers.
    checked: bool,
    /// For each of the code's sites, how the warp executed it in this block.
    pub(super) executed: Vec<Executed>,
}

/// The part of a thread's local memory that belongs to one activation of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Frame {
    pub(super) base: u32,
    /// The end of the frame, and of the memory in use.
    pub(super) end: u32,
}

/// Lanes that will continue at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) mask: u32,
    pub(super) at: Point,
}

/// A position of lanes: the pc where they continue, the pc where they then meet others, and their
/// frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Point {
    pub(super) pc: u32,
    pub(super) meet: u32,
    pub(super) frame: Frame,
}

/// Lanes that continue together.
#[derive(Debug, Default)]
struct Group {
    /// Their position.
    at: Point,
    mask: u32,
    /// The stack entries where they meet others or return, outermost first.
    outer: Vec<Point>,
}

impl Group {
    /// The pcs that they return to from functions. Lanes that meet others do so at the enclosing
    /// entry's pc; a function begins without one.
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
    /// The values that they contribute to an exchange.
    pub(super) offer: Option<Box<Offer>>,
}

/// A reason for parking lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// A barrier of the block. An aligned one requires all lanes of the warp at the same
    /// instruction.
    Block { wait: Wait, aligned: bool },
    /// An operation that these lanes of the warp do together.
    Lanes { members: u32, op: Op },
}

impl Warp {
    pub(super) fn new(registers: Registers, local: Scratch, stride: u64, sites: usize, checked: bool) -> Self {
        Self {
            registers,
            local,
            stride,
            patterns: Patterns::new(),
            checked,
            executed: vec![Executed::default(); sites],
            ..Self::default()
        }
    }

    /// Returns to the kernel's first instruction with the lanes of `live`, which have `local_bytes`
    /// of local memory. Registers keep their values.
    pub(super) fn restart(&mut self, live: u32, local_bytes: u32) {
        (self.pc, self.mask, self.live, self.meet, self.stop) = (0, live, live, NOWHERE, NOWHERE);
        self.frame = Frame { base: 0, end: local_bytes };
        (self.wait, self.work, self.issued, self.lanes_issued) = (None, 0, 0, 0);
        (self.votes, self.polls, self.waits, self.parted, self.arrived) = (0, 0, false, 0, [0; BARRIERS + 1]);
        self.passed = 0;
        self.patience = PATIENCE;
        self.results.clear();
        self.copies.clear();
        self.synced.clear();
        self.executed.fill(Executed::default());
        self.stack.clear();
        self.parked.clear();
    }

    /// Sends all lanes to `target`.
    #[inline(always)]
    pub(super) fn jump(&mut self, target: u32) {
        if target < self.pc || target > self.stop {
            self.leap(target);
        } else {
            self.pc = target;
        }
    }

    /// Sends all lanes backward, or past the place where they were to stop.
    fn leap(&mut self, target: u32) {
        if target < self.pc || self.stop == self.meet {
            self.pc = target;
            self.look_ahead();
        } else {
            // Lanes at the meeting point wait there.
            if target != self.meet {
                self.later(target, self.mask);
            }
            self.join();
        }
    }

    /// Splits the lanes: those of `taken` go to `target`, the rest to the next instruction. They
    /// meet again at `meet`.
    pub(super) fn diverge(&mut self, taken: u32, target: u32, meet: u32) {
        let meet = self.part(meet);
        let (on, away) = ((self.pc, self.mask & !taken), (target, taken));
        let (first, second) = if on.0 < target { (on, away) } else { (away, on) };
        let (first, second) = if first.0 == meet { (second, first) } else { (first, second) };
        if second.0 != meet {
            self.later(second.0, second.1);
        }
        (self.pc, self.mask) = first;
        self.look_ahead();
    }

    /// Splits the lanes into `groups`, each with a pc and a mask. They meet again at `meet`.
    pub(super) fn scatter(&mut self, groups: &[(u32, u32)], meet: u32) {
        let meet = self.part(meet);
        groups.iter().filter(|(pc, _)| *pc != meet).for_each(|&(pc, mask)| self.later(pc, mask));
        self.join();
    }

    /// Lets the lanes continue together at `meet` after a split.
    #[inline(always)]
    fn part(&mut self, meet: u32) -> u32 {
        // Lanes that never meet again before their end still wait for the lanes that the enclosing
        // branch split off.
        let meet = if meet == NOWHERE { self.meet } else { meet };
        // If the enclosing branch's lanes meet at the same pc, they already wait there.
        if meet != self.meet {
            let at = Point { pc: meet, meet: self.meet, frame: self.frame };
            self.stack.push(Path { mask: self.mask, at });
        }
        self.meet = meet;
        meet
    }

    /// Lets lanes continue at `pc` when it is their turn among the paths that meet at the same
    /// place.
    fn later(&mut self, pc: u32, mask: u32) {
        let at = Point { pc, meet: self.meet, frame: self.frame };
        let beside = |path: &Path| (path.at.meet, path.at.frame) == (at.meet, at.frame);
        let earlier = self.stack.iter().rev().take_while(|path| beside(path) && path.at.pc < pc).count();
        let place = self.stack.len() - earlier;
        match self.stack[..place].last_mut().filter(|path| beside(path) && path.at.pc == pc) {
            Some(path) => path.mask |= mask,
            None => self.stack.insert(place, Path { mask, at }),
        }
    }

    /// Finds where the running lanes stop.
    #[inline(always)]
    fn look_ahead(&mut self) {
        let beside = self.stack.last().filter(|path| (path.at.meet, path.at.frame) == (self.meet, self.frame));
        let ahead = |pc: u32| if pc < self.pc { NOWHERE } else { pc };
        self.stop = ahead(self.meet).min(beside.map_or(NOWHERE, |path| ahead(path.at.pc)));
    }

    /// Lets the lanes that stopped continue with those that wait there, or lets the next path run
    /// where all meet; returns whether there was one.
    #[cold]
    pub(super) fn arrive(&mut self) -> bool {
        if self.pc == self.meet {
            return self.join();
        }
        let Some(Path { mask, .. }) = self.stack.pop() else { return false };
        self.mask |= mask & self.live;
        self.look_ahead();
        true
    }

    /// The depth of the nested calls that the lanes of `lanes` are in.
    pub(super) fn depth(&self, lanes: u32) -> u32 {
        let group = Group { at: self.here(), mask: lanes, outer: self.outer(self.stack.len(), lanes) };
        group.returns().count() as u32
    }

    /// The point that the ending function returns to. Other lanes that return there may have to run
    /// first.
    pub(super) fn caller(&self) -> Option<Point> {
        self.stack.iter().rev().find(|path| path.mask & self.mask != 0).map(|path| path.at)
    }

    /// Switches to the next path when the lanes have reached their meeting point; returns whether
    /// there was one.
    #[cold]
    pub(super) fn join(&mut self) -> bool {
        while let Some(Path { mask, at }) = self.stack.pop() {
            let mask = mask & self.live;
            if mask != 0 {
                self.mask = mask;
                self.enter(at);
                if mask == self.live {
                    self.parted = 0;
                }
                return true;
            }
        }
        false
    }

    /// Makes lanes run at a point: in its frame, until the place where they then meet others.
    pub(super) fn enter(&mut self, at: Point) {
        (self.pc, self.meet, self.frame) = (at.pc, at.meet, at.frame);
        self.look_ahead();
    }

    /// Ends the lanes of `lanes`.
    pub(super) fn exit(&mut self, lanes: u32) -> Flow {
        self.live &= !lanes;
        self.leave(lanes)
    }

    /// Parks the lanes of `lanes` until others of the warp arrive.
    pub(super) fn park(&mut self, lanes: u32, at: Halt, offer: Option<Box<Offer>>) -> Flow {
        let group = Group { at: self.here(), mask: lanes, outer: self.outer(self.stack.len(), lanes) };
        self.work += REORDER_WORK + self.stack.len() as u64 / PLACES;
        self.stack.iter_mut().for_each(|path| path.mask &= !lanes);
        self.parked.push(Parked { group, at, offer });
        self.leave(lanes)
    }

    /// The position of the running lanes.
    pub(super) fn here(&self) -> Point {
        Point { pc: self.pc, meet: self.meet, frame: self.frame }
    }

    /// The points where lanes of the path at this stack entry meet others or return, outermost
    /// first.
    fn outer(&self, place: usize, lanes: u32) -> Vec<Point> {
        self.stack[..place].iter().filter(|path| path.mask & lanes != 0).map(|path| path.at).collect()
    }

    /// Continues without the lanes of `lanes`.
    fn leave(&mut self, lanes: u32) -> Flow {
        self.mask &= !lanes;
        if self.mask != 0 || self.join() { NEXT } else { self.settle() }
    }

    /// Handles the state in which every lane is parked or has ended: releases the lanes that wait
    /// for no others, or makes the warp wait for other warps.
    #[cold]
    fn settle(&mut self) -> Flow {
        let Some(&Parked { at, group: Group { at: Point { pc, .. }, mask, .. }, .. }) = self.parked.first() else {
            return Err(Break::Yield);
        };
        let released = self.complete();
        if !released.is_empty() {
            self.resume(released);
            return NEXT;
        }
        self.pc = pc;
        if let Halt::Block { wait, aligned } = at
            && self.parked.iter().all(|parked| parked.at == at && (parked.group.at.pc == pc || !aligned))
        {
            self.wait = Some(wait);
            return Err(Break::Yield);
        }
        let same = self.parked.iter().filter(|parked| parked.group.at.pc == pc && parked.at == at);
        let arrived = same.fold(0, |lanes, parked| lanes | parked.group.mask);
        let reason = Reason::DivergentBarrier { arrived, elsewhere: self.live & !arrived };
        Err(Fault::new(mask.trailing_zeros(), reason).into())
    }

    /// Takes out the parked groups whose lanes have all arrived, and completes their operation.
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

    /// Notes that lanes have completed the joint operation of `members`. As PTX has it, only
    /// `bar.warp.sync` orders memory. It also covers lanes that have ended, because they have
    /// passed it.
    pub(super) fn met(&mut self, op: Op, lanes: u32, members: u32) {
        if self.checked && op == Op::WarpSync {
            self.synced.push((lanes | members & !self.live, self.live & !lanes == 0));
        }
    }

    /// Releases the warp from the block's barrier; `result` is that of a reduction.
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

    /// Notes that a look at memory has seen or made a change.
    pub(super) fn go_on(&mut self) {
        (self.polls, self.waits) = (0, false);
    }

    /// Returns whether an instruction that looks at memory sees a different value than last time;
    /// remembers the new one.
    pub(super) fn has_news(&mut self, ins: &Ins, seen: Seen) -> bool {
        std::mem::replace(&mut self.executed[ins.site as usize].seen, seen) != seen
    }

    /// Begins another turn of its block.
    pub(super) fn begin_turn(&mut self) {
        self.has_looked = false;
        if std::mem::take(&mut self.waits) {
            self.polls = self.patience - LEAST_PATIENCE;
        }
    }

    /// Counts another look at memory. After many without a change, other warps may have to act
    /// first.
    #[inline(always)]
    pub(super) fn poll(&mut self) -> Flow {
        self.has_looked = true;
        self.polls += 1;
        if self.polls < self.patience { NEXT } else { self.take_turns() }
    }

    /// The lanes that should reach an aligned barrier together with those of `mask`.
    pub(super) fn expected_with(&self, mask: u32) -> u32 {
        if mask & !self.parted == 0 { mask | self.live & !self.parted } else { self.live }
    }

    /// Lets the warp's other paths run first, even those that only wait where this one will meet
    /// them, and then the other warps and blocks. Since Volta every thread has its own program
    /// counter, so each of them makes progress in the end.
    #[cold]
    fn take_turns(&mut self) -> Flow {
        (self.polls, self.patience, self.waits) = (0, LESS_PATIENCE, true);
        let groups = self.complete();
        self.regroup(groups);
        Err(Break::Yield)
    }

    /// Releases the lanes that a barrier of blocks holds while others of the warp run, and returns
    /// them.
    pub(super) fn release_parked(&mut self, barrier: u32) -> u32 {
        let is_held = |parked: &mut Parked| matches!(parked.at, Halt::Block { wait, .. } if wait.barrier == barrier);
        let groups: Vec<Group> = self.parked.extract_if(.., is_held).map(|parked| parked.group).collect();
        let lanes = groups.iter().fold(0, |lanes, group| lanes | group.mask);
        if lanes != 0 {
            self.regroup(groups);
        }
        lanes
    }

    /// Lets released groups run, then the warp's other paths, and the running lanes last.
    fn regroup(&mut self, mut groups: Vec<Group>) {
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
    }

    /// Puts groups of lanes on the empty stack, so that they meet where they should. Groups at one
    /// place meet at once; the others run path by path, in this order as far as the meeting points
    /// allow. Outer entries that they share become one.
    fn resume(&mut self, groups: Vec<Group>) {
        let groups = merged(groups);
        let deepest = groups.iter().map(|group| group.outer.len()).max().unwrap_or(0);
        // Each group is visited several times, and compared with each other group.
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

/// Merges groups at the same place in the same activation of a function.
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

/// The number of outer entries that each two groups share, from the outermost on.
fn shared(groups: &[Group]) -> Vec<Vec<usize>> {
    let of = |a: &Group, b: &Group| a.outer.iter().zip(&b.outer).take_while(|(a, b)| a == b).count();
    groups.iter().map(|a| groups.iter().map(|b| of(a, b)).collect()).collect()
}

/// The order on the stack, from its bottom, of groups that should run in the given order. Groups
/// that share a meeting point stand together, at the position of the last of them.
fn in_order(groups: &[Group], shared: &[Vec<usize>]) -> Vec<usize> {
    // The last group that continues with this one at the depth where it leaves another group; the
    // group itself if it meets no others there.
    let last = |group: usize, depth: usize| match groups[group].outer.len() == depth {
        true => Some(group),
        false => shared[group].iter().rposition(|&places| places > depth),
    };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|&a, &b| last(b, shared[a][b]).cmp(&last(a, shared[a][b])));
    order
}
