//! Opens devices.
//!
//! The first launch of a kernel on a device loads it: the host waits for milliseconds until a GPU's
//! driver has compiled it, and perhaps for work that runs. So launch once before you measure, and
//! before you queue behind work that waits for the host. A capture may be the first to load a
//! kernel ([`Stream::capture`](crate::Stream::capture)); captures by other code may not allow it.

mod backend;
mod launch;

pub use crate::context::Device;
pub(crate) use crate::tuning_file::MOST_COSTS;
pub(crate) use crate::tuning_file::MeasuredPlans;
pub use crate::tuning_file::TuningFile;
#[doc(hidden)]
pub use crate::tuning_file::{Estimated, Tuned, TunedWeights, Weights};
pub use backend::{Availability, Backend, can_reach, probe};

#[cfg(feature = "cudarc")]
use std::any::Any;
use std::sync::Arc;

use crate::abi::{Key, SPIN};
use crate::alloc::{Allocate, Caching, DriverMemory};
use crate::context::{Event, Owner, Stream};
use crate::counters::Counters;
use crate::driver::{Counted, Driver, DriverKind, Stats, StreamHandle};
use crate::error::{Error, ErrorKind, Result};
use backend::{open_cuda, open_soft, slow};

impl Device {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the backend does not exist; `DriverTooOld` if its driver cannot run our
    /// PTX; else the driver's error. [`Backend::Auto`] fails only if neither a GPU nor the software
    /// GPU can be opened.
    pub fn open(backend: Backend) -> Result<Self> {
        Self::open_with(backend, caching)
    }

    /// Opens a device with an allocator that `make` makes over the driver that it gets: a
    /// [`Caching`] one within a limit, a log or statistics, or
    /// [`DriverMemory`], which caches nothing.
    ///
    /// # Errors
    ///
    /// As [`Device::open`], and the error of `make`; `InvalidArgument` if the allocator is over
    /// another driver.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use std::sync::Arc;
    ///
    /// use warpstride::alloc::{Caching, Limit};
    /// use warpstride::{Backend, Device, ErrorKind};
    ///
    /// let device = Device::open_with(Backend::Soft, |driver| {
    ///     Ok(Arc::new(Limit::new(Caching::new(driver)?, 1 << 20)))
    /// })?;
    /// let all = device.alloc::<u8>(1 << 20)?;
    /// assert_eq!(device.alloc::<u8>(1).unwrap_err().kind(), ErrorKind::OutOfMemory);
    /// drop(all);
    /// assert_eq!(device.allocator().figures().active, 0);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn open_with(backend: Backend, make: impl Fn(Arc<dyn Driver>) -> Result<Arc<dyn Allocate>>) -> Result<Self> {
        match backend {
            Backend::Cuda(ordinal) => Self::open_gpu(ordinal, make, "as asked"),
            Backend::Soft => Self::over(open_soft()?, make, &format!("as asked{}", slow(warpstride_interp::OPT_LEVEL))),
            Backend::Auto => Self::open_gpu(0, &make, "the first NVIDIA GPU").or_else(|no_gpu| match open_soft() {
                // The advice is left out: what it says has been done.
                Ok(driver) => {
                    Self::over(driver, make, &format!("{}{}", no_gpu.what(), slow(warpstride_interp::OPT_LEVEL)))
                }
                Err(no_soft) => {
                    Err(Error::new(ErrorKind::Unavailable, format!("no device can be opened: {no_gpu}; {no_soft}")))
                }
            }),
        }
    }

    /// Opens a GPU if it can run our kernels. A driver that cannot reports it only when it loads
    /// one, so this loads the smallest.
    fn open_gpu(ordinal: u32, make: impl Fn(Arc<dyn Driver>) -> Result<Arc<dyn Allocate>>, why: &str) -> Result<Self> {
        let device = Self::over(open_cuda(ordinal)?, make, why)?;
        device.kernels().function(SPIN.get(Key::ONLY))?;
        Ok(device)
    }

    /// Opens a device over your own driver: a software GPU with another seed or with checkers, or a
    /// driver that wraps another.
    ///
    /// # Errors
    ///
    /// The driver's error when it makes the default stream.
    pub fn with_driver(driver: Arc<dyn Driver>) -> Result<Self> {
        Self::with_allocator(driver, caching)
    }

    /// Opens a device over your own driver, as [`Device::open_with`].
    ///
    /// # Errors
    ///
    /// The error of `make`; `InvalidArgument` if the allocator is over another driver; else the
    /// driver's error when it makes the default stream.
    pub fn with_allocator(
        driver: Arc<dyn Driver>,
        make: impl FnOnce(Arc<dyn Driver>) -> Result<Arc<dyn Allocate>>,
    ) -> Result<Self> {
        Self::over(driver, make, "the driver was given")
    }

    fn over(
        driver: Arc<dyn Driver>,
        make: impl FnOnce(Arc<dyn Driver>) -> Result<Arc<dyn Allocate>>,
        why: &str,
    ) -> Result<Self> {
        let choice = format!("{}: {why}", driver.info().name);
        let counted = Arc::new(Counted::new(driver));
        let driver = Arc::clone(&counted) as Arc<dyn Driver>;
        let allocator = make(Arc::clone(&driver))?;
        if !allocator.is_over(&driver) {
            return Err(Error::argument(
                "the allocator is over another driver; make it over the driver that the closure gets",
            ));
        }
        Self::new(counted, allocator, choice)
    }

    /// Returns whether all of a slice is page-locked, so that copy engines use it directly.
    #[cfg(feature = "pipeline")]
    pub(crate) fn is_page_locked<T>(&self, memory: &[T]) -> bool {
        let bytes = size_of_val(memory);
        bytes == 0 || self.counted().is_page_locked(memory.as_ptr().cast(), bytes)
    }

    /// Returns the sum of the counters of all launches so far, or `None` if the device does not
    /// count. Waits for all work first.
    ///
    /// # Errors
    ///
    /// The error of the work.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::{Backend, Device, ops};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let matrix = device.array(&[64, 64], &[1.0_f32; 64 * 64])?;
    /// let before = device.counters()?;
    /// ops::contiguous(&matrix)?; // a copy
    /// let counted = device.counters()?.zip(before).map(|(after, before)| after - before);
    /// let sectors = counted.expect("the software GPU counts").global_store.sectors;
    /// assert_eq!(sectors, 64 * 64 * 4 / 32); // every sector is written whole
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn counters(&self) -> Result<Option<Counters>> {
        self.synchronize()?;
        Ok(self.driver().counters())
    }

    /// Returns the calls to the driver so far, how many of them can synchronise, and the memory
    /// that the driver has given out.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::{Backend, Device, ops};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let a = device.array(&[64, 64], &[1.0_f32; 64 * 64])?;
    /// let mut b = device.alloc_array(&[64, 64])?;
    /// ops::copy_into(&a, &mut b, device.default_stream())?; // the first launch loads the kernel
    /// let before = device.stats();
    /// for _ in 0..100 {
    ///     ops::copy_into(&a, &mut b, device.default_stream())?;
    /// }
    /// let steady = device.stats().since(&before);
    /// assert_eq!((steady.calls_of("launch"), steady.can_synchronize), (100, 0));
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.counted().stats()
    }

    /// See [`Memory::reset_persisting_l2`](crate::driver::Memory::reset_persisting_l2).
    pub(crate) fn reset_persisting_l2(&self) -> Result<()> {
        self.driver().reset_persisting_l2()
    }

    /// Makes a new stream.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self.context(), Some(self.another()))
    }

    /// Makes a stream of another crate usable here, by the driver's handle: on CUDA a `CUstream`.
    /// Operations queue on it, buffers are ordered by it, and [`measure::time`] measures whatever
    /// its owner launches there. Its owner destroys it. For a stream of cudarc,
    /// `interop::cudarc::stream` does so without `unsafe`.
    ///
    /// While its owner captures the stream, operations that need a temporary are refused, and so
    /// are allocations on it: the owner's graph cannot keep that memory. Such operations are, for
    /// example, softmax, mean and variance of long rows, reductions that copy their operand first,
    /// and transposes in place. Capture them with [`Stream::capture`], or launch a plan by its
    /// `launch_raw` with scratch that outlives the graph.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if there are too many streams; else the error of the driver call.
    ///
    /// # Safety
    ///
    /// - `handle` is a live stream of this device's driver: on CUDA, a stream of the GPU's primary
    ///   context, which may be the default one, 0.
    /// - It stays live as long as a clone of the result; a buffer that was allocated on it, or used
    ///   on it and on no stream since then; a view of such a buffer; or a graph that was recorded
    ///   or launched on it.
    /// - While its owner captures it, the operations that are queued on it use only memory that
    ///   lives until the last launch of the graph has run, and that no other work uses during one.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::{Backend, Device, ops};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// let handle = device.driver().stream_create()?; // by another crate
    /// // SAFETY: the stream is of this device's driver, and is destroyed last.
    /// let stream = unsafe { device.stream_from_raw(handle) }?;
    /// let a = device.array(&[3], &[1.0_f32, 2.0, 3.0])?;
    /// let mut b = device.alloc_array(&[3])?;
    /// ops::scale_into(2.0, &a, &mut b, &stream)?;
    /// assert_eq!(b.to_vec()?, [2.0, 4.0, 6.0]);
    /// // The stream was the last one to use `a` and `b`.
    /// drop((a, b, stream));
    /// // SAFETY: nothing uses the stream any more.
    /// unsafe { device.driver().stream_destroy(handle) }?;
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    ///
    /// [`measure::time`]: crate::roofline::measure::time
    pub unsafe fn stream_from_raw(&self, handle: StreamHandle) -> Result<Stream> {
        // SAFETY: as the caller promises.
        unsafe { Stream::of_another(self.context(), self.another(), handle, Owner::Caller) }
    }

    /// The same, for a stream that lives as long as `owner`. Work on it is refused while its owner
    /// captures it.
    ///
    /// # Safety
    ///
    /// - `handle` is a live stream of this device's driver, and stays live until `owner` is
    ///   dropped.
    #[cfg(feature = "cudarc")]
    pub(crate) unsafe fn stream_of(&self, handle: StreamHandle, owner: Box<dyn Any + Send + Sync>) -> Result<Stream> {
        // SAFETY: as the caller promises.
        unsafe { Stream::of_another(self.context(), self.another(), handle, Owner::Kept(owner)) }
    }

    /// Makes a new event that is not recorded yet.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn event(&self) -> Result<Event> {
        Event::new(self.context())
    }

    /// Waits for all work on all streams of this device, including dropped ones.
    ///
    /// # Errors
    ///
    /// The error of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.context().synchronize()
    }

    /// Takes the first failure of a drop (of a buffer, stream or event) since the last call, which
    /// the drop itself could not return. The device may lose what the drop failed to free. No work
    /// is lost: if the driver leaves no other way, the drop of a stream waits for its work.
    pub fn take_drop_error(&self) -> Option<Error> {
        self.context().take_drop_error()
    }
}

/// Makes the allocator of every device that is opened without one. On the software GPU each block
/// is an allocation of its own, so that an access outside of a buffer is a fault, and checkers see
/// new memory in each buffer.
fn caching(driver: Arc<dyn Driver>) -> Result<Arc<dyn Allocate>> {
    Ok(match driver.info().kind {
        _ if driver.has_checkers() => Arc::new(DriverMemory::new(driver)),
        DriverKind::Soft => Arc::new(Caching::undivided(driver)?),
        DriverKind::Cuda => Arc::new(Caching::new(driver)?),
    })
}
