//! Events.

use std::ffi::c_uint;

use warpstride::driver::{EventHandle, Streams as _};

use super::{Stream, stream};
use crate::arguments::{Handle, Out};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::export;
use crate::process::{Gpu, Process, process};

/// The flags of events: a thread that waits sleeps; no time is kept; other processes may have it.
const KNOWN_FLAGS: c_uint = 7;
const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

/// An event.
pub(crate) struct Event {
    pub(crate) context: Handle<Context>,
    pub(crate) device: i32,
    pub(crate) soft: EventHandle,
    is_timed: bool,
}

impl Event {
    fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }

    /// Ends an event that was taken out of its table.
    pub(super) fn end(&self, process: &Process) {
        if let Ok(gpu) = process.gpu(self.device) {
            // SAFETY: nobody uses it from now on; waits for it hold.
            let _ = unsafe { gpu.soft.event_destroy(self.soft) };
        }
    }

    fn is_passed(&self) -> Outcome<bool> {
        // SAFETY: the event is live, since its table has it.
        Ok(unsafe { self.gpu()?.soft.event_query(self.soft) }?)
    }
}

fn record(event: Handle<Event>, on: Handle<Stream>) -> Outcome {
    let event = process()?.events.get(event)?;
    let stream = stream(on)?;
    if stream.context != event.context {
        return Err(Failure::handle("an event is recorded on streams of its own context"));
    }
    stream.queue(|gpu, soft| {
        // SAFETY: both are live, since the tables have them.
        unsafe { gpu.soft.event_record(event.soft, soft) }
    })
}

fn elapsed(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) -> Outcome {
    ms.check()?;
    let (start, end) = (process()?.events.get(start)?, process()?.events.get(end)?);
    if !start.is_timed || !end.is_timed {
        return Err(Failure::handle("an event that keeps no time has no elapsed time"));
    }
    if !start.is_passed()? || !end.is_passed()? {
        return Err(Failure::new(code::NOT_READY, "an event has not been passed; wait for it first"));
    }
    // SAFETY: both are live, since the tables have them.
    let between = unsafe { start.gpu()?.soft.event_elapsed_ms(start.soft, end.soft) };
    ms.set(between.map_err(|error| Failure::handle(error.to_string()))?)
}

export! {
    /// Makes an event.
    fn cuEventCreate(event: Out<Handle<Event>>, flags: c_uint) {
        event.check()?;
        if flags & !KNOWN_FLAGS != 0 || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(Failure::value(format!("{flags:#x} are not flags of an event")));
        }
        let (process, context) = (process()?, current()?);
        let soft = context.gpu()?.soft.event_create()?;
        let made = Event { context: context.handle, device: context.device, soft, is_timed: flags & DISABLE_TIMING == 0 };
        event.set(process.events.add(made))
    }

    /// Destroys an event; waits for it hold.
    fn cuEventDestroy_v2 as cuEventDestroy(event: Handle<Event>) {
        let process = process()?;
        process.events.remove(event)?.end(process);
        Ok(())
    }

    /// Records an event on a stream.
    fn cuEventRecord, per_thread cuEventRecord_ptsz (event: Handle<Event>, on: Handle<Stream>) {
        record(event, on)
    }

    /// Records an event on a stream, with flags that concern captures.
    fn cuEventRecordWithFlags, per_thread cuEventRecordWithFlags_ptsz (
        event: Handle<Event>, on: Handle<Stream>, _flags: c_uint,
    ) {
        record(event, on)
    }

    /// Returns whether the latest record of an event has been passed, as `NOT_READY` if not.
    fn cuEventQuery(event: Handle<Event>) {
        if process()?.events.get(event)?.is_passed()? {
            return Ok(());
        }
        Err(Failure::new(code::NOT_READY, "the event has not been passed"))
    }

    /// Waits until the latest record of an event has been passed.
    fn cuEventSynchronize(event: Handle<Event>) {
        let event = process()?.events.get(event)?;
        // SAFETY: the event is live, since its table has it.
        Ok(unsafe { event.gpu()?.soft.event_synchronize(event.soft) }?)
    }

    /// Returns the milliseconds between two events.
    fn cuEventElapsedTime_v2 as cuEventElapsedTime(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) {
        elapsed(ms, start, end)
    }
}
