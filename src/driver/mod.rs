//! The interface between this crate and a device: [`Driver`], a small subset of the CUDA driver API
//! in five parts: [`Memory`], [`Streams`], [`Modules`], [`Graphs`] and [`Peers`].
//!
//! Its rules follow wgpu-hal. Methods that touch memory are `unsafe`, with complete contracts.
//! Validation happens once, above this interface. Errors report what the caller could not foresee.
//! Handles are numbers and addresses are `u64`, so views compute addresses without a call.
//!
//! Implementations: `cuda` (an NVIDIA GPU), `soft` (the software GPU), and layers over any of them
//! (`layer`), such as `trace`, which records calls and injects failures for this package's tests.
//! One conformance suite (`tests/device`) runs on all of them.
//! [`Device::driver`](crate::Device::driver) returns the driver of an open device, and
//! [`Device::with_driver`](crate::Device::with_driver) opens a device over your own driver.
//!
//! This runs your own kernel on any device:
//!
//! ```
//! # #[cfg(feature = "interp")] {
//! use warpstride::launch_shape::LaunchShape;
//! use warpstride::{Backend, Device};
//!
//! let ptx = "
//!     .version 7.0
//!     .target sm_75
//!     .address_size 64
//!     .visible .entry square(.param .u64 out) {
//!         .reg .b32 %r<3>;
//!         .reg .b64 %rd<4>;
//!         ld.param.u64 %rd1, [out];
//!         mov.u32 %r1, %tid.x;
//!         mul.lo.s32 %r2, %r1, %r1;
//!         mul.wide.u32 %rd2, %r1, 4;
//!         add.s64 %rd3, %rd1, %rd2;
//!         st.global.u32 [%rd3], %r2;
//!         ret;
//!     }";
//! let device = Device::open(Backend::Soft)?; // a GPU runs the same text
//! let out = device.alloc_array::<u32>(&[32])?;
//! let (driver, stream) = (device.driver(), device.default_stream());
//! let shape = LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], dynamic_shared: 0 };
//! let module = driver.module_load(ptx)?;
//! // SAFETY: the module is live, its kernel takes one address, and the address has 32 words.
//! unsafe {
//!     let square = driver.function(module, "square")?;
//!     let address = out.view().storage_address().to_le_bytes();
//!     driver.launch(square, &shape, &address, stream.handle())?;
//! }
//! stream.synchronize()?;
//! assert_eq!(out.to_vec()?[31], 31 * 31);
//! # }
//! # Ok::<(), warpstride::Error>(())
//! ```

// Hidden: `Backend::Cuda` opens it.
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub mod cuda;
mod call;
mod counted;
mod graphs;
mod host_memory;
mod layer;
mod memory;
mod methods;
mod modules;
#[cfg(feature = "pipeline")]
pub(crate) mod nvtx;
mod page_locked;
mod peers;
#[cfg(feature = "interp")]
pub mod soft;
mod stats;
mod streams;
#[doc(hidden)]
pub mod trace;

pub(crate) use counted::Counted;
pub use graphs::Graphs;
pub(crate) use host_memory::PAGE;
#[doc(hidden)]
pub use host_memory::available_memory;
#[doc(hidden)]
pub use layer::{Layer, Reply};
pub use memory::{Copy3d, HostKind, Memory, Pitched, Place};
pub use modules::Modules;
pub use peers::Peers;
pub use stats::{Held, MemoryStats, Stats};
pub use streams::{Multiprocessors, Streams};

use std::fmt;

use crate::counters::Counters;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);
    )*};
}

handles! {
    /// A stream: its work runs in the order in which it was queued.
    StreamHandle,
    /// An event: a point in a stream that others wait for, with the time at which it was passed.
    EventHandle,
    /// Loaded PTX.
    ModuleHandle,
    /// A kernel of a loaded module; it lives as long as the module.
    FunctionHandle,
    /// Captured work, of which executable graphs are made.
    GraphHandle,
    /// A graph that can be launched.
    GraphExecHandle,
}

/// The kind of device that runs the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum DriverKind {
    /// An NVIDIA GPU, in the primary context of its device.
    Cuda,
    /// The software GPU: exact values and counters, no meaningful times.
    Soft,
}

/// A device's properties and limits, which are constant while it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The maker's name for it: `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// The kind of device that runs the kernels.
    pub kind: DriverKind,
    /// Its number among devices of its kind, from 0.
    pub ordinal: u32,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Version of the driver: CUDA's, such as `13.0`, or the crate's for the software GPU.
    pub driver_version: String,
    /// Streaming multiprocessors, or host threads for the software GPU.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of the L2 cache; 0 if there is none.
    pub l2_bytes: u64,
    /// Peak memory bandwidth in bytes a second from the device's attributes; `None` if it has none.
    pub nominal_bandwidth: Option<u64>,
    /// Most threads in a block.
    pub max_block_threads: u32,
    /// Largest grid extents in x, y, z.
    pub max_grid: [u32; 3],
    /// Bytes of shared memory that a block may use by default.
    pub shared_bytes_per_block: u32,
    /// The PCI address in the notation of NVIDIA's tools, `00000000:01:00.0`; `None` if there is
    /// none.
    pub pci_bus_id: Option<String>,
}

#[cfg(test)]
impl DeviceInfo {
    /// Returns the facts of a device that does not exist, for tests.
    pub(crate) fn of_none(name: &str, kind: DriverKind) -> Self {
        Self {
            name: name.into(),
            kind,
            ordinal: 0,
            compute_capability: (9, 0),
            driver_version: "13.0".into(),
            multiprocessors: 132,
            memory_bytes: 1 << 30,
            l2_bytes: 60 << 20,
            nominal_bandwidth: None,
            max_block_threads: 1024,
            max_grid: [i32::MAX as u32, 65_535, 65_535],
            shared_bytes_per_block: 48 << 10,
            pci_bus_id: None,
        }
    }
}

/// A device's driver: one object with all parts, because the handles and addresses of one part go
/// to the others.
///
/// Every copy, fill, launch, record and wait is queued on its stream and may return before it ran.
/// Work on one stream runs in order; work on different streams runs in any order that waits and
/// events allow. `StreamHandle`s, `EventHandle`s and addresses belong to the driver that made them.
/// Any thread may call the methods.
///
/// # Errors
///
/// For all methods of all parts: an error may also report an earlier asynchronous failure on the
/// same device (a kernel that stopped). After such a failure the device stays failed, and every
/// later call reports it with the original cause. A method that releases something has released it
/// even if it returns an error.
///
/// # Safety
///
/// Safe code lends memory to a driver and reads what it wrote, and relies on these promises alone.
/// So each part states the promises of its implementation. The parts belong to one device and share
/// handles and addresses.
pub unsafe trait Driver: Memory + Streams + Modules + Graphs + Peers + fmt::Debug {
    /// Returns the device's properties and limits.
    fn info(&self) -> &DeviceInfo;

    /// Returns whether checkers look at every access to memory, such as reads of bytes that were
    /// never written. Memory that an allocator hands on hides some of the faults that they look
    /// for.
    fn has_checkers(&self) -> bool {
        false
    }

    /// Returns the sum of the counters of all launches that have run so far; `None` if the driver
    /// does not count. Queued work is not included: synchronise first.
    fn counters(&self) -> Option<Counters>;
}
