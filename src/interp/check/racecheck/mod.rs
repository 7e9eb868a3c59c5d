//! racecheck: two threads access one place, at least one writes, nothing orders them, and PTX does not let them meet.
//!
//! The rules are those of the PTX ISA, section "Memory Consistency Model": what it calls causality order orders, and two
//! conflicting accesses race that are neither in it nor "morally strong".
//!
//! # What orders
//!
//! - The program orders a thread's own accesses. Lanes of a warp are threads like others: since Volta they need not run in step.
//! - `bar.sync`, `bar.red` and `barrier` order what each thread did before with what those who waited do next; what follows
//!   `bar.arrive` is not before the barrier. `bar.warp.sync` orders the lanes that it names. Threads that have ended count as
//!   having come to every barrier that does not count threads.
//! - A release in one thread orders what came before it with what follows an acquire in another that has seen it. To release is
//!   a fence and then a strong write to a place, or a write there with `.release`, and after that every strong write of the same
//!   thread there. To acquire is a strong read of that place and then a fence, or a read with `.acquire`. The read must see
//!   that very write, or what atomics have made of it. `membar` is `fence.sc`; `.volatile` is relaxed in `.sys` scope; an atomic
//!   is relaxed and in `.gpu` scope where it does not say otherwise. `red` acquires nothing.
//! - Fence, write, read and fence must have each other in their scopes: `.cta` orders nothing between blocks.
//! - A thread that has seen a strong write is after that write, though not after what came before it. Here racecheck is more
//!   lenient than PTX, which wants a fence for it: the last thread that draws a ticket may reset the counter.
//! - An atomic counts as a write where it stores nothing too, such as a `cas` that fails.
//!
//! A last block that sums what the others wrote needs a fence behind its ticket as well, unless it reads by strong loads. CUDA's
//! sample threadFenceReduction has none, and racecheck tells of it.
//!
//! All of this is transitive: a thread passes on what it has received.
//!
//! Shuffles, votes, `match`, `redux` and `elect` order nothing. The PTX ISA says of `bar.warp.sync` and `barrier` that memory is in
//! order among those who take part, and nothing of the kind of them; the CUDA C++ Programming Guide says that they "do not
//! imply a memory barrier" and "do not guarantee any memory ordering".
//!
//! Two `fence.sc` are in an order too, which the run decides and the program does not know. It is not followed: in another run it
//! is the other one.
//!
//! # What is no race
//!
//! Two strong accesses of one width, each with a scope in which the other thread is: `volatile`, `relaxed`, `acquire`, `release`
//! and atomics. A plain store of what is there already: flags that many threads set.
//!
//! # What is kept
//!
//! Each thread has a vector clock, as in FastTrack (Flanagan and Freund 2009) and Miri: of each other thread it knows what of its
//! accesses is before (`clocks`, `order`). Time is the warp's: it counts what makes a difference to others. Threads of a
//! warp or block that know the same share it, and of other blocks only those are there from which something was acquired.
//!
//! For each place (the bytes of the narrowest access that the kernel has) the last plain write is
//! kept, and of the accesses since that race with none of each other, all that a later one may have
//! to be compared with (`shadow`). One block runs at a time, to its end or until it waits for
//! others: what has ended and published nothing is in order with nothing that comes, and of its
//! reads one is enough. Of what other blocks did at a place, and of what came before a strong write
//! there, the last 64 are kept: a race with an older one is missed. Where there are more, one plain
//! read is kept of each other block that still runs. After a place's first race, others may be
//! missed. A plain store of what is there already hides the store that put it there. A load by
//! `ld.global.nc` is taken for a plain one.

use std::collections::HashMap;

use super::{Access, Log, Party, Strength, What, Who, Within};
use crate::interp::code::{Code, Site};
use crate::interp::mem::Allocation;
use crate::interp::modifiers::Sync;
use crate::interp::vocabulary::{AccessKind, Space};
use entry::{Deed, Entry};
use order::{Messages, Order, Strong, Threads};
use shadow::{Newcomer, Shadow};

mod clocks;
mod entry;
mod order;
mod shadow;

/// Blocks that a launch can have.
pub(crate) const MAX_BLOCKS: u64 = (1 << entry::BLOCK_BITS) - 1;

/// Bytes that it takes for a place, of which two entries are kept.
pub(super) const PLACE_BYTES: u64 = 2 * size_of::<Entry>() as u64;
/// Bytes that a thread comes to take which has seen some places that others publish at.
pub(super) const THREAD_BYTES: u64 = 1024;

/// What racecheck keeps of a block while it runs.
#[derive(Debug)]
pub(super) struct OfBlock {
    threads: Threads,
    shared: Shadow,
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
    /// Whether the kernel has strong accesses in the scope of a block.
    narrow: bool,
}

impl Racecheck {
    pub(super) fn new(code: &Code, warps: u32, shared_bytes: u64) -> Self {
        let party = |site: &Site| {
            let moved = code.instructions[site.pc as usize].access;
            let strength = match moved.sync {
                sync if !sync.is_strong() => Strength::Plain,
                sync if sync.is_volatile() => Strength::Volatile,
                sync => Strength::Atomic { block: !sync.is_device_wide() },
            };
            let least = if moved.sync.is_strong() { u32::from(moved.width) } else { moved.bytes() };
            (site.pc, least, Party { access: site.kind, strength, bytes: moved.bytes() })
        };
        let parties: Vec<_> = code.sites.iter().map(party).collect();
        let narrowest = parties.iter().map(|(_, least, _)| *least).min().unwrap_or(1);
        let place_bits = narrowest.ilog2();
        let is_narrow = |(_, _, party): &(u32, u32, Party)| party.strength == Strength::Atomic { block: true };
        Self {
            narrow: parties.iter().any(is_narrow),
            place_bits,
            order: Order::new(warps as usize),
            shared: Shadow::new((shared_bytes >> place_bits) as usize + 1, Messages::new()),
            global: HashMap::new(),
            parties: parties.into_iter().map(|(pc, _, party)| (pc, party)).collect(),
        }
    }

    pub(super) fn begin(&mut self, block: u64) {
        // A launch of more than `MAX_BLOCKS` is refused.
        self.order.begin(block as u32);
        self.shared.begin();
    }

    /// The block has ended.
    pub(super) fn end(&mut self) {
        self.order.end();
        self.shared.messages.clear();
    }

    /// Bytes of a place.
    pub(super) fn place_bytes(&self) -> u32 {
        1 << self.place_bits
    }

    /// For a block that is to run beside the others.
    pub(super) fn another(&self) -> OfBlock {
        OfBlock { threads: self.order.another(), shared: self.shared.another() }
    }

    /// Goes on with another block.
    pub(super) fn swap(&mut self, other: &mut OfBlock) {
        self.order.swap(&mut other.threads);
        std::mem::swap(&mut self.shared, &mut other.shared);
    }

    /// What there was too much of, so that races may have been missed: in words.
    pub(super) fn missed(&self) -> Option<&'static str> {
        if self.global.values().chain([&self.shared]).any(Shadow::is_lossy) {
            Some("the host has not the memory that racecheck takes for the accesses of its blocks")
        } else if self.order.is_exhausted() {
            Some("a warp synchronised 2^32 times, more than racecheck can count")
        } else if self.order.is_overfull() {
            Some("it publishes at more places than the 524,288 that racecheck follows")
        } else {
            None
        }
    }

    pub(super) fn barrier(&mut self, barrier: u32, passed: &[u32], ended: &[u32]) {
        self.order.barrier(barrier, passed, ended);
    }

    pub(super) fn arrive(&mut self, barrier: u32, warp: u32, lanes: u32) {
        self.order.arrive(barrier, warp, lanes);
    }

    pub(super) fn warp_barrier(&mut self, warp: u32, lanes: u32, all: bool) {
        self.order.warp_barrier(warp, lanes, all);
    }

    pub(super) fn fence(&mut self, warp: u32, lanes: u32, sync: Sync) {
        self.order.fence(warp, lanes, sync);
    }

    /// An access to shared memory. `changes`: whether what a lane stores is not there already.
    pub(super) fn shared(&mut self, log: &mut Log, access: &Access, changes: impl Fn(usize) -> bool) {
        let Self { place_bits, order, shared, parties, narrow, .. } = self;
        // Each block has shared memory of its own: what others left in the shadow is nothing to it.
        let memory = Memory { parties, space: Space::Shared, base: 0, place_bits: *place_bits, narrow: *narrow };
        memory.look(log, order, shared, access, changes);
    }

    /// An access to global memory. `changes`: as above.
    pub(super) fn global(
        &mut self,
        log: &mut Log,
        access: &Access,
        allocation: &Allocation,
        changes: impl Fn(usize) -> bool,
    ) {
        let Self { place_bits, order, shared, global, parties, narrow, .. } = self;
        let (base, place_bits, narrow) = (allocation.base(), *place_bits, *narrow);
        let places = (allocation.bytes() >> place_bits) as usize + 1;
        let shadow = global.entry(base).or_insert_with(|| Shadow::new(places, shared.messages.another()));
        let memory = Memory { parties, space: Space::Global, base, place_bits, narrow };
        memory.look(log, order, shadow, access, changes);
    }
}

/// The memory that an access is to.
struct Memory<'a> {
    parties: &'a HashMap<u32, Party>,
    space: Space,
    /// What is added to offsets in messages.
    base: u64,
    place_bits: u32,
    narrow: bool,
}

impl Memory<'_> {
    fn look(
        &self,
        log: &mut Log,
        order: &mut Order,
        shadow: &mut Shadow,
        access: &Access,
        changes: impl Fn(usize) -> bool,
    ) {
        if order.is_overfull() {
            // What was published and is not known would be races.
            return;
        }
        let (kind, sync) = (access.kind, access.sync);
        if sync.is_strong() && sync.releases() {
            // It publishes what comes before it, and not itself.
            order.tick(access.warp);
        }
        let deed = Deed::new(access.pc, kind.writes(), sync, access.width);
        let (block, clock) = (order.block(), order.clock(access.warp));
        let (places, alone) = ((access.bytes >> self.place_bits) as usize, self.space == Space::Shared);
        for lane in access.lanes() {
            let first = (access.offsets[lane] >> self.place_bits) as usize;
            let entry = Entry::new(block, access.warp, lane, deed, clock);
            let now = order.now(access.warp, lane);
            let new = Newcomer { entry, update: kind.is_update(), now, alone, narrow: self.narrow };
            let mut told = false;
            for place in first..first + places {
                let rival = shadow.meet(place, new, || kind != AccessKind::Store || changes(lane));
                if let Some(rival) = rival.filter(|_| !told) {
                    // One for the thread, however many places it has in common with the other.
                    told = true;
                    self.tell(log, entry.who(lane as u32), rival, now.stranger(rival), place);
                }
            }
            if sync.is_strong() {
                self.pass_on(order, shadow, access, lane);
            }
        }
        log.work += shadow.take_work() + order.take_work();
    }

    /// What a strong access receives and publishes, element by element.
    fn pass_on(&self, order: &mut Order, shadow: &mut Shadow, access: &Access, lane: usize) {
        let Access { warp, sync, width, kind, .. } = *access;
        for element in 0..access.bytes / u32::from(width) {
            let offset = access.offsets[lane] + u64::from(element * u32::from(width));
            let by = Strong { warp, lane, sync, width, at: (self.base, offset >> self.place_bits) };
            if kind.reads() {
                order.read(shadow.messages.get(by.at.1), by);
            }
            if kind.writes() {
                order.write(&mut shadow.messages, by, kind.is_update());
            }
        }
    }

    fn party(&self, who: Who) -> Party {
        let unknown = Party { access: AccessKind::Load, strength: Strength::Plain, bytes: 1 << self.place_bits };
        self.parties.get(&who.pc).copied().unwrap_or(unknown)
    }

    #[cold]
    fn tell(&self, log: &mut Log, who: Who, rival: Entry, lane: u32, place: usize) {
        let other = rival.who(lane);
        let within = match () {
            () if who.block != other.block => Within::Grid,
            () if who.warp() != other.warp() => Within::Block,
            () => Within::Warp,
        };
        let what = What::Race {
            space: self.space,
            address: self.base + ((place as u64) << self.place_bits),
            within,
            later: self.party(who),
            earlier: self.party(other),
            other,
        };
        log.add(who, what);
    }
}
