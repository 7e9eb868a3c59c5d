//! The pool of page-locked host memory of a device.
//!
//! Page-locking waits for the device and costs as much as many copies, so memory that buffers give
//! back stays locked for the next ones. It is taken from the whole system, so the pool has a limit
//! in bytes. A request gets the smallest cached block that fits and wastes little, or a new one of
//! whole pages; sizes are not rounded to powers of two, because that would lock up to twice the
//! bytes.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use crate::device::lock;
use crate::driver::{Driver, HostKind, available_memory};
use crate::error::{Error, ErrorKind, Result, counted};

/// Blocks have whole pages of this size, which is what a system locks.
const PAGE: usize = 4096;

/// A cached block may be larger than a request by this part of it.
const WASTE: usize = 8;

/// A block of initialised, page-locked host memory. It is not `Clone`, so it goes back once.
#[derive(Debug)]
pub(crate) struct HostBlock {
    memory: NonNull<u8>,
    bytes: usize,
    kind: HostKind,
}

// SAFETY: the block is the only owner of its memory, and any thread may use that.
unsafe impl Send for HostBlock {}
// SAFETY: a shared block gives its address and size alone.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    pub(in crate::memory) fn memory(&self) -> NonNull<u8> {
        self.memory
    }
}

/// What the pool of page-locked host memory of a device holds, in bytes.
///
/// [`Device::pinned_memory`](crate::Device::pinned_memory) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PinnedMemory {
    /// Bytes that are page-locked: `in_use + cached`.
    pub held: usize,
    /// Bytes of live buffers, and of dropped ones whose copies are in flight.
    pub in_use: usize,
    /// Bytes that wait for the next buffer.
    pub cached: usize,
    /// The most bytes that were held at once.
    pub peak: usize,
    /// The most bytes that may be held. A limit that was lowered below what is held takes effect
    /// with the next allocation that needs new memory.
    pub limit: usize,
}

/// The pool; it frees its memory when it is dropped, after all buffers.
#[derive(Debug)]
pub(crate) struct HostPool {
    driver: Arc<dyn Driver>,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    /// Blocks that nothing uses, by whether they are write-combined, then by their bytes.
    cached: [BTreeMap<usize, Vec<HostBlock>>; 2],
    cached_bytes: usize,
    in_use: usize,
    peak: usize,
    /// `None` until it is set or asked for.
    limit: Option<usize>,
}

impl HostPool {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, books: Mutex::default() }
    }

    /// Returns a block of at least `bytes` bytes, which must not be 0. Its contents are zeros if it
    /// is new, and else what its last owner left.
    pub(in crate::memory) fn take(&self, bytes: usize, kind: HostKind) -> Result<HostBlock> {
        let whole = bytes.checked_next_multiple_of(PAGE).filter(|&bytes| bytes <= isize::MAX as usize);
        let whole = whole.ok_or_else(|| {
            let asked = counted(bytes, "byte");
            Error::new(ErrorKind::Layout, format!("{asked} of host memory are more than can be addressed; use less"))
        })?;
        let evicted = {
            let mut books = lock(&self.books);
            if let Some(block) = books.fitting(whole, kind) {
                return Ok(block);
            }
            books.reserve(whole)?
        };
        // Without the lock: the driver waits for the device, and no drop of a buffer waits for that.
        let allocated = self.free(evicted).and_then(|()| self.alloc(whole, kind));
        let memory = allocated.map_err(|error| {
            let mut books = lock(&self.books);
            books.in_use -= whole;
            error.while_doing(books.described())
        })?;
        Ok(HostBlock { memory, bytes: whole, kind })
    }

    fn alloc(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        let allocated = self.driver.alloc_host(bytes, kind);
        match &allocated {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {}
            _ => return allocated,
        }
        // What is cached may be what the system lacks.
        let cached = lock(&self.books).evict(|held| held > 0);
        if cached.is_empty() {
            return allocated;
        }
        self.free(cached)?;
        self.driver.alloc_host(bytes, kind)
    }

    /// Takes a block back. The caller promises by the block's ownership that nothing uses it.
    pub(crate) fn put(&self, block: HostBlock) {
        let mut books = lock(&self.books);
        books.in_use -= block.bytes;
        books.cached_bytes += block.bytes;
        books.cached[place(block.kind)].entry(block.bytes).or_default().push(block);
    }

    /// Frees cached blocks until at most `keep` bytes are held, or none is cached. Returns the
    /// freed bytes.
    pub(super) fn trim(&self, keep: usize) -> Result<usize> {
        let evicted = lock(&self.books).evict(|held| held > keep);
        let bytes = evicted.iter().map(|block| block.bytes).sum();
        self.free(evicted).map(|()| bytes)
    }

    pub(super) fn set_limit(&self, bytes: usize) {
        lock(&self.books).limit = Some(bytes);
    }

    pub(super) fn figures(&self) -> PinnedMemory {
        let mut books = lock(&self.books);
        let limit = books.limit();
        PinnedMemory { held: books.held(), in_use: books.in_use, cached: books.cached_bytes, peak: books.peak, limit }
    }

    /// Frees blocks. The driver has freed a block even if it returns an error.
    fn free(&self, blocks: Vec<HostBlock>) -> Result<()> {
        let mut outcome = Ok(());
        for block in blocks {
            // SAFETY: `take` got the memory from this driver, and the pool owns it again, so
            // nothing uses it.
            outcome = outcome.and(unsafe { self.driver.free_host(block.memory) });
        }
        outcome.map_err(|error| error.while_doing("freeing page-locked memory that nothing uses"))
    }
}

impl Drop for HostPool {
    fn drop(&mut self) {
        // No caller is left to receive a failure.
        let _ = self.trim(0);
    }
}

impl Books {
    fn held(&self) -> usize {
        self.in_use + self.cached_bytes
    }

    /// Returns the limit; at first use this is half of what the host can give without swapping.
    fn limit(&mut self) -> usize {
        let half = || available_memory().map_or(usize::MAX, |bytes| usize::try_from(bytes / 2).unwrap_or(usize::MAX));
        *self.limit.get_or_insert_with(half)
    }

    /// Takes the smallest cached block of at least `bytes` bytes that wastes little.
    fn fitting(&mut self, bytes: usize, kind: HostKind) -> Option<HostBlock> {
        let blocks = &mut self.cached[place(kind)];
        let (&size, _) = blocks.range(bytes..=bytes.saturating_add(bytes / WASTE)).next()?;
        let block = take_from(blocks, size)?;
        self.cached_bytes -= size;
        self.in_use += size;
        Some(block)
    }

    /// Counts bytes as used, and takes out of the cache what must be freed for them.
    fn reserve(&mut self, bytes: usize) -> Result<Vec<HostBlock>> {
        let limit = self.limit();
        if self.in_use.saturating_add(bytes) > limit {
            return Err(self.over_limit(bytes, limit));
        }
        let evicted = self.evict(|held| held + bytes > limit);
        self.in_use += bytes;
        self.peak = self.peak.max(self.held());
        Ok(evicted)
    }

    /// Takes cached blocks out, the largest first, while `too_much` of the bytes that are held.
    fn evict(&mut self, too_much: impl Fn(usize) -> bool) -> Vec<HostBlock> {
        let mut evicted = Vec::new();
        while too_much(self.held()) {
            let Some(block) = self.largest() else { break };
            self.cached_bytes -= block.bytes;
            evicted.push(block);
        }
        evicted
    }

    /// Takes the largest cached block.
    fn largest(&mut self) -> Option<HostBlock> {
        let size = |blocks: &BTreeMap<usize, _>| blocks.last_key_value().map_or(0, |(&size, _)| size);
        let [cached, combined] = &mut self.cached;
        let blocks = if size(cached) >= size(combined) { cached } else { combined };
        take_from(blocks, size(blocks))
    }

    fn described(&self) -> String {
        let [in_use, cached] = [self.in_use, self.cached_bytes].map(|bytes| counted(bytes, "byte").to_string());
        format!("page-locking host memory while buffers hold {in_use} and {cached} are cached")
    }

    fn over_limit(&self, bytes: usize, limit: usize) -> Error {
        let context = format!(
            "cannot page-lock {} more: buffers and copies in flight hold {} of the device's limit of {}; drop some, or \
             raise the limit (Device::set_pinned_limit)",
            counted(bytes, "byte"),
            self.in_use,
            counted(limit, "byte")
        );
        Error::new(ErrorKind::OutOfMemory, context)
    }
}

/// Takes a block of exactly this size. A size without blocks has no entry.
fn take_from(blocks: &mut BTreeMap<usize, Vec<HostBlock>>, size: usize) -> Option<HostBlock> {
    let of_size = blocks.get_mut(&size)?;
    let block = of_size.pop();
    if of_size.is_empty() {
        blocks.remove(&size);
    }
    block
}

fn place(kind: HostKind) -> usize {
    match kind {
        HostKind::Cached => 0,
        HostKind::WriteCombined => 1,
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::driver::soft::Soft;

    fn pool(limit: usize) -> HostPool {
        let pool = HostPool::new(Arc::new(Soft::with_config(Default::default())));
        pool.set_limit(limit);
        pool
    }

    #[test]
    fn sizes_are_whole_pages_and_not_powers_of_two() {
        let pool = pool(1 << 30);
        let block = pool.take(3 * PAGE + 1, HostKind::Cached).unwrap();
        assert_eq!(block.bytes, 4 * PAGE);
        pool.put(block);
        let block = pool.take(9 * PAGE, HostKind::Cached).unwrap();
        assert_eq!(
            pool.figures(),
            PinnedMemory { held: 13 * PAGE, in_use: 9 * PAGE, cached: 4 * PAGE, peak: 13 * PAGE, limit: 1 << 30 }
        );
        pool.put(block);
    }

    #[test]
    fn the_smallest_block_that_wastes_little_is_used_again() {
        let pool = pool(1 << 30);
        let blocks = [40, 36, 32, 80].map(|pages| pool.take(pages * PAGE, HostKind::Cached).unwrap());
        let second = blocks[1].memory;
        blocks.into_iter().for_each(|block| pool.put(block));
        let block = pool.take(33 * PAGE, HostKind::Cached).unwrap();
        assert_eq!((block.memory, block.bytes), (second, 36 * PAGE));
        // 80 pages for 41 would waste half.
        assert_eq!(pool.take(41 * PAGE, HostKind::Cached).unwrap().bytes, 41 * PAGE);
        // Memory of the other kind is not exchanged for it.
        assert_eq!(pool.take(40 * PAGE, HostKind::WriteCombined).unwrap().bytes, 40 * PAGE);
        assert_eq!(pool.figures().cached, (40 + 32 + 80) * PAGE);
    }

    #[test]
    fn the_limit_counts_what_is_cached_only_until_it_is_needed() {
        let pool = pool(10 * PAGE);
        let (kept, dropped) =
            (pool.take(PAGE, HostKind::Cached).unwrap(), pool.take(6 * PAGE, HostKind::Cached).unwrap());
        pool.put(dropped);
        // 9 pages more go only if the cached 6 are freed first.
        let large = pool.take(9 * PAGE, HostKind::Cached).unwrap();
        assert_eq!((pool.figures().held, pool.figures().cached), (10 * PAGE, 0));
        let error = pool.take(1, HostKind::Cached).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        for part in ["4096 bytes more", "hold 40960 of", "limit of 40960 bytes", "set_pinned_limit"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        pool.put(kept);
        pool.put(large);
        assert_eq!(pool.trim(2 * PAGE), Ok(9 * PAGE), "the largest goes first");
        assert_eq!((pool.trim(0), pool.figures().held, pool.figures().peak), (Ok(PAGE), 0, 10 * PAGE));
        assert_eq!(pool.take(usize::MAX, HostKind::Cached).unwrap_err().kind(), ErrorKind::Layout);
    }
}
