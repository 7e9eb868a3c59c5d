//! Streams: queues of work on a device.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::capture::Captured;
use super::{Context, Device, Event};
use crate::alloc::Lane;
#[cfg(feature = "distributed")]
use crate::driver::Multiprocessors;
use crate::driver::{Driver, EventHandle, StreamHandle};
use crate::error::{Error, Result, require};

/// A queue of work on a device. A clone is the same stream.
///
/// Dropping the last handle does not wait unless the driver fails. Queued work still runs.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::{Backend, Device, ops};
///
/// let device = Device::open(Backend::Soft)?;
/// let (first, second) = (device.stream()?, device.stream()?);
/// let a = device.array(&[3], &[1.0_f32, 2.0, 3.0])?;
/// let (mut b, mut c) = (device.alloc_array(&[3])?, device.alloc_array(&[3])?);
/// ops::copy_into(&a, &mut b, &first)?;
/// ops::scale_into(2.0, &b, &mut c, &second)?; // `b` makes `second` wait for `first`
/// assert_eq!(c.to_vec()?, [2.0, 4.0, 6.0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) context: Arc<Context>,
    pub(super) handle: StreamHandle,
    /// The stream as the allocator knows it; the drop closes it.
    lane: Lane,
    /// The stream's position when another stream last waited for it. The event is made with the
    /// stream, so ordering two streams allocates nothing.
    passed: EventHandle,
    /// A handle of the device that only this stream's buffers count, so threads on streams of their
    /// own share no reference count. `None` for a default stream, which the device owns.
    device: Option<Device>,
    /// The work that is recorded, if a capture made this stream.
    pub(super) captured: Option<Captured>,
    /// The address of the stream's work counter once a launch has asked for it; 0 if there was no
    /// memory for one.
    counter: OnceLock<u64>,
    owner: Owner,
}

/// The owner of a stream, which destroys it.
pub(crate) enum Owner {
    Us,
    /// Other code, which promised what [`Device::stream_from_raw`] says.
    Caller,
    /// Other code, which promised nothing about captures. The value keeps the stream alive.
    #[cfg_attr(not(feature = "cudarc"), allow(dead_code, reason = "streams of cudarc alone have it"))]
    Kept(#[allow(dead_code, reason = "it is kept for its drop")] Box<dyn Any + Send + Sync>),
}

impl Stream {
    /// Makes a stream; `device` is a handle for its buffers alone.
    pub(crate) fn new(context: &Arc<Context>, device: Option<Device>) -> Result<Self> {
        let stream = Self::make(context, device, None)?;
        context.enter(Arc::downgrade(&stream.inner));
        Ok(stream)
    }

    /// Makes a stream that [`Context::synchronize`] does not know yet.
    pub(super) fn make(context: &Arc<Context>, device: Option<Device>, captured: Option<Captured>) -> Result<Self> {
        Self::make_by(context, device, captured, |driver| driver.stream_create())
    }

    /// Makes a stream whose kernels run on a part of the multiprocessors.
    #[cfg(feature = "distributed")]
    pub(crate) fn on(device: &Device, of: Multiprocessors) -> Result<Self> {
        let context = device.context();
        let stream = Self::make_by(context, Some(device.another()), None, |driver| driver.stream_create_on(of))?;
        context.enter(Arc::downgrade(&stream.inner));
        Ok(stream)
    }

    fn make_by(
        context: &Arc<Context>,
        device: Option<Device>,
        captured: Option<Captured>,
        create: impl FnOnce(&dyn Driver) -> Result<StreamHandle>,
    ) -> Result<Self> {
        let passed = context.ordering_event()?;
        let handle = create(context.driver().as_ref()).inspect_err(|_| context.retire(passed))?;
        // SAFETY: the stream is live, and `Inner`'s drop closes the lane before it destroys it.
        let opened = unsafe { context.allocator().open(handle) };
        let lane = opened.inspect_err(|_| {
            // The first error is the one to report. SAFETY: nothing has used the stream.
            let _ = unsafe { context.driver().stream_destroy(handle) };
            context.retire(passed);
        })?;
        let (context, counter) = (Arc::clone(context), OnceLock::new());
        let inner = Inner { context, handle, lane, passed, device, captured, counter, owner: Owner::Us };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Wraps a stream of another owner, which destroys it.
    ///
    /// # Safety
    ///
    /// - `handle` is a live stream of the context's driver.
    /// - It stays live until `owner` is dropped, or as long as [`Device::stream_from_raw`] says.
    /// - `owner` is not [`Owner::Us`].
    pub(crate) unsafe fn of_another(
        context: &Arc<Context>,
        device: Device,
        handle: StreamHandle,
        owner: Owner,
    ) -> Result<Self> {
        let passed = context.ordering_event()?;
        // SAFETY: the stream is live, and `Inner`'s drop closes the lane before the owner goes.
        let opened = unsafe { context.allocator().open(handle) };
        let lane = opened.inspect_err(|_| context.retire(passed))?;
        let (context, device, counter) = (Arc::clone(context), Some(device), OnceLock::new());
        let inner = Inner { context, handle, lane, passed, device, captured: None, counter, owner };
        let stream = Self { inner: Arc::new(inner) };
        stream.context().enter(Arc::downgrade(&stream.inner));
        Ok(stream)
    }

    /// Waits until all work queued on this stream has run.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` while the stream is captured; else the error of the driver call or of
    /// earlier work on the device.
    pub fn synchronize(&self) -> Result<()> {
        self.check_not_capturing("a wait for a stream")?;
        // SAFETY: the stream is live as long as `self`.
        unsafe { self.driver().stream_synchronize(self.inner.handle) }
    }

    /// Makes work that is queued here from now on wait for the event's latest record. An event that
    /// was never recorded delays nothing.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the event is of another device, or while the stream is captured; else
    /// the error of the driver call.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.check_not_capturing("a wait for an event")?;
        self.context().check_same(event.context(), "the stream and the event")?;
        // SAFETY: both are live, of the same driver, as long as their owners.
        unsafe { self.driver().event_wait(event.handle(), self.inner.handle) }
    }

    /// Makes work that is queued here from now on wait for the latest record of an event, which may
    /// be of another device of the same host.
    #[cfg(feature = "distributed")]
    pub(crate) fn wait_across(&self, event: &Event) -> Result<()> {
        // SAFETY: both are live as long as their owners, and of one host.
        unsafe { self.driver().event_wait(event.handle(), self.inner.handle) }
    }

    /// Queues the event: it is passed when all work queued here before it has run.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the event is of another device, or while the stream is captured; else
    /// the error of the driver call.
    pub fn record(&self, event: &Event) -> Result<()> {
        self.check_not_capturing("the record of an event")?;
        self.context().check_same(event.context(), "the stream and the event")?;
        // SAFETY: both are live, of the same driver, as long as their owners.
        unsafe { self.driver().event_record(event.handle(), self.inner.handle) }
    }

    /// Returns the driver's handle for raw entry points: on CUDA a `CUstream`. It is valid as long
    /// as this stream lives. Capture launches by a [`Graph`](crate::Graph), not by the driver with
    /// this handle: a graph must not share the counter that this stream's launches use.
    #[inline]
    pub fn handle(&self) -> StreamHandle {
        self.inner.handle
    }

    #[inline]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    /// Returns the stream as the allocator knows it.
    #[inline]
    pub(crate) fn lane(&self) -> &Lane {
        &self.inner.lane
    }

    /// Returns this stream's own handle of its device; `None` for a default stream.
    #[inline]
    pub(crate) fn device(&self) -> Option<&Device> {
        self.inner.device.as_ref()
    }

    /// Returns the address of a `u32` that a launch on this stream finds at 0 and must leave at 0,
    /// or 0 where it must do without. A stream that was made for a capture has none, because a
    /// graph may run beside any stream. A stream of another owner has none, because its owner may
    /// capture it. The first call takes the counter; later ones only read its address.
    #[inline]
    pub(crate) fn work_counter(&self) -> u64 {
        let Inner { context, handle, captured, owner, counter, .. } = self.inner.as_ref();
        if captured.is_some() || !matches!(owner, Owner::Us) {
            return 0;
        }
        // SAFETY: the stream is live as long as `self`, and no capture made it.
        *counter.get_or_init(|| unsafe { context.counters.take(*handle) }.unwrap_or(0))
    }

    /// Refuses to allocate on a stream that another owner captures. A graph of that owner would use
    /// the memory at each launch, also after its drop here has given it to others.
    pub(super) fn check_owner_runs_it(&self) -> Result<()> {
        require!(
            !self.is_captured_by_owner()?,
            InvalidArgument,
            "stream {:#x} is captured by its owner, whose graph cannot keep memory that is allocated now; capture with \
             `Stream::capture`, or use `launch_raw` with scratch that outlives the graph",
            self.inner.handle.0
        );
        Ok(())
    }

    /// Refuses work on a stream that its owner captures without a promise to keep the memory until
    /// the last launch of its graph has run.
    #[inline]
    pub(super) fn check_keeps_memory(&self) -> Result<()> {
        if matches!(self.inner.owner, Owner::Kept(_)) { self.check_kept() } else { Ok(()) }
    }

    #[cold]
    fn check_kept(&self) -> Result<()> {
        require!(
            !self.is_captured_by_owner()?,
            InvalidArgument,
            "stream {:#x} is captured by its owner, whose graph cannot keep the memory of this work; capture with \
             `Stream::capture`, or use `Device::stream_from_raw` and keep the memory until the graph has run",
            self.inner.handle.0
        );
        Ok(())
    }

    fn is_captured_by_owner(&self) -> Result<bool> {
        let Inner { handle, owner, .. } = self.inner.as_ref();
        // SAFETY: the stream is live as long as `self`.
        Ok(!matches!(owner, Owner::Us) && unsafe { self.driver().is_capturing(*handle) }?)
    }

    fn driver(&self) -> &dyn Driver {
        self.inner.context.driver().as_ref()
    }

    /// Makes work that is queued here from now on wait for all work that is queued on `other` now.
    pub(crate) fn wait_for(&self, other: &Self) -> Result<()> {
        if Arc::ptr_eq(&self.inner, &other.inner) {
            return Ok(());
        }
        // A record in a capture of another owner would take this stream into it.
        other.check_keeps_memory()?;
        // Another thread may record the event again before the wait below: it then stands for more
        // work, never for less. SAFETY: the event and the stream are live as long as `other`.
        unsafe { self.driver().event_record(other.inner.passed, other.inner.handle) }?;
        // SAFETY: the event is live as long as `other`, the stream as long as `self`, and they are
        // of one context.
        unsafe { self.driver().event_wait(other.inner.passed, self.inner.handle) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut last = Retire { stream: self, counter: None };
        let driver = self.context.driver();
        // SAFETY: each buffer that names the lane has a handle of the stream, and the last handle
        // drops here, so no buffer names it.
        let closed = unsafe { self.context.allocator().close(&self.lane) };
        self.context.note_drop(closed, || "closing the memory of a dropped stream".into());
        // From here on the event stands for the stream's last work, so `Context::synchronize` still
        // waits for it. SAFETY: both are live until the end of this function.
        let recorded = unsafe { driver.event_record(self.passed, self.handle) };
        // Without a record the event does not stand for the last work, so no later call could wait
        // for it. Only the first error is reported. SAFETY: the stream is live until the end of
        // this function.
        if recorded.is_ok() || unsafe { driver.stream_synchronize(self.handle) }.is_ok() {
            last.counter = self.counter.get().copied().filter(|&counter| counter != 0);
        }
        self.context.note_drop(recorded, || "recording the end of a dropped stream".into());
        if !matches!(self.owner, Owner::Us) {
            return;
        }
        // SAFETY: no other owner holds the handle, and it is not used again.
        let destroyed = unsafe { driver.stream_destroy(self.handle) };
        self.context.note_drop(destroyed, || "destroying a stream".into());
    }
}

/// Retires the event of a stream when its drop ends, even if its driver panics. Else
/// `Context::synchronize` would wait for this drop for ever.
struct Retire<'a> {
    stream: &'a Inner,
    /// The stream's work counter, once the event stands for its launches or they have run.
    counter: Option<u64>,
}

impl Drop for Retire<'_> {
    fn drop(&mut self) {
        let Self { stream, counter } = *self;
        stream.context.retire_with(stream.passed, counter);
        stream.context.leave(stream);
    }
}

impl PartialEq for Stream {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.inner.handle.0).finish()
    }
}

#[cold]
pub(super) fn foreign(what: &str) -> Error {
    Error::argument(format!("{what} belong to different devices; use what one device made"))
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::{Backend, ops};

    #[test]
    fn an_owner_that_promised_nothing_captures_no_work() {
        let device = Device::open(Backend::Soft).unwrap();
        let array = device.array(&[3], &[1.0_f32, 2.0, 3.0]).unwrap();
        let mut result = device.array(&[3], &[0.0_f32; 3]).unwrap();
        let fill = device.default_stream().capture(|stream| ops::fill_into(7.0, &mut result, stream)).unwrap();
        let theirs = device.driver().stream_create().unwrap();
        // SAFETY: the stream is destroyed last.
        let ours = unsafe { Stream::of_another(device.context(), device.another(), theirs, Owner::Kept(Box::new(()))) };
        let ours = ours.unwrap();
        let mut used = device.array(&[3], &[0.0_f32; 3]).unwrap();
        ops::fill_into(1.0, &mut used, &ours).unwrap();
        // SAFETY: the stream is live, and no copy of host memory is queued on it.
        unsafe { device.driver().capture_begin(theirs) }.unwrap();
        for refused in [ops::scale_into(2.0, &array, &mut result, &ours), fill.launch(&ours)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains("whose graph cannot keep the memory of this work"), "{error}");
        }
        // Nor does a stream of ours get into the capture by a wait for what `used` did before it.
        let error = ops::scale_into(2.0, &used, &mut result, device.default_stream()).unwrap_err();
        assert!(error.to_string().contains("is captured by its owner"), "{error}");
        // SAFETY: the stream is live.
        let graph = unsafe { device.driver().capture_end(theirs) }.unwrap();
        // SAFETY: the graph is live, and no other call uses it.
        assert_eq!(unsafe { device.driver().graph_nodes(graph) }.unwrap(), 0);
        ops::scale_into(2.0, &array, &mut result, &ours).unwrap();
        assert_eq!(result.to_vec().unwrap(), [2.0, 4.0, 6.0]);
        drop((array, result, used, fill, ours));
        // SAFETY: no work uses it any more, and no call does.
        unsafe { device.driver().graph_destroy(graph) }.unwrap();
        // SAFETY: as above.
        unsafe { device.driver().stream_destroy(theirs) }.unwrap();
    }
}
