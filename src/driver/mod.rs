//! The seam between this crate and a device: one object-safe trait, about the size of the CUDA driver API that we use.
//!
//! Its constitution, after wgpu-hal: methods that touch memory are `unsafe` and their contracts complete; validation lives
//! above the seam, once; errors are for what the caller could not foresee. Handles are plain numbers and addresses plain
//! `u64`, so that views do arithmetic without asking.
//!
//! Implementations: [`cuda`] (an NVIDIA GPU), [`soft`] (the software GPU), and [`trace`], which wraps any of them, records
//! calls and injects failures. One conformance suite (`tests/device`) runs on all of them.

#[cfg(feature = "cuda")]
pub mod cuda;
mod room;
#[cfg(feature = "interp")]
pub mod soft;
pub mod trace;

pub use room::available_memory;

use std::fmt;
use std::ptr::NonNull;

use crate::counters::Counters;
use crate::error::Result;
use crate::launch_shape::LaunchShape;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);
    )*};
}

handles! {
    /// A stream: work queued on one runs in the order it was queued.
    StreamHandle,
    /// An event: a point in a stream that others wait for, with the time it was passed.
    EventHandle,
    /// Loaded PTX.
    ModuleHandle,
    /// A kernel of a loaded module; it lives as long as the module.
    FunctionHandle,
}

/// What runs the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum DriverKind {
    /// An NVIDIA GPU, in the primary context of the device that has the ordinal.
    Cuda,
    /// The software GPU: exact values and counters, no meaningful times.
    Soft,
}

/// What a device is and allows; constant while it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// As its maker calls it: `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// What runs the kernels.
    pub kind: DriverKind,
    /// Its number among devices of its kind, from 0.
    pub ordinal: u32,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Version of the driver: `13.0` as CUDA counts, for the software GPU the crate's.
    pub driver_version: String,
    /// Streaming multiprocessors; host threads for the software GPU.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of the L2 cache; 0 where there is none.
    pub l2_bytes: u64,
    /// Peak memory bandwidth in bytes a second by the device's own attributes; `None` where it has none.
    pub nominal_bandwidth: Option<u64>,
    /// Most threads in a block.
    pub max_block_threads: u32,
    /// Largest grid extents in x, y, z.
    pub max_grid: [u32; 3],
    /// Bytes of shared memory a block may use without asking for more.
    pub shared_bytes_per_block: u32,
    /// Where it is plugged in, as NVIDIA's tools name it, `00000000:01:00.0`; `None` where it is not.
    pub pci_bus_id: Option<String>,
}

/// A device's driver.
///
/// Every copy, fill, launch, record and wait is queued on its stream and may return before it ran; work on one stream runs
/// in order, work on different streams in any order that waits and events allow. `StreamHandle`s, `EventHandle`s and
/// addresses belong to the driver that made them. Methods may be called from any thread. Copies and fills of 0 bytes do
/// nothing, whatever their addresses.
///
/// # Errors
///
/// Common to all methods: an error may also report an earlier asynchronous failure on the same device (a kernel that
/// stopped); after such a failure the device stays failed, and every later call says so with the original cause. A method
/// that releases something has released it also when it returns an error.
///
/// # Safety
///
/// Safe code above the seam lends memory to a driver and reads what it wrote, on its word alone. So an implementation
/// promises, to callers that keep their side:
///
/// - [`Driver::stream_synchronize`] returns only when no copy queued on the stream touches host memory any more: the copy
///   has run, or it never will. That holds also when it returns an error and when it unwinds.
/// - A copy or fill that ran, of which a successful wait tells, has written all its bytes, and none beyond.
/// - An allocation stays valid until it is freed, holds as many bytes as were asked for, and shares none with another;
///   host memory moreover is initialised, and aligned as promised.
/// - Work runs in the order that streams, waits and events set.
pub unsafe trait Driver: Send + Sync + fmt::Debug {
    /// What the device is and allows.
    fn info(&self) -> &DeviceInfo;

    /// Free and total bytes of device memory.
    fn memory(&self) -> Result<(u64, u64)>;

    /// What the launches that have run so far counted, added up; `None` on a driver that does not count. Work still queued
    /// is not in it: synchronise first.
    fn counters(&self) -> Option<Counters>;

    /// Makes lines that the L2 cache keeps because accesses asked it to, those of other programs' kernels in the context too, lines
    /// like any other: they outlast gigabytes of later traffic that accesses them. It acts at once, not in the order of a
    /// stream: work that is still queued asks again. Does nothing where a device has no such lines, or no way to reset them.
    fn reset_persisting_l2(&self) -> Result<()>;

    /// Allocates `bytes` of device memory, aligned to 256 bytes, contents unspecified. `bytes` is at least 1.
    fn alloc(&self, bytes: u64) -> Result<u64>;

    /// Frees an allocation; work already queued that uses it runs first. On CUDA this waits for all work of the device's
    /// primary context, that of other libraries included, and must not happen while a stream is captured into a graph.
    ///
    /// # Safety
    ///
    /// - `address` is what [`Driver::alloc`] of this driver returned, and not freed since.
    /// - No work queued from now on uses the allocation.
    unsafe fn free(&self, address: u64) -> Result<()>;

    /// Allocates `bytes` of page-locked host memory, zeroed, aligned to 64 bytes at least. `bytes` is at least 1.
    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Frees page-locked host memory; work already queued that uses it runs first. It waits as [`Driver::free`] does.
    ///
    /// # Safety
    ///
    /// - `memory` is what [`Driver::alloc_host`] of this driver returned, and not freed since.
    /// - Nothing uses the memory from now on.
    unsafe fn free_host(&self, memory: NonNull<u8>) -> Result<()>;

    /// Queues a copy of `bytes` bytes from host to device.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads of `bytes` bytes, and nobody writes them, until `stream` is synchronised past this copy.
    /// - `dst .. dst + bytes` lies within one live allocation.
    unsafe fn copy_h2d(&self, dst: u64, src: *const u8, bytes: usize, stream: StreamHandle) -> Result<()>;

    /// Queues a copy of `bytes` bytes from device to host.
    ///
    /// # Safety
    ///
    /// - `dst` is valid for writes of `bytes` bytes, and nobody else reads or writes them, until `stream` is synchronised
    ///   past this copy.
    /// - `src .. src + bytes` lies within one live allocation.
    unsafe fn copy_d2h(&self, dst: *mut u8, src: u64, bytes: usize, stream: StreamHandle) -> Result<()>;

    /// Queues a copy of `bytes` bytes within the device.
    ///
    /// # Safety
    ///
    /// - Both ranges lie within live allocations, and they do not overlap.
    unsafe fn copy_d2d(&self, dst: u64, src: u64, bytes: u64, stream: StreamHandle) -> Result<()>;

    /// Queues setting `bytes` bytes to `value`.
    ///
    /// # Safety
    ///
    /// - `dst .. dst + bytes` lies within one live allocation.
    unsafe fn fill(&self, dst: u64, value: u8, bytes: u64, stream: StreamHandle) -> Result<()>;

    /// Makes a stream that does not wait for the default one.
    fn stream_create(&self) -> Result<StreamHandle>;

    /// Destroys a stream; work already queued on it still runs.
    ///
    /// # Safety
    ///
    /// - `stream` is live, and not used from now on.
    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()>;

    /// Waits until all work queued on `stream` has run. Also when it returns an error, no copy queued on the stream touches
    /// host memory from then on: borrowed host memory rests on this.
    ///
    /// # Safety
    ///
    /// - `stream` is live.
    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()>;

    /// Makes an event that has not been recorded.
    fn event_create(&self) -> Result<EventHandle>;

    /// Destroys an event; waits already queued on it still hold.
    ///
    /// # Safety
    ///
    /// - `event` is live, and not used from now on.
    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()>;

    /// Queues the event on `stream`: it is passed when everything queued there before it has run.
    ///
    /// # Safety
    ///
    /// - `event` and `stream` are live.
    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Lets work queued on `stream` from now on wait for the event's latest record; an event never recorded holds nothing
    /// back.
    ///
    /// # Safety
    ///
    /// - `event` and `stream` are live.
    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Whether the event's latest record has been passed; true of an event never recorded. Does not wait for the
    /// event; but polling it comes to an end, also on a driver on which queued work makes no progress by itself. The
    /// software GPU runs one piece of work for an answer of no, and one thread at a time uses it: a call waits while
    /// another thread's runs kernels.
    ///
    /// # Safety
    ///
    /// - `event` is live.
    unsafe fn event_query(&self, event: EventHandle) -> Result<bool>;

    /// Waits until the event's latest record has been passed.
    ///
    /// # Safety
    ///
    /// - `event` is live.
    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()>;

    /// Milliseconds between two events; an error of kind `InvalidArgument` unless both were recorded and passed. On the
    /// software GPU this is host time: no measure of a GPU.
    ///
    /// # Safety
    ///
    /// - `start` and `end` are live.
    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32>;

    /// Loads PTX.
    fn module_load(&self, ptx: &str) -> Result<ModuleHandle>;

    /// Unloads a module; launches already queued still run. It waits as [`Driver::free`] does.
    ///
    /// # Safety
    ///
    /// - `module` is live; neither it nor its functions are used from now on.
    unsafe fn module_unload(&self, module: ModuleHandle) -> Result<()>;

    /// The entry `name` of a module; an error of kind `InvalidArgument` where it has none of that name.
    ///
    /// # Safety
    ///
    /// - `module` is live.
    unsafe fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle>;

    /// Queues a launch. `params` holds the kernel's parameters at their offsets, as the PTX declares them.
    ///
    /// # Safety
    ///
    /// - `function`'s module and `stream` are live.
    /// - `params` has the layout that the entry declares.
    /// - Every address the kernel reads or writes with these parameters lies within a live allocation.
    /// - No other work that may run at the same time writes what the kernel reads or writes, or reads what it writes.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        shape: &LaunchShape,
        params: &[u8],
        stream: StreamHandle,
    ) -> Result<()>;
}
