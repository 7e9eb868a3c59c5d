//! Records which bytes a launch loads and stores, with two bits for each byte of its allocations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::written::mark;

/// A bit for each byte of an allocation. The host provides memory only for the parts that are
/// accessed.
type Bits = Box<[AtomicU64]>;

/// The bytes of each allocation that a launch has touched. Any number of threads may mark bytes.
#[derive(Debug)]
pub(crate) struct Touched {
    /// Loaded and stored bytes, by the number of the allocation; empty for a freed one.
    allocations: Vec<[Bits; 2]>,
    /// The same for memory of the host, by first address.
    of_host: BTreeMap<u64, [Bits; 2]>,
}

impl Touched {
    /// Makes the record for allocations of these sizes; `None` if the host has too little memory.
    pub(super) fn none(sizes: impl Iterator<Item = u64>, of_host: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let none = |bytes| Some([zeroed(bytes)?, zeroed(bytes)?]);
        let allocations = sizes.map(none).collect::<Option<_>>()?;
        let of_host = of_host.map(|(base, bytes)| Some((base, none(bytes)?))).collect::<Option<_>>()?;
        Some(Self { allocations, of_host })
    }

    /// Marks `bytes` bytes at `offset` in an allocation as loaded, as stored, or as both; they are
    /// in bounds.
    pub(super) fn add(&self, allocation: usize, done: [bool; 2], offset: u64, bytes: u64) {
        Self::mark_in(&self.allocations[allocation], done, offset, bytes);
    }

    /// The same for the memory of the host that begins at an address.
    #[cold]
    pub(super) fn add_of_host(&self, base: u64, done: [bool; 2], offset: u64, bytes: u64) {
        if let Some(range) = self.of_host.get(&base) {
            Self::mark_in(range, done, offset, bytes);
        }
    }

    #[inline]
    fn mark_in([loads, stores]: &[Bits; 2], [loaded, stored]: [bool; 2], offset: u64, bytes: u64) {
        for bits in [(loads, loaded), (stores, stored)].into_iter().filter(|(_, done)| *done).map(|(bits, _)| bits) {
            mark(bits, offset, bytes);
        }
    }

    /// The number of bytes that were loaded, and of those that were stored.
    pub(crate) fn counts(&self) -> [u64; 2] {
        self.sums(u64::count_ones)
    }

    /// The number of sectors that were loaded, and of those that were stored, whole or in part.
    pub(crate) fn sectors(&self) -> [u64; 2] {
        // An allocation begins with a sector, whose bytes have 32 bits side by side.
        self.sums(|word| u32::from(word as u32 != 0) + u32::from(word >> 32 != 0))
    }

    fn sums(&self, of_word: impl Fn(u64) -> u32) -> [u64; 2] {
        [0, 1].map(|side| {
            let words = self.allocations.iter().chain(self.of_host.values()).flat_map(|sides| &sides[side]);
            words.map(|word| u64::from(of_word(word.load(Relaxed)))).sum()
        })
    }
}

fn zeroed(bytes: u64) -> Option<Bits> {
    bytemuck::allocation::try_zeroed_slice_box(usize::try_from(bytes.div_ceil(64)).ok()?).ok()
}
