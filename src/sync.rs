//! Locks, atomic numbers and cells that threads share.
//!
//! Code that is checked in every order of its threads imports from here, and `tests/loom` compiles
//! the same files with loom's types in this place. Everything else imports the types from the
//! standard library.

pub(crate) use std::cell::UnsafeCell;
pub(crate) use std::hint::spin_loop;
#[cfg(feature = "pipeline")]
pub(crate) use std::sync::Condvar;
use std::sync::PoisonError;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;

/// Locks, also after a thread panicked with the lock: use it where no critical section unwinds in
/// the middle of a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
