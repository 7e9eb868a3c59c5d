//! A shared handle that counts only once there are two.

use std::marker::PhantomData;
use std::ops::Deref;
use std::process::abort;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sync::AtomicUsize;

/// An [`Arc`](std::sync::Arc) without weak handles, so the drop of an only handle needs no locked
/// instruction: an `Arc`'s needs two. Most buffers never get a second handle, and those are counted
/// by every allocation. The idea is that of the crate triomphe.
pub(crate) struct Shared<T> {
    inner: NonNull<Counted<T>>,
    owns: PhantomData<Counted<T>>,
}

struct Counted<T> {
    handles: AtomicUsize,
    value: T,
}

// SAFETY: a handle gives shared access to the value on each thread that has one, and the last
// handle drops the value on its thread, as an `Arc` does.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above; a shared handle can be cloned.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        let counted = Box::new(Counted { handles: AtomicUsize::new(1), value });
        Self { inner: NonNull::from(Box::leak(counted)), owns: PhantomData }
    }

    #[inline]
    fn counted(&self) -> &Counted<T> {
        // SAFETY: the value lives as long as a handle of it, and handles give no exclusive access.
        unsafe { self.inner.as_ref() }
    }

    /// Returns whether both are handles of one value.
    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    /// The address of the value, which tells values apart and orders them.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        self.inner.addr().get()
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // Forgotten handles could make the number overflow, as in `Arc`.
        if self.counted().handles.fetch_add(1, Relaxed) > isize::MAX as usize {
            abort();
        }
        Self { inner: self.inner, owns: PhantomData }
    }
}

impl<T> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        let handles = &self.counted().handles;
        // An only handle stays the only one: this one makes no other. An acquiring load comes after
        // all uses by handles that were dropped before. The second could be a fence, which
        // ThreadSanitizer does not know.
        if handles.load(Acquire) != 1 {
            if handles.fetch_sub(1, Release) != 1 {
                return;
            }
            handles.load(Acquire);
        }
        // SAFETY: `new` took the pointer from a box, and no other handle is left.
        drop(unsafe { Box::from_raw(self.inner.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_handle_drops_the_value_whichever_it_is() {
        struct Tells<'a>(&'a AtomicUsize);
        impl Drop for Tells<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let dropped = AtomicUsize::new(0);
        for round in 0..100 {
            let first = Shared::new(Tells(&dropped));
            let others: Vec<_> = (0..round % 4).map(|_| first.clone()).collect();
            assert!(others.iter().all(|other| other.is_same(&first) && other.place() == first.place()));
            std::thread::scope(|scope| {
                others.into_iter().for_each(|other| drop(scope.spawn(move || drop(other))));
                scope.spawn(move || drop(first));
            });
            assert_eq!(dropped.load(Relaxed), round + 1);
        }
    }
}
