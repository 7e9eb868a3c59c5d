//! Events.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpstride::driver::{EventHandle, StreamHandle, Streams as _};

use super::capture::{self, Captured};
use super::{Stream, check_safe, stream};
use crate::arguments::{Handle, Out};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::export;
use crate::graph::Work;
use crate::process::{Gpu, Process, process};

/// The flags of events: a thread that waits sleeps; no time is kept; other processes may have it.
const KNOWN_FLAGS: c_uint = 7;
const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

/// The flag of a record or a wait that becomes a node of a captured graph.
const EXTERNAL: c_uint = 1;

/// An event.
pub(crate) struct Event {
    pub(crate) context: Handle<Context>,
    pub(crate) device: i32,
    pub(crate) soft: EventHandle,
    is_timed: bool,
    /// Its latest record, if that is in a capture.
    captured: Mutex<Option<Captured>>,
    is_recorded: AtomicBool,
}

impl Event {
    fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }

    /// Ends an event that was taken out of its table.
    pub(super) fn end(&self, process: &Process) {
        if let Ok(gpu) = process.gpu(self.device) {
            // SAFETY: no code uses it from now on; waits for it hold.
            let _ = unsafe { gpu.soft.event_destroy(self.soft) };
        }
    }

    pub(super) fn captured(&self) -> MutexGuard<'_, Option<Captured>> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it was never recorded.
    pub(super) fn is_unrecorded(&self) -> bool {
        !self.is_recorded.load(Ordering::Relaxed)
    }

    fn is_passed(&self) -> Outcome<bool> {
        capture::refuse_event(self)?;
        // SAFETY: the event is live, since its table has it.
        Ok(unsafe { self.gpu()?.soft.event_query(self.soft) }?)
    }
}

fn record(handle: Handle<Event>, on: Handle<Stream>, flags: c_uint) -> Outcome {
    if flags & !EXTERNAL != 0 {
        return Err(Failure::value(format!(
            "{flags:#x} are not flags of a record: 0 is the default, 1 an external one"
        )));
    }
    let event = process()?.events.get(handle)?;
    let stream = stream(on)?;
    if stream.context != event.context {
        return Err(Failure::handle("an event is recorded on streams of its own context"));
    }
    if flags == EXTERNAL {
        return stream.queue_work(Work::Record(handle));
    }
    if capture::admit(&stream)? {
        return capture::record_event(&stream, &event);
    }
    stream.queue_work(Work::Record(handle))
}

/// Makes a stream wait for the latest record of an event.
pub(super) fn wait(on: Handle<Stream>, handle: Handle<Event>, flags: c_uint) -> Outcome {
    if flags & !EXTERNAL != 0 {
        return Err(Failure::value(format!("{flags:#x} are not flags of a wait: 0 is the default, 1 an external one")));
    }
    let event = process()?.events.get(handle)?;
    let stream = stream(on)?;
    if flags == EXTERNAL {
        return stream.queue_work(Work::Wait(handle));
    }
    if capture::wait_for_event(&stream, &event)? {
        return Ok(());
    }
    stream.queue_work(Work::Wait(handle))
}

impl Event {
    /// Records the event on a software stream.
    pub(crate) fn record_on(&self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        *self.captured() = None;
        self.is_recorded.store(true, Ordering::Relaxed);
        // SAFETY: the software GPU refuses handles that are not live.
        unsafe { gpu.soft.event_record(self.soft, soft) }
    }

    /// Makes a software stream wait for the event.
    pub(crate) fn wait_on(&self, gpu: &Gpu, soft: StreamHandle) -> warpstride::Result<()> {
        // SAFETY: as above.
        unsafe { gpu.soft.event_wait(self.soft, soft) }
    }
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
        let is_timed = flags & DISABLE_TIMING == 0;
        let (captured, is_recorded) = (Mutex::default(), AtomicBool::default());
        let made = Event { context: context.handle, device: context.device, soft, is_timed, captured, is_recorded };
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
        record(event, on, 0)
    }

    /// Records an event on a stream, with flags that concern captures.
    fn cuEventRecordWithFlags, per_thread cuEventRecordWithFlags_ptsz (
        event: Handle<Event>, on: Handle<Stream>, flags: c_uint,
    ) {
        record(event, on, flags)
    }

    /// Makes a stream wait for the latest record of an event.
    fn cuStreamWaitEvent, per_thread cuStreamWaitEvent_ptsz (
        on: Handle<Stream>, event: Handle<Event>, flags: c_uint,
    ) {
        wait(on, event, flags)
    }

    /// Returns whether the latest record of an event has been passed, as `NOT_READY` if not.
    fn cuEventQuery(event: Handle<Event>) {
        let event = process()?.events.get(event)?;
        capture::refuse_event(&event)?;
        check_safe("polling an event")?;
        if event.is_passed()? {
            return Ok(());
        }
        Err(Failure::new(code::NOT_READY, "the event has not been passed"))
    }

    /// Waits until the latest record of an event has been passed.
    fn cuEventSynchronize(event: Handle<Event>) {
        let event = process()?.events.get(event)?;
        capture::refuse_event(&event)?;
        check_safe("waiting for an event")?;
        // SAFETY: the event is live, since its table has it.
        Ok(unsafe { event.gpu()?.soft.event_synchronize(event.soft) }?)
    }

    /// Returns the milliseconds between two events.
    fn cuEventElapsedTime_v2 as cuEventElapsedTime(ms: Out<f32>, start: Handle<Event>, end: Handle<Event>) {
        elapsed(ms, start, end)
    }
}
