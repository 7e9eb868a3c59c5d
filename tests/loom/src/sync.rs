//! `src/sync.rs`, with loom's types.

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;

use std::sync::PoisonError;
use std::sync::atomic::Ordering::{self, Relaxed};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// loom's, but for a swap that changes nothing, which here stores nothing either.
///
/// loom lets another thread's store come between what such a swap reads and what it stores, which
/// no processor does: a release of a lock could be overwritten by an attempt that came before it,
/// and all threads would wait for ever.
#[derive(Debug, Default)]
pub(crate) struct AtomicBool(loom::sync::atomic::AtomicBool);

impl AtomicBool {
    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        self.0.store(value, order);
    }

    pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.compare_exchange(!value, value, order, Relaxed).unwrap_or_else(|former| former)
    }
}

/// The standard library's interface to loom's cell.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// loom fails the model if another thread's access is not ordered before this one, which may
    /// write.
    pub(crate) fn get(&self) -> *mut T {
        self.0.with_mut(|pointer| pointer)
    }
}
