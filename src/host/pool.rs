//! The pool of page-locked host memory of a device.
//!
//! Page-locking waits for the device and costs as much as many copies, so memory that buffers give
//! back stays locked for the next ones. It is taken from the whole system, so the pool has a limit
//! in bytes. A request gets the smallest cached block that fits and wastes little, or a new one of
//! whole pages; sizes are not rounded to powers of two, because that would lock up to twice the
//! bytes.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use super::shelf::{CHUNK, Shelf};
use crate::driver::{Driver, HostKind, PAGE, available_memory};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::sync::lock;

/// Smaller blocks are carved from chunks.
const SMALL: usize = 256 << 10;

/// The kinds of memory, by the places of their shelves.
const KINDS: [HostKind; 2] = [HostKind::Cached, HostKind::WriteCombined];
// A shelf's place is its kind's number.
const _: () = assert!(KINDS[0] as usize == 0 && KINDS[1] as usize == 1);

/// A block of initialised, page-locked host memory. It is not `Clone`, so it goes back once.
#[derive(Debug)]
pub(crate) struct HostBlock {
    pub(super) memory: NonNull<u8>,
    pub(super) bytes: usize,
    pub(super) kind: HostKind,
    /// True if it is a part of a chunk.
    pub(super) is_carved: bool,
}

// SAFETY: the block is the only owner of its memory, and any thread may use that.
unsafe impl Send for HostBlock {}
// SAFETY: a shared block gives its address and size alone.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// Returns the first byte.
    pub(crate) fn memory(&self) -> NonNull<u8> {
        self.memory
    }
}

/// The bytes that the pool of page-locked host memory of a device holds.
///
/// [`Device::pinned_memory`](crate::Device::pinned_memory) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PinnedMemory {
    /// Bytes that are page-locked: `in_use + cached`.
    pub held: usize,
    /// Bytes of live buffers, and of dropped ones whose copies are in flight.
    pub in_use: usize,
    /// Bytes that wait for the next buffer. Small buffers share chunks, whose rest counts here.
    pub cached: usize,
    /// The most bytes that were held at once.
    pub peak: usize,
    /// The most bytes that may be held. A limit that was lowered below what is held takes effect
    /// with the next allocation, which gives cached memory back first.
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
    shelves: [Shelf; KINDS.len()],
    /// Bytes that are page-locked, or are about to be.
    held: usize,
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
    pub(crate) fn take(&self, bytes: usize, kind: HostKind) -> Result<HostBlock> {
        let whole = bytes.checked_next_multiple_of(PAGE).filter(|&bytes| bytes <= isize::MAX as usize);
        let whole = whole.ok_or_else(|| {
            let asked = counted(bytes, "byte");
            Error::layout(format!("{asked} of host memory are more than can be addressed; use less"))
        })?;
        let over = {
            let mut books = lock(&self.books);
            let limit = books.limit();
            books.evict(|held| held > limit)
        };
        self.free(over)?;
        let (fresh, evicted) = {
            let mut books = lock(&self.books);
            let limit = books.limit();
            // Buffers hold what is over a limit that was lowered.
            let cached = if books.held > limit { None } else { books.ready(whole, kind) };
            if let Some(block) = cached {
                return Ok(block);
            }
            // Only if there is room: a chunk costs no other buffer its memory.
            let is_chunk = whole < SMALL && books.held.saturating_add(CHUNK) <= limit;
            let fresh = if is_chunk { CHUNK } else { whole };
            (fresh, books.reserve(fresh)?)
        };
        // Without the lock: the driver waits for the device, and no drop of a buffer waits for it.
        let allocated = self.free(evicted).and_then(|()| self.alloc(fresh, kind));
        let mut books = lock(&self.books);
        let memory = allocated.map_err(|error| {
            books.held -= fresh;
            let [in_use, cached] =
                [books.in_use, books.held - books.in_use].map(|bytes| counted(bytes, "byte").to_string());
            error.while_doing(format_args!(
                "page-locking host memory while buffers hold {in_use} and {cached} are cached"
            ))
        })?;
        if fresh > whole {
            books.shelf(kind).add(memory);
            // The chunk is the shelf's from here on, so it must not go out as a block too.
            return Ok(books.ready(whole, kind).expect("a chunk is larger than the block, so there is room"));
        }
        books.in_use += whole;
        Ok(HostBlock { memory, bytes: whole, kind, is_carved: false })
    }

    fn alloc(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        let allocated = self.driver.alloc_host(bytes, kind);
        match &allocated {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {}
            _ => return allocated,
        }
        // The cached memory may be the memory that the system lacks.
        let cached = lock(&self.books).evict(|_| true);
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
        books.shelf(block.kind).put(block);
    }

    /// Frees cached blocks until at most `keep` bytes are held, or none is cached. Returns the
    /// freed bytes.
    pub(crate) fn trim(&self, keep: usize) -> Result<usize> {
        let evicted = lock(&self.books).evict(|held| held > keep);
        let bytes = evicted.iter().map(|block| block.bytes).sum();
        self.free(evicted).map(|()| bytes)
    }

    pub(crate) fn set_limit(&self, bytes: usize) {
        lock(&self.books).limit = Some(bytes);
    }

    pub(crate) fn figures(&self) -> PinnedMemory {
        let mut books = lock(&self.books);
        let limit = books.limit();
        PinnedMemory {
            held: books.held,
            in_use: books.in_use,
            cached: books.held - books.in_use,
            peak: books.peak,
            limit,
        }
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
    /// Returns the limit; at first use this is half of what the host can give without swapping.
    fn limit(&mut self) -> usize {
        let half = || available_memory().map_or(usize::MAX, |bytes| usize::try_from(bytes / 2).unwrap_or(usize::MAX));
        *self.limit.get_or_insert_with(half)
    }

    fn shelf(&mut self, kind: HostKind) -> &mut Shelf {
        &mut self.shelves[kind as usize]
    }

    /// Takes a block that needs no driver call.
    fn ready(&mut self, bytes: usize, kind: HostKind) -> Option<HostBlock> {
        let shelf = self.shelf(kind);
        let block = match shelf.fitting(bytes) {
            None if bytes < SMALL => shelf.carve(bytes, kind),
            fitting => fitting,
        }?;
        self.in_use += block.bytes;
        Some(block)
    }

    /// Counts bytes that are about to be locked, and takes out of the cache what must be freed for
    /// them.
    fn reserve(&mut self, bytes: usize) -> Result<Vec<HostBlock>> {
        let limit = self.limit();
        let idle: usize = self.shelves.iter().map(Shelf::idle).sum();
        if (self.held - idle).saturating_add(bytes) > limit {
            let what = format!(
                "cannot page-lock {} more: buffers and copies in flight hold {} of the device's limit of {}",
                counted(bytes, "byte"),
                self.in_use,
                counted(limit, "byte")
            );
            let advice = "drop some, or raise the limit (`Device::set_pinned_limit`)";
            return Err(Error::advised(ErrorKind::OutOfMemory, what, advice));
        }
        let evicted = self.evict(|held| held.saturating_add(bytes) > limit);
        self.held += bytes;
        self.peak = self.peak.max(self.held);
        Ok(evicted)
    }

    /// Takes cached memory out, the largest first, while `too_much` of the bytes that are held.
    fn evict(&mut self, too_much: impl Fn(usize) -> bool) -> Vec<HostBlock> {
        let mut evicted = Vec::new();
        while too_much(self.held) {
            let Some(kind) = KINDS.into_iter().max_by_key(|&kind| self.shelves[kind as usize].largest()) else { break };
            let Some(block) = self.shelf(kind).take_largest(kind) else { break };
            self.held -= block.bytes;
            evicted.push(block);
        }
        evicted
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::driver::soft::Soft;

    /// More than carved blocks have.
    const UNIT: usize = SMALL;

    fn pool(limit: usize) -> HostPool {
        let pool = HostPool::new(Arc::new(Soft::with_config(Default::default())));
        pool.set_limit(limit);
        pool
    }

    fn take(pool: &HostPool, bytes: usize) -> HostBlock {
        pool.take(bytes, HostKind::Cached).unwrap()
    }

    #[test]
    fn sizes_are_whole_pages_and_not_powers_of_two() {
        let pool = pool(1 << 30);
        let block = take(&pool, UNIT + 1);
        assert_eq!(block.bytes, UNIT + PAGE);
        pool.put(block);
        let block = take(&pool, 2 * UNIT);
        let held = 3 * UNIT + PAGE;
        let cached = UNIT + PAGE;
        let figures = PinnedMemory { held, in_use: 2 * UNIT, cached, peak: held, limit: 1 << 30 };
        assert_eq!(pool.figures(), figures);
        pool.put(block);
    }

    #[test]
    fn the_smallest_block_that_wastes_little_is_used_again() {
        let pool = pool(1 << 30);
        let blocks = [40, 36, 32, 80].map(|units| take(&pool, units * UNIT));
        let second = blocks[1].memory;
        blocks.into_iter().for_each(|block| pool.put(block));
        let block = take(&pool, 33 * UNIT);
        assert_eq!((block.memory, block.bytes), (second, 36 * UNIT));
        // 80 for 41 would waste half.
        assert_eq!(take(&pool, 41 * UNIT).bytes, 41 * UNIT);
        // Memory of the other kind is not exchanged for it.
        assert_eq!(pool.take(40 * UNIT, HostKind::WriteCombined).unwrap().bytes, 40 * UNIT);
        assert_eq!(pool.figures().cached, (40 + 32 + 80) * UNIT);
    }

    #[test]
    fn the_limit_counts_what_is_cached_only_until_it_is_needed() {
        let pool = pool(10 * UNIT);
        let (kept, dropped) = (take(&pool, UNIT), take(&pool, 6 * UNIT));
        pool.put(dropped);
        // 9 more go only if the cached 6 are freed first.
        let large = take(&pool, 9 * UNIT);
        assert_eq!((pool.figures().held, pool.figures().cached), (10 * UNIT, 0));
        let error = pool.take(1, HostKind::Cached).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        for part in ["4096 bytes more", "hold 2621440 of", "limit of 2621440 bytes", "set_pinned_limit"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        pool.put(kept);
        pool.put(large);
        assert_eq!(pool.trim(2 * UNIT), Ok(9 * UNIT), "the largest goes first");
        assert_eq!((pool.trim(0), pool.figures().held, pool.figures().peak), (Ok(UNIT), 0, 10 * UNIT));
        assert_eq!(pool.take(usize::MAX, HostKind::Cached).unwrap_err().kind(), ErrorKind::Layout);
    }

    #[test]
    fn a_limit_that_was_lowered_gives_no_cached_memory_out() {
        let pool = pool(1 << 30);
        let (kept, small) = (take(&pool, UNIT), take(&pool, PAGE));
        let dropped = take(&pool, 6 * UNIT);
        pool.put(dropped);
        pool.set_limit(0);
        // The rest of a chunk counts as cached, too.
        for bytes in [PAGE, UNIT, 6 * UNIT] {
            let refused = pool.take(bytes, HostKind::Cached).unwrap_err();
            assert!(refused.kind() == ErrorKind::OutOfMemory && refused.to_string().contains("limit of 0 bytes"));
        }
        assert_eq!(pool.figures().held, UNIT + CHUNK, "what was cached is given back");
        pool.put(kept);
        pool.put(small);
        assert!(pool.take(PAGE, HostKind::Cached).is_err());
        assert_eq!(pool.figures(), PinnedMemory { held: 0, in_use: 0, cached: 0, ..pool.figures() });
    }

    #[test]
    fn small_blocks_share_chunks_which_are_carved_anew_and_freed() {
        let pool = pool(1 << 30);
        let mut blocks: Vec<_> = (0..100).map(|at| take(&pool, (at % 7 + 1) * PAGE)).collect();
        assert_eq!(pool.figures().held, CHUNK, "one chunk holds them");
        let mut ends: Vec<_> = blocks.iter().map(|block| (block.memory.addr().get(), block.bytes)).collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "no two share a byte");
        let first = blocks.swap_remove(0);
        let address = first.memory;
        pool.put(first);
        assert_eq!(take(&pool, 1).memory, address, "the block is used again");
        blocks.into_iter().for_each(|block| pool.put(block));
        assert_eq!((pool.figures().in_use, pool.trim(0)), (PAGE, Ok(0)), "a block of the chunk is in use");
        let other = super::tests::pool(1 << 30);
        let few = [(); 8].map(|()| take(&other, SMALL - PAGE));
        few.into_iter().for_each(|block| other.put(block));
        let larger = [(); 30].map(|()| take(&other, 16 * PAGE));
        assert_eq!(other.figures().held, CHUNK, "an idle chunk is carved anew, for other sizes");
        larger.into_iter().for_each(|block| other.put(block));
        assert_eq!((other.trim(0), other.figures().held), (Ok(CHUNK), 0));
    }
}
