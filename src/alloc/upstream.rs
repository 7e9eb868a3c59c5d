//! Where a caching allocator takes its memory from, and how it orders streams: the driver, or a
//! simulation without one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::driver::{Driver, EventHandle, StreamHandle};
use crate::error::{Error, ErrorKind, Result, counted};

/// Memory in large pieces, and the events that order its uses.
///
/// # Safety
///
/// An implementation promises what [`Driver`] does for the calls of the same names. A piece that was
/// taken shares no byte with another, begins at a multiple of 256, and has no former use that may
/// still run.
pub(crate) unsafe trait Upstream: Send + Sync + fmt::Debug {
    /// Takes `bytes` bytes, whose first use is on `stream`.
    fn take(&self, bytes: u64, stream: StreamHandle) -> Result<u64>;

    /// Gives a piece back, even if it returns an error.
    ///
    /// # Safety
    ///
    /// - `take` returned the address for this number of bytes.
    /// - Work that uses the piece has run, or the latest records of `after` stand for it, or
    ///   [`orders_itself`](Self::orders_itself) is true and it is queued. No later work uses it.
    unsafe fn give(&self, address: u64, bytes: u64, after: &[EventHandle]) -> Result<()>;

    /// Whether `give` lets all queued work run first, so that it needs no events.
    fn orders_itself(&self) -> bool;

    /// Lets the driver have what it caches itself.
    fn trim(&self) -> Result<()>;

    fn event_create(&self) -> Result<EventHandle>;
    /// # Safety
    ///
    /// As in [`Streams`](crate::driver::Streams), for this and the following.
    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()>;
    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;
    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;
    unsafe fn event_query(&self, event: EventHandle) -> Result<bool>;
    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()>;
}

/// The driver's plain allocations. Giving one back waits for all work of the device.
#[derive(Debug)]
pub(crate) struct Plain(Arc<dyn Driver>);

impl Plain {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self(driver)
    }
}

// SAFETY: the driver promises all of it.
unsafe impl Upstream for Plain {
    fn take(&self, bytes: u64, _: StreamHandle) -> Result<u64> {
        self.0.alloc(bytes)
    }

    unsafe fn give(&self, address: u64, _: u64, _: &[EventHandle]) -> Result<()> {
        // SAFETY: `take` got the address from this driver, which lets queued work run first.
        unsafe { self.0.free(address) }
    }

    fn orders_itself(&self) -> bool {
        true
    }

    fn trim(&self) -> Result<()> {
        Ok(())
    }

    fn event_create(&self) -> Result<EventHandle> {
        self.0.event_create()
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.0.event_destroy(event) }
    }

    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.0.event_record(event, stream) }
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.0.event_wait(event, stream) }
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        // SAFETY: as the caller promises.
        unsafe { self.0.event_query(event) }
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.0.stream_synchronize(stream) }
    }
}

/// Memory of a number of bytes that does not exist, for replays without a device: work has run as
/// soon as it is queued.
#[derive(Debug)]
pub(crate) struct Simulated {
    bytes: u64,
    state: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    next: u64,
    pieces: BTreeMap<u64, u64>,
}

impl Simulated {
    /// Memory of `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes, state: Mutex::new(Taken { next: 1 << 40, ..Taken::default() }) }
    }
}

// SAFETY: nothing uses the memory, and no address is given out twice.
unsafe impl Upstream for Simulated {
    fn take(&self, bytes: u64, _: StreamHandle) -> Result<u64> {
        let mut taken = lock(&self.state);
        if bytes > self.bytes - taken.bytes {
            let free = counted(self.bytes - taken.bytes, "byte");
            let wanted = counted(bytes, "byte");
            return Err(Error::new(ErrorKind::OutOfMemory, format!("the simulated memory has {free} left, not {wanted}")));
        }
        let address = taken.next;
        taken.next += bytes.next_multiple_of(1 << 21);
        taken.bytes += bytes;
        taken.pieces.insert(address, bytes);
        Ok(address)
    }

    unsafe fn give(&self, address: u64, bytes: u64, _: &[EventHandle]) -> Result<()> {
        let mut taken = lock(&self.state);
        assert_eq!(taken.pieces.remove(&address), Some(bytes), "a piece is given back once and whole");
        taken.bytes -= bytes;
        Ok(())
    }

    fn orders_itself(&self) -> bool {
        true
    }

    fn trim(&self) -> Result<()> {
        Ok(())
    }

    fn event_create(&self) -> Result<EventHandle> {
        Ok(EventHandle(0))
    }

    unsafe fn event_destroy(&self, _: EventHandle) -> Result<()> {
        Ok(())
    }

    unsafe fn event_record(&self, _: EventHandle, _: StreamHandle) -> Result<()> {
        Ok(())
    }

    unsafe fn event_wait(&self, _: EventHandle, _: StreamHandle) -> Result<()> {
        Ok(())
    }

    unsafe fn event_query(&self, _: EventHandle) -> Result<bool> {
        Ok(true)
    }

    unsafe fn stream_synchronize(&self, _: StreamHandle) -> Result<()> {
        Ok(())
    }
}
