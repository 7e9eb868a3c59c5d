//! The source of a caching allocator's memory, and of the order of streams: the driver, or a
//! simulation without one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::driver::{Driver, EventHandle, StreamHandle};
use crate::error::{Result, counted, refuse};
use crate::sync::lock;

/// A piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) address: u64,
    /// True if no work that used it before may still run.
    pub(crate) fresh: bool,
}

/// Memory in large pieces, and the events that order its uses.
///
/// # Safety
///
/// An implementation promises what [`Driver`] does for the calls of the same names. A piece that
/// was taken shares no byte with another and begins at a multiple of 256. Work on the stream that
/// took it runs after all its former uses.
///
/// The defaults are for memory for which no work is ever queued, so that nothing has to wait. An
/// implementation for memory that queued work uses has all methods of its own.
pub(crate) unsafe trait Upstream: Send + Sync + fmt::Debug {
    /// Returns whether the memory and the streams are those of `driver`.
    fn is_of(&self, driver: &Arc<dyn Driver>) -> bool;

    /// Takes `bytes` bytes, whose first use is on `stream`.
    ///
    /// # Safety
    ///
    /// - `stream` is live.
    unsafe fn take(&self, bytes: u64, stream: StreamHandle) -> Result<Taken>;

    /// Gives a piece back, even if it returns an error, unless it can neither order nor wait for
    /// the work that uses the piece: then the piece stays allocated for ever.
    ///
    /// # Safety
    ///
    /// - `take` returned the address for this number of bytes.
    /// - Work that uses the piece has run, or the latest records of `after` stand for it, or
    ///   [`orders_itself`](Self::orders_itself) is true and it is queued. No later work uses it.
    unsafe fn give(&self, address: u64, bytes: u64, after: &[EventHandle]) -> Result<()>;

    /// Returns whether `give` lets all queued work run first, so that it needs no events.
    fn orders_itself(&self) -> bool {
        true
    }

    /// Lets the driver have what it caches itself.
    fn trim(&self) -> Result<()> {
        Ok(())
    }

    fn event_create(&self) -> Result<EventHandle> {
        Ok(EventHandle(0))
    }

    /// # Safety
    ///
    /// As in [`Streams`](crate::driver::Streams), for this and the following.
    unsafe fn event_destroy(&self, _event: EventHandle) -> Result<()> {
        Ok(())
    }

    unsafe fn event_record(&self, _event: EventHandle, _stream: StreamHandle) -> Result<()> {
        Ok(())
    }

    unsafe fn event_wait(&self, _event: EventHandle, _stream: StreamHandle) -> Result<()> {
        Ok(())
    }

    unsafe fn event_query(&self, _event: EventHandle) -> Result<bool> {
        Ok(true)
    }

    unsafe fn stream_synchronize(&self, _stream: StreamHandle) -> Result<()> {
        Ok(())
    }
}

/// The memory of a driver: its pool where it has one, or else its plain allocations. Memory
/// that goes back to the pool waits for its uses on a stream of its own, and the host waits for
/// nothing. Giving a plain allocation back waits for all work of the device.
#[derive(Debug)]
pub(crate) struct OfDriver {
    driver: Arc<dyn Driver>,
    /// The stream on which memory goes back to the pool.
    returns: Option<StreamHandle>,
}

impl OfDriver {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Result<Self> {
        let returns = if driver.has_pool() { Some(driver.stream_create()?) } else { None };
        Ok(Self { driver, returns })
    }

    /// Makes the stream of returns wait for an event, or else the host. Returns whether one does,
    /// and the first error.
    ///
    /// # Safety
    ///
    /// - `event` is live.
    unsafe fn follow(&self, event: EventHandle, returns: StreamHandle) -> (bool, Result<()>) {
        // SAFETY: as the caller promises; the stream lives as long as `self`.
        let queued = unsafe { self.driver.event_wait(event, returns) };
        // SAFETY: as the caller promises.
        let follows = queued.is_ok() || unsafe { self.driver.event_synchronize(event) }.is_ok();
        (follows, queued)
    }
}

impl Drop for OfDriver {
    fn drop(&mut self) {
        if let Some(returns) = self.returns {
            // A drop returns no error. SAFETY: nothing else has the stream.
            let _ = unsafe { self.driver.stream_destroy(returns) };
        }
    }
}

/// Passes calls on to the driver.
macro_rules! by_driver {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        unsafe fn $name(&self, $($argument: $type),*) -> Result<$result> {
            // SAFETY: as the caller promises.
            unsafe { self.driver.$name($($argument),*) }
        }
    )*};
}

// SAFETY: the driver promises all of it. Memory of the pool is ordered on the stream that takes it.
unsafe impl Upstream for OfDriver {
    fn is_of(&self, driver: &Arc<dyn Driver>) -> bool {
        Arc::ptr_eq(&self.driver, driver)
    }

    unsafe fn take(&self, bytes: u64, stream: StreamHandle) -> Result<Taken> {
        match self.returns {
            // SAFETY: the caller's stream is live.
            Some(_) => Ok(Taken { address: unsafe { self.driver.pool_alloc(bytes, stream) }?, fresh: false }),
            None => Ok(Taken { address: self.driver.alloc(bytes)?, fresh: true }),
        }
    }

    unsafe fn give(&self, address: u64, bytes: u64, after: &[EventHandle]) -> Result<()> {
        let Some(returns) = self.returns else {
            // SAFETY: `take` got the address from this driver, which lets queued work run first.
            return unsafe { self.driver.free(address) };
        };
        let mut followed = Ok(());
        for &event in after {
            // SAFETY: the events are live, as the caller promises.
            let (follows, queued) = unsafe { self.follow(event, returns) };
            followed = followed.and(queued);
            if !follows {
                let leaked =
                    format_args!("giving {} back, which stay allocated: no wait works", counted(bytes, "byte"));
                return followed.map_err(|error| error.while_doing(leaked));
            }
        }
        // SAFETY: `take` got the address from the pool; all work that uses it has run, or the
        // stream waits for it now.
        followed.and(unsafe { self.driver.pool_free(address, returns) })
    }

    fn orders_itself(&self) -> bool {
        self.returns.is_none()
    }

    fn trim(&self) -> Result<()> {
        let Some(returns) = self.returns else { return Ok(()) };
        // Memory that is still on its way back stays in the pool. SAFETY: the stream lives as long
        // as `self`.
        unsafe { self.driver.stream_synchronize(returns) }?;
        self.driver.pool_trim(0)
    }

    fn event_create(&self) -> Result<EventHandle> {
        self.driver.event_create()
    }

    by_driver! {
        event_destroy(event: EventHandle) -> ();
        event_record(event: EventHandle, stream: StreamHandle) -> ();
        event_wait(event: EventHandle, stream: StreamHandle) -> ();
        event_query(event: EventHandle) -> bool;
        stream_synchronize(stream: StreamHandle) -> ();
    }
}

/// Memory of a number of bytes that does not exist, for replays without a device: work has run as
/// soon as it is queued.
#[derive(Debug)]
pub(crate) struct Simulated {
    bytes: u64,
    state: Mutex<Pieces>,
}

#[derive(Debug, Default)]
struct Pieces {
    bytes: u64,
    next: u64,
    pieces: BTreeMap<u64, u64>,
}

impl Simulated {
    /// Memory of `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes, state: Mutex::new(Pieces { next: 1 << 40, ..Pieces::default() }) }
    }
}

// SAFETY: nothing uses the memory, and no address is given out twice.
unsafe impl Upstream for Simulated {
    fn is_of(&self, _: &Arc<dyn Driver>) -> bool {
        false
    }

    unsafe fn take(&self, bytes: u64, _: StreamHandle) -> Result<Taken> {
        let mut taken = lock(&self.state);
        if bytes > self.bytes - taken.bytes {
            let [free, wanted] = [self.bytes - taken.bytes, bytes].map(|bytes| counted(bytes, "byte"));
            refuse!(OutOfMemory, "the simulated memory has {free} left, not {wanted}");
        }
        let address = taken.next;
        taken.next += bytes.next_multiple_of(1 << 21);
        taken.bytes += bytes;
        taken.pieces.insert(address, bytes);
        Ok(Taken { address, fresh: true })
    }

    unsafe fn give(&self, address: u64, bytes: u64, _: &[EventHandle]) -> Result<()> {
        let mut taken = lock(&self.state);
        assert_eq!(taken.pieces.remove(&address), Some(bytes), "a piece is given back once and whole");
        taken.bytes -= bytes;
        Ok(())
    }
}
