//! Devices: handles of one that is open.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Context, Kernels, Stream};
use crate::alloc::Allocate;
use crate::driver::{Counted, DeviceInfo, Driver};
use crate::error::Result;
use crate::tuning_file::{MeasuredPlans, Plans, TuningFile};

/// An open device. A clone is the same device. It closes when the last clone, stream, event and
/// buffer of it is gone.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device};
///
/// let device = Device::open(Backend::Auto)?;
/// println!("{}", device.choice()); // which one it chose, and why
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

/// A handle of a device. Each stream has one of its own for its buffers to count, so threads on
/// streams of their own share no reference count.
struct Inner {
    // Fields drop in this order: the last handle unloads the kernels first.
    state: Arc<State>,
    default_stream: Stream,
}

/// The state that all handles of a device share.
struct State {
    // Fields drop in this order: the context closes the driver.
    /// Graphs keep them loaded too.
    kernels: Arc<Kernels>,
    choice: String,
    tuning_file: TuningFile,
    /// The number of the list of measured plans.
    measured: AtomicUsize,
    context: Arc<Context>,
    counted: Arc<Counted>,
}

impl Device {
    /// Makes a device over a driver and an allocator over that driver; `choice` says why this one.
    pub(crate) fn new(counted: Arc<Counted>, allocator: Arc<dyn Allocate>, choice: String) -> Result<Self> {
        let context = Context::new(&counted, allocator);
        let default_stream = Stream::new(&context, None)?;
        let kernels = Kernels::new(&context);
        let tuning_file = TuningFile::of(context.driver().info());
        let measured = AtomicUsize::new(MeasuredPlans::of(tuning_file.plans().clone()).number());
        let state = Arc::new(State { kernels, choice, tuning_file, measured, context, counted });
        Ok(Self { inner: Arc::new(Inner { state, default_stream }) })
    }

    /// Returns another handle of this device, with a reference count of its own.
    pub(crate) fn another(&self) -> Self {
        let Inner { state, default_stream } = self.inner.as_ref();
        Self { inner: Arc::new(Inner { state: Arc::clone(state), default_stream: default_stream.clone() }) }
    }

    /// Returns the device's properties and limits.
    #[inline]
    pub fn info(&self) -> &DeviceInfo {
        self.driver().info()
    }

    /// Returns a sentence that says which device was chosen, and why.
    pub fn choice(&self) -> &str {
        &self.inner.state.choice
    }

    /// Returns the user's tuning file, as it was when the device was opened. It says why a file is
    /// not used.
    #[inline]
    pub fn tuning_file(&self) -> &TuningFile {
        &self.inner.state.tuning_file
    }

    /// Returns the plans that were measured on the device, also since it was opened.
    #[inline]
    pub(crate) fn measured(&self) -> MeasuredPlans {
        MeasuredPlans::from_number(self.inner.state.measured.load(Ordering::Relaxed))
    }

    /// Lets plans from now on follow these measured ones.
    pub(crate) fn follow(&self, plans: Plans) {
        self.inner.state.measured.store(MeasuredPlans::of(plans).number(), Ordering::Relaxed);
    }

    /// Returns the allocator of buffers, for its figures, a snapshot, or to give memory back.
    pub fn allocator(&self) -> &dyn Allocate {
        self.context().allocator()
    }

    /// Returns the driver, for calls that this interface lacks. It counts its calls, and cuts
    /// copies where registered memory begins or ends.
    #[inline]
    pub fn driver(&self) -> &Arc<dyn Driver> {
        self.context().driver()
    }

    /// Returns the stream for operations that name none. It is an ordinary stream: CUDA's legacy
    /// default stream is never used.
    #[inline]
    pub fn default_stream(&self) -> &Stream {
        &self.inner.default_stream
    }

    /// Returns the driver with its counts.
    pub(crate) fn counted(&self) -> &Counted {
        &self.inner.state.counted
    }

    #[inline]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.state.context
    }

    #[inline]
    pub(crate) fn kernels(&self) -> &Kernels {
        &self.inner.state.kernels
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner.state, &other.inner.state)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.inner.state.choice).finish()
    }
}
