//! What everything that belongs to one open device shares.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Inner, Stream, foreign};
use crate::driver::{Driver, EventHandle};
use crate::error::{Error, Result};

/// The driver, the streams to wait for when all work is waited for, and the first failure of a drop.
pub(crate) struct Context {
    driver: Arc<dyn Driver>,
    streams: Mutex<Vec<Weak<Inner>>>,
    /// Events that stand for the last work of dropped streams, until they serve a new stream.
    retired: Mutex<Vec<EventHandle>>,
    drop_error: Mutex<Option<Error>>,
}

impl Context {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Arc<Self> {
        Arc::new(Self { driver, streams: Mutex::default(), retired: Mutex::default(), drop_error: Mutex::default() })
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    pub(crate) fn check_same(&self, other: &Self, what: &str) -> Result<()> {
        if std::ptr::eq(self, other) { Ok(()) } else { Err(foreign(what)) }
    }

    /// Waits for the work of every stream, also of those that were dropped.
    pub(crate) fn synchronize(&self) -> Result<()> {
        // Upgraded first: the last handle may be dropped meanwhile, and a drop takes the lock too.
        let streams: Vec<Stream> =
            lock(&self.streams).iter().filter_map(Weak::upgrade).map(|inner| Stream { inner }).collect();
        for stream in &streams {
            stream.synchronize()?;
        }
        for &event in lock(&self.retired).iter() {
            // SAFETY: a retired event is live until it is taken from the list, which is locked.
            unsafe { self.driver.event_synchronize(event) }?;
        }
        Ok(())
    }

    /// An event for a new stream: a retired one that has been passed, or a new one.
    pub(super) fn ordering_event(&self) -> Result<EventHandle> {
        let mut retired = lock(&self.retired);
        for position in 0..retired.len() {
            // SAFETY: a retired event is live until it is taken from the list, which is locked.
            if unsafe { self.driver.event_query(retired[position]) }? {
                return Ok(retired.swap_remove(position));
            }
        }
        self.driver.event_create()
    }

    pub(super) fn retire(&self, event: EventHandle) {
        lock(&self.retired).push(event);
    }

    pub(super) fn streams_changed(&self, change: impl FnOnce(&mut Vec<Weak<Inner>>)) {
        change(&mut lock(&self.streams));
    }

    /// Keeps the first failure of a drop: a drop can neither return it nor panic.
    pub(crate) fn note_drop(&self, outcome: Result<()>, attempt: impl FnOnce() -> String) {
        if let Err(error) = outcome {
            lock(&self.drop_error).get_or_insert_with(|| error.while_doing(attempt()));
        }
    }

    pub(crate) fn take_drop_error(&self) -> Option<Error> {
        lock(&self.drop_error).take()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let retired = self.retired.get_mut().unwrap_or_else(PoisonError::into_inner);
        for event in std::mem::take(retired) {
            // SAFETY: retired events are live, and nobody else holds these any more. A failure has nobody left to tell.
            let _ = unsafe { self.driver.event_destroy(event) };
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("driver", &self.driver).finish_non_exhaustive()
    }
}

/// The lock, also after a thread panicked holding it: nothing here is left half changed by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
