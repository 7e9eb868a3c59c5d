//! The contents of one allocation.
//!
//! They are words accessed as relaxed atomics: blocks run on several host threads, and a kernel with a race may not
//! be undefined behaviour in the host. 8- and 16-bit stores exchange the word around them.
//!
//! Atomics of up to 4 bytes exchange a word until nobody came between. Those of 8 bytes, two words, hold a lock while they
//! read and write, and so do the loads and stores that must not be torn, those of `.relaxed` and stronger; PTX promises no
//! more, for an access that is weak, or of another width, races with an atomic.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::global::ADDRESS_BITS;
use super::written::Written;

/// What a hollow allocation keeps, for all of its bytes: a power of two, and more than an access.
const HOLLOW_BYTES: u64 = 4096;
/// What fresh memory holds, so that reading it before writing it shows.
const POISON: u32 = 0xA5A5_A5A5;

/// Locks for accesses of 8 bytes at once: each place has one of them.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// One allocation's contents.
pub struct Allocation {
    base: u64,
    bytes: u64,
    /// The bits of an offset that say where its contents are: all, but in hollow memory.
    mask: u64,
    words: Box<[AtomicU32]>,
    written: Written,
    /// The launches before it whose writes were not followed.
    born: u64,
    /// Whether kernels may only read it.
    constant: bool,
}

impl Allocation {
    /// So many bytes that nobody wrote, at an address; `None` where the host has no more.
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

    /// So many bytes that are 0, as if that had been written; the host gives memory only for what is accessed.
    pub(super) fn zeroed(base: u64, bytes: u64, born: u64) -> Option<Self> {
        let words = bytemuck::allocation::try_zeroed_slice_box(usize::try_from(bytes.div_ceil(4)).ok()?).ok()?;
        let written = Written::none(bytes);
        written.add(0, bytes);
        Some(Self { base, bytes, mask: u64::MAX, words, written, born, constant: false })
    }

    /// The same, but that kernels may only read it.
    pub(super) fn zeroed_constant(base: u64, bytes: u64, born: u64) -> Option<Self> {
        Self::zeroed(base, bytes, born).map(|zeroed| Self { constant: true, ..zeroed })
    }

    /// So many bytes that nobody wrote, with next to nothing behind the addresses.
    pub(super) fn hollow(base: u64, bytes: u64, born: u64) -> Option<Self> {
        let words = poisoned_words(HOLLOW_BYTES)?;
        Some(Self { base, bytes, mask: HOLLOW_BYTES - 1, words, written: Written::none(bytes), born, constant: false })
    }

    /// First address.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The contents as little-endian words; the last one is whole even where `bytes` is no multiple of 4.
    #[inline]
    pub fn words(&self) -> &[AtomicU32] {
        &self.words
    }

    /// Which of its bytes the host, or a launch that was followed, has written.
    #[inline]
    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// The launches before it whose writes were not followed.
    pub(super) fn born(&self) -> u64 {
        self.born
    }

    /// Whether kernels may only read it.
    #[inline]
    pub(crate) fn is_constant(&self) -> bool {
        self.constant
    }

    /// Where the contents at an address in the allocation are.
    #[inline]
    pub(crate) fn place(&self, address: u64) -> u64 {
        address.wrapping_sub(self.base) & self.mask
    }

    /// Where `address` lies in the allocation, if `bytes` bytes from there do.
    #[inline]
    pub fn offset(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        (offset <= self.bytes && bytes <= self.bytes - offset).then_some(offset)
    }

    /// The byte at `offset`, which is in bounds.
    #[inline]
    pub fn load8(&self, offset: u64) -> u8 {
        (self.word(offset).load(Relaxed) >> (offset % 4 * 8)) as u8
    }

    /// The 2 bytes at `offset`, which is even and in bounds.
    #[inline]
    pub fn load16(&self, offset: u64) -> u16 {
        (self.word(offset).load(Relaxed) >> (offset % 4 * 8)) as u16
    }

    /// The 4 bytes at `offset`, a multiple of 4 in bounds.
    #[inline]
    pub fn load32(&self, offset: u64) -> u32 {
        self.word(offset).load(Relaxed)
    }

    /// The 8 bytes at `offset`, a multiple of 8 in bounds. Two words: not atomic as a whole, as on no race it need be.
    #[inline]
    pub fn load64(&self, offset: u64) -> u64 {
        u64::from(self.load32(offset)) | u64::from(self.load32(offset + 4)) << 32
    }

    /// Stores a byte.
    #[inline]
    pub fn store8(&self, offset: u64, value: u8) {
        self.store_part(offset, 0xff, u32::from(value));
    }

    /// Stores 2 bytes at an even offset.
    #[inline]
    pub fn store16(&self, offset: u64, value: u16) {
        self.store_part(offset, 0xffff, u32::from(value));
    }

    /// Stores 4 bytes at a multiple of 4.
    #[inline]
    pub fn store32(&self, offset: u64, value: u32) {
        self.word(offset).store(value, Relaxed);
    }

    /// Stores 8 bytes at a multiple of 8.
    #[inline]
    pub fn store64(&self, offset: u64, value: u64) {
        self.store32(offset, value as u32);
        self.store32(offset + 4, (value >> 32) as u32);
    }

    /// The 8 bytes at `offset`, a multiple of 8 in bounds, as one of those left them who write them as one.
    pub fn load64_whole(&self, offset: u64) -> u64 {
        let _guard = self.lock(offset);
        self.load64(offset)
    }

    /// Puts `function` of the 2 bytes at an even offset in their place, atomically, and returns them as they were.
    #[inline]
    pub fn update16(&self, offset: u64, function: impl Fn(u16) -> u16) -> u16 {
        let shift = offset % 4 * 8;
        let merge = |word: u32| word & !(0xffff << shift) | u32::from(function((word >> shift) as u16)) << shift;
        (self.update32(offset, merge) >> shift) as u16
    }

    /// Puts `function` of the 4 bytes around `offset` in their place, atomically, and returns them as they were.
    #[inline]
    pub fn update32(&self, offset: u64, function: impl Fn(u32) -> u32) -> u32 {
        let word = self.word(offset);
        let mut old = word.load(Relaxed);
        while let Err(now) = word.compare_exchange_weak(old, function(old), AcqRel, Acquire) {
            old = now;
        }
        old
    }

    /// Puts `function` of the 8 bytes at a multiple of 8 in their place, atomically, and returns them as they were.
    pub fn update64(&self, offset: u64, function: impl Fn(u64) -> u64) -> u64 {
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
