//! The allocator of devices. Lists of a lane's free blocks serve hits (`lane`), and the arena
//! serves misses (`arena`, `miss`). The lists are behind a lock for each lane, the arena is behind
//! one lock, and nothing is lock-free but sums that one lane writes.

mod arena;
mod brief;
mod clock;
mod lane;
mod miss;
mod pages;
mod policy;
mod report;

use std::sync::{Arc, Mutex, MutexGuard};

use self::arena::{Arena, Owner};
use self::clock::{Clock, Events, too_many_lanes};
use self::lane::{Holder, Slot, Sums, add, still};
use self::pages::Pages;
use self::policy::GRANULE;
use super::upstream::{OfDriver, Simulated, Upstream};
use super::{Allocate, Block, Figures, Lane, Request, Snapshot};
use crate::driver::{Driver, StreamHandle};
use crate::error::{Error, Result};
use crate::sync::lock;

/// Most lanes at a time.
const MOST_LANES: usize = 1 << 16;

/// An allocator that keeps freed memory for the next request.
///
/// Each lane has lists of free blocks by their exact size. A request that finds one there, a hit,
/// touches nothing that lanes share, whatever the size. Every other request, a miss, locks what
/// lanes share: it looks for a block to split, merges the free blocks of all lanes with their
/// neighbours, gives memory back to the driver, and takes new memory, in this order. It goes beyond
/// 17/16 of the most that was in use only where nothing else helps.
///
/// Work on a lane's stream orders the uses of its blocks. A block goes to another lane once an
/// event shows that its last use has run, or after that lane's stream was made to wait for one. So
/// neither call makes the host wait, unless the driver fails or has no pool and no memory left.
///
/// [`Figures::peak_active`] is the most that a miss or a call of [`Allocate::figures`] saw: a hit
/// compares nothing.
#[derive(Debug)]
pub struct Caching {
    // In the order of locking: the arena before a lane.
    core: Mutex<Core>,
    lanes: Pages<Slot>,
    holders: Pages<Holder>,
    upstream: Box<dyn Upstream>,
    /// True if segments are divided into blocks.
    divides: bool,
}

/// The state that lanes share.
#[derive(Debug, Default)]
struct Core {
    arena: Arena,
    clocks: Vec<Clock>,
    events: Events,
    /// Ids of closed lanes whose blocks have all left them.
    vacant: Vec<u32>,
    /// Ids of closed lanes that still have blocks.
    closing: Vec<u32>,
    peak_active: u64,
    misses: u64,
    taken: u64,
    given_back: u64,
}

impl Caching {
    /// An allocator over the memory of a driver, from its pool where it has one.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn new(driver: Arc<dyn Driver>) -> Result<Self> {
        Ok(Self::over(Box::new(OfDriver::new(driver)?)))
    }

    /// An allocator over the memory of a driver whose blocks are allocations of the driver each. On
    /// the software GPU they lie far apart, so an access outside of one is a fault; blocks of a
    /// divided segment are neighbours.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn undivided(driver: Arc<dyn Driver>) -> Result<Self> {
        let mut caching = Self::new(driver)?;
        caching.divides = false;
        Ok(caching)
    }

    /// An allocator over `bytes` bytes of memory that does not exist, to try how it would do on a
    /// device.
    pub fn simulated(bytes: u64) -> Self {
        Self::over(Box::new(Simulated::new(bytes)))
    }

    pub(crate) fn over(upstream: Box<dyn Upstream>) -> Self {
        Self { core: Mutex::default(), lanes: Pages::new(), holders: Pages::new(), upstream, divides: true }
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    fn sums(&self, core: &Core) -> impl Iterator<Item = &Sums> + Clone {
        (0..core.clocks.len() as u32).map(|lane| &self.lanes.entry(lane).sums)
    }

    /// Returns the bytes in use, and never more than were in use at once.
    fn active(&self, core: &Core) -> u64 {
        still(self.sums(core), |sums| &sums.allocated, |sums| &sums.freed)
    }

    /// Moves the blocks of a lane's lists to the arena, where they are split and merged.
    fn drain(&self, core: &mut Core, lane: u32) {
        let Core { arena, clocks, .. } = core;
        let clock = &mut clocks[lane as usize];
        let mut quick = self.lanes.entry(lane).quick.enter();
        quick.drain(|block| arena.release(block.node, Owner { lane, stamp: clock.stamp() }));
    }

    /// Does so for all lanes.
    fn drain_all(&self, core: &mut Core) {
        (0..core.clocks.len() as u32).for_each(|lane| self.drain(core, lane));
    }

    /// Gives back the host memory of the books that blocks do not need.
    fn shrink(&self, core: &mut Core) {
        (0..core.clocks.len() as u32).for_each(|lane| self.lanes.entry(lane).quick.enter().shrink());
        let nodes = core.arena.shrink();
        // SAFETY: no block has a node of this number or a higher one, in use or free, and only a
        // block's owner and reports, which lock `core`, use its holder. A new node is made under
        // the lock of `core`, which is held.
        unsafe { self.holders.free_from(nodes) };
    }
}

// SAFETY: a block is live, in one quick list, or in the arena, which divides what the upstream gave
// without overlap at multiples of the granule. A lane's quick list only serves requests of that
// lane, whose stream orders the uses. The arena serves a lane with blocks that it used last itself,
// that an event has shown to be past, or for whose event its stream waits (`miss`).
unsafe impl Allocate for Caching {
    fn is_over(&self, driver: &Arc<dyn Driver>) -> bool {
        self.upstream.is_of(driver)
    }

    unsafe fn open(&self, stream: StreamHandle) -> Result<Lane> {
        let core = &mut *self.core();
        self.reap(core)?;
        let id = match core.vacant.pop() {
            Some(id) => id,
            None if core.clocks.len() < MOST_LANES => {
                core.clocks.push(Clock::default());
                core.clocks.len() as u32 - 1
            }
            None => return Err(too_many_lanes()),
        };
        core.clocks[id as usize].stream = Some(stream);
        Ok(Lane { id, stream })
    }

    unsafe fn close(&self, lane: &Lane) -> Result<()> {
        let core = &mut *self.core();
        self.drain(core, lane.id);
        core.closing.push(lane.id);
        core.events.close(&mut core.clocks[lane.id as usize], &*self.upstream)
    }

    #[inline]
    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block> {
        let granules = granules(request.bytes)?;
        let slot = self.lanes.entry(request.lane.id);
        let mut quick = slot.quick.enter();
        let Some(cached) = quick.pop(granules) else {
            drop(quick);
            // SAFETY: as the caller promises.
            return unsafe { self.miss(request) };
        };
        add(&slot.sums.allocated, request.bytes);
        add(&slot.sums.allocations, 1);
        drop(quick);
        self.holders.entry(cached.node).set(request.site, request.lane.id);
        Ok(Block { address: cached.address, bytes: request.bytes, fresh: false, token: u64::from(cached.node) })
    }

    #[inline]
    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()> {
        let slot = self.lanes.entry(lane.id);
        let mut quick = slot.quick.enter();
        quick.push(block.bytes.div_ceil(GRANULE), block.address, block.token as u32);
        add(&slot.sums.freed, block.bytes);
        add(&slot.sums.frees, 1);
        Ok(())
    }

    fn trim(&self, keep: u64) -> Result<u64> {
        let core = &mut *self.core();
        self.drain_all(core);
        let before = core.arena.reserved;
        let most = self.active(core).saturating_add(keep);
        self.give_back(core, most)?;
        let given = before - core.arena.reserved;
        self.shrink(core);
        if keep == 0 {
            self.upstream.trim()?;
        }
        Ok(given)
    }

    fn figures(&self) -> Figures {
        self.sum_up(&mut self.core())
    }

    fn snapshot(&self) -> Snapshot {
        self.view(&mut self.core())
    }
}

impl Drop for Caching {
    fn drop(&mut self) {
        let core = &mut *self.core();
        // A drop returns no error, here and below. A lane that is still open has a live stream.
        for lane in 0..core.clocks.len() as u32 {
            self.drain(core, lane);
            let _ = core.events.close(&mut core.clocks[lane as usize], &*self.upstream);
        }
        let after = core.events.last_of_all(&core.clocks);
        for segment in core.arena.segments() {
            // Else the driver failed when a lane was closed, and its work may still run: the memory
            // stays allocated.
            if let Ok(Some(_)) = self.stands_for(core, segment) {
                let piece = core.arena.segment(segment);
                // SAFETY: all blocks have been freed, or are not used; the events stand for the
                // last work of all lanes that used it.
                let _ = unsafe { self.upstream.give(piece.address, piece.bytes, &after) };
            }
        }
        core.events.destroy(&mut core.clocks, &*self.upstream);
    }
}

/// Returns the bytes of a block for `bytes`.
#[inline]
fn granules(bytes: u64) -> Result<u64> {
    match bytes {
        0 => Err(Error::argument("a block of 0 bytes was requested; request at least 1")),
        _ => Ok(bytes.div_ceil(GRANULE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacities of the books: nodes, segments, their spares, a lane's entries, pages of holders.
    fn books(caching: &Caching, lane: &Lane) -> [usize; 3] {
        let arena = caching.core().arena.capacity();
        [arena, caching.lanes.entry(lane.id).quick.enter().capacity(), caching.holders.pages()]
    }

    #[test]
    fn a_trim_gives_the_books_of_freed_blocks_back() {
        let caching = Caching::simulated(1 << 40);
        // SAFETY: no work is queued, here and below.
        let lane = unsafe { caching.open(StreamHandle(1)) }.unwrap();
        // SAFETY: the lane is open.
        let alloc = |bytes: u64| unsafe { caching.alloc(&Request::new(bytes, &lane)) }.unwrap();
        for kept in [0, 100] {
            let mut blocks: Vec<_> = (0..50_000).map(|at| alloc(512 * (1 + at % 7))).collect();
            for block in blocks.split_off(kept) {
                // SAFETY: it was just given out.
                unsafe { caching.free(block, &lane) }.unwrap();
            }
            let [arena, entries, pages] = books(&caching, &lane);
            assert!(arena > 50_000 && entries > 40_000 && pages >= 15, "{arena} {entries} {pages}");
            caching.trim(0).unwrap();
            let [arena, entries, pages] = books(&caching, &lane);
            let most = 8 * kept;
            assert!(arena <= most && entries <= most && pages <= kept.div_ceil(10), "{arena} {entries} {pages}");
            for block in blocks {
                // SAFETY: as above.
                unsafe { caching.free(block, &lane) }.unwrap();
            }
        }
        assert_eq!(caching.figures().active, 0);
        // SAFETY: all blocks are freed.
        unsafe { caching.close(&lane) }.unwrap();
    }
}
