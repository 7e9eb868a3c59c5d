//! Requests that no quick list serves.

use super::arena::{ANY, Kind, Owner};
use super::clock::Stand;
use super::policy::{self, GRANULE, PAGE};
use super::{Caching, Core, add};
use crate::alloc::{Block, Request};
use crate::driver::EventHandle;
use crate::error::{ErrorKind, Result};

/// A request on its way through the arena.
struct Want {
    lane: u32,
    bytes: u64,
    kind: Kind,
}

impl Caching {
    /// # Safety
    ///
    /// - As [`Allocate::alloc`](crate::alloc::Allocate::alloc), for this and all that it calls.
    #[cold]
    pub(super) unsafe fn miss(&self, request: &Request<'_>) -> Result<Block> {
        let core = &mut *self.core();
        let Some(bytes) = request.bytes.checked_next_multiple_of(GRANULE).filter(|&bytes| bytes <= 1 << 60) else {
            return Err(self.out_of_memory(core, request.bytes));
        };
        core.misses += 1;
        let active = self.active(core).saturating_add(request.bytes);
        let peak = core.peak_active.max(active);
        let want = Want { lane: request.lane.id, bytes, kind: self.kind(bytes, peak) };
        // SAFETY: as the caller promises.
        let node = match unsafe { self.find(core, &want, request, peak) } {
            // SAFETY: as the caller promises.
            Err(error) if error.kind() == ErrorKind::OutOfMemory => unsafe { self.rescue(core, &want, request) }?,
            found => found?,
        };
        core.peak_active = peak;
        let owner = core.arena.node(node).free.expect("a block that was found is free");
        core.arena.take(node, bytes);
        let address = core.arena.node(node).address;
        let slot = self.lanes.entry(want.lane);
        let quick = slot.quick.enter();
        add(&slot.sums.allocated, request.bytes);
        add(&slot.sums.allocations, 1);
        drop(quick);
        self.holders.entry(node).set(request.site, want.lane);
        let fresh = owner.lane == ANY || owner.stamp == 0;
        Ok(Block { address, bytes: request.bytes, fresh, token: u64::from(node) })
    }

    /// Finds or makes a free block that the lane may use.
    ///
    /// # Safety
    ///
    /// - As [`miss`](Self::miss).
    unsafe fn find(&self, core: &mut Core, want: &Want, request: &Request<'_>, peak: u64) -> Result<u32> {
        if let Some(node) = self.fit(core, want) {
            return Ok(node);
        }
        let limit = policy::limit(peak);
        let piece = self.segment_bytes(want, peak);
        if core.arena.reserved + piece > limit {
            self.drain_all(core);
            self.settle(core)?;
            if let Some(node) = self.fit(core, want) {
                return Ok(node);
            }
            self.give_back(core, limit.saturating_sub(piece))?;
            if core.arena.reserved + piece > limit
                // SAFETY: as the caller promises.
                && let Some(node) = unsafe { self.borrow(core, want, request) }?
            {
                return Ok(node);
            }
        } else {
            // The events that this records may have passed by the next time.
            self.settle(core)?;
            if let Some(node) = self.fit(core, want) {
                return Ok(node);
            }
        }
        let page = self.page();
        let room = limit.saturating_sub(core.arena.reserved) / page * page;
        // SAFETY: as the caller promises.
        unsafe { self.grow(core, want, request, piece.min(room).max(want.bytes.next_multiple_of(page))) }
    }

    /// Takes a new segment.
    ///
    /// # Safety
    ///
    /// - As [`miss`](Self::miss).
    unsafe fn grow(&self, core: &mut Core, want: &Want, request: &Request<'_>, bytes: u64) -> Result<u32> {
        // SAFETY: the lane is open, so its stream is live.
        let taken = unsafe { self.upstream.take(bytes, request.lane.stream) }?;
        core.taken += 1;
        let stamp = if taken.fresh { 0 } else { core.clocks[want.lane as usize].stamp() };
        Ok(core.arena.add(taken.address, bytes, want.kind, Owner { lane: want.lane, stamp }))
    }

    /// Finds out which blocks any lane may use by now.
    pub(super) fn settle(&self, core: &mut Core) -> Result<()> {
        let Core { arena, clocks, events, .. } = core;
        for (lane, clock) in (0..).zip(clocks) {
            if arena.owns(lane) {
                events.poll(clock, true, &*self.upstream)?;
                arena.hand_over(lane, |stamp| stamp <= clock.passed, Owner { lane: ANY, stamp: 0 });
            }
        }
        Ok(())
    }

    /// Makes the ids of closed lanes vacant whose work has run.
    pub(super) fn reap(&self, core: &mut Core) -> Result<()> {
        let Core { arena, clocks, events, closing, vacant, .. } = core;
        let mut polled = Ok(());
        closing.retain(|&lane| {
            let clock = &mut clocks[lane as usize];
            if polled.is_ok() {
                polled = events.poll(clock, false, &*self.upstream);
            }
            arena.hand_over(lane, |stamp| stamp <= clock.passed, Owner { lane: ANY, stamp: 0 });
            let empty = !arena.owns(lane);
            if empty {
                vacant.push(lane);
            }
            !empty
        });
        polled
    }

    /// Gives free segments back, the longest unused first, until at most `most` bytes are reserved.
    pub(super) fn give_back(&self, core: &mut Core, most: u64) -> Result<()> {
        let mut kept = 0;
        while core.arena.reserved > most {
            let Some(segment) = core.arena.idle().nth(kept) else { break };
            let Some(after) = self.stands_for(core, segment)? else {
                kept += 1;
                continue;
            };
            let (address, bytes) = core.arena.remove(segment);
            core.given_back += 1;
            // SAFETY: the arena took it, no block of it is in use, and the events stand for all
            // work that used it.
            unsafe { self.upstream.give(address, bytes, &after) }?;
        }
        Ok(())
    }

    /// Returns the events that stand for all uses of a free segment; `None` if there are none yet.
    pub(super) fn stands_for(&self, core: &mut Core, segment: u32) -> Result<Option<Vec<EventHandle>>> {
        let mut after = Vec::new();
        if self.upstream.orders_itself() {
            return Ok(Some(after));
        }
        let Core { arena, clocks, events, .. } = core;
        for owner in arena.blocks(segment).filter_map(|node| arena.node(node).free) {
            if owner.lane == ANY || owner.stamp <= clocks[owner.lane as usize].passed {
                continue;
            }
            match events.stand(&mut clocks[owner.lane as usize], &*self.upstream)? {
                Stand::Passed => (),
                Stand::Event(event) if after.contains(&event) => (),
                Stand::Event(event) => after.push(event),
                Stand::Never => return Ok(None),
            }
        }
        Ok(Some(after))
    }

    /// Takes a block that another lane used last, and makes this lane's stream wait for that use.
    ///
    /// # Safety
    ///
    /// - As [`miss`](Self::miss).
    unsafe fn borrow(&self, core: &mut Core, want: &Want, request: &Request<'_>) -> Result<Option<u32>> {
        let most = self.snug(want);
        let Core { arena, clocks, events, .. } = core;
        let Some(node) = arena.fit_of_others(want.kind, 0..clocks.len() as u32, want.bytes, most) else {
            return Ok(None);
        };
        let owner = arena.node(node).free.expect("it is free");
        match events.stand(&mut clocks[owner.lane as usize], &*self.upstream)? {
            Stand::Passed => (),
            // SAFETY: the event is live; the lane is open, so its stream is live.
            Stand::Event(event) => unsafe { self.upstream.event_wait(event, request.lane.stream) }?,
            Stand::Never => return Ok(None),
        }
        // The lane's stream now comes after that use, so its own next event stands for it.
        let stamp = clocks[want.lane as usize].stamp();
        arena.hand_over_one(node, Owner { lane: want.lane, stamp });
        Ok(self.fit(core, want))
    }

    /// Tries all that is left when the upstream has too few bytes.
    ///
    /// # Safety
    ///
    /// - As [`miss`](Self::miss).
    unsafe fn rescue(&self, core: &mut Core, want: &Want, request: &Request<'_>) -> Result<u32> {
        self.drain_all(core);
        self.settle(core)?;
        if let Some(node) = self.fit(core, want) {
            return Ok(node);
        }
        self.give_back(core, 0)?;
        self.upstream.trim()?;
        // SAFETY: as the caller promises.
        match unsafe { self.grow(core, want, request, want.bytes.next_multiple_of(self.page())) } {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => (),
            grown => return grown,
        }
        // SAFETY: as the caller promises.
        unsafe { self.adopt_all(core, want, request) }?;
        let found = core.fit_anywhere(want);
        found.ok_or_else(|| self.out_of_memory(core, request.bytes))
    }

    /// Makes the lane's stream wait for all others, after which all free blocks are the lane's.
    ///
    /// # Safety
    ///
    /// - As [`miss`](Self::miss).
    unsafe fn adopt_all(&self, core: &mut Core, want: &Want, request: &Request<'_>) -> Result<()> {
        let Core { arena, clocks, events, .. } = core;
        for lane in (0..clocks.len() as u32).filter(|&lane| lane != want.lane) {
            if !arena.owns(lane) {
                continue;
            }
            match events.stand(&mut clocks[lane as usize], &*self.upstream)? {
                Stand::Passed => (),
                // SAFETY: the event is live; the lane is open, so its stream is live.
                Stand::Event(event) => unsafe { self.upstream.event_wait(event, request.lane.stream) }?,
                Stand::Never => continue,
            }
            let stamp = clocks[want.lane as usize].stamp();
            arena.hand_over(lane, |_| true, Owner { lane: want.lane, stamp });
        }
        arena.hand_over(ANY, |_| true, Owner { lane: want.lane, stamp: 0 });
        Ok(())
    }

    fn fit(&self, core: &Core, want: &Want) -> Option<u32> {
        core.arena.fit(want.kind, want.lane, want.bytes, self.snug(want))
    }

    /// Returns the unit of segments.
    fn page(&self) -> u64 {
        if self.divides { PAGE } else { GRANULE }
    }

    fn kind(&self, bytes: u64, peak: u64) -> Kind {
        if self.divides { policy::kind(bytes, peak) } else { Kind::Whole }
    }

    /// Returns the most bytes of a free block that a request may get.
    fn snug(&self, want: &Want) -> u64 {
        if self.divides { policy::snug(want.kind, want.bytes) } else { want.bytes }
    }

    /// Returns the bytes of a new segment for a block.
    fn segment_bytes(&self, want: &Want, peak: u64) -> u64 {
        let least = want.bytes.next_multiple_of(self.page());
        match want.kind {
            Kind::Whole => least,
            Kind::Chunk => least.max(policy::chunk(peak)),
        }
    }
}

impl Core {
    /// Finds a block in any segment, also one that is far too large.
    fn fit_anywhere(&self, want: &Want) -> Option<u32> {
        let kinds = [Kind::Chunk, Kind::Whole].into_iter();
        kinds.filter_map(|kind| self.arena.fit(kind, want.lane, want.bytes, u64::MAX)).next()
    }
}
