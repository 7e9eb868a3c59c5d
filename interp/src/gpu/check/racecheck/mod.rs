//! racecheck finds races: two threads access one place, at least one of them writes, nothing orders
//! the accesses, and PTX does not allow them to coincide.
//!
//! The rules are those of the PTX ISA, section "Memory Consistency Model". Two accesses are in
//! order if they are in the ISA's causality order. Two conflicting accesses race if they are not in
//! causality order and are not "morally strong".
//!
//! # What orders
//!
//! - The program orders a thread's own accesses. Lanes of a warp are threads like any others: since
//!   Volta they need not run in step.
//! - `bar.sync`, `bar.red` and `barrier` order each participant's earlier accesses before the later
//!   accesses of those that waited. Accesses after a `bar.arrive` are not before the barrier.
//!   `bar.warp.sync` orders the lanes that it names. Threads that have ended count as arrived at
//!   every barrier without a thread count.
//! - `barrier.cluster` orders the accesses of all threads of a cluster before their arrivals ahead
//!   of those after the last arrival. In clusters of several blocks, their scope and that of their
//!   `mbarrier`s counts as `.gpu`.
//! - A release in one thread orders the accesses before it ahead of those after an acquire in
//!   another thread that has seen it. A release is a fence followed by a strong write to a place,
//!   or a write there with `.release`; after that, every strong write of the same thread there
//!   releases too. An acquire is a strong read of that place followed by a fence, or a read with
//!   `.acquire`. The read must see that very write, or a value that atomics have made from it.
//!   `membar` is `fence.sc`; `.volatile` is relaxed in `.sys` scope; an atomic is relaxed and in
//!   `.gpu` scope unless it says otherwise. `red` acquires nothing.
//! - The fence, the write, the read and the other fence must lie in each other's scopes: `.cta`
//!   orders nothing between blocks.
//! - A thread that has seen a strong write comes after that write, but not after the accesses
//!   before it. Here racecheck is more lenient than PTX, which demands a fence: the thread that
//!   draws the last ticket may reset the counter.
//! - An atomic counts as a write even if it stores nothing, such as a failed `cas`.
//! - A copy in bulk comes after the accesses that come before its beginning. Accesses come after it
//!   that come after a look or a wait by which a thread has seen its end (`copies`).
//!
//! A last block that sums the results of the others also needs a fence after its ticket, unless it
//! reads by strong loads. CUDA's sample threadFenceReduction lacks this fence, and racecheck
//! reports it.
//!
//! All of this is transitive: a thread passes on the knowledge that it has received.
//!
//! Shuffles, votes, `match`, `redux` and `elect` order nothing. The PTX ISA says that
//! `bar.warp.sync` and `barrier` order memory among their participants, and says nothing of the
//! kind about these instructions. The CUDA C++ Programming Guide says that they "do not imply a
//! memory barrier" and "do not guarantee any memory ordering".
//!
//! Two `fence.sc` also have an order, but it depends on the run and the program does not know it.
//! racecheck does not follow it, because another run may have the opposite order.
//!
//! # Accesses that do not race
//!
//! - Two strong accesses of one width do not race if each one's scope contains the other thread:
//!   `volatile`, `relaxed`, `acquire`, `release` and atomics.
//! - A plain store of the value that is already there does not race: many threads may set the same
//!   flag.
//!
//! # Notes
//!
//! A plain load that is the first guess of a loop around a compare-and-swap races with the swaps
//! of other threads, and does no harm. Such a race is a note.
//!
//! # State
//!
//! Each thread has a vector clock, as in FastTrack (Flanagan and Freund 2009) and Miri: for each
//! other thread, it records which of that thread's accesses come before (`clocks`, `order`). Each
//! warp has one clock, which counts the events that matter to other threads. Threads of a warp or
//! block with the same knowledge share it. Other blocks appear only if the thread has acquired
//! something from them.
//!
//! A place has the size of the kernel's narrowest access. For each place, racecheck keeps the last
//! plain write, and of the later accesses that do not race with each other, all that a further
//! access may have to be compared with (`shadow`). One block runs at a time, until it ends or waits
//! for others. A block that has ended without publishing anything is in order with nothing later,
//! so one of its reads is enough.
//!
//! Some races are missed:
//!
//! - For the accesses of other blocks at a place, and for those before a strong write there, only
//!   the last 64 are kept, so a race with an older one is missed. Beyond that, one plain read is
//!   kept for each other block that still runs.
//! - After the first race at a place, others there may be missed.
//! - A plain store of the value that is already there hides the store that put it there.
//! - A load by `ld.global.nc` counts as a plain load.
//! - A `cp.async` counts as a store where it is issued, and again where its thread waits for it. An
//!   access between the two that barriers order after the first and before the second is missed,
//!   and so is one of the thread itself.
//! - The end of a reduction in bulk is not an access.
//! - A look at an `mbarrier` publishes what its thread did before, as an arrival does.

use std::collections::HashMap;

use super::{Access, Log, Party, Strength, What, Who, Within};
use crate::gpu::code::{Code, Site};
use crate::gpu::mem::Allocation;
use crate::gpu::vocabulary::{AccessKind, Space, lanes_of};
use copies::UnderWay;
pub(crate) use copies::{At, Copy, Part};
use entry::{Deed, Entry};
pub(crate) use order::Order;
use order::{Messages, Strong, Threads};
use shadow::{Newcomer, Shadow};

mod clocks;
mod copies;
mod entry;
mod order;
mod shadow;

/// The largest number of blocks of a launch.
pub(crate) const MAX_BLOCKS: u64 = (1 << entry::BLOCK_BITS) - 1;

/// Bytes that racecheck takes for a place: two entries.
pub(super) const PLACE_BYTES: u64 = 2 * size_of::<Entry>() as u64;
/// Bytes for a thread that has seen some places where others publish.
pub(super) const THREAD_BYTES: u64 = 1024;

/// The state that racecheck keeps for a block while it runs.
#[derive(Debug)]
pub(super) struct OfBlock {
    threads: Threads,
    shared: Shadow,
    /// The number that stands for the shared memory among the places where threads publish.
    home: u64,
    under_way: UnderWay,
}

/// The state that racecheck keeps for a launch.
#[derive(Debug)]
pub(super) struct Racecheck {
    /// The base-2 logarithm of a place's size in bytes.
    place_bits: u32,
    pub(super) order: Order,
    shared: Shadow,
    /// The number that stands for the shared memory among the places where threads publish.
    home: u64,
    /// The copies in bulk under way in the shared memory.
    under_way: UnderWay,
    /// The number of copies in bulk that have begun.
    copies: u64,
    /// True if other blocks of a cluster access the shared memory.
    clustered: bool,
    /// The shadow of each allocation and the copies under way there, by its address.
    global: HashMap<u64, (Shadow, UnderWay)>,
    /// The access that the instruction at each pc makes.
    parties: HashMap<u32, Party>,
    /// True if the kernel has strong accesses in the scope of a block.
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
            home: 0,
            under_way: UnderWay::default(),
            copies: 0,
            clustered: code.cluster_blocks() > 1,
            shared: Shadow::new((shared_bytes >> place_bits) as usize + 1, Messages::new()),
            global: HashMap::new(),
            parties: parties.into_iter().map(|(pc, _, party)| (pc, party)).collect(),
        }
    }

    pub(super) fn begin(&mut self, block: u64) {
        // A launch of more than `MAX_BLOCKS` blocks is refused, so the number fits.
        self.order.begin(block as u32);
        self.under_way.clear();
        match self.clustered {
            true => (self.shared, self.home) = (self.shared.another(), 1 + block),
            false => self.shared.begin(),
        }
    }

    /// Notes that the block has ended.
    pub(super) fn end(&mut self) {
        self.order.end();
        self.shared.messages.clear();
    }

    /// Bytes of a place.
    pub(super) fn place_bytes(&self) -> u32 {
        1 << self.place_bits
    }

    /// Makes the state for a block that will run beside the others.
    pub(super) fn another(&self) -> OfBlock {
        OfBlock {
            threads: self.order.another(),
            shared: self.shared.another(),
            home: 0,
            under_way: UnderWay::default(),
        }
    }

    /// Switches to another block.
    pub(super) fn swap(&mut self, other: &mut OfBlock) {
        self.order.swap(&mut other.threads);
        std::mem::swap(&mut self.shared, &mut other.shared);
        std::mem::swap(&mut self.home, &mut other.home);
        std::mem::swap(&mut self.under_way, &mut other.under_way);
    }

    /// Says in words which limit was exceeded, so that races may have been missed.
    pub(super) fn missed(&self) -> Option<&'static str> {
        if self.global.values().map(|(shadow, _)| shadow).chain([&self.shared]).any(Shadow::is_lossy) {
            Some("the host lacks the memory for racecheck's record of its accesses")
        } else if self.order.exhausted {
            Some("a warp synchronised 2^32 times, more than racecheck can count")
        } else if self.order.overfull {
            Some("it publishes at more places than the 524,288 that racecheck follows")
        } else {
            None
        }
    }

    /// Forgets the accesses to some bytes of an allocation, and returns the work of that.
    pub(super) fn forget(&mut self, base: u64, offset: u64, bytes: u64) -> u64 {
        let Some((shadow, _)) = self.global.get_mut(&base) else { return 0 };
        let places = offset >> self.place_bits..(offset + bytes).div_ceil(1 << self.place_bits);
        let work = (places.end - places.start) / 4;
        places.for_each(|place| shadow.forget(place as usize));
        work
    }

    /// Checks an access. `changes`: whether a lane stores a value that is not already there.
    pub(super) fn look(&mut self, log: &mut Log, access: &Access, at: At<OfBlock>, changes: impl Fn(usize) -> bool) {
        let (memory, order, shadow, under_way) = self.at(at);
        memory.look_at_copies(log, order.block, under_way, access);
        memory.look(log, order, shadow, access, changes);
    }

    /// The state that concerns some memory.
    fn at<'a>(&'a mut self, at: At<'a, OfBlock>) -> (Memory<'a>, &'a mut Order, &'a mut Shadow, &'a mut UnderWay) {
        let Self { place_bits, order, shared, home, under_way, global, parties, narrow, clustered, .. } = self;
        let place_bits = *place_bits;
        // Without clusters each block has its own shared memory, so it ignores the entries that
        // other blocks left in the shadow.
        let alone = matches!(at, At::Own) && !*clustered;
        let (space, base, home, shadow, under_way) = match at {
            At::Own => (Space::Shared, 0, *home, shared, under_way),
            At::Peer(peer) => (Space::Shared, 0, peer.home, &mut peer.shared, &mut peer.under_way),
            At::Global(&Allocation { base, bytes, .. }) => {
                let new = || Shadow::new((bytes >> place_bits) as usize + 1, shared.messages.another());
                let (shadow, under_way) = global.entry(base).or_insert_with(|| (new(), UnderWay::default()));
                (Space::Global, base, base, shadow, under_way)
            }
        };
        (Memory { parties, space, base, home, alone, place_bits, narrow: *narrow }, order, shadow, under_way)
    }
}

/// The memory of an access.
struct Memory<'a> {
    parties: &'a HashMap<u32, Party>,
    space: Space,
    /// The number to add to offsets in messages.
    base: u64,
    /// The number that stands for it among the places where threads publish.
    home: u64,
    /// True if no other block accesses it.
    alone: bool,
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
        if order.overfull {
            // Published knowledge that was not recorded would show up as false races.
            return;
        }
        let (kind, sync) = (access.kind, access.sync);
        if sync.is_strong() && sync.releases() {
            // It publishes the accesses before it, and not itself.
            order.tick(access.warp);
        }
        let deed = Deed::new(access.pc, kind.writes(), sync, access.width);
        let (block, clock) = (order.block, order.clock(access.warp));
        let (places, alone) = (access.bytes.div_ceil(1 << self.place_bits) as usize, self.alone);
        for lane in lanes_of(access.mask) {
            let first = (access.offsets[lane] >> self.place_bits) as usize;
            let entry = Entry::new(block, access.warp, lane, deed, clock);
            let now = order.now(access.warp, lane);
            let new = Newcomer { entry, update: kind.is_update(), now, alone, narrow: self.narrow };
            let mut told = false;
            for place in first..first + places {
                let rival = shadow.meet(place, new, || kind != AccessKind::Store || changes(lane));
                if let Some(rival) = rival.filter(|_| !told) {
                    // Reports one race for the thread, however many places it shares with the
                    // other.
                    told = true;
                    let who = entry.who(lane as u32);
                    self.tell(log, (who, self.party(who, kind.writes())), rival, now.stranger(rival), place);
                }
            }
            if sync.is_strong() {
                self.pass_on(order, shadow, access, lane);
            }
        }
        log.work += shadow.take_work() + order.take_work();
    }

    /// Follows the knowledge that a strong access receives and publishes, element by element.
    fn pass_on(&self, order: &mut Order, shadow: &mut Shadow, access: &Access, lane: usize) {
        let Access { warp, sync, width, kind, .. } = *access;
        for element in 0..access.bytes / u32::from(width) {
            let offset = access.offsets[lane] + u64::from(element * u32::from(width));
            let by = Strong { warp, lane, sync, width, at: (self.home, offset >> self.place_bits) };
            if kind.reads() {
                order.read(shadow.messages.get(by.at.1), by);
            }
            if kind.writes() {
                order.write(&mut shadow.messages, by, kind.is_update());
            }
        }
    }

    /// The access of a thread. A copy in bulk has two, of which one writes.
    fn party(&self, who: Who, writes: bool) -> Party {
        let unknown = Party { access: AccessKind::Load, strength: Strength::Plain, bytes: 1 << self.place_bits };
        let party = self.parties.get(&who.pc).copied().unwrap_or(unknown);
        match (party.strength, writes) {
            (Strength::Bulk, false) => Party { access: AccessKind::Load, ..party },
            _ => party,
        }
    }

    #[cold]
    fn tell(&self, log: &mut Log, by: (Who, Party), rival: Entry, lane: u32, place: usize) {
        let other = rival.who(lane);
        let earlier = self.party(other, rival.writes());
        self.race(log, by, (other, earlier), self.base + ((place as u64) << self.place_bits));
    }

    fn race(&self, log: &mut Log, (who, later): (Who, Party), (other, earlier): (Who, Party), address: u64) {
        let within = match () {
            () if who.block != other.block => Within::Grid,
            () if who.warp() != other.warp() => Within::Block,
            () => Within::Warp,
        };
        log.add(who, What::Race { space: self.space, address, within, later, earlier, other });
    }
}
