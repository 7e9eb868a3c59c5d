//! Records the calls of another driver and injects failures, for tests: any call can fail, and the
//! test sees what is still alive afterwards.
//!
//! An injected failure comes before or after the real call, so that it leaves a state that a real
//! failure could leave:
//!
//! - A call that makes or queues something fails *before*: nothing was made or queued.
//! - A call that releases something fails *after*: it is released. This is also the driver's
//!   contract, so an error from a release leaks nothing.
//! - A wait for an event fails *before*: it waited for nothing, and queued work stays queued.
//! - A wait for a stream fails *after*: the awaited work has run. By the driver's contract no copy
//!   touches host memory afterwards, error or not; a `Trace` that broke it would let safe code free
//!   memory under a queued copy.
//! - The end of a capture fails *after*: the capture has ended, and its graph is destroyed.

mod call;
mod graphs;
mod memory;
mod modules;
mod streams;

pub use call::{Address, Call, Method};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{DeviceInfo, Driver, EventHandle, GraphExecHandle, GraphHandle, ModuleHandle, StreamHandle};
use crate::counters::Counters;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// The objects that were made through a [`Trace`] and not released.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// Device allocations: address and bytes.
    pub allocations: BTreeMap<Address, u64>,
    /// Allocations from the driver's pool: address and bytes.
    pub pool_allocations: BTreeMap<Address, u64>,
    /// Page-locked allocations: address and bytes.
    pub host_allocations: BTreeMap<Address, usize>,
    /// Registered host memory: address and bytes.
    pub registered: BTreeMap<Address, usize>,
    /// Streams.
    pub streams: BTreeSet<StreamHandle>,
    /// Events.
    pub events: BTreeSet<EventHandle>,
    /// Modules.
    pub modules: BTreeSet<ModuleHandle>,
    /// Streams whose capture has begun and not ended.
    pub captures: BTreeSet<StreamHandle>,
    /// Graphs.
    pub graphs: BTreeSet<GraphHandle>,
    /// Executable graphs.
    pub execs: BTreeSet<GraphExecHandle>,
}

impl Live {
    /// Whether everything has been released.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A driver that records the calls of another and makes some of them fail.
#[derive(Debug)]
pub struct Trace {
    inner: Arc<dyn Driver>,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    calls: Vec<Call>,
    live: Live,
    fail_at: Option<usize>,
    fail_from: Option<usize>,
    fail_methods: BTreeSet<Method>,
}

/// Whether an injected failure comes before or after the real call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fails {
    Before,
    After,
}

impl Trace {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Driver>) -> Self {
        Self { inner, books: Mutex::default() }
    }

    /// Returns the calls so far, including failed ones. [`Driver::info`], [`Driver::counters`]
    /// and [`has_pool`](super::Memory::has_pool) cannot fail and are left out.
    pub fn calls(&self) -> Vec<Call> {
        self.books().calls.clone()
    }

    /// Returns the objects that were made and not released.
    pub fn live(&self) -> Live {
        self.books().live.clone()
    }

    /// Makes call `index` fail, counted from 0 over all recorded calls.
    pub fn fail_nth(&self, index: usize) {
        self.books().fail_at = Some(index);
    }

    /// Makes call `index` and all later ones fail, as on a device that is lost.
    pub fn fail_from(&self, index: usize) {
        self.books().fail_from = Some(index);
    }

    /// Makes every call of `method` fail from now on.
    pub fn fail_method(&self, method: Method) {
        self.books().fail_methods.insert(method);
    }

    /// Injects no failure from now on.
    pub fn fail_nothing(&self) {
        let mut books = self.books();
        books.fail_at = None;
        books.fail_from = None;
        books.fail_methods.clear();
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Every critical section leaves the books consistent.
        lock(&self.books)
    }

    /// Records `call` and makes it with `real`.
    fn call<T>(&self, call: Call, fails: Fails, real: impl FnOnce() -> Result<T>) -> Result<T> {
        let injected = self.books().record(call);
        // Outside of the lock, because the call may take long.
        match (injected, fails) {
            (None, _) => real(),
            (Some(error), Fails::Before) => Err(error),
            (Some(error), Fails::After) => real().and(Err(error)),
        }
    }

    fn make<T>(&self, call: Call, real: impl FnOnce() -> Result<T>, enter: impl FnOnce(&mut Live, &T)) -> Result<T> {
        let made = self.call(call, Fails::Before, real)?;
        enter(&mut self.books().live, &made);
        Ok(made)
    }

    fn queue<T>(&self, call: Call, real: impl FnOnce() -> Result<T>) -> Result<T> {
        self.call(call, Fails::Before, real)
    }

    fn release(&self, call: Call, real: impl FnOnce() -> Result<()>, enter: impl FnOnce(&mut Live)) -> Result<()> {
        // Entered first: after the release, another thread may get the same address.
        enter(&mut self.books().live);
        self.call(call, Fails::After, real)
    }
}

impl Books {
    /// Enters a call. Returns the error if it is to fail.
    fn record(&mut self, call: Call) -> Option<Error> {
        let index = self.calls.len();
        let fails = self.fail_at == Some(index)
            || self.fail_from.is_some_and(|first| first <= index)
            || self.fail_methods.contains(&call.method());
        let error = fails.then(|| Error::new(ErrorKind::Driver, format!("injected failure of call {index}: {call}")));
        self.calls.push(call);
        error
    }
}
// SAFETY: all parts belong to one inner driver.
unsafe impl Driver for Trace {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn counters(&self) -> Option<Counters> {
        self.inner.counters()
    }

    fn has_checkers(&self) -> bool {
        self.inner.has_checkers()
    }
}
