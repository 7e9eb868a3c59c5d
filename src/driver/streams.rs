//! The part of a driver for streams and events, which order queued work.

use super::{EventHandle, StreamHandle};
use crate::error::Result;

/// The part of a [`Driver`](super::Driver) that orders queued work, and waits for it.
/// The part of a [`Driver`](super::Driver) that orders queued work and waits for it.
/// # Errors
///
/// Those that [`Driver`](super::Driver) says are common to all methods.
/// The errors that [`Driver`](super::Driver) lists for all methods.
/// # Safety
///
/// An implementation promises, to callers that keep their side:
/// An implementation promises, to callers that keep their side of the contract:
/// - [`Streams::stream_synchronize`] returns only when no copy queued on the stream touches host
/// - [`Streams::stream_synchronize`] returns only when no copy queued on the stream touches host
///   memory any more: the copy has run, or it never will. This also holds if it returns an error or
///   unwinds.
pub unsafe trait Streams: Send + Sync {
    /// Makes a stream that does not wait for the default one.
    fn stream_create(&self) -> Result<StreamHandle>;

    /// Destroys a stream; work already queued on it still runs.
    ///
    /// # Safety
    ///
    /// - `stream` is live, and not used from now on.
    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()>;

    /// Waits until all work queued on `stream` has run. Also when it returns an error, no copy
    /// queued on the stream touches host memory from then on: borrowed host memory rests on this.
    ///
    /// # Safety
    /// Waits until all work queued on `stream` has run. Even if it returns an error, no copy queued
    /// on the stream touches host memory from then on: borrowed host memory relies on this.
    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()>;

    /// Makes an event that has not been recorded.
    fn event_create(&self) -> Result<EventHandle>;

    /// Destroys an event; waits already queued on it still hold.
    ///
    /// # Safety
    ///
    /// Destroys an event; waits already queued on it still hold.
    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()>;

    /// Queues the event on `stream`: it is passed when everything queued there before it has run.
    ///
    /// # Safety
    ///
    /// Queues the event on `stream`: it is passed when all work queued there before it has run.
    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Lets work queued on `stream` from now on wait for the event's latest record; an event never
    /// recorded holds nothing back.
    ///
    /// # Safety
    /// Makes work that is queued on `stream` from now on wait for the event's latest record. An
    /// event that was never recorded delays nothing.
    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()>;

    /// Whether the event's latest record has been passed; true of an event never recorded. Does not
    /// wait for the event; but polling it comes to an end, also on a driver on which queued work
    /// makes no progress by itself. The software GPU runs one piece of work for an answer of no,
    /// and one thread at a time uses it: a call waits while another thread's runs kernels.
    /// Whether the event's latest record has been passed; true if the event was never recorded. It
    /// does not wait for the event, but repeated polling ends, even on a driver whose queued work
    /// makes no progress by itself. On the software GPU an answer of no runs one piece of work, and
    /// one thread at a time polls: a call waits while another thread's call runs kernels.
    unsafe fn event_query(&self, event: EventHandle) -> Result<bool>;

    /// Waits until the event's latest record has been passed.
    ///
    /// # Safety
    ///
    /// - `event` is live.
    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()>;

    /// Milliseconds between two events; an error of kind `InvalidArgument` unless both were
    /// recorded and passed. On the software GPU this is host time: no measure of a GPU.
    ///
    /// Returns the milliseconds between two events; an error of kind `InvalidArgument` unless both
    /// were recorded and passed. On the software GPU this is host time, which does not predict a
    /// GPU's.
    /// - `start` and `end` are live.
    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32>;
}
