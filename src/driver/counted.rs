//! Counts the calls to another driver, and those of them that can synchronise, and cuts copies
//! where registered memory begins or ends.
//!
//! A call synchronises if the host waits in it for queued work. A program that makes such a call in
//! a loop leaves the device idle in between, and no profile of the device shows why. Each device
//! counts its own calls: [`Device::stats`](crate::Device::stats) returns them.

use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::call::{Call, Method};
use super::page_locked::{Origin, PageLocked};
use super::stats::Waits;
use super::{Copy3d, Driver, Held, HostKind, Layer, MemoryStats, Reply, Stats, StreamHandle};
use crate::error::Result;
use crate::sync::lock;

/// A driver that counts the calls to another, and cuts its copies.
pub(crate) struct Counted {
    inner: Arc<dyn Driver>,
    calls: [AtomicU64; Method::ALL.len()],
    can_synchronize: AtomicU64,
    device: Mutex<Ledger>,
    pool: Mutex<Ledger>,
    host: Mutex<Ledger>,
    registered: Mutex<Ledger>,
    /// The page-locked memory of both kinds, for copies.
    locked: Arc<PageLocked>,
}

/// Blocks by their first address.
#[derive(Default)]
struct Ledger {
    blocks: BTreeMap<u64, u64>,
    bytes: u64,
    peak_bytes: u64,
}

impl Ledger {
    fn enter(&mut self, address: u64, bytes: u64) {
        self.blocks.insert(address, bytes);
        self.bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.bytes);
    }

    fn leave(&mut self, address: u64) {
        self.bytes -= self.blocks.remove(&address).unwrap_or_default();
    }

    fn held(&self) -> Held {
        Held { blocks: self.blocks.len() as u64, bytes: self.bytes, peak_bytes: self.peak_bytes }
    }
}

impl Counted {
    /// Wraps `inner`.
    pub(crate) fn new(inner: Arc<dyn Driver>) -> Self {
        Self {
            locked: PageLocked::of(inner.info().kind),
            inner,
            calls: [const { AtomicU64::new(0) }; Method::ALL.len()],
            can_synchronize: AtomicU64::new(0),
            device: Mutex::default(),
            pool: Mutex::default(),
            host: Mutex::default(),
            registered: Mutex::default(),
        }
    }

    /// Returns the calls so far, and the memory that is held.
    pub(crate) fn stats(&self) -> Stats {
        let calls =
            Method::ALL.iter().zip(&self.calls).map(|(method, calls)| (method.name(), calls.load(Ordering::Relaxed)));
        Stats {
            calls: calls.filter(|&(_, calls)| calls > 0).collect(),
            can_synchronize: self.can_synchronize.load(Ordering::Relaxed),
            memory: MemoryStats {
                device: lock(&self.device).held(),
                pool: lock(&self.pool).held(),
                host: lock(&self.host).held(),
                registered: lock(&self.registered).held(),
            },
        }
    }

    /// Counts a call, and returns the inner driver to make it.
    fn count(&self, method: Method) -> &dyn Driver {
        self.count_call(method, method.waits() == Waits::Yes)
    }

    /// Counts a copy, which can synchronise unless the host's side is page-locked.
    fn count_copy(&self, method: Method, host: *const u8, bytes: usize) -> &dyn Driver {
        self.count_call(method, bytes > 0 && !self.is_page_locked(host, bytes))
    }

    /// Returns whether memory of the host, at least one byte, was page-locked by this driver, or
    /// for a GPU by that of any GPU.
    pub(crate) fn is_page_locked(&self, memory: *const u8, bytes: usize) -> bool {
        self.locked.covers(memory, bytes)
    }

    fn count_call(&self, method: Method, can_synchronize: bool) -> &dyn Driver {
        self.calls[method as usize].fetch_add(1, Ordering::Relaxed);
        if can_synchronize {
            self.can_synchronize.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.as_ref()
    }

    /// Enters memory of the host that was page-locked.
    fn enter_locked(&self, origin: Origin, memory: NonNull<u8>, bytes: usize) {
        lock(self.ledger(origin)).enter(memory.addr().get() as u64, bytes as u64);
        self.locked.enter(origin, memory.addr().get(), bytes);
    }

    fn leave_locked(&self, origin: Origin, memory: NonNull<u8>) {
        self.locked.leave(origin, memory.addr().get());
        lock(self.ledger(origin)).leave(memory.addr().get() as u64);
    }

    fn ledger(&self, origin: Origin) -> &Mutex<Ledger> {
        match origin {
            Origin::Allocated => &self.host,
            Origin::Registered => &self.registered,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Memory that was never released must not stay in a list that outlives the driver.
        for origin in [Origin::Allocated, Origin::Registered] {
            for &address in lock(self.ledger(origin)).blocks.keys() {
                self.locked.leave(origin, address as usize);
            }
        }
    }
}

// A block leaves its ledger before its release: after it, another thread may get the same address.
// SAFETY: `inner` is one field, which nothing changes. Every call is the inner driver's, with the
// operands and promises of the caller, or is made in parts, which together are the caller's copy.
unsafe impl Layer for Counted {
    fn inner(&self) -> &dyn Driver {
        self.inner.as_ref()
    }

    fn around<R: Reply>(
        &self,
        method: Method,
        _: impl FnOnce() -> Call,
        make: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        self.count(method);
        make()
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let address = self.count(Method::Alloc).alloc(bytes)?;
        lock(&self.device).enter(address, bytes);
        Ok(address)
    }

    unsafe fn free(&self, address: u64) -> Result<()> {
        lock(&self.device).leave(address);
        let inner = self.count(Method::Free);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.free(address) }
    }

    unsafe fn pool_alloc(&self, bytes: u64, stream: StreamHandle) -> Result<u64> {
        let inner = self.count(Method::PoolAlloc);
        // SAFETY: the caller's promise is the inner driver's.
        let address = unsafe { inner.pool_alloc(bytes, stream) }?;
        lock(&self.pool).enter(address, bytes);
        Ok(address)
    }

    unsafe fn pool_free(&self, address: u64, stream: StreamHandle) -> Result<()> {
        lock(&self.pool).leave(address);
        let inner = self.count(Method::PoolFree);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.pool_free(address, stream) }
    }

    fn alloc_host(&self, bytes: usize, kind: HostKind) -> Result<NonNull<u8>> {
        let memory = self.count(Method::AllocHost).alloc_host(bytes, kind)?;
        self.enter_locked(Origin::Allocated, memory, bytes);
        Ok(memory)
    }

    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()> {
        self.leave_locked(Origin::Allocated, memory);
        let inner = self.count(Method::FreeHost);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.free_host(memory) }
    }

    unsafe fn register_host(&self, memory: NonNull<u8>, bytes: usize) -> Result<()> {
        let inner = self.count(Method::RegisterHost);
        // SAFETY: the caller's promise is the inner driver's.
        unsafe { inner.register_host(memory, bytes) }?;
        self.enter_locked(Origin::Registered, memory, bytes);
        Ok(())
    }

    unsafe fn unregister_host(&self, memory: NonNull<u8>) -> Result<()> {
        self.leave_locked(Origin::Registered, memory);
        let inner = self.count(Method::UnregisterHost);
        // SAFETY: the caller's promises are the inner driver's.
        unsafe { inner.unregister_host(memory) }
    }

    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.locked.each_part(src, bytes, |at, bytes| {
            let (dst, src) = (dst + at as u64, src.wrapping_add(at));
            let inner = self.count_copy(Method::CopyH2d, src, bytes);
            // SAFETY: the caller's promises are the inner driver's, about a part of the copy.
            unsafe { inner.copy_h2d(dst, src, bytes, stream) }
        })
    }

    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()> {
        self.locked.each_part(dst, bytes, |at, bytes| {
            let (dst, src) = (dst.wrapping_add(at), src + at as u64);
            let inner = self.count_copy(Method::CopyD2h, dst, bytes);
            // SAFETY: as above.
            unsafe { inner.copy_d2h(dst, src, bytes, stream) }
        })
    }

    unsafe fn copy_3d(&self, copy: &Copy3d, stream: StreamHandle) -> Result<()> {
        let mut copy_part = |part: &Copy3d| {
            let inner = match part.host().filter(|_| !part.is_empty()) {
                Some((memory, side)) => self.count_copy(Method::Copy3d, memory, part.span(side)),
                None => self.count_call(Method::Copy3d, false),
            };
            // SAFETY: the caller's promises are the inner driver's, about the copy or a part of it.
            unsafe { inner.copy_3d(part, stream) }
        };
        if copy.is_empty() { copy_part(copy) } else { self.locked.each_box(copy, &mut copy_part) }
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::driver::soft::Soft;
    use crate::driver::{Pitched, Place};

    fn counted() -> Counted {
        Counted::new(Arc::new(Soft::new()))
    }

    #[test]
    fn copies_can_synchronise_unless_the_hosts_side_is_page_locked() {
        let driver = counted();
        let (stream, address) = (driver.stream_create().unwrap(), driver.alloc(100).unwrap());
        let pinned = driver.alloc_host(100, HostKind::Cached).unwrap().as_ptr();
        let mut pageable = [0_u8; 100];
        let pageable = pageable.as_mut_ptr();
        let copies = |memory: *mut u8, bytes| {
            let before = driver.stats();
            // SAFETY: all have 100 bytes and outlive the synchronisation, here and below.
            unsafe { driver.copy_h2d(address, memory, bytes, stream) }.unwrap();
            // SAFETY: as above.
            unsafe { driver.copy_d2h(memory, address, bytes, stream) }.unwrap();
            let side = |place| Pitched { place, row_pitch: 4, slice_pitch: 8 };
            let (dst, src) = (side(Place::Host(memory)), side(Place::Device(address)));
            let copy = Copy3d { dst, src, width: bytes.min(4), height: 2, depth: 2 };
            // SAFETY: as above.
            unsafe { driver.copy_3d(&copy, stream) }.unwrap();
            let stats = driver.stats().since(&before);
            let calls = ["copy_h2d", "copy_d2h", "copy_3d"].map(|name| stats.calls_of(name));
            // SAFETY: the stream is live.
            unsafe { driver.stream_synchronize(stream) }.unwrap();
            (calls, stats.can_synchronize)
        };
        assert_eq!(copies(pageable, 16), ([1; 3], 3));
        assert_eq!(copies(pageable, 0), ([1; 3], 0), "there is nothing to copy");
        assert_eq!(copies(pinned, 16), ([1; 3], 0));
        assert_eq!(copies(pinned.wrapping_add(84), 16), ([1; 3], 0));
        // SAFETY: the array outlives the registration.
        unsafe { driver.register_host(NonNull::new(pageable).unwrap(), 50) }.unwrap();
        assert_eq!(copies(pageable, 16), ([1; 3], 0));
        // Cut where the registered part ends, and the box also between its slices and rows.
        assert_eq!(copies(pageable.wrapping_add(40), 16), ([2, 2, 4], 4));
        // SAFETY: registered above, and no work uses it.
        unsafe { driver.unregister_host(NonNull::new(pageable).unwrap()) }.unwrap();
        assert_eq!(copies(pageable, 16), ([1; 3], 3));
    }

    #[test]
    fn memory_is_counted_by_kind_with_its_peak() {
        let driver = counted();
        let stream = driver.stream_create().unwrap();
        let addresses = [100, 200].map(|bytes| driver.alloc(bytes).unwrap());
        for address in addresses {
            // SAFETY: nothing uses the allocation.
            unsafe { driver.free(address) }.unwrap();
        }
        // SAFETY: the stream is live, here and below.
        let pooled = unsafe { driver.pool_alloc(300, stream) }.unwrap();
        driver.alloc_host(400, HostKind::WriteCombined).unwrap();
        let MemoryStats { device, pool, host, registered } = driver.stats().memory;
        assert_eq!(device, Held { blocks: 0, bytes: 0, peak_bytes: 300 });
        assert_eq!(pool, Held { blocks: 1, bytes: 300, peak_bytes: 300 });
        assert_eq!(host, Held { blocks: 1, bytes: 400, peak_bytes: 400 });
        assert_eq!(registered, Held::default());
        // SAFETY: nothing uses the allocation.
        unsafe { driver.pool_free(pooled, stream) }.unwrap();
        assert_eq!(driver.stats().memory.pool.bytes, 0);
        assert!(driver.alloc(u64::MAX).is_err());
        assert_eq!(driver.stats().memory.device.blocks, 0, "a failure holds nothing");
    }

    #[test]
    fn waiting_for_the_device_counts_and_asking_does_not() {
        let driver = counted();
        let (stream, event) = (driver.stream_create().unwrap(), driver.event_create().unwrap());
        // SAFETY: both are live, here and below.
        unsafe { driver.event_record(event, stream) }.unwrap();
        // SAFETY: as above.
        while !unsafe { driver.event_query(event) }.unwrap() {}
        assert_eq!(driver.stats().can_synchronize, 0);
        // SAFETY: as above.
        unsafe { driver.event_synchronize(event) }.unwrap();
        // SAFETY: as above.
        unsafe { driver.stream_synchronize(stream) }.unwrap();
        let stats = driver.stats();
        assert_eq!((stats.can_synchronize, stats.calls_of("event_record"), stats.calls_of("launch")), (2, 1, 0));
        let text = stats.to_string();
        assert!(text.contains("can synchronise") && text.contains("event_synchronize"), "{text}");
    }
}
