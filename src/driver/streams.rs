//! The part of a driver for streams and events, which order queued work.

use super::{EventHandle, StreamHandle};
use crate::error::Result;

/// A part of a device's multiprocessors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiprocessors {
    /// The number of multiprocessors before them.
    pub first: u32,
    /// Their number. It may reach beyond the last.
    pub count: u32,
}

/// The part of a [`Driver`](super::Driver) that orders queued work and waits for it.
///
/// # Errors
///
/// The errors that [`Driver`](super::Driver) lists for all methods.
///
/// # Safety
///
/// An implementation promises, to callers that keep their side of the contract:
///
/// - [`Streams::stream_synchronize`] returns only when no copy queued on the stream touches host
///   memory any more: the copy has run, or it never will. This also holds if it returns an error or
///   unwinds.
/// - Work runs in the order that streams, waits and events set.
pub unsafe trait Streams: Send + Sync {
    /// Makes a stream that does not wait for the default one.
    fn stream_create(&self) -> Result<StreamHandle>;

    /// Makes such a stream whose kernels run on these multiprocessors alone. Both numbers are
    /// rounded up to what the device divides: an H100 has parts of 8. The software GPU has no such
    /// parts and makes a stream like any other.
    ///
    /// An error of kind `Unavailable` if the driver cannot, `InvalidArgument` if the device has not
    /// so many.
    fn stream_create_on(&self, of: Multiprocessors) -> Result<StreamHandle>;

    /// Destroys a stream; work already queued on it still runs.
    ///
    /// # Safety
    ///
    /// - `stream` is live, and not used from now on.
    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()>;

    /// Waits until all work queued on `stream` has run. Even if it returns an error, no copy queued
    /// on the stream touches host memory from then on: borrowed host memory relies on this.
    ///
    /// # Safety
    ///
    /// - `stream` is live.
    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()>;

    /// Makes an event that has not been recorded.
    fn event_create(&self) -> Result<EventHandle>;

    /// Makes such an event that keeps no time, which is faster to pass. It has no
    /// [`Streams::event_elapsed_ms`].
    fn event_create_untimed(&self) -> Result<EventHandle>;

    /// Destroys an event; waits already queued on it still hold.
    ///
    /// # Safety
    ///
    /// - `event` is live, and not used from now on.
    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()>;

    /// Queues the event on `stream`: it is passed when all work queued there before it has run.
    ///
    /// # Safety
    ///
    /// - `event` and `stream` are live.
    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Makes work that is queued on `stream` from now on wait for the event's latest record. An
    /// event that was never recorded delays nothing. It may be of another device of the same kind
    /// and host.
    ///
    /// # Safety
    ///
    /// - `event` and `stream` are live.
    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Returns whether the event's latest record has been passed; true if the event was never
    /// recorded. It does not wait for the event, but repeated polling ends, even on a driver whose
    /// queued work makes no progress by itself. On the software GPU an answer of no runs one piece
    /// of work, and one thread at a time polls: a call waits while another thread's call runs
    /// kernels.
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

    /// Returns the milliseconds between two events; an error of kind `InvalidArgument` unless both
    /// were recorded and passed. On the software GPU this is host time, which does not predict a
    /// GPU's.
    ///
    /// # Safety
    ///
    /// - `start` and `end` are live.
    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32>;
}
