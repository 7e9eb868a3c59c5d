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
#[cfg(feature = "pipeline")]
use std::thread::{Builder, Scope, ScopedJoinHandle};

#[cfg(feature = "pipeline")]
use crate::error::{Error, ErrorKind, Result};

/// Locks, also after a thread panicked with the lock: use it where no critical section unwinds in
/// the middle of a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread of a scope. `Scope::spawn` panics where the system starts no more threads; this
/// drops `work` and returns an error of the kind `Unavailable`.
#[cfg(feature = "pipeline")]
pub(crate) fn start_thread<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name.into()).spawn_scoped(scope, work).map_err(|error| {
        let advice = "end other programs, or raise the limit on processes (`ulimit -u`)";
        Error::new(ErrorKind::Unavailable, format!("the system does not start the thread `{name}`: {error}; {advice}"))
    })
}
