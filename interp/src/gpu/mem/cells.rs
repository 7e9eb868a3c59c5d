//! Memory that instructions address: one interface for every space, so that loads and stores are
//! written once.

use std::cell::Cell;

use super::allocation::Allocation;

/// Bytes that can be loaded and stored by offset. Offsets are in bounds and aligned to the width.
pub(crate) trait Cells {
    /// Whether blocks share it.
    const GLOBAL: bool;
    fn load8(&self, offset: u64) -> u8;
    fn load16(&self, offset: u64) -> u16;
    fn load32(&self, offset: u64) -> u32;
    fn load64(&self, offset: u64) -> u64;
    fn store8(&self, offset: u64, value: u8);
    fn store16(&self, offset: u64, value: u16);
    fn store32(&self, offset: u64, value: u32);
    fn store64(&self, offset: u64, value: u64);
    /// Loads 8 bytes as one value: a concurrent whole store is visible entirely or not at all.
    fn load64_whole(&self, offset: u64) -> u64 {
        self.load64(offset)
    }
    /// Stores 8 bytes as one value: no whole load sees only a part of it.
    fn store64_whole(&self, offset: u64, value: u64) {
        self.store64(offset, value);
    }
    /// Replaces the 2, 4 or 8 bytes there by `function` of them, and returns the old value.
    fn update(&self, offset: u64, width: u8, function: impl Fn(u64) -> u64) -> u64;
}

impl Cells for Allocation {
    const GLOBAL: bool = true;
    #[inline(always)]
    fn load8(&self, offset: u64) -> u8 {
        self.load8(offset)
    }
    #[inline(always)]
    fn load16(&self, offset: u64) -> u16 {
        self.load16(offset)
    }
    #[inline(always)]
    fn load32(&self, offset: u64) -> u32 {
        self.load32(offset)
    }
    #[inline(always)]
    fn load64(&self, offset: u64) -> u64 {
        self.load64(offset)
    }
    #[inline(always)]
    fn store8(&self, offset: u64, value: u8) {
        self.store8(offset, value);
    }
    #[inline(always)]
    fn store16(&self, offset: u64, value: u16) {
        self.store16(offset, value);
    }
    #[inline(always)]
    fn store32(&self, offset: u64, value: u32) {
        self.store32(offset, value);
    }
    #[inline(always)]
    fn store64(&self, offset: u64, value: u64) {
        self.store64(offset, value);
    }
    fn load64_whole(&self, offset: u64) -> u64 {
        self.load64_whole(offset)
    }
    fn store64_whole(&self, offset: u64, value: u64) {
        self.update64(offset, |_| value);
    }
    #[inline(always)]
    fn update(&self, offset: u64, width: u8, function: impl Fn(u64) -> u64) -> u64 {
        match width {
            2 => u64::from(self.update16(offset, |old| function(u64::from(old)) as u16)),
            4 => u64::from(self.update32(offset, |old| function(u64::from(old)) as u32)),
            _ => self.update64(offset, function),
        }
    }
}

/// Memory of one block, which one host thread runs: shared memory, local memory, and the
/// parameters.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    words: Vec<Cell<u32>>,
    bytes: u64,
}

impl Scratch {
    /// Zeroed memory; `None` if the host has too little.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let count = usize::try_from(bytes.div_ceil(4)).ok()?;
        let mut words = Vec::new();
        words.try_reserve_exact(count).ok()?;
        words.resize(count, Cell::new(0));
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

    /// The size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets every word to `value`.
    pub(crate) fn fill(&mut self, value: u32) {
        self.words.fill(Cell::new(value));
    }

    #[inline(always)]
    fn word(&self, offset: u64) -> &Cell<u32> {
        &self.words[(offset / 4) as usize]
    }

    #[inline(always)]
    fn store_part(&self, offset: u64, mask: u32, value: u32) {
        let shift = offset % 4 * 8;
        let word = self.word(offset);
        word.set(word.get() & !(mask << shift) | value << shift);
    }
}

impl Cells for Scratch {
    const GLOBAL: bool = false;
    #[inline(always)]
    fn load8(&self, offset: u64) -> u8 {
        (self.word(offset).get() >> (offset % 4 * 8)) as u8
    }
    #[inline(always)]
    fn load16(&self, offset: u64) -> u16 {
        (self.word(offset).get() >> (offset % 4 * 8)) as u16
    }
    #[inline(always)]
    fn load32(&self, offset: u64) -> u32 {
        self.word(offset).get()
    }
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
    fn store32(&self, offset: u64, value: u32) {
        self.word(offset).set(value);
    }
    #[inline(always)]
    fn store64(&self, offset: u64, value: u64) {
        self.store32(offset, value as u32);
        self.store32(offset + 4, (value >> 32) as u32);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_keeps_bytes_in_their_place() {
        let scratch = Scratch::holding(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        assert_eq!(scratch.bytes(), 9);
        assert_eq!((scratch.load8(8), scratch.load16(6), scratch.load32(4)), (9, 0x0807, 0x0807_0605));
        scratch.store16(2, 0xffff);
        scratch.store8(7, 0);
        assert_eq!(scratch.load64(0), 0x0007_0605_ffff_0201);
    }
}
