//! Handles of devices, streams and buffers, and the state that they share.
//!
//! They name each other, so they are one room: a stream keeps its context and counts a device, a
//! device has a stream, a buffer knows the stream of its last use, and a captured stream keeps
//! buffers. [`device`](crate::device), [`stream`](crate::stream) and [`memory`](crate::memory)
//! stand on it, each by itself.

mod allocation;
mod capture;
pub(crate) mod copies;
mod device;
mod event;
mod home;
mod joint;
mod kernels;
mod last_use;
mod shared;
mod stream;
mod work_counters;

pub(crate) use allocation::Allocation;
pub(crate) use capture::{Capture, CapturedGraph, Capturing};
pub use device::Device;
pub use event::Event;
pub(crate) use joint::Joint;
pub(crate) use kernels::{BOXES_SHARED, Kernels, is_cooperative, most_shared};
#[cfg(feature = "distributed")]
pub(crate) use last_use::queue_across;
pub(crate) use last_use::queue_in_order;
pub(crate) use shared::Shared;
pub(crate) use stream::Owner;
pub use stream::Stream;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};

use crate::alloc::Allocate;
use crate::driver::{Counted, Driver, EventHandle};
use crate::error::{Error, Result};
use crate::host::{HostPool, Lent, Parked, Staging};
use crate::sync::lock;
use stream::{Inner, foreign};
use work_counters::WorkCounters;

/// The driver, the allocator, the streams of the device, and the first failure of a drop.
pub(crate) struct Context {
    driver: Arc<dyn Driver>,
    allocator: Arc<dyn Allocate>,
    /// The kernels, which handles of the device and graphs keep.
    kernels: OnceLock<Weak<Kernels>>,
    /// All streams. Each stays until its drop has retired its event.
    streams: Mutex<Vec<Weak<Inner>>>,
    /// Notified when a stream leaves the list.
    left: Condvar,
    /// Events that stand for the last work of dropped streams, until new streams take them, with
    /// the work counter of the dropped stream if it had one. A stream's event is destroyed only
    /// with the context.
    retired: Mutex<Vec<(EventHandle, Option<u64>)>>,
    counters: WorkCounters,
    /// Copies of pageable host memory. Its slots are the pool's.
    staging: Staging,
    /// Page-locked host memory.
    pinned: Arc<HostPool>,
    /// Host memory that was dropped while a copy used it.
    parked: Parked,
    drop_error: Mutex<Option<Error>>,
}

impl Context {
    fn new(counted: &Arc<Counted>, allocator: Arc<dyn Allocate>) -> Arc<Self> {
        let driver = Arc::clone(counted) as Arc<dyn Driver>;
        Arc::new(Self {
            staging: Staging::new(Arc::clone(counted)),
            pinned: Arc::new(HostPool::new(Arc::clone(&driver))),
            driver,
            allocator,
            kernels: OnceLock::new(),
            streams: Mutex::default(),
            left: Condvar::new(),
            retired: Mutex::default(),
            counters: WorkCounters::new(Arc::clone(counted)),
            parked: Parked::default(),
            drop_error: Mutex::default(),
        })
    }

    #[inline]
    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// Returns the allocator of buffers.
    #[inline]
    pub(crate) fn allocator(&self) -> &dyn Allocate {
        self.allocator.as_ref()
    }

    fn enter_kernels(&self, kernels: &Arc<Kernels>) {
        self.kernels.get_or_init(|| Arc::downgrade(kernels));
    }

    /// Returns the kernels; `None` once nothing is left that can launch them.
    pub(crate) fn kernels(&self) -> Option<Arc<Kernels>> {
        self.kernels.get()?.upgrade()
    }

    #[inline]
    pub(crate) fn check_same(&self, other: &Self, what: &str) -> Result<()> {
        if std::ptr::eq(self, other) { Ok(()) } else { Err(foreign(what)) }
    }

    /// Waits for all work of every stream, including dropped ones, even after a failure. Returns
    /// the first failure.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let mut outcome = Ok(());
        for stream in self.live_streams() {
            outcome = outcome.and(stream.synchronize());
        }
        // A copy of the list, because the driver may wait long while new streams look for an event.
        // They only take events that have been passed.
        let retired = lock(&self.retired).clone();
        for (event, _) in retired {
            // SAFETY: an event that was retired lives as long as `self`.
            outcome = outcome.and(unsafe { self.driver.event_synchronize(event) });
        }
        self.reap();
        outcome
    }

    /// Returns the engine that copies pageable host memory.
    pub(crate) fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Returns the pool of page-locked host memory.
    pub(crate) fn pinned(&self) -> &Arc<HostPool> {
        &self.pinned
    }

    /// Keeps host memory until the event, which is the context's from now on, has been passed.
    pub(crate) fn park(&self, event: EventHandle, lent: Lent) {
        self.parked.park(event, lent);
    }

    /// Gives back the parked host memory whose copies have run. This waits for none of them.
    pub(crate) fn reap(&self) {
        self.parked.reap(self.driver.as_ref(), |event| self.retire(event));
    }

    /// Returns the live streams once all streams that other threads are dropping have retired their
    /// events.
    fn live_streams(&self) -> Vec<Stream> {
        let dying = |streams: &mut Vec<Weak<Inner>>| streams.iter().any(|stream| stream.strong_count() == 0);
        loop {
            let streams = self.left.wait_while(lock(&self.streams), dying).unwrap_or_else(PoisonError::into_inner);
            let live: Vec<_> = streams.iter().map(Weak::upgrade).collect();
            // These handles may be the last ones by now, and their drops need the list.
            drop(streams);
            // A stream that was dropped since the count has not retired its event yet, so this
            // waits for it as for the others.
            if let Some(live) = live.into_iter().collect::<Option<Vec<_>>>() {
                return live.into_iter().map(|inner| Stream { inner }).collect();
            }
        }
    }

    /// Returns an event for a new stream: a retired one that has been passed, or a new one.
    pub(crate) fn ordering_event(&self) -> Result<EventHandle> {
        let mut retired = lock(&self.retired);
        for position in 0..retired.len() {
            // SAFETY: a retired event is live until it is taken from the list, which is locked.
            if unsafe { self.driver.event_query(retired[position].0) }? {
                let (event, counter) = retired.swap_remove(position);
                counter.into_iter().for_each(|counter| self.counters.give(counter));
                return Ok(event);
            }
        }
        self.driver.event_create()
    }

    pub(crate) fn retire(&self, event: EventHandle) {
        self.retire_with(event, None);
    }

    /// Retires an event, and a work counter whose launches come before it.
    fn retire_with(&self, event: EventHandle, counter: Option<u64>) {
        lock(&self.retired).push((event, counter));
    }

    fn enter(&self, stream: Weak<Inner>) {
        lock(&self.streams).push(stream);
    }

    /// Removes a stream from the list at the end of its drop.
    fn leave(&self, stream: *const Inner) {
        lock(&self.streams).retain(|listed| !std::ptr::eq(listed.as_ptr(), stream));
        self.left.notify_all();
    }

    /// Keeps the first failure of a drop: a drop can neither return it nor panic.
    #[inline]
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
        self.parked.close(self.driver.as_ref(), &self.pinned);
        let retired = self.retired.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (event, _) in std::mem::take(retired) {
            // SAFETY: retired events are live, and no stream holds these any more. No caller is
            // left to receive a failure.
            let _ = unsafe { self.driver.event_destroy(event) };
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("driver", &self.driver).finish_non_exhaustive()
    }
}
