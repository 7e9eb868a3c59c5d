//! The heap from which kernels allocate with `malloc`: one allocation, cut into chunks.
//!
//! A chunk begins at a multiple of 16, after 16 bytes that belong to the heap, so that an access
//! past its end is recognised. Memory that has never been used comes first, and freed memory only
//! after that: a stale pointer is recognised as long as the heap is not full.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::allocation::{Allocation, POISON};
use super::cells::Cells;
use super::global::Memory;
use super::marked::Marked;
use super::nearest::Nearest;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::gpu::invalid;

/// The bytes of a heap unless a program asks for another size, as on CUDA's GPUs.
const DEFAULT_BYTES: u64 = 8 << 20;
/// The least bytes of a heap: room for one chunk.
const LEAST_BYTES: u64 = 2 * GRAIN;
/// The alignment of chunks, and the bytes before each.
const GRAIN: u64 = 16;

/// The chunks of a heap.
pub(super) struct Heap {
    chunks: Mutex<Chunks>,
    /// The bytes that belong to live chunks.
    live: Marked,
}

/// Places in a heap, as offsets.
struct Chunks {
    bytes: u64,
    /// The end of the memory that has been used so far.
    fresh: u64,
    /// Free memory before that, as the end of each range by its beginning.
    free: BTreeMap<u64, u64>,
    /// The same ranges by their bytes, with their beginnings.
    by_bytes: BTreeSet<(u64, u64)>,
    /// The bytes of each chunk that is live, and of each that was freed and not yet used again.
    live: BTreeMap<u64, u64>,
    freed: BTreeMap<u64, u64>,
}

/// Why memory cannot be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadFree {
    /// It has been freed.
    Again,
    /// It is not the beginning of a chunk.
    Foreign,
}

impl Heap {
    pub(super) fn new(bytes: u64) -> Self {
        let chunks = Chunks {
            bytes,
            fresh: 0,
            free: BTreeMap::new(),
            by_bytes: BTreeSet::new(),
            live: BTreeMap::new(),
            freed: BTreeMap::new(),
        };
        Self { chunks: Mutex::new(chunks), live: Marked::none(bytes) }
    }

    fn lock(&self) -> MutexGuard<'_, Chunks> {
        // Every critical section leaves the chunks consistent.
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the bytes belong to live chunks.
    pub(super) fn holds(&self, offset: u64, bytes: u64) -> bool {
        self.live.holds(offset, bytes)
    }

    /// Returns the chunk, live or freed, that an offset was probably meant for, as its offset and
    /// bytes, and whether it has been freed.
    fn nearest(&self, offset: u64) -> Option<(u64, u64, bool)> {
        let chunks = self.lock();
        let of = |list: &BTreeMap<u64, u64>, freed: bool| {
            let before = list.range(..=offset).next_back();
            let after = list.range(offset..).next();
            [before, after].map(|chunk| chunk.map(|(&at, &bytes)| (at, bytes, freed)))
        };
        let all = [of(&chunks.live, false), of(&chunks.freed, true)];
        let distance = |&(at, bytes, _): &(u64, u64, bool)| {
            if offset < at { at - offset } else { (offset + 1).saturating_sub(at + bytes) }
        };
        all.into_iter().flatten().flatten().min_by_key(distance)
    }
}

impl Chunks {
    /// Takes a chunk of `bytes` bytes; `None` if there is no room.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let room = bytes.checked_next_multiple_of(GRAIN)?.checked_add(GRAIN)?;
        let begin = self.take_fresh(room).or_else(|| self.take_freed(room)).or_else(|| {
            // The memory at the end may be large enough together with a free range before it. If it
            // is not, it stays fresh.
            let (fresh, end) = (self.fresh, self.bytes);
            let before = self.free.range(..fresh).next_back().filter(|(_, until)| **until == fresh);
            if end - before.map_or(fresh, |(&begin, _)| begin) < room {
                return None;
            }
            self.fresh = end;
            self.give(fresh..end);
            self.take_freed(room)
        })?;
        let at = begin + GRAIN;
        while let Some((&old, _)) =
            self.freed.range(..begin + room).next_back().filter(|(old, bytes)| *old + *bytes > begin)
        {
            self.freed.remove(&old);
        }
        self.live.insert(at, bytes);
        Some(at)
    }

    fn take_fresh(&mut self, room: u64) -> Option<u64> {
        let begin = self.fresh;
        let end = begin.checked_add(room).filter(|&end| end <= self.bytes)?;
        self.fresh = end;
        Some(begin)
    }

    /// Takes the beginning of the smallest range that is large enough.
    fn take_freed(&mut self, room: u64) -> Option<u64> {
        let &(bytes, begin) = self.by_bytes.range((room, 0)..).next()?;
        self.remove(begin, begin + bytes);
        self.give(begin + room..begin + bytes);
        Some(begin)
    }

    /// Adds a free range, together with its neighbours.
    fn give(&mut self, Range { start: mut begin, mut end }: Range<u64>) {
        if begin == end {
            return;
        }
        if let Some((&before, &until)) = self.free.range(..begin).next_back().filter(|(_, until)| **until == begin) {
            self.remove(before, until);
            begin = before;
        }
        if let Some(&until) = self.free.get(&end) {
            self.remove(end, until);
            end = until;
        }
        self.free.insert(begin, end);
        self.by_bytes.insert((end - begin, begin));
    }

    fn remove(&mut self, begin: u64, end: u64) {
        self.free.remove(&begin);
        self.by_bytes.remove(&(end - begin, begin));
    }
}

impl Allocation {
    /// Makes a heap of `bytes` bytes; `None` if the host has too little memory.
    fn heap(base: u64, bytes: u64, born: u64) -> Option<Self> {
        let mut made = Self::reserved(base, bytes, born)?;
        made.heap = Some(Box::new(Heap::new(bytes)));
        Some(made)
    }

    /// Takes a chunk of `bytes` unwritten bytes from the heap that it is; `None` if it has too
    /// little room.
    pub(crate) fn take_chunk(&self, bytes: u64) -> Option<u64> {
        let heap = self.heap.as_ref()?;
        let at = if bytes == 0 { None } else { heap.lock().take(bytes) }?;
        self.written.remove(at, bytes);
        for word in (at..at + bytes).step_by(4) {
            self.store32(word, POISON);
        }
        heap.live.add(at, bytes);
        Some(self.base + at)
    }

    /// Frees the chunk at an address of the heap that it is.
    pub(crate) fn free_chunk(&self, address: u64) -> Result<(), BadFree> {
        let Some((heap, at)) = self.heap.as_ref().zip(address.checked_sub(self.base)) else {
            return Err(BadFree::Foreign);
        };
        let mut chunks = heap.lock();
        let Some(bytes) = chunks.live.remove(&at) else {
            return Err(if chunks.freed.contains_key(&at) { BadFree::Again } else { BadFree::Foreign });
        };
        heap.live.remove(at, bytes);
        chunks.freed.insert(at, bytes);
        chunks.give(at - GRAIN..(at + bytes).next_multiple_of(GRAIN));
        Ok(())
    }

    /// Describes it, or in a heap the chunk that an address was probably meant for.
    pub(crate) fn described(&self, address: u64) -> Nearest {
        let chunk = self.heap.as_ref().and_then(|heap| heap.nearest(address.saturating_sub(self.base)));
        let (at, bytes, freed) = chunk.unwrap_or((0, self.bytes, false));
        Nearest { base: self.base + at, bytes, freed, foreign: None }
    }
}

/// The heap of a memory.
#[derive(Debug)]
pub(super) struct OfKernels {
    limit: u64,
    /// Its address, once a kernel has needed it.
    base: Option<u64>,
}

impl Default for OfKernels {
    fn default() -> Self {
        Self { limit: DEFAULT_BYTES, base: None }
    }
}

impl Memory {
    /// Sets the bytes of the heap from which kernels allocate with `malloc`, 8 MiB by default. The
    /// heap takes its memory at the first launch of a kernel that calls `malloc` or `free`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is a heap already; `OutOfMemory` beyond the limit of the memory.
    pub fn set_heap_limit(&self, bytes: u64) -> Result<()> {
        let mut heap = self.heap_of_kernels();
        if bytes > self.limit() {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                format!(
                    "a heap of {} for kernels in a memory of {}; set a smaller heap",
                    counted(bytes, "byte"),
                    counted(self.limit(), "byte")
                ),
            ));
        }
        if heap.base.is_some() {
            return Err(invalid(format!(
                "the heap of kernels has {} since a kernel that allocates was launched; set its size before",
                counted(heap.limit, "byte")
            )));
        }
        heap.limit = bytes.max(LEAST_BYTES).next_multiple_of(GRAIN);
        Ok(())
    }

    /// Ends the heap of kernels with all that they allocated; a later one has the default size.
    pub fn end_heap(&self) {
        let heap = std::mem::take(&mut *self.heap_of_kernels());
        if let Some(base) = heap.base {
            self.lock().remove(base, self.gpu);
        }
    }

    /// Returns the address of the heap of kernels; makes it on the first call.
    pub(crate) fn heap(&self) -> Result<u64> {
        let mut heap = self.heap_of_kernels();
        if let Some(base) = heap.base {
            return Ok(base);
        }
        if self.hollow {
            return Err(invalid("address-only memory has no heap, from which this kernel allocates; use real memory"));
        }
        let base = self.allocate(heap.limit, 0, Allocation::heap)?;
        heap.base = Some(base);
        Ok(base)
    }
}

#[cfg(test)]
mod tests;
