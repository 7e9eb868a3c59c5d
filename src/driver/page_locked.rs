//! The page-locked memory of the host that a driver knows, and where copies have to be cut.
//!
//! CUDA's driver refuses a copy that goes on from registered memory into other memory, or into
//! memory that was registered by another call. It goes by bytes: a copy of other memory in a page
//! that is locked is right (`benches/record/2026-11-23-h100/transfers.md`). Programs copy across
//! such ends in good faith: they register a part of an array and copy all of it, or registration
//! itself takes several calls. So every copy is cut there, below all code that makes copies.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Copy3d, DriverKind, Pitched};
use crate::error::Result;

/// How memory came to be page-locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The driver allocated it, in pages of its own.
    Allocated,
    /// It existed, and shares its first and last page with other memory.
    Registered,
}

/// The page-locked memory that a driver knows.
#[derive(Debug, Default)]
pub(super) struct PageLocked {
    ranges: RwLock<Ranges>,
    /// The number of registered ranges. While it is 0, copies take no lock to look for them.
    registered: AtomicUsize,
}

/// First addresses and bytes, by origin.
type Ranges = [BTreeMap<usize, usize>; 2];

impl PageLocked {
    /// Returns the memory for a driver of this kind. GPUs share one: what is page-locked for one of
    /// them is so for all in the process.
    pub(super) fn of(kind: DriverKind) -> Arc<Self> {
        static GPUS: LazyLock<Arc<PageLocked>> = LazyLock::new(Arc::default);
        match kind {
            DriverKind::Cuda => Arc::clone(&GPUS),
            DriverKind::Soft => Arc::default(),
        }
    }

    pub(super) fn enter(&self, origin: Origin, first: usize, bytes: usize) {
        let mut ranges = self.change();
        ranges[origin as usize].insert(first, bytes);
        self.registered.store(ranges[Origin::Registered as usize].len(), Ordering::Relaxed);
    }

    pub(super) fn leave(&self, origin: Origin, first: usize) {
        let mut ranges = self.change();
        ranges[origin as usize].remove(&first);
        self.registered.store(ranges[Origin::Registered as usize].len(), Ordering::Relaxed);
    }

    /// Returns whether all of these bytes, at least one, are page-locked, in one range or in
    /// several that follow each other.
    pub(super) fn covers(&self, memory: *const u8, bytes: usize) -> bool {
        let (mut at, end) = (memory.addr(), memory.addr() + bytes);
        let ranges = self.ranges();
        while at < end {
            let Some(next) = ranges.iter().find_map(|ranges| end_of_range(ranges, at)) else { return false };
            at = next;
        }
        true
    }

    /// Calls `copy` with the offset and the bytes of each part of a copy from or to these bytes of
    /// the host, in order.
    pub(super) fn each_part(
        &self,
        memory: *const u8,
        bytes: usize,
        mut copy: impl FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let (start, mut done) = (memory.addr(), 0);
        while let Some(end) = self.end_within(start + done, start + bytes) {
            copy(done, end - start - done)?;
            done = end - start;
        }
        copy(done, bytes - done)
    }

    /// Calls `copy` with the parts of a box that is not empty, in order.
    pub(super) fn each_box(&self, whole: &Copy3d, copy: &mut dyn FnMut(&Copy3d) -> Result<()>) -> Result<()> {
        let Some((memory, side)) = whole.host() else { return copy(whole) };
        let start = memory.addr();
        let Some(end) = self.end_within(start, start + whole.span(side)) else { return copy(whole) };
        let (slices, rows) = (whole.depth / 2, whole.height / 2);
        let (first, second) = if slices > 0 {
            parts(whole, [whole.width, whole.height, slices], |side| slices * side.slice_pitch)
        } else if rows > 0 {
            parts(whole, [whole.width, rows, 1], |side| rows * side.row_pitch)
        } else {
            parts(whole, [end - start, 1, 1], |_| end - start)
        };
        self.each_box(&first, copy)?;
        self.each_box(&second, copy)
    }

    /// Returns the first place between two addresses at which registered memory begins or ends.
    fn end_within(&self, start: usize, end: usize) -> Option<usize> {
        // Relaxed: a program that copies beside memory that another thread registered knows of it
        // by other means.
        if self.registered.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let registered = &self.ranges()[Origin::Registered as usize];
        let next = || registered.range(start..end).next().map(|(&first, _)| first);
        end_of_range(registered, start).or_else(next).filter(|&at| at < end)
    }

    fn ranges(&self) -> RwLockReadGuard<'_, Ranges> {
        // Every critical section leaves the ranges consistent.
        self.ranges.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Ranges> {
        self.ranges.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the end of the range that holds an address.
fn end_of_range(ranges: &BTreeMap<usize, usize>, at: usize) -> Option<usize> {
    let (first, bytes) = ranges.range(..=at).next_back()?;
    (at - first < *bytes).then(|| first + bytes)
}

/// Cuts a copy in two: the first part has these extents, the second begins `offset` bytes later on
/// each side and has the rest.
fn parts(copy: &Copy3d, [width, height, depth]: [usize; 3], offset: impl Fn(&Pitched) -> usize) -> (Copy3d, Copy3d) {
    let first = Copy3d { width, height, depth, ..*copy };
    let rest = |whole: usize, part: usize| if part == whole { whole } else { whole - part };
    let moved = |side: &Pitched| Pitched { place: side.place.offset(offset(side)), ..*side };
    let second = Copy3d {
        dst: moved(&copy.dst),
        src: moved(&copy.src),
        width: rest(copy.width, width),
        height: rest(copy.height, height),
        depth: rest(copy.depth, depth),
    };
    (first, second)
}

#[cfg(test)]
mod tests;
