//! Opening a device, and what belongs to it.
//!
//! The first launch of a kernel on a device loads it: the host waits until a GPU's driver has
//! compiled it, which takes milliseconds, and perhaps for work that runs. So launch once before you
//! measure, and before you capture a CUDA graph or queue behind work that waits for the host.

mod backend;
mod context;
mod kernels;
mod launch;

pub use backend::{Availability, Backend, probe};
pub(crate) use context::{Context, lock};

use std::fmt;
use std::sync::Arc;

use crate::abi::{Key, SPIN};
use crate::alloc::{Allocate, DriverMemory};
use crate::counters::Counters;
use crate::driver::{DeviceInfo, Driver};
use crate::error::{Error, ErrorKind, Result};
use crate::stream::{Event, Stream};
use backend::{OPT_LEVEL, open_cuda, open_soft, slow};
use kernels::Kernels;

/// An open device. A clone is the same device; it closes when the last clone, stream, event and
/// buffer of it is gone.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Auto)?;
/// println!("{}", device.choice()); // which one it took, and why
/// let matrix = device.array(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// assert_eq!(matrix.view().t().shape(), [3, 2]);
/// assert_eq!(matrix.device(), &device.clone());
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    // In the order of their drops: the context closes the driver.
    kernels: Kernels,
    default_stream: Stream,
    choice: String,
    allocator: Arc<dyn Allocate>,
    context: Arc<Context>,
}

impl Device {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// `Unavailable` where the backend is not there, `DriverTooOld` where its driver cannot run our
    /// PTX, and what else the driver failed with. [`Backend::Auto`] fails only if neither a GPU nor
    /// the software GPU can be opened.
    pub fn open(backend: Backend) -> Result<Self> {
        match backend {
            Backend::Cuda(ordinal) => Self::open_gpu(ordinal, "as asked"),
            Backend::Soft => Self::with(open_soft()?, &format!("as asked{}", slow(OPT_LEVEL))),
            Backend::Auto => Self::open_gpu(0, "the first NVIDIA GPU").or_else(|no_gpu| match open_soft() {
                // Behind a semicolon our errors say what to do about it: here it was done.
                Ok(driver) => {
                    let no_gpu = no_gpu.to_string();
                    Self::with(driver, &format!("{}{}", no_gpu.split("; ").next().unwrap_or_default(), slow(OPT_LEVEL)))
                }
                Err(no_soft) => {
                    Err(Error::new(ErrorKind::Unavailable, format!("no device can be opened: {no_gpu}; {no_soft}")))
                }
            }),
        }
    }

    /// A GPU, if it can run our kernels: a driver that cannot says so only when it loads one, and
    /// the smallest tells.
    fn open_gpu(ordinal: u32, why: &str) -> Result<Self> {
        let device = Self::with(open_cuda(ordinal)?, why)?;
        device.kernels().function(SPIN.get(Key::ONLY))?;
        Ok(device)
    }

    /// A device over a driver of your own making: a software GPU with another seed or with
    /// checkers, or a driver that wraps another.
    ///
    /// # Errors
    ///
    /// What the driver failed with when it made the default stream.
    pub fn with_driver(driver: Arc<dyn Driver>) -> Result<Self> {
        Self::with(driver, "the driver was given")
    }

    fn with(driver: Arc<dyn Driver>, why: &str) -> Result<Self> {
        let choice = format!("{}: {why}", driver.info().name);
        let allocator = Arc::new(DriverMemory::new(Arc::clone(&driver)));
        let context = Context::new(driver);
        let default_stream = Stream::new(&context)?;
        let kernels = Kernels::new(Arc::clone(&context));
        Ok(Self { inner: Arc::new(Inner { kernels, default_stream, choice, allocator, context }) })
    }

    /// What the device is and allows.
    pub fn info(&self) -> &DeviceInfo {
        self.driver().info()
    }

    /// Which device was taken, and why, as a sentence to show.
    pub fn choice(&self) -> &str {
        &self.inner.choice
    }

    /// The driver, for what this interface leaves out.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        self.inner.context.driver()
    }

    /// What all launches so far counted, added up; `None` on a device that does not count. Waits
    /// for all work first.
    ///
    /// # Errors
    ///
    /// What the work failed with.
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
    /// assert_eq!(sectors, 64 * 64 * 4 / 32); // no sector is written in parts
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn counters(&self) -> Result<Option<Counters>> {
        self.synchronize()?;
        Ok(self.driver().counters())
    }

    /// See [`Memory::reset_persisting_l2`](crate::driver::Memory::reset_persisting_l2).
    pub(crate) fn reset_persisting_l2(&self) -> Result<()> {
        self.driver().reset_persisting_l2()
    }

    /// The stream that is used where none is named. It is a stream like any other: CUDA's legacy
    /// default stream is never used.
    pub fn default_stream(&self) -> &Stream {
        &self.inner.default_stream
    }

    /// A new stream.
    ///
    /// # Errors
    ///
    /// What the driver failed with.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(&self.inner.context)
    }

    /// A new event, not recorded yet.
    ///
    /// # Errors
    ///
    /// What the driver failed with.
    pub fn event(&self) -> Result<Event> {
        Event::new(&self.inner.context)
    }

    /// Waits for all work on all streams of this device, also of streams that were dropped.
    ///
    /// # Errors
    ///
    /// What the work failed with.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.context.synchronize()
    }

    /// The first failure of a drop (of a buffer, stream or event) since this was last asked, which
    /// the drop itself could not return. What it failed to free may be lost to the device. Work is
    /// not: that of a dropped stream is waited for all the same, in the drop itself where the
    /// driver left no other way.
    pub fn take_drop_error(&self) -> Option<Error> {
        self.inner.context.take_drop_error()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    /// Where the memory of buffers comes from.
    pub(crate) fn allocator(&self) -> &dyn Allocate {
        self.inner.allocator.as_ref()
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.inner.kernels
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.inner.choice).finish()
    }
}
