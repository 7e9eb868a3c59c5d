//! The contents of one allocation.
//!
//! The contents are words, accessed as relaxed atomics: blocks run on several host threads, and a
//! kernel with a race must not be undefined behaviour in the host. 8- and 16-bit stores exchange
//! the surrounding word.
//!
//! Atomics of up to 4 bytes repeat a compare-and-exchange of a word until it succeeds. Those of 8
//! bytes, two words, hold a lock while they read and write. So do the loads and stores that must
//! not be torn, those of `.relaxed` and stronger. PTX promises no more, because a weak access, or
//! one of another width, races with an atomic.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cells::Cells;
use super::filled;
use super::global::ADDRESS_BITS;
use super::heap::Heap;
use super::host::Words;
use super::marked::Marked;

/// Bytes that an address-only allocation keeps for all of its addresses: a power of two, and more
/// than one access.
const HOLLOW_BYTES: u64 = 4096;
/// The content of fresh memory of any space. It makes reads before writes visible, and the same on
/// every run.
pub(crate) const POISON: u32 = 0xA5A5_A5A5;

/// Locks for accesses to whole 8-byte values; each place uses one of them.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// One allocation's contents.
pub(crate) struct Allocation {
    /// The first address.
    pub(crate) base: u64,
    /// The size in bytes.
    pub(crate) bytes: u64,
    /// The bits of an offset that select its contents: all of them, except in address-only memory.
    mask: u64,
    /// The contents as little-endian words. The last word is whole even if `bytes` is not a
    /// multiple of 4.
    pub(super) words: Words,
    /// The bytes that the host, or a followed launch, has written.
    pub(crate) written: Marked,
    /// The bytes that the host, or a followed launch, has read.
    pub(crate) read: Marked,
    /// The number of earlier launches whose writes were not followed.
    pub(super) born: u64,
    /// The number of the GPU that has it.
    pub(super) gpu: usize,
    /// True if kernels may only read it.
    pub(crate) constant: bool,
    /// True if it is memory of the host.
    pub(super) of_host: bool,
    /// The chunks in use, if it is the heap of kernels.
    pub(super) heap: Option<Box<Heap>>,
}

impl Allocation {
    /// Makes `bytes` unwritten bytes at an address; `None` if the host has too little memory.
    pub(super) fn new(base: u64, bytes: u64, born: u64) -> Option<Self> {
        Some(Self::with(base, bytes, born, poisoned_words(bytes)?.into()))
    }

    /// Makes `bytes` zero bytes that count as written and read, read-only for kernels if they are
    /// `constant`.
    pub(super) fn zeroed(base: u64, bytes: u64, born: u64, constant: bool) -> Option<Self> {
        let made = Self::reserved(base, bytes, born)?;
        made.written.add(0, bytes);
        made.read.add(0, bytes);
        Some(Self { constant, ..made })
    }

    /// Makes `bytes` zero bytes that count as unwritten. The host provides memory only for the
    /// parts that are accessed.
    pub(super) fn reserved(base: u64, bytes: u64, born: u64) -> Option<Self> {
        let words = bytemuck::allocation::try_zeroed_slice_box(usize::try_from(bytes.div_ceil(4)).ok()?).ok()?;
        Some(Self::with(base, bytes, born, words.into()))
    }

    /// Makes `bytes` unwritten, address-only bytes, with almost no memory behind them.
    pub(super) fn hollow(base: u64, bytes: u64, born: u64) -> Option<Self> {
        let made = Self::with(base, bytes, born, poisoned_words(HOLLOW_BYTES)?.into());
        Some(Self { mask: HOLLOW_BYTES - 1, ..made })
    }

    /// Makes memory of the host, which counts as written.
    pub(super) fn of_host(base: u64, bytes: u64, born: u64, words: Words) -> Self {
        let made = Self::with(base, bytes, born, words);
        made.written.add(0, bytes);
        Self { of_host: true, ..made }
    }

    fn with(base: u64, bytes: u64, born: u64, words: Words) -> Self {
        let (written, read) = (Marked::none(bytes), Marked::none(bytes));
        let (mask, gpu, heap) = (u64::MAX, 0, None);
        Self { base, bytes, mask, words, written, read, born, gpu, constant: false, of_host: false, heap }
    }

    /// The offset of the contents at an address in the allocation.
    #[inline]
    pub(crate) fn place(&self, address: u64) -> u64 {
        address.wrapping_sub(self.base) & self.mask
    }

    /// The offset of `address` in the allocation, if `bytes` bytes from there lie within it, and in
    /// a heap within live chunks.
    #[inline]
    pub(crate) fn offset(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        let inside = offset <= self.bytes && bytes <= self.bytes - offset;
        (inside && self.heap.as_ref().is_none_or(|heap| heap.holds(offset, bytes))).then_some(offset)
    }

    /// Returns whether it is the heap of kernels, whose chunks come and go while a launch runs.
    #[inline]
    pub(crate) fn is_heap(&self) -> bool {
        self.heap.is_some()
    }

    fn lock(&self, offset: u64) -> MutexGuard<'static, ()> {
        let place = (self.base >> ADDRESS_BITS).wrapping_add(offset / 8);
        LOCKS[place as usize % LOCKS.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn word(&self, offset: u64) -> &AtomicU32 {
        &self.words[(offset / 4) as usize]
    }

    /// Atomically replaces the 4 bytes around `offset` by `function` of them, and returns the old
    /// value. The orderings are those of success and of failure.
    #[inline(always)]
    fn exchange(&self, offset: u64, [done, failed]: [Ordering; 2], function: impl Fn(u32) -> u32) -> u32 {
        let word = self.word(offset);
        let mut old = word.load(Relaxed);
        while let Err(now) = word.compare_exchange_weak(old, function(old), done, failed) {
            old = now;
        }
        old
    }
}

impl Cells for Allocation {
    const GLOBAL: bool = true;
    #[inline(always)]
    fn load32(&self, offset: u64) -> u32 {
        self.word(offset).load(Relaxed)
    }
    #[inline(always)]
    fn store32(&self, offset: u64, value: u32) {
        self.word(offset).store(value, Relaxed);
    }
    fn store_part(&self, offset: u64, mask: u32, value: u32) {
        let shift = offset % 4 * 8;
        self.exchange(offset, [Relaxed, Relaxed], |word| word & !(mask << shift) | value << shift);
    }
    fn load64_whole(&self, offset: u64) -> u64 {
        let _guard = self.lock(offset);
        self.load64(offset)
    }
    fn store64_whole(&self, offset: u64, value: u64) {
        self.update(offset, 8, |_| value);
    }
    #[inline(always)]
    fn update(&self, offset: u64, width: u8, function: impl Fn(u64) -> u64) -> u64 {
        let shift = offset % 4 * 8;
        let half = |word: u32| u64::from((word >> shift) as u16);
        let merge = |word: u32| word & !(0xffff << shift) | u32::from(function(half(word)) as u16) << shift;
        match width {
            2 => half(self.exchange(offset, [AcqRel, Acquire], merge)),
            4 => u64::from(self.exchange(offset, [AcqRel, Acquire], |old| function(u64::from(old)) as u32)),
            _ => {
                let _guard = self.lock(offset);
                let old = self.load64(offset);
                self.store64(offset, function(old));
                old
            }
        }
    }
}

fn poisoned_words(bytes: u64) -> Option<Box<[AtomicU32]>> {
    let count = usize::try_from(bytes.div_ceil(4)).ok()?;
    filled(count, || AtomicU32::new(POISON)).map(Vec::into_boxed_slice)
}
