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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

pub use super::call::{Address, Call, CopiedBox, Method};
use super::{Driver, EventHandle, GraphExecHandle, GraphHandle, Layer, ModuleHandle, Reply, StreamHandle};
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
    /// Returns whether everything has been released.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Enters what a call made or began. `reply` is the address or handle that it returned.
    fn enter(&mut self, call: &Call, reply: u64) {
        match *call {
            Call::Alloc { bytes } => _ = self.allocations.insert(Address(reply), bytes),
            Call::PoolAlloc { bytes, .. } => _ = self.pool_allocations.insert(Address(reply), bytes),
            Call::AllocHost { bytes, .. } => _ = self.host_allocations.insert(Address(reply), bytes),
            Call::RegisterHost { memory, bytes } => _ = self.registered.insert(memory, bytes),
            Call::StreamCreate {} | Call::StreamCreateOn { .. } => _ = self.streams.insert(StreamHandle(reply)),
            Call::EventCreate {} | Call::EventCreateUntimed {} => _ = self.events.insert(EventHandle(reply)),
            Call::ModuleLoad { .. } => _ = self.modules.insert(ModuleHandle(reply)),
            Call::CaptureBegin { stream } => _ = self.captures.insert(stream),
            Call::CaptureEnd { .. } => _ = self.graphs.insert(GraphHandle(reply)),
            Call::GraphInstantiate { .. } => _ = self.execs.insert(GraphExecHandle(reply)),
            _ => (),
        }
    }

    /// Takes out what a call releases or ends; false if it does neither.
    fn leave(&mut self, call: &Call) -> bool {
        match call {
            Call::Free { address } => _ = self.allocations.remove(address),
            Call::PoolFree { address, .. } => _ = self.pool_allocations.remove(address),
            Call::FreeHost { memory } => _ = self.host_allocations.remove(memory),
            Call::UnregisterHost { memory } => _ = self.registered.remove(memory),
            Call::StreamDestroy { stream } => _ = self.streams.remove(stream),
            Call::EventDestroy { event } => _ = self.events.remove(event),
            Call::ModuleUnload { module } => _ = self.modules.remove(module),
            Call::CaptureEnd { stream } => _ = self.captures.remove(stream),
            Call::GraphDestroy { graph } => _ = self.graphs.remove(graph),
            Call::GraphExecDestroy { exec } => _ = self.execs.remove(exec),
            _ => return false,
        }
        true
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

// SAFETY: `inner` is one field, which nothing changes. A call is the inner driver's or is not made,
// and an injected failure of a release, of `stream_synchronize` or of `capture_end` comes after the
// real call, so the inner driver's promises hold.
unsafe impl Layer for Trace {
    fn inner(&self) -> &dyn Driver {
        self.inner.as_ref()
    }

    fn around<R: Reply>(
        &self,
        method: Method,
        call: impl FnOnce() -> Call,
        make: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let call = call();
        let (fails_after, injected) = {
            let mut books = self.books();
            // Taken out first: after the release, another thread may get the same address.
            let ends = books.live.leave(&call);
            (ends || method == Method::StreamSynchronize, books.record(call.clone()))
        };
        // Outside of the lock, because the call may take long.
        let reply = match injected {
            None => make()?,
            Some(error) if fails_after => return make().and(Err(error)),
            Some(error) => return Err(error),
        };
        self.books().live.enter(&call, reply.number());
        Ok(reply)
    }

    unsafe fn capture_end(&self, stream: StreamHandle) -> Result<GraphHandle> {
        let mut made = None;
        // SAFETY: the caller's promise is the inner driver's.
        let make = || unsafe { self.inner.capture_end(stream) }.inspect(|&graph| made = Some(graph));
        let ended = self.around(Method::CaptureEnd, || Call::CaptureEnd { stream }, make);
        if let (Err(_), Some(graph)) = (&ended, made) {
            // The error is the injected one, which leaves no graph behind. SAFETY: the graph is
            // new, and no other code knows it.
            let _ = unsafe { self.inner.graph_destroy(graph) };
        }
        ended
    }
}
