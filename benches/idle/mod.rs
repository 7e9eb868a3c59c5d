//! A driver that takes launches and does nothing, so that only the host's part of them is left.
//! `benches/launch.rs` measures over it, and `tests/launch_path.rs` counts its calls.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warpstride::counters::Counters;
use warpstride::device::Device;
use warpstride::driver::{
    Copy3d, DeviceInfo, Driver, DriverKind, EventHandle, FunctionHandle, GraphExecHandle, GraphHandle, Graphs,
    HostKind, Memory, ModuleHandle, Modules, StreamHandle, Streams,
};
use warpstride::error::{Error, ErrorKind, Result};
use warpstride::launch_shape::LaunchShape;

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

    /// Counts a call of any other kind.
    fn other(&self) {
        self.others.fetch_add(1, Ordering::Relaxed);
    }

    /// Hands out numbers that start at a multiple of 256.
    fn give_out(&self, count: u64) -> u64 {
        self.other();
        self.last.fetch_add(count.next_multiple_of(256), Ordering::Relaxed) + 256
    }

    fn nothing_to_copy(&self) -> Result<()> {
        self.other();
        Err(Error::new(ErrorKind::Unavailable, "a driver that does nothing has no bytes to copy; take another"))
    }
}

// SAFETY: no part does anything, so no part can break what another promises.
unsafe impl Driver for Idle {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn counters(&self) -> Option<Counters> {
        None
    }
}

// SAFETY: no address is backed by memory, and no host memory is made; every call that would read or
// write some fails.
unsafe impl Memory for Idle {
    fn memory(&self) -> Result<(u64, u64)> {
        self.other();
        Ok((self.info.memory_bytes, self.info.memory_bytes))
    }

    fn reset_persisting_l2(&self) -> Result<()> {
        Ok(())
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        Ok(self.give_out(bytes))
    }

    unsafe fn free(&self, _: u64) -> Result<()> {
        self.other();
        Ok(())
    }

    fn has_pool(&self) -> bool {
        true
    }

    unsafe fn pool_alloc(&self, bytes: u64, _: StreamHandle) -> Result<u64> {
        Ok(self.give_out(bytes))
    }

    unsafe fn pool_free(&self, _: u64, _: StreamHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    fn pool_trim(&self, _: u64) -> Result<()> {
        self.other();
        Ok(())
    }

    fn alloc_host(&self, _: usize, _: HostKind) -> Result<NonNull<u8>> {
        self.nothing_to_copy().map(|()| NonNull::dangling())
    }

    unsafe fn free_host(&self, _: NonNull<u8>) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn register_host(&self, _: NonNull<u8>, _: usize) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn unregister_host(&self, _: NonNull<u8>) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn copy_h2d(&self, _: u64, _: *const u8, _: usize, _: StreamHandle) -> Result<()> {
        self.nothing_to_copy()
    }

    unsafe fn copy_d2h(&self, _: *mut u8, _: u64, _: usize, _: StreamHandle) -> Result<()> {
        self.nothing_to_copy()
    }

    unsafe fn copy_d2d(&self, _: u64, _: u64, _: u64, _: StreamHandle) -> Result<()> {
        self.nothing_to_copy()
    }

    unsafe fn copy_3d(&self, _: &Copy3d, _: StreamHandle) -> Result<()> {
        self.nothing_to_copy()
    }

    unsafe fn fill(&self, _: u64, _: u8, _: u64, _: StreamHandle) -> Result<()> {
        self.nothing_to_copy()
    }
}

// SAFETY: of work that does nothing, all has run at once and in any order.
unsafe impl Streams for Idle {
    fn stream_create(&self) -> Result<StreamHandle> {
        Ok(StreamHandle(self.give_out(1)))
    }

    unsafe fn stream_destroy(&self, _: StreamHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn stream_synchronize(&self, _: StreamHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    fn event_create(&self) -> Result<EventHandle> {
        Ok(EventHandle(self.give_out(1)))
    }

    unsafe fn event_destroy(&self, _: EventHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn event_record(&self, _: EventHandle, _: StreamHandle) -> Result<()> {
        self.orders.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    unsafe fn event_wait(&self, _: EventHandle, _: StreamHandle) -> Result<()> {
        self.orders.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    unsafe fn event_query(&self, _: EventHandle) -> Result<bool> {
        self.other();
        Ok(true)
    }

    unsafe fn event_synchronize(&self, _: EventHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn event_elapsed_ms(&self, _: EventHandle, _: EventHandle) -> Result<f32> {
        self.other();
        Ok(0.0)
    }
}

// SAFETY: a launch does nothing to any memory.
unsafe impl Modules for Idle {
    fn module_load(&self, _: &str) -> Result<ModuleHandle> {
        Ok(ModuleHandle(self.give_out(1)))
    }

    unsafe fn module_unload(&self, _: ModuleHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn function(&self, _: ModuleHandle, _: &str) -> Result<FunctionHandle> {
        Ok(FunctionHandle(self.give_out(1)))
    }

    unsafe fn launch(&self, _: FunctionHandle, _: &LaunchShape, _: &[u8], _: StreamHandle) -> Result<()> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

// SAFETY: nothing is captured, so a launch of a graph does nothing to any memory.
unsafe impl Graphs for Idle {
    unsafe fn capture_begin(&self, _: StreamHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn capture_end(&self, _: StreamHandle) -> Result<GraphHandle> {
        Ok(GraphHandle(self.give_out(1)))
    }

    unsafe fn graph_nodes(&self, _: GraphHandle) -> Result<usize> {
        self.other();
        Ok(0)
    }

    unsafe fn graph_destroy(&self, _: GraphHandle) -> Result<()> {
        self.other();
        Ok(())
    }

    unsafe fn graph_instantiate(&self, _: GraphHandle) -> Result<GraphExecHandle> {
        Ok(GraphExecHandle(self.give_out(1)))
    }

    unsafe fn graph_update(&self, _: GraphExecHandle, _: GraphHandle) -> Result<bool> {
        self.other();
        Ok(true)
    }

    unsafe fn graph_launch(&self, _: GraphExecHandle, _: StreamHandle) -> Result<()> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    unsafe fn graph_exec_destroy(&self, _: GraphExecHandle) -> Result<()> {
        self.other();
        Ok(())
    }
}
