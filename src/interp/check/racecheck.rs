//! racecheck: two threads access one place, at least one writes, not both atomically, and nothing orders them.
//!
//! # What orders
//!
//! Threads of a block are ordered by barriers: what was done before one is before what whoever passed it does next. Each warp
//! has a clock that counts its barriers, and knows of each other warp up to which of that one's clocks it has followed:
//! vector clocks as in FastTrack (Flanagan and Freund 2009) and Miri, of warps instead of threads, so that barriers of some
//! of the warps are followed too. Lanes of one warp are ordered only by `bar.warp.sync` and other synchronising
//! instructions, not by running in step: since Volta they need not. Two lanes are in order once both have met others,
//! whoever these were, since the earlier access.
//!
//! Blocks are ordered by nothing but what passes between them: fences, releases and acquires. Followed is only who ever
//! executed one, not what it saw: two warps of a block that both did, the earlier one after its access, are in order, and two
//! blocks in which somebody did. So a flag, a lock and "the last block sums up" are silent, and races of such warps and
//! blocks are missed: better silent than wrong.
//!
//! # What is no race
//!
//! Atomic operations among each other, and `volatile`, `relaxed`, `acquire` and `release` accesses, which PTX calls strong. A
//! store of what is there already: flags that many threads set.
//!
//! # What is kept
//!
//! For each place (the bytes of the narrowest access that the kernel has) the last write, plain and strong apart, and two reads: the first that
//! nothing yet orders before all others, and one more, of another warp where there is one. Which of many unordered readers
//! a write races with may thus be missed where some of them are ordered and others are not.

use std::collections::HashMap;

use super::{Access, Log, Party, What, Who};
use crate::interp::code::{Code, Site};
use crate::interp::exec::registers::LANES;
use crate::interp::mem::Allocation;
use crate::interp::stop::{AccessKind, Space};

/// Places of a shadow's leaf.
const LEAF: usize = 16;
/// Leaves of a node.
const NODE: usize = 64;
/// Blocks that a launch can have.
pub(crate) const MAX_BLOCKS: u64 = (1 << 22) - 1;
/// A clock that stands still: what has it counts as ordered.
const LAST_CLOCK: u32 = (1 << 14) - 1;

/// An access, in a word: 1 bit strong, 14 clock, 17 pc, 10 thread, and 22 for the block, from 1. 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Entry(u64);

impl Entry {
    fn new(block: u64, thread: u32, pc: u32, clock: u32, strong: bool) -> Self {
        let clock = clock.min(LAST_CLOCK);
        Self(
            (block + 1) << 42
                | u64::from(thread) << 32
                | u64::from(pc) << 15
                | u64::from(clock) << 1
                | u64::from(strong),
        )
    }

    fn is_none(self) -> bool {
        self.0 == 0
    }

    fn block(self) -> u64 {
        (self.0 >> 42).wrapping_sub(1)
    }

    fn thread(self) -> u32 {
        (self.0 >> 32) as u32 & 0x3ff
    }

    fn warp(self) -> u32 {
        self.thread() / LANES as u32
    }

    fn pc(self) -> u32 {
        (self.0 >> 15) as u32 & 0x1_ffff
    }

    fn clock(self) -> u32 {
        (self.0 >> 1) as u32 & LAST_CLOCK
    }

    fn strong(self) -> bool {
        self.0 & 1 == 1
    }

    fn who(self) -> Who {
        Who { block: self.block(), thread: self.thread(), pc: self.pc() }
    }
}

/// An entry for each place of some memory, in a tree: what is never accessed takes next to nothing, for a kernel may step
/// through memory by columns, and there may be many launches of it.
#[derive(Debug, Default)]
struct Places {
    /// Which node a place is below; as in a node, 0 is the first one, in which nothing is ever stored.
    roots: Vec<u32>,
    /// Which leaf a place is in.
    nodes: Vec<[u32; NODE]>,
    leaves: Vec<[Entry; LEAF]>,
    /// Whether there was an entry for which the host had no memory.
    lossy: bool,
}

impl Places {
    #[inline]
    fn get(&self, place: usize) -> Entry {
        let Some(&node) = self.roots.get(place / (LEAF * NODE)) else { return Entry::default() };
        let leaf = self.nodes[node as usize][place / LEAF % NODE];
        self.leaves[leaf as usize][place % LEAF]
    }

    #[inline]
    fn set(&mut self, place: usize, entry: Entry, places: usize) {
        match self.leaf(place, places) {
            Some(leaf) => self.leaves[leaf][place % LEAF] = entry,
            None => self.lossy = true,
        }
    }

    /// The leaf of a place, made where there is none; `None` where the host has not the memory.
    #[inline]
    fn leaf(&mut self, place: usize, places: usize) -> Option<usize> {
        if self.roots.is_empty() {
            self.nodes.try_reserve(1).ok()?;
            self.leaves.try_reserve(1).ok()?;
            let count = places.div_ceil(LEAF * NODE);
            self.roots.try_reserve_exact(count).ok()?;
            self.roots.resize(count, 0);
            self.nodes.push([0; NODE]);
            self.leaves.push([Entry::default(); LEAF]);
        }
        let node = &mut self.roots[place / (LEAF * NODE)];
        if *node == 0 {
            self.nodes.try_reserve(1).ok()?;
            *node = self.nodes.len() as u32;
            self.nodes.push([0; NODE]);
        }
        let leaf = &mut self.nodes[*node as usize][place / LEAF % NODE];
        if *leaf == 0 {
            self.leaves.try_reserve(1).ok()?;
            *leaf = self.leaves.len() as u32;
            self.leaves.push([Entry::default(); LEAF]);
        }
        Some(*leaf as usize)
    }
}

/// The last accesses to each place of some memory.
#[derive(Debug, Default)]
struct Shadow {
    /// How many places there are.
    places: usize,
    writes: Places,
    /// Those that may meet others like them. Apart, so that they hide no plain write before them.
    strong_writes: Places,
    reads: Places,
    more_reads: Places,
}

impl Shadow {
    fn is_lossy(&self) -> bool {
        [&self.writes, &self.strong_writes, &self.reads, &self.more_reads].iter().any(|places| places.lossy)
    }
}

/// What orders the accesses of a block's warps, and of blocks.
#[derive(Debug, Default)]
struct Order {
    warps: usize,
    block: u64,
    /// For each warp and each other one: below which of that one's clocks it has followed.
    followed: Vec<u32>,
    /// For each warp, below which of its clocks a fence has published its accesses; 0 without a fence.
    fenced: Vec<u32>,
    /// Whether somebody of the block executed a fence, for this and earlier blocks, a bit each.
    fencing: Vec<u64>,
}

impl Order {
    fn begin(&mut self, block: u64) {
        self.block = block;
        self.followed.fill(0);
        self.fenced.fill(0);
    }

    fn barrier(&mut self, passed: &[(u32, u32)], ended: &[(u32, u32)]) {
        let mut joined = vec![0; self.warps];
        for &(warp, _) in passed {
            let followed = &self.followed[warp as usize * self.warps..][..self.warps];
            joined.iter_mut().zip(followed).for_each(|(joined, &followed)| *joined = followed.max(*joined));
        }
        for &(warp, clock) in passed.iter().chain(ended) {
            joined[warp as usize] = clock + 1;
        }
        for &(warp, _) in passed {
            self.followed[warp as usize * self.warps..][..self.warps].copy_from_slice(&joined);
        }
    }

    fn fence(&mut self, warp: u32, clock: u32) {
        self.fenced[warp as usize] = clock + 1;
        let word = (self.block / 64) as usize;
        if self.fencing.len() <= word {
            self.fencing.resize(word + 1, 0);
        }
        self.fencing[word] |= 1 << (self.block % 64);
    }

    fn is_fencing(&self, block: u64) -> bool {
        self.fencing.get((block / 64) as usize).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Whether `earlier` is before what `lane` does now.
    #[inline]
    fn is_ordered(&self, earlier: Entry, now: &Access, lane: usize) -> bool {
        if earlier.block() != self.block {
            return self.is_fencing(earlier.block()) && self.is_fencing(self.block);
        }
        let (thread, warp, clock) = (earlier.thread(), earlier.warp(), earlier.clock());
        if thread == now.thread(lane) || clock == LAST_CLOCK {
            return true;
        }
        if warp == now.warp {
            return now.met[thread as usize % LANES] > clock && now.met[lane] > clock
                || self.is_published(earlier, now);
        }
        clock < self.followed[now.warp as usize * self.warps + warp as usize] || self.is_published(earlier, now)
    }

    fn is_published(&self, earlier: Entry, now: &Access) -> bool {
        earlier.clock() < self.fenced[earlier.warp() as usize] && self.fenced[now.warp as usize] > 0
    }
}

/// What racecheck keeps of a launch.
#[derive(Debug)]
pub(super) struct Racecheck {
    /// Bytes of a place, as a power of two.
    place_bits: u32,
    order: Order,
    shared: Shadow,
    /// By the allocation's address.
    global: HashMap<u64, Shadow>,
    /// What the instruction at each pc does.
    parties: HashMap<u32, Party>,
}

impl Racecheck {
    pub(super) fn new(code: &Code, warps: u32, shared_bytes: u64) -> Self {
        let party = |site: &Site| {
            let (access, moved) = (site.kind, code.instructions[site.pc as usize].access);
            (site.pc, Party { access, strong: moved.strong || access.is_update(), bytes: moved.bytes() })
        };
        let parties: HashMap<u32, Party> = code.sites.iter().map(party).collect();
        let narrowest = parties.values().map(|party| party.bytes).min().unwrap_or(1);
        let (warps, place_bits) = (warps as usize, narrowest.ilog2());
        Self {
            place_bits,
            order: Order { warps, followed: vec![0; warps * warps], fenced: vec![0; warps], ..Order::default() },
            shared: Shadow { places: (shared_bytes >> place_bits) as usize + 1, ..Shadow::default() },
            global: HashMap::new(),
            parties,
        }
    }

    pub(super) fn begin(&mut self, block: u64) {
        self.order.begin(block);
    }

    /// Whether the host had no memory for some of what is to be kept, so that races may have been missed.
    pub(super) fn is_lossy(&self) -> bool {
        self.global.values().chain([&self.shared]).any(Shadow::is_lossy)
    }

    pub(super) fn barrier(&mut self, passed: &[(u32, u32)], ended: &[(u32, u32)]) {
        self.order.barrier(passed, ended);
    }

    pub(super) fn fence(&mut self, warp: u32, clock: u32) {
        self.order.fence(warp, clock);
    }

    /// An access to shared memory. `changes`: whether what a lane stores is not there already.
    pub(super) fn shared(&mut self, log: &mut Log, access: &Access, changes: impl Fn(usize) -> bool) {
        let Self { place_bits, order, shared, parties, .. } = self;
        // Each block has shared memory of its own: what others left in the shadow is nothing to it.
        let block = order.block;
        let kept = |entry: Entry| if entry.block() == block { entry } else { Entry::default() };
        let conflicts = Conflicts { order, parties, space: Space::Shared, base: 0, place_bits: *place_bits, kept };
        conflicts.look(log, shared, access, changes);
    }

    /// An access to global memory. `changes`: as above.
    pub(super) fn global(
        &mut self,
        log: &mut Log,
        access: &Access,
        allocation: &Allocation,
        changes: impl Fn(usize) -> bool,
    ) {
        let Self { place_bits, order, global, parties, .. } = self;
        let (base, place_bits) = (allocation.base(), *place_bits);
        let places = (allocation.bytes() >> place_bits) as usize + 1;
        let shadow = global.entry(base).or_insert_with(|| Shadow { places, ..Shadow::default() });
        let conflicts = Conflicts { order, parties, space: Space::Global, base, place_bits, kept: |entry| entry };
        conflicts.look(log, shadow, access, changes);
    }
}

/// How accesses to one memory are compared.
struct Conflicts<'a, K> {
    order: &'a Order,
    parties: &'a HashMap<u32, Party>,
    space: Space,
    /// What is added to offsets in messages.
    base: u64,
    place_bits: u32,
    /// Which entries of the shadow count.
    kept: K,
}

impl<K: Fn(Entry) -> Entry> Conflicts<'_, K> {
    fn look(&self, log: &mut Log, shadow: &mut Shadow, access: &Access, changes: impl Fn(usize) -> bool) {
        let places = access.bytes as usize >> self.place_bits;
        for lane in access.lanes() {
            let first = (access.offsets[lane] >> self.place_bits) as usize;
            let now = Entry::new(self.order.block, access.thread(lane), access.pc, access.clock, access.strong);
            let mut told = false;
            for place in first..first + places {
                let rival = match access.kind {
                    AccessKind::Load => self.load(shadow, access, lane, place, now),
                    _ => self.store(shadow, access, lane, place, now, &changes),
                };
                if let Some(rival) = rival.filter(|_| !told) {
                    // One for the thread, however many places it has in common with the other.
                    told = true;
                    self.tell(log, now, rival, place);
                }
            }
        }
    }

    /// Whether two accesses may not meet, of which at least one is a write.
    #[inline]
    fn clash(&self, earlier: Entry, access: &Access, lane: usize) -> bool {
        !(earlier.is_none() || earlier.strong() && access.strong || self.order.is_ordered(earlier, access, lane))
    }

    #[inline]
    fn load(&self, shadow: &mut Shadow, access: &Access, lane: usize, place: usize, now: Entry) -> Option<Entry> {
        let read = (self.kept)(shadow.reads.get(place));
        if read.is_none() || self.order.is_ordered(read, access, lane) {
            shadow.reads.set(place, now, shadow.places);
        } else {
            let more = (self.kept)(shadow.more_reads.get(place));
            let same_warp = |a: Entry, b: Entry| a.block() == b.block() && a.warp() == b.warp();
            let of_another_warp = !same_warp(read, now) && same_warp(read, more);
            if more.is_none() || of_another_warp || self.order.is_ordered(more, access, lane) {
                shadow.more_reads.set(place, now, shadow.places);
            }
        }
        let writes = [&shadow.writes, &shadow.strong_writes].map(|writes| (self.kept)(writes.get(place)));
        writes.into_iter().find(|&write| self.clash(write, access, lane))
    }

    #[inline]
    fn store(
        &self,
        shadow: &mut Shadow,
        access: &Access,
        lane: usize,
        place: usize,
        now: Entry,
        changes: impl Fn(usize) -> bool,
    ) -> Option<Entry> {
        let writes = [&shadow.writes, &shadow.strong_writes].map(|writes| (self.kept)(writes.get(place)));
        let reads = [&shadow.reads, &shadow.more_reads].map(|reads| (self.kept)(reads.get(place)));
        let write = writes.into_iter().find(|&write| self.clash(write, access, lane));
        let rival = write.filter(|_| access.kind.is_update() || changes(lane));
        let rival = rival.or_else(|| reads.into_iter().find(|&read| self.clash(read, access, lane)));
        let writes = if access.strong { &mut shadow.strong_writes } else { &mut shadow.writes };
        writes.set(place, now, shadow.places);
        rival
    }

    #[cold]
    fn tell(&self, log: &mut Log, now: Entry, rival: Entry, place: usize) {
        let party = |entry: Entry| {
            let unknown = Party { access: AccessKind::Load, strong: entry.strong(), bytes: 1 << self.place_bits };
            self.parties.get(&entry.pc()).copied().unwrap_or(unknown)
        };
        let what = What::Race {
            space: self.space,
            address: self.base + ((place as u64) << self.place_bits),
            later: party(now),
            earlier: party(rival),
            other: rival.who(),
        };
        log.add(now.who(), what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_what_it_is_made_of() {
        for (block, thread, pc, clock, strong) in
            [(0, 0, 0, 0, false), (MAX_BLOCKS - 1, 1023, (1 << 17) - 1, LAST_CLOCK, true)]
        {
            let entry = Entry::new(block, thread, pc, clock, strong);
            assert!(!entry.is_none());
            assert_eq!(
                (entry.block(), entry.thread(), entry.pc(), entry.clock(), entry.strong()),
                (block, thread, pc, clock, strong)
            );
        }
        assert_eq!(Entry::new(0, 0, 0, u32::MAX, false).clock(), LAST_CLOCK);
        assert!(Entry::default().is_none());
    }

    #[test]
    fn barriers_of_some_warps_order_those_and_whom_they_followed() {
        let mut order = Order { warps: 3, followed: vec![0; 9], fenced: vec![0; 3], ..Order::default() };
        let ordered = |order: &Order, earlier: u32, clock: u32, later: u32| {
            let met = [0; LANES];
            let access = Access {
                warp: later,
                pc: 0,
                mask: 1,
                offsets: &[0; LANES],
                bytes: 4,
                kind: AccessKind::Load,
                strong: false,
                met: &met,
                clock: 0,
            };
            order.is_ordered(Entry::new(0, earlier * 32, 0, clock, false), &access, 0)
        };
        order.barrier(&[(0, 0), (1, 0)], &[]);
        assert!(ordered(&order, 0, 0, 1) && ordered(&order, 1, 0, 0) && !ordered(&order, 0, 0, 2));
        assert!(!ordered(&order, 0, 1, 1), "what came after the barrier");
        order.barrier(&[(1, 1), (2, 0)], &[]);
        assert!(ordered(&order, 0, 0, 2), "by way of warp 1");
        assert!(!ordered(&order, 0, 1, 2) && !ordered(&order, 2, 0, 0));
        order.begin(0);
        assert!(!ordered(&order, 0, 0, 1));
    }
}
