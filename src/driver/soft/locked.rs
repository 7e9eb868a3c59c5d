//! The locked state, whose lock a thread can give up for a while.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::state::State;
use crate::sync::lock;

/// The state, locked by this thread.
pub(super) struct Locked<'a> {
    of: &'a Mutex<State>,
    /// `None` only while the thread has given the lock up.
    guard: Option<MutexGuard<'a, State>>,
}

/// Why a guard is there: each method that takes it puts it back before it returns.
const HELD: &str = "the lock is held between calls";

impl<'a> Locked<'a> {
    pub(super) fn new(of: &'a Mutex<State>) -> Self {
        Self { of, guard: Some(lock(of)) }
    }

    /// Runs `call` without the lock. `call` must not unwind.
    pub(super) fn unlocked<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.guard = None;
        let result = call();
        self.guard = Some(lock(self.of));
        result
    }

    /// Gives the lock up until another thread says that something has changed, or for at most
    /// `limit`.
    pub(super) fn wait(&mut self, changed: &Condvar, limit: Option<Duration>) {
        let guard = self.guard.take().expect(HELD);
        self.guard = Some(match limit {
            None => changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => changed.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0,
        });
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.guard.as_ref().expect(HELD)
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.guard.as_mut().expect(HELD)
    }
}
