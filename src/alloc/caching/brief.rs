//! A lock for a few instructions.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sync::{AtomicBool, UnsafeCell, spin_loop, yield_now};

/// Attempts before a thread lets others run.
const ATTEMPTS: u32 = 64;

/// A lock whose release is a plain store, where that of a `Mutex` is a second locked instruction:
/// it must look for waiting threads, and here they look for themselves. That suits the lock of a
/// lane. A hit holds it for some loads and stores, and another thread rarely wants it meanwhile.
#[derive(Debug, Default)]
pub(super) struct Brief<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `Entered` gives one thread at a time access to the value, as a `Mutex` does.
unsafe impl<T: Send> Sync for Brief<T> {}

/// The value while it is locked.
pub(super) struct Entered<'a, T> {
    lock: &'a Brief<T>,
    /// Threads share it as they would share this.
    gives: PhantomData<&'a mut T>,
}

impl<T> Brief<T> {
    #[inline]
    pub(super) fn enter(&self) -> Entered<'_, T> {
        if self.taken.swap(true, Acquire) {
            self.wait();
        }
        Entered { lock: self, gives: PhantomData }
    }

    #[cold]
    fn wait(&self) {
        let mut attempts = 0;
        while self.taken.load(Relaxed) || self.taken.swap(true, Acquire) {
            attempts += 1;
            if attempts % ATTEMPTS == 0 { yield_now() } else { spin_loop() }
        }
    }
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `enter` made this the only access until the drop.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.taken.store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let sum = Brief::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *sum.enter() += 1));
            }
        });
        assert_eq!(*sum.enter(), 40_000);
    }
}
