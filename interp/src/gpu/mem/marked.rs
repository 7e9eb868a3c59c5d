//! Marks bytes, such as those that have been written, with a bit for each. The bits are created
//! once they are needed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The bytes of some memory that are marked, such as those that have been written.
///
/// Accesses are relaxed: a caller that marks on one thread and looks on another orders the two
/// itself.
#[derive(Debug)]
pub(crate) struct Marked {
    bytes: u64,
    all: AtomicBool,
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl Marked {
    /// Marks none of `bytes` bytes.
    pub(crate) fn none(bytes: u64) -> Self {
        Self { bytes, all: AtomicBool::new(false), bits: OnceLock::new() }
    }

    /// The same number of bytes, none of them marked.
    pub(crate) fn another(&self) -> Self {
        Self::none(self.bytes)
    }

    /// Returns whether all bytes are marked, as far as that is known without a look at each.
    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.all.load(Relaxed)
    }

    /// Marks the `bytes` bytes at `offset`, which are in bounds.
    pub(crate) fn add(&self, offset: u64, bytes: u64) {
        if self.is_all() || bytes == 0 {
            return;
        }
        if bytes >= self.bytes {
            return self.all.store(true, Relaxed);
        }
        let Some(bits) = self.bits.get().map(Box::as_ref).or_else(|| self.make()) else {
            // The host has no memory for the bits. Better to report nothing than something wrong.
            return self.all.store(true, Relaxed);
        };
        mark(bits, offset, bytes);
    }

    /// Takes the marks off the `bytes` bytes at `offset`, unless all bytes count as marked.
    pub(super) fn remove(&self, offset: u64, bytes: u64) {
        let Some(bits) = self.bits.get() else { return };
        for (word, mask) in words(offset, bytes) {
            bits[word].fetch_and(!mask, Relaxed);
        }
    }

    /// Returns whether all of the `bytes` bytes at `offset`, which are in bounds, are marked.
    pub(crate) fn holds(&self, offset: u64, bytes: u64) -> bool {
        if self.is_all() {
            return true;
        }
        let Some(bits) = self.bits.get() else { return bytes == 0 };
        words(offset, bytes).all(|(word, mask)| bits[word].load(Relaxed) & mask == mask)
    }

    /// Returns the number of bytes that are marked here and not in `other`, which has as many.
    pub(super) fn without(&self, other: &Self) -> u64 {
        if other.is_all() {
            return 0;
        }
        let word = |marked: &Self, number: usize, mask: u64| match marked.bits.get() {
            _ if marked.is_all() => mask,
            Some(bits) => bits[number].load(Relaxed) & mask,
            None => 0,
        };
        if self.bits.get().is_none() && other.bits.get().is_none() {
            return if self.is_all() { self.bytes } else { 0 };
        }
        let alone = words(0, self.bytes).map(|(number, mask)| word(self, number, mask) & !word(other, number, mask));
        alone.map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Takes all marks off.
    pub(crate) fn clear(&mut self) {
        *self.all.get_mut() = false;
        self.bits.get_mut().into_iter().flat_map(|bits| bits.iter_mut()).for_each(|word| *word.get_mut() = 0);
    }

    fn make(&self) -> Option<&[AtomicU64]> {
        // The host provides memory only for the parts that are marked.
        let words = usize::try_from(self.bytes.div_ceil(64)).ok()?;
        let bits = bytemuck::allocation::try_zeroed_slice_box(words).ok()?;
        Some(self.bits.get_or_init(|| bits))
    }
}

/// Sets a range of bits.
pub(super) fn mark(bits: &[AtomicU64], offset: u64, count: u64) {
    let set = |word: usize, mask: u64| {
        if bits[word].load(Relaxed) & mask != mask {
            bits[word].fetch_or(mask, Relaxed);
        }
    };
    // Most accesses of a lane are within a word.
    if (1..64).contains(&count) && offset % 64 + count <= 64 {
        set((offset / 64) as usize, ((1 << count) - 1) << (offset % 64));
    } else {
        words(offset, count).for_each(|(word, mask)| set(word, mask));
    }
}

/// The 64-bit words that hold a range of bits, each with the mask of the bits in the range.
pub(super) fn words(offset: u64, count: u64) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + count;
    (offset / 64..end.div_ceil(64)).map(move |word| {
        let from = u64::MAX << offset.saturating_sub(word * 64);
        let to = u64::MAX >> ((word + 1) * 64).saturating_sub(end);
        (word as usize, from & to)
    })
}

#[cfg(test)]
mod tests;
