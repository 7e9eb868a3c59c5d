//! The part of a lane that no other lane touches: free blocks by their exact size, and its own
//! sums. A hit touches nothing else, so lanes do not slow each other down.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::brief::Brief;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64};

/// No entry.
const NONE: u32 = u32::MAX;

/// A lane's part of the allocator, in cache lines of its own: processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Slot {
    pub(super) quick: Brief<Quick>,
    /// Written while `quick` is locked, by plain stores; read by anybody.
    pub(super) sums: Sums,
}

/// The sums of a lane since it was first opened. A block may be freed on another lane than it was
/// requested on, so only sums over all lanes mean something.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) allocated: AtomicU64,
    pub(super) freed: AtomicU64,
    pub(super) allocations: AtomicU64,
    pub(super) frees: AtomicU64,
}

/// Adds without a locked instruction, under the lock of the only writers. A thread that sees the
/// new sum also sees all sums of before.
#[inline]
pub(super) fn add(sum: &AtomicU64, value: u64) {
    sum.store(sum.load(Relaxed).wrapping_add(value), Release);
}

/// Returns what lanes have added to one sum and not taken away in the other.
///
/// Their threads go on meanwhile. The sums of what came are read first on all lanes, so every free
/// that came before one of these is seen, and the result may lag but is never too large.
pub(super) fn still<'a>(
    lanes: impl Iterator<Item = &'a Sums> + Clone,
    came: fn(&Sums) -> &AtomicU64,
    went: fn(&Sums) -> &AtomicU64,
) -> u64 {
    let [came, went] =
        [came, went].map(|sum| lanes.clone().map(|sums| sum(sums).load(Acquire)).fold(0, u64::wrapping_add));
    // A free that came later than the first reads can make it negative.
    (came.wrapping_sub(went) as i64).max(0) as u64
}

/// A block in a quick list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cached {
    pub(super) address: u64,
    pub(super) node: u32,
    next: u32,
}

/// Free blocks by size, the last freed first. Their entries are kept until a trim, so that neither
/// call allocates host memory on a hit.
#[derive(Debug)]
pub(super) struct Quick {
    /// The block that was freed last, and its granules: in most loops, the next request's. With 0
    /// granules there is no such block.
    latest: (u64, Cached),
    /// The first entry of each size, in granules. A list that became empty stays.
    heads: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    entries: Vec<Cached>,
    /// The first entry that holds no block.
    spare: u32,
}

impl Default for Quick {
    fn default() -> Self {
        Self {
            latest: (0, Cached { address: 0, node: NONE, next: NONE }),
            heads: HashMap::default(),
            entries: Vec::new(),
            spare: NONE,
        }
    }
}

impl Quick {
    /// Takes a block of at least 1 granule.
    #[inline]
    pub(super) fn pop(&mut self, granules: u64) -> Option<Cached> {
        if self.latest.0 == granules {
            self.latest.0 = 0;
            return Some(self.latest.1);
        }
        self.pop_listed(granules)
    }

    #[inline]
    pub(super) fn push(&mut self, granules: u64, address: u64, node: u32) {
        if self.latest.0 != 0 {
            self.list_latest();
        }
        self.latest = (granules, Cached { address, node, next: NONE });
    }

    fn pop_listed(&mut self, granules: u64) -> Option<Cached> {
        let head = self.heads.get_mut(&granules)?;
        let at = *head;
        let entry = self.entries.get_mut(at as usize)?;
        let found = *entry;
        *head = found.next;
        entry.next = self.spare;
        self.spare = at;
        Some(found)
    }

    fn list_latest(&mut self) {
        let (granules, latest) = self.latest;
        let head = self.heads.entry(granules).or_insert(NONE);
        let entry = Cached { next: *head, ..latest };
        if let Some(spare) = self.entries.get_mut(self.spare as usize) {
            *head = self.spare;
            self.spare = spare.next;
            *spare = entry;
        } else {
            *head = self.entries.len() as u32;
            self.entries.push(entry);
        }
    }

    /// Calls `found` with every block.
    pub(super) fn each(&self, mut found: impl FnMut(Cached)) {
        if self.latest.0 != 0 {
            found(self.latest.1);
        }
        for &head in self.heads.values() {
            let mut at = head;
            while let Some(&entry) = self.entries.get(at as usize) {
                found(entry);
                at = entry.next;
            }
        }
    }

    /// Takes all blocks.
    pub(super) fn drain(&mut self, found: impl FnMut(Cached)) {
        self.each(found);
        self.latest.0 = 0;
        self.heads.clear();
        self.entries.clear();
        self.spare = NONE;
    }

    /// Returns the number of entries and sizes that there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.heads.capacity() + self.entries.capacity()
    }

    /// Gives back the host memory that the blocks which are here do not need.
    pub(super) fn shrink(&mut self) {
        self.heads.shrink_to_fit();
        self.entries.shrink_to_fit();
    }
}

/// Fibonacci hashing: sizes are small numbers that programs choose, not attackers.
#[derive(Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        // The table takes the low bits for the place and the top ones for its tags.
        self.0 = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

/// The site and the lane that hold a block. This lies apart from the arena, so that a hit writes it
/// without a lock: only the owner of a block does, and it hands the block on under a lock.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Holder {
    site: AtomicPtr<Location<'static>>,
    lane: AtomicU32,
}

impl Default for Holder {
    fn default() -> Self {
        Self { site: AtomicPtr::new(std::ptr::null_mut()), lane: AtomicU32::new(0) }
    }
}

impl Holder {
    #[inline]
    pub(super) fn set(&self, site: &'static Location<'static>, lane: u32) {
        self.site.store(std::ptr::from_ref(site).cast_mut(), Relaxed);
        self.lane.store(lane, Relaxed);
    }

    pub(super) fn lane(&self) -> u32 {
        self.lane.load(Relaxed)
    }

    pub(super) fn site(&self) -> Option<&'static Location<'static>> {
        // SAFETY: the pointer is null, or `set` made it from a reference that lives for ever.
        unsafe { self.site.load(Relaxed).cast_const().as_ref() }
    }
}
