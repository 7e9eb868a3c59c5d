//! Records which bytes a launch loads and stores, with bits for each byte of its allocations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::global::ADDRESS_BITS;
use super::marked::{mark, words};

/// The words of bits that a bit of [`Part::pages`] stands for: 4 KiB of an allocation.
const PAGE: usize = 64;

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
    /// True if it is the heap of kernels, whose bytes pass from chunk to chunk. That another launch
    /// had the same bytes then says nothing.
    is_heap: bool,
    /// A bit for each [`PAGE`] of words in which a byte is touched. The others cost nothing.
    pages: Bits,
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
    fn none(bytes: u64, is_heap: bool) -> Option<Self> {
        let words = usize::try_from(bytes.div_ceil(64)).ok()?;
        let zeroed = |count: usize| bytemuck::allocation::try_zeroed_slice_box(count).ok();
        let [loads, stores, strong] = [zeroed(words)?, zeroed(words)?, zeroed(words)?];
        let pages = zeroed(words.div_ceil(PAGE).div_ceil(64))?;
        Some(Self { any: AtomicBool::new(false), is_heap, pages, loads, stores, strong })
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
        let [first, last] = [offset, offset + bytes.max(1) - 1].map(|at| at / (64 * PAGE as u64));
        mark(&self.pages, first, last - first + 1);
    }

    /// The words in which bytes may be touched, here and in another record of the same bytes.
    fn touched_words<'p>(&'p self, other: &'p Self) -> impl Iterator<Item = usize> + 'p {
        let words = self.loads.len().min(other.loads.len());
        let pages = self.pages.iter().zip(&other.pages).map(|(own, its)| own.load(Relaxed) & its.load(Relaxed));
        let set = pages
            .enumerate()
            .filter(|(_, bits)| *bits != 0)
            .flat_map(|(at, bits)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| 64 * at + bit));
        set.flat_map(move |page| PAGE * page..(PAGE * (page + 1)).min(words))
    }

    fn is_touched(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Returns the first byte that one of both stores and the other touches, unless both accesses
    /// are strong.
    fn clash(&self, other: &Self) -> Option<u64> {
        if self.is_heap || !self.is_touched() || !other.is_touched() {
            return None;
        }
        let mut clash = self.touched_words(other).map(|at| {
            let [own, its] =
                [self, other].map(|part| [&part.loads, &part.stores, &part.strong].map(|bits| bits[at].load(Relaxed)));
            (at, (own[1] & (its[0] | its[1]) | own[0] & its[1]) & !(own[2] & its[2]))
        });
        let (at, bits) = clash.find(|(_, bits)| *bits != 0)?;
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
        for at in self.touched_words(self) {
            [&self.loads, &self.stores, &self.strong].into_iter().for_each(|bits| bits[at].store(0, Relaxed));
        }
        self.pages.iter().for_each(|word| word.store(0, Relaxed));
    }

    fn absorb(&self, other: &Self) {
        self.any.store(true, Relaxed);
        // A byte is strong if one of its accesses is. Better to miss a clash than to invent one.
        let sides = [(&self.loads, &other.loads), (&self.stores, &other.stores), (&self.strong, &other.strong)];
        for at in other.touched_words(other) {
            for (own, its) in sides {
                own[at].fetch_or(its[at].load(Relaxed), Relaxed);
            }
        }
        for (own, its) in self.pages.iter().zip(&other.pages) {
            own.fetch_or(its.load(Relaxed), Relaxed);
        }
    }
}

impl Touched {
    /// Makes the record for allocations of these sizes, with true for the heap of kernels; `None`
    /// if the host has too little memory.
    pub(super) fn none(
        allocations: impl Iterator<Item = (u64, bool)>,
        of_host: impl Iterator<Item = (u64, u64)>,
    ) -> Option<Self> {
        let allocations = allocations.map(|(bytes, is_heap)| Part::none(bytes, is_heap)).collect::<Option<_>>()?;
        let of_host = of_host.map(|(base, bytes)| Some((base, Part::none(bytes, false)?))).collect::<Option<_>>()?;
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
        let touched = self.parts().filter(|(_, part)| part.is_touched());
        touched.fold([0, 0], |sums, (_, part)| {
            part.touched_words(part).fold(sums, |[loads, stores], at| {
                let count = |bits: &Bits| u64::from(of_word(bits[at].load(Relaxed)));
                [loads + count(&part.loads), stores + count(&part.stores)]
            })
        })
    }

    /// The parts with their first addresses.
    fn parts(&self) -> impl Iterator<Item = (u64, &Part)> {
        let allocations = self.allocations.iter().enumerate();
        let allocations = allocations.map(|(number, part)| ((number as u64) << ADDRESS_BITS, part));
        allocations.chain(self.of_host.iter().map(|(&base, part)| (base, part)))
    }

    /// The part that begins at an address.
    fn at(&self, base: u64) -> Option<&Part> {
        self.of_host.get(&base).or_else(|| self.allocations.get((base >> ADDRESS_BITS) as usize))
    }

    /// Returns the address of a byte that one of two launches stores and the other touches, unless
    /// both accesses are strong. Memory that kernels allocate is not compared.
    pub fn clash(&self, other: &Self) -> Option<u64> {
        self.parts().find_map(|(base, part)| Some(base + part.clash(other.at(base)?)?))
    }

    /// The part that an address lies in, and its first address.
    fn around(&self, address: u64) -> Option<(u64, &Part)> {
        if let Some((&base, part)) = self.of_host.range(..=address).next_back()
            && (address - base) / 64 < part.loads.len() as u64
        {
            return Some((base, part));
        }
        let number = address >> ADDRESS_BITS;
        Some((number << ADDRESS_BITS, self.allocations.get(number as usize)?))
    }

    /// Returns the address of a byte of a range that the launch stores, or touches in any way.
    pub fn first_in(&self, address: u64, bytes: u64, only_stores: bool) -> Option<u64> {
        let (base, part) = self.around(address)?;
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

    /// The bytes of the host that the record takes, about.
    pub fn host_bytes(&self) -> u64 {
        let pages = self.parts().flat_map(|(_, part)| &part.pages);
        pages.map(|word| u64::from(word.load(Relaxed).count_ones())).sum::<u64>() * 3 * 8 * PAGE as u64
    }

    /// Forgets the bytes of the allocation that an address lies in.
    pub fn forget(&self, address: u64) {
        self.around(address).into_iter().for_each(|(_, part)| part.clear());
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

#[cfg(test)]
mod tests;
