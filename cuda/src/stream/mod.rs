//! Streams and events, and the order of the default streams.

mod event;
mod order;

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use warpstride::driver::{StreamHandle, Streams as _};

pub(crate) use event::Event;
pub(crate) use order::Streams;

use crate::arguments::{Handle, Out};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::{export, is_per_thread};
use crate::process::{Gpu, Process, process};

/// The greatest priority of a stream on an H100; greater ones are lower numbers.
pub(crate) const GREATEST_PRIORITY: c_int = -5;

/// A handle of the legacy default stream.
const LEGACY: u64 = 1;
/// A handle of the calling thread's default stream.
const PER_THREAD: u64 = 2;
/// The flag of a stream that does not wait for the legacy default stream, nor that for it.
const NON_BLOCKING: c_uint = 1;

/// A stream.
pub(crate) struct Stream {
    /// Its own handle; null for a default stream.
    pub(crate) handle: Handle<Stream>,
    pub(crate) context: Handle<Context>,
    pub(crate) device: c_int,
    pub(crate) soft: StreamHandle,
    pub(crate) flags: c_uint,
    pub(crate) priority: c_int,
    /// Its place in the order of the default streams.
    turn: order::Turn,
}

/// Returns the stream that a handle names; 0 is a default stream of the current context.
pub(crate) fn stream(handle: Handle<Stream>) -> Outcome<Arc<Stream>> {
    if !matches!(handle.0, 0 | LEGACY | PER_THREAD) {
        return process()?.streams.get(handle);
    }
    let context = current()?;
    let is_of_thread = handle.0 == PER_THREAD || (handle.0 == 0 && is_per_thread());
    if is_of_thread { context.streams.of_thread(&context) } else { context.streams.legacy(&context) }
}

impl Stream {
    pub(crate) fn gpu(&self) -> Outcome<&'static Gpu> {
        process()?.gpu(self.device)
    }

    /// Queues work by `queue`, after all that it has to wait for. All work of streams comes through here.
    pub(crate) fn queue<T>(&self, queue: impl FnOnce(&Gpu, StreamHandle) -> warpstride::Result<T>) -> Outcome<T> {
        let gpu = self.gpu()?;
        self.take_turn(gpu)?;
        Ok(queue(gpu, self.soft)?)
    }

    /// Waits for all work of the stream, as the host sees it.
    pub(crate) fn wait(&self) -> Outcome {
        let gpu = self.gpu()?;
        self.take_turn(gpu)?;
        // SAFETY: the stream is live as long as this object, which its table or its context keeps.
        Ok(unsafe { gpu.soft.stream_synchronize(self.soft) }?)
    }
}

/// Waits for all work of a context.
pub(crate) fn wait_for_context(context: &Context) -> Outcome {
    for stream in all_of(process()?, context) {
        stream.wait()?;
    }
    Ok(())
}

/// Returns all streams of a context, the default ones first.
fn all_of(process: &Process, context: &Context) -> Vec<Arc<Stream>> {
    let own = process.streams.all().into_iter().map(|(_, stream)| stream);
    context.streams.defaults().into_iter().chain(own.filter(|stream| stream.context == context.handle)).collect()
}

/// Ends what was made in a context.
pub(crate) fn end_of(process: &Process, context: &Context) {
    let ended = process.streams.remove_where(|stream| stream.context == context.handle);
    for stream in context.streams.defaults().into_iter().chain(ended) {
        end(process, &stream);
    }
    for event in process.events.remove_where(|event| event.context == context.handle) {
        event.end(process);
    }
}

fn end(process: &Process, stream: &Stream) {
    if let Ok(gpu) = process.gpu(stream.device) {
        // SAFETY: the stream was taken out of its table, so nobody uses it from now on. Its work still runs.
        let _ = unsafe { gpu.soft.stream_destroy(stream.soft) };
    }
}

fn create(out: Out<Handle<Stream>>, flags: c_uint, priority: c_int) -> Outcome {
    out.check()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Failure::value(format!("{flags:#x} are not flags of a stream: 0 is blocking, 1 is not")));
    }
    let (process, context) = (process()?, current()?);
    let soft = context.gpu()?.soft.stream_create()?;
    let (owner, device) = (context.handle, context.device);
    let priority = priority.clamp(GREATEST_PRIORITY, 0);
    let turn = order::Turn::default();
    out.set(process.streams.add_with(|handle| Stream { handle, context: owner, device, soft, flags, priority, turn }))
}

export! {
    /// Makes a stream.
    fn cuStreamCreate(stream: Out<Handle<Stream>>, flags: c_uint) {
        create(stream, flags, 0)
    }

    /// Makes a stream with a priority, which changes nothing on the software GPU.
    fn cuStreamCreateWithPriority(stream: Out<Handle<Stream>>, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }

    /// Destroys a stream; its work still runs.
    fn cuStreamDestroy_v2 as cuStreamDestroy(handle: Handle<Stream>) {
        let process = process()?;
        if matches!(handle.0, 0 | LEGACY | PER_THREAD) {
            return Err(Failure::handle("a default stream is not destroyed"));
        }
        let stream = process.streams.remove(handle)?;
        end(process, &stream);
        Ok(())
    }

    /// Waits for all work of a stream.
    fn cuStreamSynchronize, per_thread cuStreamSynchronize_ptsz (handle: Handle<Stream>) {
        stream(handle)?.wait()
    }

    /// Returns whether all work of a stream has run, as `NOT_READY` if not.
    fn cuStreamQuery, per_thread cuStreamQuery_ptsz (handle: Handle<Stream>) {
        let stream = stream(handle)?;
        let gpu = stream.gpu()?;
        let event = gpu.soft.event_create_untimed()?;
        let recorded = stream.queue(|gpu, soft| {
            // SAFETY: the event was just made, and the stream is live.
            unsafe { gpu.soft.event_record(event, soft) }
        });
        // SAFETY: the event is live.
        let passed = recorded.and_then(|()| Ok(unsafe { gpu.soft.event_query(event) }?));
        // SAFETY: nobody else knows the event.
        let _ = unsafe { gpu.soft.event_destroy(event) };
        if passed? { Ok(()) } else { Err(Failure::new(code::NOT_READY, "the stream has work that has not run")) }
    }

    /// Makes a stream wait for the latest record of an event.
    fn cuStreamWaitEvent, per_thread cuStreamWaitEvent_ptsz (
        handle: Handle<Stream>, event: Handle<Event>, _flags: c_uint,
    ) {
        let event = process()?.events.get(event)?;
        stream(handle)?.queue(|gpu, soft| {
            // SAFETY: both are live, since the tables have them.
            unsafe { gpu.soft.event_wait(event.soft, soft) }
        })
    }

    /// Returns the flags of a stream.
    fn cuStreamGetFlags, per_thread cuStreamGetFlags_ptsz (handle: Handle<Stream>, flags: Out<c_uint>) {
        flags.set(stream(handle)?.flags)
    }

    /// Returns the priority of a stream.
    fn cuStreamGetPriority, per_thread cuStreamGetPriority_ptsz (handle: Handle<Stream>, priority: Out<c_int>) {
        priority.set(stream(handle)?.priority)
    }

    /// Returns a number that no other stream of the process has.
    fn cuStreamGetId, per_thread cuStreamGetId_ptsz (handle: Handle<Stream>, id: Out<u64>) {
        id.set(stream(handle)?.soft.0)
    }

    /// Returns the context of a stream.
    fn cuStreamGetCtx, per_thread cuStreamGetCtx_ptsz (handle: Handle<Stream>, context: Out<Handle<Context>>) {
        context.set(stream(handle)?.context)
    }

    /// Returns the device of a stream.
    fn cuStreamGetDevice, per_thread cuStreamGetDevice_ptsz (handle: Handle<Stream>, device: Out<c_int>) {
        device.set(stream(handle)?.device)
    }
}
