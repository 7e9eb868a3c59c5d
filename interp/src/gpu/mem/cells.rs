//! Memory that instructions address: one interface for every space, so that loads and stores are
//! written once.

use std::cell::Cell;

use super::filled;

/// Bytes that can be loaded and stored by offset. Offsets are in bounds and aligned to the width.
pub(crate) trait Cells {
    /// True if blocks share it.
    const GLOBAL: bool;
    /// The 4 bytes around `offset`.
    fn load32(&self, offset: u64) -> u32;
    fn store32(&self, offset: u64, value: u32);
    /// Replaces the low bytes that `mask` selects, at `offset`, by those of `value`.
    fn store_part(&self, offset: u64, mask: u32, value: u32);
    /// Replaces the 2, 4 or 8 bytes there by `function` of them, and returns the old value.
    fn update(&self, offset: u64, width: u8, function: impl Fn(u64) -> u64) -> u64;

    /// Loads 8 bytes as one value: a concurrent whole store is visible entirely or not at all.
    fn load64_whole(&self, offset: u64) -> u64 {
        self.load64(offset)
    }
    /// Stores 8 bytes as one value: no whole load sees only a part of it.
    fn store64_whole(&self, offset: u64, value: u64) {
        self.store64(offset, value);
    }
    #[inline(always)]
    fn load8(&self, offset: u64) -> u8 {
        (self.load32(offset) >> (offset % 4 * 8)) as u8
    }
    #[inline(always)]
    fn load16(&self, offset: u64) -> u16 {
        (self.load32(offset) >> (offset % 4 * 8)) as u16
    }
    /// The 8 bytes are two words and not atomic as a whole, because only a race could see the
    /// difference.
    #[inline(always)]
    fn load64(&self, offset: u64) -> u64 {
        u64::from(self.load32(offset)) | u64::from(self.load32(offset + 4)) << 32
    }
    #[inline(always)]
    fn store8(&self, offset: u64, value: u8) {
        self.store_part(offset, 0xff, u32::from(value));
    }
    #[inline(always)]
    fn store16(&self, offset: u64, value: u16) {
        self.store_part(offset, 0xffff, u32::from(value));
    }
    #[inline(always)]
    fn store64(&self, offset: u64, value: u64) {
        self.store32(offset, value as u32);
        self.store32(offset + 4, (value >> 32) as u32);
    }
}

/// Memory of one block, which one host thread runs: shared memory, local memory, and the
/// parameters.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    words: Vec<Cell<u32>>,
    /// The size in bytes.
    pub(crate) bytes: u64,
}

impl Scratch {
    /// Zeroed memory; `None` if the host has too little.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let words = filled(usize::try_from(bytes.div_ceil(4)).ok()?, || Cell::new(0))?;
        Some(Self { words, bytes })
    }

    /// Memory that holds `bytes`.
    pub(crate) fn holding(bytes: &[u8]) -> Option<Self> {
        let scratch = Self::new(bytes.len() as u64)?;
        for (offset, &byte) in bytes.iter().enumerate() {
            scratch.store8(offset as u64, byte);
        }
        Some(scratch)
    }

    /// Sets every word to `value`.
    pub(crate) fn fill(&mut self, value: u32) {
        self.words.fill(Cell::new(value));
    }

    #[inline(always)]
    fn word(&self, offset: u64) -> &Cell<u32> {
        &self.words[(offset / 4) as usize]
    }
}

impl Cells for Scratch {
    const GLOBAL: bool = false;
    #[inline(always)]
    fn load32(&self, offset: u64) -> u32 {
        self.word(offset).get()
    }
    #[inline(always)]
    fn store32(&self, offset: u64, value: u32) {
        self.word(offset).set(value);
    }
    #[inline(always)]
    fn store_part(&self, offset: u64, mask: u32, value: u32) {
        let (word, shift) = (self.word(offset), offset % 4 * 8);
        word.set(word.get() & !(mask << shift) | value << shift);
    }
    #[inline(always)]
    fn update(&self, offset: u64, width: u8, function: impl Fn(u64) -> u64) -> u64 {
        let old = match width {
            2 => u64::from(self.load16(offset)),
            4 => u64::from(self.load32(offset)),
            _ => self.load64(offset),
        };
        match width {
            2 => self.store16(offset, function(old) as u16),
            4 => self.store32(offset, function(old) as u32),
            _ => self.store64(offset, function(old)),
        }
        old
    }
}
