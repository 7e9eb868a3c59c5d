//! Tables of what handles name. A number is given out once in the life of a process, so a stale
//! handle is recognised.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::arguments::Handle;
use crate::code::{Failure, Outcome, code};

/// The number of the next handle: above the small numbers that name the default streams, and as
/// aligned as a pointer.
static NEXT: AtomicU64 = AtomicU64::new(0x57_0000_0000);

/// The live objects of one kind.
pub(crate) struct Handles<T> {
    /// The kind, for errors.
    what: &'static str,
    live: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Handles<T> {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, live: RwLock::default() }
    }

    /// Adds an object and returns its handle.
    pub(crate) fn add(&self, object: T) -> Handle<T> {
        self.add_with(|_| object)
    }

    /// Adds an object that knows its own handle.
    pub(crate) fn add_with(&self, make: impl FnOnce(Handle<T>) -> T) -> Handle<T> {
        let handle = Handle::new(NEXT.fetch_add(16, Ordering::Relaxed));
        let object = Arc::new(make(handle));
        self.live.write().unwrap_or_else(PoisonError::into_inner).insert(handle.0, object);
        handle
    }

    /// Returns what a handle names.
    pub(crate) fn get(&self, handle: Handle<T>) -> Outcome<Arc<T>> {
        self.find(handle).ok_or_else(|| self.missing(handle))
    }

    pub(crate) fn find(&self, handle: Handle<T>) -> Option<Arc<T>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).get(&handle.0).cloned()
    }

    /// Takes an object out; its handle is stale from then on.
    pub(crate) fn remove(&self, handle: Handle<T>) -> Outcome<Arc<T>> {
        let removed = self.live.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.0);
        removed.ok_or_else(|| self.missing(handle))
    }

    /// Takes out all objects that are meant.
    pub(crate) fn remove_where(&self, is_meant: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.extract_if(|_, object| is_meant(object)).map(|(_, object)| object).collect()
    }

    /// Returns all live objects, with their handles.
    pub(crate) fn all(&self) -> Vec<(Handle<T>, Arc<T>)> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = live.iter().map(|(&number, object)| (Handle::new(number), Arc::clone(object))).collect();
        all.sort_by_key(|(handle, _)| handle.0);
        all
    }

    fn missing(&self, handle: Handle<T>) -> Failure {
        let what = self.what;
        match handle.0 {
            0 => Failure::new(code::INVALID_HANDLE, format!("the handle of a {what} is null; pass one that was made")),
            _ => Failure::new(
                code::INVALID_HANDLE,
                format!("{handle:?} is not a live {what}; use a handle until it is destroyed, and no longer"),
            ),
        }
    }
}
