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
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::global::ADDRESS_BITS;
use super::written::Written;

/// Bytes that an address-only allocation keeps for all of its addresses: a power of two, and more
/// than one access.
const HOLLOW_BYTES: u64 = 4096;
/// The content of fresh memory. It makes reads before writes visible.
const POISON: u32 = 0xA5A5_A5A5;

/// Locks for accesses to whole 8-byte values; each place uses one of them.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// One allocation's contents.
pub(crate) struct Allocation {
    base: u64,
    bytes: u64,
    /// The bits of an offset that select its contents: all of them, except in address-only memory.
    mask: u64,
    words: Box<[AtomicU32]>,
    written: Written,
    /// The number of earlier launches whose writes were not followed.
    born: u64,
    /// Whether kernels may only read it.
    constant: bool,
}

impl Allocation {
    /// Makes `bytes` unwritten bytes at an address; `None` if the host has too little memory.
    pub(super) fn new(base: u64, bytes: u64, born: u64) -> Option<Self> {
        Some(Self {
            base,
            bytes,
            mask: u64::MAX,
            words: poisoned_words(bytes)?,
            written: Written::none(bytes),
            born,
            constant: false,
        })
    }

    /// Makes `bytes` zero bytes that count as written. The host provides memory only for the parts
    /// that are accessed.
    pub(super) fn zeroed(base: u64, bytes: u64, born: u64) -> Option<Self> {
        let words = bytemuck::allocation::try_zeroed_slice_box(usize::try_from(bytes.div_ceil(4)).ok()?).ok()?;
        let written = Written::none(bytes);
        written.add(0, bytes);
        Some(Self { base, bytes, mask: u64::MAX, words, written, born, constant: false })
    }

    /// The same, but read-only for kernels.
    pub(super) fn zeroed_constant(base: u64, bytes: u64, born: u64) -> Option<Self> {
        Self::zeroed(base, bytes, born).map(|zeroed| Self { constant: true, ..zeroed })
    }

    /// Makes `bytes` unwritten, address-only bytes, with almost no memory behind them.
    pub(super) fn hollow(base: u64, bytes: u64, born: u64) -> Option<Self> {
        let words = poisoned_words(HOLLOW_BYTES)?;
        Some(Self { base, bytes, mask: HOLLOW_BYTES - 1, words, written: Written::none(bytes), born, constant: false })
    }

    /// The first address.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The size in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The contents as little-endian words. The last word is whole even if `bytes` is not a
    /// multiple of 4.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU32] {
        &self.words
    }

    /// The bytes that the host, or a followed launch, has written.
    #[inline]
    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// The number of earlier launches whose writes were not followed.
    pub(super) fn born(&self) -> u64 {
        self.born
    }

    /// Whether kernels may only read it.
    #[inline]
    pub(crate) fn is_constant(&self) -> bool {
        self.constant
    }

    /// The offset of the contents at an address in the allocation.
    #[inline]
    pub(crate) fn place(&self, address: u64) -> u64 {
        address.wrapping_sub(self.base) & self.mask
    }

    /// The offset of `address` in the allocation, if `bytes` bytes from there lie within it.
    #[inline]
    pub(crate) fn offset(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        (offset <= self.bytes && bytes <= self.bytes - offset).then_some(offset)
    }

    /// The byte at `offset`, which is in bounds.
    #[inline]
    pub(crate) fn load8(&self, offset: u64) -> u8 {
        (self.word(offset).load(Relaxed) >> (offset % 4 * 8)) as u8
    }

    /// The 2 bytes at `offset`, which is even and in bounds.
    #[inline]
    pub(crate) fn load16(&self, offset: u64) -> u16 {
        (self.word(offset).load(Relaxed) >> (offset % 4 * 8)) as u16
    }

    /// The 4 bytes at `offset`, a multiple of 4 in bounds.
    #[inline]
    pub(crate) fn load32(&self, offset: u64) -> u32 {
        self.word(offset).load(Relaxed)
    }

    /// The 8 bytes at `offset`, a multiple of 8 in bounds. They are two words and not atomic as a
    /// whole, because only a race could see the difference.
    #[inline]
    pub(crate) fn load64(&self, offset: u64) -> u64 {
        u64::from(self.load32(offset)) | u64::from(self.load32(offset + 4)) << 32
    }

    /// Stores a byte.
    #[inline]
    pub(crate) fn store8(&self, offset: u64, value: u8) {
        self.store_part(offset, 0xff, u32::from(value));
    }

    /// Stores 2 bytes at an even offset.
    #[inline]
    pub(crate) fn store16(&self, offset: u64, value: u16) {
        self.store_part(offset, 0xffff, u32::from(value));
    }

    /// Stores 4 bytes at a multiple of 4.
    #[inline]
    pub(crate) fn store32(&self, offset: u64, value: u32) {
        self.word(offset).store(value, Relaxed);
    }

    /// Stores 8 bytes at a multiple of 8.
    #[inline]
    pub(crate) fn store64(&self, offset: u64, value: u64) {
        self.store32(offset, value as u32);
        self.store32(offset + 4, (value >> 32) as u32);
    }

    /// The 8 bytes at `offset`, a multiple of 8 in bounds, as a single whole store left them.
    pub(crate) fn load64_whole(&self, offset: u64) -> u64 {
        let _guard = self.lock(offset);
        self.load64(offset)
    }

    /// Atomically replaces the 2 bytes at an even offset by `function` of them, and returns the old
    /// value.
    #[inline]
    pub(crate) fn update16(&self, offset: u64, function: impl Fn(u16) -> u16) -> u16 {
        let shift = offset % 4 * 8;
        let merge = |word: u32| word & !(0xffff << shift) | u32::from(function((word >> shift) as u16)) << shift;
        (self.update32(offset, merge) >> shift) as u16
    }

    /// Atomically replaces the 4 bytes around `offset` by `function` of them, and returns the old
    /// value.
    #[inline]
    pub(crate) fn update32(&self, offset: u64, function: impl Fn(u32) -> u32) -> u32 {
        let word = self.word(offset);
        let mut old = word.load(Relaxed);
        while let Err(now) = word.compare_exchange_weak(old, function(old), AcqRel, Acquire) {
            old = now;
        }
        old
    }

    /// Atomically replaces the 8 bytes at a multiple of 8 by `function` of them, and returns the
    /// old value.
    pub(crate) fn update64(&self, offset: u64, function: impl Fn(u64) -> u64) -> u64 {
        let _guard = self.lock(offset);
        let old = self.load64(offset);
        self.store64(offset, function(old));
        old
    }

    fn lock(&self, offset: u64) -> MutexGuard<'static, ()> {
        let place = (self.base >> ADDRESS_BITS).wrapping_add(offset / 8);
        LOCKS[place as usize % LOCKS.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn word(&self, offset: u64) -> &AtomicU32 {
        &self.words[(offset / 4) as usize]
    }

    fn store_part(&self, offset: u64, mask: u32, value: u32) {
        let shift = offset % 4 * 8;
        let merge = |word: u32| word & !(mask << shift) | value << shift;
        let word = self.word(offset);
        let mut old = word.load(Relaxed);
        while let Err(now) = word.compare_exchange_weak(old, merge(old), Relaxed, Relaxed) {
            old = now;
        }
    }
}

fn poisoned_words(bytes: u64) -> Option<Box<[AtomicU32]>> {
    let count = usize::try_from(bytes.div_ceil(4)).ok()?;
    let mut words = Vec::new();
    words.try_reserve_exact(count).ok()?;
    words.extend((0..count).map(|_| AtomicU32::new(POISON)));
    Some(words.into_boxed_slice())
}
