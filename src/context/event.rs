//! Events: points in a stream.

use std::fmt;
use std::sync::Arc;

use super::Context;
#[cfg(feature = "distributed")]
use super::Device;
use crate::driver::{Driver, EventHandle};
use crate::error::Result;

/// A point in a stream that other streams and the host can wait for. It records the time at which
/// the stream passed it.
///
/// [`Stream::record`](super::Stream::record) queues it; recording it again moves it.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let (stream, start, end) = (device.stream()?, device.event()?, device.event()?);
/// let mut ones = device.alloc_array::<f32>(&[1000])?;
/// stream.record(&start)?;
/// ops::fill_into(1.0, &mut ones, &stream)?;
/// stream.record(&end)?;
/// end.synchronize()?; // for a stream: `other.wait(&end)`
/// assert!(end.query()? && end.elapsed_ms_since(&start)? >= 0.0);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub struct Event {
    context: Arc<Context>,
    handle: EventHandle,
}

impl Event {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let handle = context.driver().event_create()?;
        Ok(Self { context: Arc::clone(context), handle })
    }

    /// Makes an event that keeps no time.
    #[cfg(feature = "distributed")]
    pub(crate) fn untimed(device: &Device) -> Result<Self> {
        let context = device.context();
        let handle = context.driver().event_create_untimed()?;
        Ok(Self { context: Arc::clone(context), handle })
    }

    /// Returns whether the latest record has been passed; true if the event was never recorded. It
    /// does not wait. Work on the software GPU makes no progress by itself, so there an answer of
    /// no runs one piece of work, and one thread polls at a time.
    ///
    /// # Errors
    ///
    /// The error of the driver call or of earlier work on the device.
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the event is live as long as `self`.
        unsafe { self.driver().event_query(self.handle) }
    }

    /// Waits until the latest record has been passed.
    ///
    /// # Errors
    ///
    /// The error of the driver call or of earlier work on the device.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is live as long as `self`.
        unsafe { self.driver().event_synchronize(self.handle) }
    }

    /// Returns the milliseconds from `start` to this event, both recorded and passed. On the
    /// software GPU this is host time, which does not predict a GPU's.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `start` is of another device; else the error of the driver call, such
    /// as when one of the two was not recorded or not passed yet.
    pub fn elapsed_ms_since(&self, start: &Self) -> Result<f32> {
        self.context.check_same(&start.context, "the two events")?;
        // SAFETY: both events are live as long as their owners.
        unsafe { self.driver().event_elapsed_ms(start.handle, self.handle) }
    }

    /// Returns the driver's handle for raw entry points: on CUDA a `CUevent`. It is valid as long
    /// as this event lives.
    pub fn handle(&self) -> EventHandle {
        self.handle
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    fn driver(&self) -> &dyn Driver {
        self.context.driver().as_ref()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: no other owner holds the handle, and it is not used again.
        let destroyed = unsafe { self.driver().event_destroy(self.handle) };
        self.context.note_drop(destroyed, || "destroying an event".into());
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.handle.0).finish()
    }
}
