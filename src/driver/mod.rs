//! The seam between this crate and a device: [`Driver`], about the size of the CUDA driver API that
//! we use, in three parts: [`Memory`], [`Streams`] and [`Modules`].
//!
//! Its constitution, after wgpu-hal: methods that touch memory are `unsafe` and their contracts
//! complete; validation lives above the seam, once; errors are for what the caller could not
//! foresee. Handles are plain numbers and addresses plain `u64`, so that views do arithmetic
//! without asking.
//!
//! Implementations: `cuda` (an NVIDIA GPU), `soft` (the software GPU), and `trace`, which wraps any
//! of them, records calls and injects failures, for this package's tests. One conformance suite
//! (`tests/device`) runs on all of them. [`Device::driver`](crate::Device::driver) gives the driver
//! of an open device, and [`Device::with_driver`](crate::Device::with_driver) opens a device over a
//! driver of yours.
//!
//! A kernel of your own, on any device:
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
//! // SAFETY: the module is live, its kernel takes one address, and 32 words are there.
//! unsafe {
//!     let square = driver.function(module, "square")?;
//!     driver.launch(square, &shape, &out.view().storage_address().to_le_bytes(), stream.handle())?;
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
mod host_memory;
mod memory;
mod modules;
#[cfg(feature = "interp")]
pub mod soft;
mod streams;
#[doc(hidden)]
pub mod trace;

#[doc(hidden)]
pub use host_memory::available_memory;
pub use memory::Memory;
pub use modules::Modules;
pub use streams::Streams;

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
    /// Peak memory bandwidth in bytes a second by the device's own attributes; `None` where it has
    /// none.
    pub nominal_bandwidth: Option<u64>,
    /// Most threads in a block.
    pub max_block_threads: u32,
    /// Largest grid extents in x, y, z.
    pub max_grid: [u32; 3],
    /// Bytes of shared memory a block may use without asking for more.
    pub shared_bytes_per_block: u32,
    /// Where it is plugged in, as NVIDIA's tools name it, `00000000:01:00.0`; `None` where it is
    /// not.
    pub pci_bus_id: Option<String>,
}

/// A device's driver: one object that has all parts, because the handles and addresses of one part
/// go to the others.
///
/// Every copy, fill, launch, record and wait is queued on its stream and may return before it ran;
/// work on one stream runs in order, work on different streams in any order that waits and events
/// allow. `StreamHandle`s, `EventHandle`s and addresses belong to the driver that made them.
/// Methods may be called from any thread.
///
/// # Errors
///
/// Common to all methods of all parts: an error may also report an earlier asynchronous failure on
/// the same device (a kernel that stopped); after such a failure the device stays failed, and every
/// later call says so with the original cause. A method that releases something has released it
/// also when it returns an error.
///
/// # Safety
///
/// Safe code above the seam lends memory to a driver and reads what it wrote, on its word alone. So
/// each part says what its implementation promises; the parts are of one device, and know each
/// other's handles and addresses.
pub unsafe trait Driver: Memory + Streams + Modules + fmt::Debug {
    /// What the device is and allows.
    fn info(&self) -> &DeviceInfo;

    /// What the launches that have run so far counted, added up; `None` on a driver that does not
    /// count. Work still queued is not in it: synchronise first.
    fn counters(&self) -> Option<Counters>;
}
