//! Locks whose state no panic leaves half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a thread panicked with the lock: use it where no critical section unwinds in
/// the middle of a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
