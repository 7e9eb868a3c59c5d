//! Follows copies in bulk, which a thread begins and another unit does.
//!
//! A copy races, when it begins, with accesses that do not come before. Any access that conflicts
//! with it while it is under way races, whatever orders the threads. The copy becomes an access of
//! the thread that sees its end, and that thread then knows what the copy's own thread knew when
//! the copy began.

use std::collections::BTreeMap;
use std::ops::Range;

use super::entry::{Deed, Entry};
use super::order::{Order, Told};
use super::shadow::{Newcomer, Shadow};
use super::{Memory, Racecheck};
use crate::gpu::check::{Access, Log, Party, Strength, Who};
use crate::gpu::mem::Allocation;
use crate::gpu::modifiers::Sync;
use crate::gpu::vocabulary::{AccessKind, LANES, lanes_of};

/// The most ranges under way that one memory keeps; copies beyond that are not followed.
const MOST: usize = 1 << 16;

/// A copy in bulk.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    /// A number that no other copy of the launch has.
    number: u64,
    /// The thread that began it.
    pub(crate) who: Who,
    /// Bytes that it copies.
    bytes: u32,
    /// True if it reduces to what is there, which is atomic.
    reduces: bool,
    told: Told,
}

/// A part of the memory that a copy reads or writes, by its first address or offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) first: u64,
    pub(crate) bytes: u64,
    pub(crate) writes: bool,
}

/// Some memory.
pub(crate) enum At<'a, P> {
    /// The shared memory of the running block.
    Own,
    /// The shared memory of another block of the cluster, by its state.
    Peer(&'a mut P),
    Global(&'a Allocation),
}

/// The parts of copies under way in some memory.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Each by its first address, and its copy's number.
    ranges: BTreeMap<(u64, u64), Copying>,
    /// The most bytes that one of them has had.
    longest: u64,
}

/// A part of a copy under way.
#[derive(Debug, Clone, Copy)]
struct Copying {
    end: u64,
    writes: bool,
    /// True if it may coincide with other reductions.
    reduces: bool,
    who: Who,
    bytes: u32,
}

impl UnderWay {
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }

    fn add(&mut self, number: u64, first: u64, copying: Copying) {
        if self.ranges.len() < MOST && copying.end > first {
            self.longest = self.longest.max(copying.end - first);
            self.ranges.insert((first, number), copying);
        }
    }

    /// Returns a part that an access to these bytes conflicts with. Each part that it inspects is
    /// work.
    fn rival(&self, bytes: Range<u64>, writes: bool, reduces: bool, work: &mut u64) -> Option<&Copying> {
        let from = bytes.start.saturating_sub(self.longest);
        let conflicts = |copying: &&Copying| {
            copying.end > bytes.start && (writes || copying.writes) && !(reduces && copying.reduces)
        };
        let mut inspected = 0;
        let near = self.ranges.range((from, 0)..(bytes.end, 0)).inspect(|_| inspected += 1);
        let rival = near.map(|(_, copying)| copying).find(conflicts);
        *work += 1 + inspected / 4;
        rival
    }
}

/// The side of a race that a copy is.
fn party(writes: bool, bytes: u32) -> Party {
    Party { access: if writes { AccessKind::Store } else { AccessKind::Load }, strength: Strength::Bulk, bytes }
}

impl Memory<'_> {
    /// Checks an access against the copies under way.
    pub(super) fn look_at_copies(&self, log: &mut Log, block: u32, under_way: &UnderWay, access: &Access) {
        if under_way.ranges.is_empty() {
            return;
        }
        let reduces = access.sync.is_strong();
        for lane in lanes_of(access.mask) {
            let first = self.base + access.offsets[lane];
            let bytes = first..first + u64::from(access.bytes);
            if let Some(rival) = under_way.rival(bytes, access.kind.writes(), reduces, &mut log.work) {
                let who = Who { block: block.into(), thread: access.thread(lane), pc: access.pc };
                let later = self.party(who, access.kind.writes());
                self.race(log, (who, later), (rival.who, party(rival.writes, rival.bytes)), first);
            }
        }
    }

    /// Checks a copy that begins against earlier accesses, and against the copies under way.
    fn begin(
        &self,
        log: &mut Log,
        (order, shadow, under_way): (&Order, &mut Shadow, &mut UnderWay),
        copy: &Copy,
        part: Part,
    ) {
        let (who, later) = (copy.who, party(part.writes, copy.bytes));
        let (warp, lane) = (who.warp(), who.thread as usize % LANES);
        let (end, reduces) = (part.first + part.bytes, copy.reduces && part.writes);
        if let Some(rival) = under_way.rival(part.first..end, part.writes, reduces, &mut log.work) {
            self.race(log, (who, later), (rival.who, party(rival.writes, rival.bytes)), part.first);
        }
        let sync = if reduces { Sync::of("red.relaxed.gpu") } else { Sync::default() };
        let entry = Entry::new(order.block, warp, lane, Deed::new(who.pc, part.writes, sync, 4), copy.told.clock);
        let now = order.now(warp, lane);
        let new = Newcomer { entry, update: reduces, now, alone: self.alone, narrow: self.narrow };
        let places = self.places(part);
        log.work += places.len() as u64;
        let mut rivals = places.filter_map(|place| Some((place, shadow.peek(place, new)?)));
        if let Some((place, rival)) = rivals.next() {
            self.tell(log, (who, later), rival, now.stranger(rival), place);
        }
        let Copy { number, bytes, .. } = *copy;
        under_way.add(number, part.first, Copying { end, writes: part.writes, reduces, who, bytes });
    }

    /// The places of a part.
    fn places(&self, part: Part) -> Range<usize> {
        let first = part.first - self.base;
        (first >> self.place_bits) as usize..(first + part.bytes).div_ceil(1 << self.place_bits) as usize
    }
}

impl Racecheck {
    /// Notes that a thread begins a copy, whose parts follow.
    pub(in super::super) fn begin_copy(&mut self, who: Who, bytes: u32, reduces: bool) -> Copy {
        self.copies += 1;
        self.parties.insert(who.pc, party(true, bytes));
        let told = self.order.tell(who.warp(), who.thread as usize % LANES);
        Copy { number: self.copies, who, bytes, reduces, told }
    }

    /// Checks a part of a copy that begins.
    pub(in super::super) fn begin_part(&mut self, log: &mut Log, copy: &Copy, part: Part, at: At<super::OfBlock>) {
        let (memory, order, shadow, under_way) = self.at(at);
        memory.begin(log, (order, shadow, under_way), copy, part);
        log.work += shadow.take_work();
    }

    /// Notes that a thread of the running block sees the end of a copy, whose parts follow.
    pub(in super::super) fn end_copy(&mut self, copy: &Copy, thread: u32) {
        self.order.learn(thread / LANES as u32, thread as usize % LANES, &copy.told);
    }

    /// Notes the end of a part of a copy, which a thread of the running block has seen, or which
    /// was not to be seen.
    pub(in super::super) fn end_part(
        &mut self,
        log: &mut Log,
        copy: &Copy,
        seen_by: Option<u32>,
        part: Part,
        at: At<super::OfBlock>,
    ) {
        let (memory, order, shadow, under_way) = self.at(at);
        under_way.ranges.remove(&(part.first, copy.number));
        let Some(thread) = seen_by.filter(|_| !(copy.reduces && part.writes)) else { return };
        let kind = if part.writes { AccessKind::Store } else { AccessKind::Load };
        let access = Access {
            warp: thread / LANES as u32,
            pc: copy.who.pc,
            mask: 1 << (thread % LANES as u32),
            offsets: &[part.first - memory.base; LANES],
            bytes: part.bytes as u32,
            width: 1,
            kind,
            sync: Sync::default(),
        };
        log.work += part.bytes >> memory.place_bits;
        memory.look(log, order, shadow, &access, |_| true);
    }
}
