//! Records the calls for streams and events.

use super::{Call, Fails, Trace};
use crate::driver::{EventHandle, StreamHandle, Streams};
use crate::error::Result;

// Every unsafe method passes on its caller's promises and operands unchanged. SAFETY: an injected
// failure of a release or of `stream_synchronize` comes after the real call, and every other call
// is the inner driver's or is not made, so the inner driver's promises hold.
unsafe impl Streams for Trace {
    fn stream_create(&self) -> Result<StreamHandle> {
        self.make(
            Call::StreamCreate {},
            || self.inner.stream_create(),
            |live, &stream| {
                live.streams.insert(stream);
            },
        )
    }

    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.stream_destroy(stream) };
        self.release(Call::StreamDestroy { stream }, real, |live| {
            live.streams.remove(&stream);
        })
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.call(Call::StreamSynchronize { stream }, Fails::After, || unsafe { self.inner.stream_synchronize(stream) })
    }

    fn event_create(&self) -> Result<EventHandle> {
        self.make(
            Call::EventCreate {},
            || self.inner.event_create(),
            |live, &event| {
                live.events.insert(event);
            },
        )
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        let real = || unsafe { self.inner.event_destroy(event) };
        self.release(Call::EventDestroy { event }, real, |live| {
            live.events.remove(&event);
        })
    }

    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventRecord { event, stream }, || unsafe { self.inner.event_record(event, stream) })
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventWait { event, stream }, || unsafe { self.inner.event_wait(event, stream) })
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventQuery { event }, || unsafe { self.inner.event_query(event) })
    }

    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventSynchronize { event }, || unsafe { self.inner.event_synchronize(event) })
    }

    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32> {
        // SAFETY: the caller's promise is the inner driver's.
        self.queue(Call::EventElapsedMs { start, end }, || unsafe { self.inner.event_elapsed_ms(start, end) })
    }
}
