//! Records which bytes a launch loads and stores, with bits for each byte of its allocations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::global::ADDRESS_BITS;
use super::written::{mark, words};

/// A bit for each byte of an allocation. The host provides memory only for the parts that are
/// accessed.
type Bits = Box<[AtomicU64]>;

/// The bytes of each allocation that a launch has touched. Any number of threads may mark bytes.
#[derive(Debug)]
pub struct Touched {
    /// By the number of the allocation; empty for a freed one.
    allocations: Vec<Part>,
    /// The same for memory of the host, by first address.
    of_host: BTreeMap<u64, Part>,
}

/// The bytes of one allocation.
#[derive(Debug)]
struct Part {
    /// True once a byte is touched.
    any: AtomicBool,
    loads: Bits,
    stores: Bits,
    /// Those that strong accesses touched, which may meet other strong ones.
    strong: Bits,
}

/// The ways of an access: it loads, it stores, and it is a strong one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) loads: bool,
    pub(crate) stores: bool,
    pub(crate) is_strong: bool,
}

impl Part {
    /// Makes the record for so many bytes; `None` if the host has too little memory.
    fn none(bytes: u64) -> Option<Self> {
        let zeroed = || bytemuck::allocation::try_zeroed_slice_box(usize::try_from(bytes.div_ceil(64)).ok()?).ok();
        Some(Self { any: AtomicBool::new(false), loads: zeroed()?, stores: zeroed()?, strong: zeroed()? })
    }

    #[inline]
    fn mark(&self, ways: Ways, offset: u64, bytes: u64) {
        if !self.any.load(Relaxed) {
            self.any.store(true, Relaxed);
        }
        for (bits, done) in [(&self.loads, ways.loads), (&self.stores, ways.stores), (&self.strong, ways.is_strong)] {
            if done {
                mark(bits, offset, bytes);
            }
        }
    }

    fn is_touched(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Returns the first byte that one of both stores and the other touches, unless both accesses
    /// are strong.
    fn clash(&self, other: &Self) -> Option<u64> {
        if !self.is_touched() || !other.is_touched() {
            return None;
        }
        let words = self.loads.len().min(other.loads.len());
        let clash = (0..words).map(|at| {
            let [own, its] =
                [self, other].map(|part| [&part.loads, &part.stores, &part.strong].map(|bits| bits[at].load(Relaxed)));
            (own[1] & (its[0] | its[1]) | own[0] & its[1]) & !(own[2] & its[2])
        });
        let (at, bits) = clash.enumerate().find(|(_, bits)| *bits != 0)?;
        Some(64 * at as u64 + u64::from(bits.trailing_zeros()))
    }

    /// Returns the first byte of a range that is stored, or touched in any way.
    fn first_in(&self, offset: u64, bytes: u64, only_stores: bool) -> Option<u64> {
        if !self.is_touched() {
            return None;
        }
        let end = offset.saturating_add(bytes).min(64 * self.loads.len() as u64);
        words(offset.min(end), end - offset.min(end)).find_map(|(word, mask)| {
            let loads = if only_stores { 0 } else { self.loads[word].load(Relaxed) };
            let bits = (loads | self.stores[word].load(Relaxed)) & mask;
            (bits != 0).then(|| 64 * word as u64 + u64::from(bits.trailing_zeros()))
        })
    }

    fn clear(&self) {
        self.any.store(false, Relaxed);
        [&self.loads, &self.stores, &self.strong].into_iter().flatten().for_each(|word| word.store(0, Relaxed));
    }

    fn absorb(&self, other: &Self) {
        self.any.store(true, Relaxed);
        // A byte is strong if one of its accesses is. Better to miss a clash than to invent one.
        let sides = [(&self.loads, &other.loads), (&self.stores, &other.stores), (&self.strong, &other.strong)];
        for (own, its) in sides {
            own.iter().zip(its.iter()).filter(|(_, its)| its.load(Relaxed) != 0).for_each(|(own, its)| {
                own.fetch_or(its.load(Relaxed), Relaxed);
            });
        }
    }
}

impl Touched {
    /// Makes the record for allocations of these sizes; `None` if the host has too little memory.
    pub(super) fn none(sizes: impl Iterator<Item = u64>, of_host: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let allocations = sizes.map(Part::none).collect::<Option<_>>()?;
        let of_host = of_host.map(|(base, bytes)| Some((base, Part::none(bytes)?))).collect::<Option<_>>()?;
        Some(Self { allocations, of_host })
    }

    /// Marks `bytes` bytes at `offset` in an allocation; they are in bounds.
    pub(super) fn add(&self, allocation: usize, ways: Ways, offset: u64, bytes: u64) {
        self.allocations[allocation].mark(ways, offset, bytes);
    }

    /// The same for the memory of the host that begins at an address.
    #[cold]
    pub(super) fn add_of_host(&self, base: u64, ways: Ways, offset: u64, bytes: u64) {
        if let Some(range) = self.of_host.get(&base) {
            range.mark(ways, offset, bytes);
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
        let sum = |bits: &Bits| bits.iter().map(|word| u64::from(of_word(word.load(Relaxed)))).sum::<u64>();
        let touched = self.parts().filter(|(_, part)| part.is_touched());
        touched.fold([0, 0], |[loads, stores], (_, part)| [loads + sum(&part.loads), stores + sum(&part.stores)])
    }

    /// The parts with their first addresses.
    fn parts(&self) -> impl Iterator<Item = (u64, &Part)> {
        let allocations = self.allocations.iter().enumerate();
        let allocations = allocations.map(|(number, part)| ((number as u64 + 1) << ADDRESS_BITS, part));
        allocations.chain(self.of_host.iter().map(|(&base, part)| (base, part)))
    }

    /// The part that begins at an address.
    fn at(&self, base: u64) -> Option<&Part> {
        self.of_host.get(&base).or_else(|| self.allocations.get(((base >> ADDRESS_BITS) as usize).checked_sub(1)?))
    }

    /// Returns the address of a byte that one of two launches stores and the other touches, unless
    /// both accesses are strong.
    pub fn clash(&self, other: &Self) -> Option<u64> {
        self.parts().find_map(|(base, part)| Some(base + part.clash(other.at(base)?)?))
    }

    /// Returns the address of a byte of a range that the launch stores, or touches in any way.
    pub fn first_in(&self, address: u64, bytes: u64, only_stores: bool) -> Option<u64> {
        let number = (address >> ADDRESS_BITS) as usize;
        let (base, part) = match self.of_host.range(..=address).next_back() {
            Some((&base, part)) if (address - base) / 64 < part.loads.len() as u64 => (base, part),
            _ => ((number as u64) << ADDRESS_BITS, self.allocations.get(number.checked_sub(1)?)?),
        };
        Some(base + part.first_in(address - base, bytes, only_stores)?)
    }

    /// Adds the bytes that another launch touched; false if that had allocations that this one has
    /// no place for.
    pub fn absorb(&self, other: &Self) -> bool {
        let touched = || other.parts().filter(|(_, part)| part.is_touched());
        let fits = |(base, part): (u64, &Part)| self.at(base).is_some_and(|own| own.loads.len() >= part.loads.len());
        let fit = touched().all(fits);
        if fit {
            touched().filter_map(|(base, part)| Some((self.at(base)?, part))).for_each(|(own, part)| own.absorb(part));
        }
        fit
    }

    /// Forgets the bytes of the allocation that begins at an address.
    pub fn forget(&self, base: u64) {
        self.at(base).into_iter().for_each(Part::clear);
    }
}

impl PartialEq for Touched {
    fn eq(&self, other: &Self) -> bool {
        let all = |bits: &Bits| bits.iter().map(|word| word.load(Relaxed)).collect::<Vec<_>>();
        let all = |touched: &Self| {
            let parts = touched.parts().filter(|(_, part)| part.is_touched());
            parts.map(|(base, part)| (base, all(&part.loads), all(&part.stores), all(&part.strong))).collect::<Vec<_>>()
        };
        all(self) == all(other)
    }
}

impl Eq for Touched {}
