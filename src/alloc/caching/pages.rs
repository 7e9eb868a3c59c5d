//! A list that grows while others read it without a lock.

use std::sync::OnceLock;

/// A list of default values that are never moved. Page `k` holds `2^k` of them, from number
/// `2^k - 1` on.
#[derive(Debug)]
pub(super) struct Pages<T> {
    pages: [OnceLock<Box<[T]>>; 32],
}

impl<T: Default> Pages<T> {
    pub(super) const fn new() -> Self {
        Self { pages: [const { OnceLock::new() }; 32] }
    }

    /// Returns the page and the place in it.
    fn place(index: u32) -> (usize, usize) {
        let number = u64::from(index) + 1;
        let page = number.ilog2();
        (page as usize, (number - (1 << page)) as usize)
    }

    /// Returns an entry, and makes its page first where it is missing. Pages 0 to 31 hold all
    /// numbers but the last.
    #[inline]
    pub(super) fn entry(&self, index: u32) -> &T {
        let (page, place) = Self::place(index);
        &self.pages[page].get_or_init(|| (0..1_usize << page).map(|_| T::default()).collect())[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let places: Vec<_> = (0..1000).map(Pages::<u8>::place).collect();
        let next =
            |(page, place): (usize, usize)| if place + 1 == 1 << page { (page + 1, 0) } else { (page, place + 1) };
        assert_eq!(places[0], (0, 0));
        assert!(places.windows(2).all(|pair| pair[1] == next(pair[0])));
        assert_eq!(Pages::<u8>::place(u32::MAX - 1), (31, (1 << 31) - 1));
    }
}
