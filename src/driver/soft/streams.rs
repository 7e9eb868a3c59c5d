//! Streams and events of the schedule.

use super::Soft;
use super::state::{Latest, no_such};
use crate::driver::{EventHandle, Multiprocessors, StreamHandle, Streams};
use crate::error::{Error, Result};

// SAFETY: copies run only within a wait, under the state's lock. A wait that returns, fails or
// unwinds before a copy ran leaves it to the next wait on its stream or, on a failed device, drops
// it (`State::run`).
unsafe impl Streams for Soft {
    fn stream_create(&self) -> Result<StreamHandle> {
        let mut state = self.working()?;
        let handle = self.gpu().handle();
        state.schedule.open(handle);
        Ok(StreamHandle(handle))
    }

    fn stream_create_on(&self, _of: Multiprocessors) -> Result<StreamHandle> {
        self.stream_create()
    }

    unsafe fn stream_destroy(&self, stream: StreamHandle) -> Result<()> {
        self.check_own("stream", stream.0)?;
        let mut state = self.lock();
        let closed = state.schedule.close(stream.0);
        state.captures.remove(&stream.0);
        state.check()?;
        if closed { Ok(()) } else { Err(no_such("stream", stream.0)) }
    }

    unsafe fn stream_synchronize(&self, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        state.not_captured(stream, "waiting for")?;
        let goal = state.schedule.everything_on(stream.0);
        self.reach(&mut state, &goal)
    }

    fn event_create(&self) -> Result<EventHandle> {
        let mut state = self.working()?;
        let handle = self.gpu().handle();
        state.events.insert(handle, Latest::Never);
        Ok(EventHandle(handle))
    }

    fn event_create_untimed(&self) -> Result<EventHandle> {
        self.event_create()
    }

    unsafe fn event_destroy(&self, event: EventHandle) -> Result<()> {
        self.check_own("event", event.0)?;
        let mut state = self.lock();
        let removed = state.events.remove(&event.0);
        state.check()?;
        removed.map(drop).ok_or_else(|| no_such("event", event.0))
    }

    unsafe fn event_record(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        self.check_own("event", event.0)?;
        state.latest(event)?;
        let latest = match state.capture(stream)? {
            Some(capture) => Latest::Captured(stream, capture.id),
            None => state.schedule.record(stream.0).map_or(Latest::Never, Latest::Queued),
        };
        state.events.insert(event.0, latest);
        Ok(())
    }

    unsafe fn event_wait(&self, event: EventHandle, stream: StreamHandle) -> Result<()> {
        let mut state = self.streaming(stream)?;
        let captured = state.capture(stream)?.map(|capture| capture.id);
        match (captured, state.latest(event)?) {
            (None, _) => {
                if let Some(mark) = state.event(event)? {
                    state.schedule.wait(stream.0, &mark);
                }
                Ok(())
            }
            // The capture keeps the order of its stream anyway.
            (Some(id), Latest::Captured(_, of)) if of == id => Ok(()),
            (Some(_), Latest::Never) => Ok(()),
            (Some(_), Latest::Queued(_) | Latest::Captured(..)) => {
                let what = format!(
                    "a capture of stream {:#x} cannot wait for event {:#x}, which was recorded outside of it; wait before the \
                     capture, or where the graph is launched",
                    stream.0, event.0
                );
                Err(state.refuse(stream, what))
            }
        }
    }

    unsafe fn event_query(&self, event: EventHandle) -> Result<bool> {
        let mut state = self.working()?;
        let Some(mark) = state.event(event)? else { return Ok(true) };
        let passed = mark.passed().is_some();
        let goal = state.schedule.up_to(&mark);
        if passed {
            state.schedule.host_knows(&goal);
        } else {
            // The answer describes this moment; the step ensures that a program that polls ends.
            self.step(&mut state, &goal)?;
        }
        Ok(passed)
    }

    unsafe fn event_synchronize(&self, event: EventHandle) -> Result<()> {
        let mut state = self.working()?;
        let Some(mark) = state.event(event)? else { return Ok(()) };
        let goal = state.schedule.up_to(&mark);
        self.reach(&mut state, &goal)
    }

    unsafe fn event_elapsed_ms(&self, start: EventHandle, end: EventHandle) -> Result<f32> {
        let mut state = self.working()?;
        let mut passed = |event: EventHandle| {
            let fail = |what| {
                let context = format!("no time from event {:#x} to {:#x}: {:#x} {what}", start.0, end.0, event.0);
                Error::argument(context)
            };
            let mark = state.event(event)?.ok_or_else(|| fail("was never recorded; record both events first"))?;
            mark.passed().ok_or_else(|| fail("is not passed yet; wait for both events first"))
        };
        let (start, end) = (passed(start)?, passed(end)?);
        let forward = end.saturating_duration_since(start).as_secs_f32();
        let backward = start.saturating_duration_since(end).as_secs_f32();
        Ok((forward - backward) * 1000.0)
    }
}
