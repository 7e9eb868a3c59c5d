//! A driver that takes launches and does nothing, so that only the host's part of them is left.
//! `benches/launch.rs` measures over it, and `tests/launch_path.rs` counts its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::driver::trace::{Call, Method};
use warpstride::driver::{DeviceInfo, Driver, DriverKind, Layer, Reply, StreamHandle};
use warpstride::error::{Error, ErrorKind, Result};

/// The driver. No memory lies behind its addresses.
#[derive(Debug)]
pub(crate) struct Idle {
    info: DeviceInfo,
    /// The last handle or address that was given out.
    last: AtomicU64,
    launches: AtomicU64,
    orders: AtomicU64,
    others: AtomicU64,
}

/// The number of calls to a driver, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calls {
    /// Launches of kernels and of graphs.
    pub(crate) launches: u64,
    /// Events recorded on a stream, and waits of a stream for an event. Both are queued, and the
    /// host waits for neither.
    pub(crate) orders: u64,
    /// Everything else: waits of the host, allocations and frees, modules, functions, copies.
    pub(crate) others: u64,
}

impl Idle {
    /// Returns an idle driver, and a device over it with the limits of an H100.
    pub(crate) fn device() -> (Arc<Self>, Device) {
        let info = DeviceInfo {
            name: "a driver that does nothing".into(),
            kind: DriverKind::Soft,
            ordinal: 0,
            compute_capability: (9, 0),
            driver_version: "0".into(),
            multiprocessors: 132,
            memory_bytes: 80 << 30,
            l2_bytes: 50 << 20,
            nominal_bandwidth: None,
            max_block_threads: 1024,
            max_grid: [i32::MAX as u32, 65_535, 65_535],
            shared_bytes_per_block: 48 << 10,
            pci_bus_id: None,
        };
        let [last, launches, orders, others] = [const { AtomicU64::new(0) }; 4];
        let driver = Arc::new(Self { info, last, launches, orders, others });
        let device = Device::with_driver(Arc::clone(&driver) as Arc<dyn Driver>).expect("it refuses no stream");
        (driver, device)
    }

    /// Returns the calls so far.
    pub(crate) fn calls(&self) -> Calls {
        let [launches, orders, others] =
            [&self.launches, &self.orders, &self.others].map(|count| count.load(Ordering::Relaxed));
        Calls { launches, orders, others }
    }

    /// Hands out numbers that start at a multiple of 256.
    fn give_out(&self, count: u64) -> u64 {
        self.others.fetch_add(1, Ordering::Relaxed);
        self.last.fetch_add(count.next_multiple_of(256), Ordering::Relaxed) + 256
    }
}

// SAFETY: no part does anything, so no part can break what another promises. No address is backed
// by memory, and no host memory is made; every call that would read or write some fails, but for
// launches, which touch no memory. Work that does nothing has all run at once, in any order.
unsafe impl Layer for Idle {
    fn inner(&self) -> &dyn Driver {
        unreachable!("no call is passed on")
    }

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn has_checkers(&self) -> bool {
        false
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    fn has_pool(&self) -> bool {
        true
    }

    fn around<R: Reply>(&self, method: Method, _: impl FnOnce() -> Call, _: impl FnOnce() -> Result<R>) -> Result<R> {
        let number = match method {
            Method::Launch | Method::GraphLaunch => self.launches.fetch_add(1, Ordering::Relaxed),
            Method::EventRecord | Method::EventWait => self.orders.fetch_add(1, Ordering::Relaxed),
            // Any number but 0 does: as a handle, as the answer that an event has been passed, as
            // bytes that are free.
            _ => self.give_out(1),
        };
        let copies =
            matches!(method, Method::CopyH2d | Method::CopyD2h | Method::CopyD2d | Method::Copy3d | Method::Fill);
        R::of_number(number).filter(|_| !copies).ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "a driver that does nothing has no bytes to copy; take another")
        })
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        Ok(self.give_out(bytes))
    }

    unsafe fn pool_alloc(&self, bytes: u64, _: StreamHandle) -> Result<u64> {
        Ok(self.give_out(bytes))
    }
}
