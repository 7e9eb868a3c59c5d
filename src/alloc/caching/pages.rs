//! A list that grows while others read it without a lock.

use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::sync::AtomicPtr;

/// A list of default values that are never moved. Page `k` holds `2^k` of them, from number
/// `2^k - 1` on.
#[derive(Debug)]
pub(super) struct Pages<T> {
    /// The first value of each page; null while the page is missing.
    pages: [AtomicPtr<T>; 32],
    /// Threads share the values as they would share this: one may drop those that another made.
    owns: PhantomData<OnceLock<T>>,
}

impl<T: Default> Pages<T> {
    pub(super) fn new() -> Self {
        Self { pages: [const { AtomicPtr::new(ptr::null_mut()) }; 32], owns: PhantomData }
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
        let mut first = self.pages[page].load(Acquire);
        if first.is_null() {
            first = self.make(page);
        }
        // SAFETY: the page has this place.
        let entry = unsafe { first.add(place) };
        // SAFETY: the page stays until `free_from`, whose caller promises that no reference to it
        // is left, or until the drop.
        unsafe { &*entry }
    }

    /// Makes a page, unless another thread comes first.
    #[cold]
    fn make(&self, page: usize) -> *mut T {
        let values: Box<[T]> = (0..1_usize << page).map(|_| T::default()).collect();
        let made = Box::into_raw(values).cast::<T>();
        match self.pages[page].compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: the page is new, and the list does not have it.
                unsafe { free(made, page) };
                first
            }
        }
    }

    /// Gives back the pages whose entries all have this number or a higher one. They are default
    /// values when they are used again.
    ///
    /// # Safety
    ///
    /// - No thread uses an entry of such a number before this returns.
    pub(super) unsafe fn free_from(&self, index: u32) {
        let (page, place) = Self::place(index);
        for page in page + usize::from(place > 0)..self.pages.len() {
            let first = self.pages[page].swap(ptr::null_mut(), AcqRel);
            // SAFETY: the list has given the page up, and the caller promises that it is not used.
            unsafe { free(first, page) };
        }
    }

    /// Returns the number of pages that are there.
    #[cfg(test)]
    pub(super) fn pages(&self) -> usize {
        self.pages.iter().filter(|page| !page.load(Acquire).is_null()).count()
    }
}

/// Frees the values of a page. Null stands for a missing page.
///
/// # Safety
///
/// - `make` made the page, and nothing uses it any more.
unsafe fn free<T>(first: *mut T, page: usize) {
    if !first.is_null() {
        // SAFETY: `make` took the pointer from a box of this length, which the caller alone has.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(first, 1 << page)) });
    }
}

impl<T> Drop for Pages<T> {
    fn drop(&mut self) {
        for (page, first) in self.pages.iter_mut().enumerate() {
            // SAFETY: the list ends, so no reference to its values is left.
            unsafe { free(*first.get_mut(), page) };
        }
    }
}

#[cfg(test)]
mod tests;
