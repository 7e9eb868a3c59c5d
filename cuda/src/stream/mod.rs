//! Streams and events, and the order of the default streams.

mod attributes;
mod capture;
mod capture_calls;
mod event;
mod host;
mod order;
mod values;

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use warpstride::driver::{StreamHandle, Streams as _};

pub(crate) use capture::{check_safe, is_captured_into};
pub(crate) use event::Event;
pub(crate) use host::{call as host_call, given};
pub(crate) use order::Streams;
pub(crate) use values::{Operation, OperationParams, operations};

use crate::arguments::{Handle, Out};
use crate::code::{Failure, Outcome, code};
use crate::context::{Context, current};
use crate::export::{export, is_per_thread};
use crate::graph::{Kind, Work};
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
    pub(crate) context: Handle<Context>,
    pub(crate) device: c_int,
    pub(crate) soft: StreamHandle,
    pub(crate) flags: c_uint,
    pub(crate) priority: c_int,
    is_legacy: bool,
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

    /// Queues work by `work`, after all that it has to wait for, or records it where the stream is
    /// captured: each launch of the graph then calls `work`, on a stream of the graph. All work of
    /// streams comes through here, or one of the following.
    pub(crate) fn queue(
        &self,
        work: impl Fn(&Gpu, StreamHandle) -> warpstride::Result<()> + Send + Sync + 'static,
    ) -> Outcome {
        self.queue_as(Kind::Copy, work)
    }

    /// Queues work like [`Stream::queue`], with the kind of its node in a graph.
    pub(crate) fn queue_as(
        &self,
        kind: Kind,
        work: impl Fn(&Gpu, StreamHandle) -> warpstride::Result<()> + Send + Sync + 'static,
    ) -> Outcome {
        if capture::admit(self)? {
            return capture::record(self, Work::Recorded { kind, device: self.device, queue: Arc::new(work) });
        }
        self.now(work)
    }

    /// Queues work like [`Stream::queue`], as a node that programs can ask for its operands.
    pub(crate) fn queue_work(&self, work: Work) -> Outcome {
        if capture::admit(self)? {
            return capture::record(self, work);
        }
        self.now(|gpu, soft| work.queue(gpu, soft))
    }

    /// Queues work that cannot be recorded. A capture of the stream is broken by it; `what`
    /// describes the call.
    pub(crate) fn queue_now<T>(
        &self,
        what: &str,
        work: impl FnOnce(&Gpu, StreamHandle) -> warpstride::Result<T>,
    ) -> Outcome<T> {
        capture::refuse(self, what)?;
        self.now(work)
    }

    /// Queues work on a stream that is not captured.
    fn now<T, E>(&self, work: impl FnOnce(&Gpu, StreamHandle) -> Result<T, E>) -> Outcome<T>
    where
        Failure: From<E>,
    {
        let gpu = self.gpu()?;
        self.take_turn(gpu)?;
        let result = work(gpu, self.soft)?;
        self.end_turn()?;
        Ok(result)
    }

    /// Queues the launch of a graph on a stream that is not captured.
    pub(crate) fn launch(&self, work: impl FnOnce(&Gpu, StreamHandle) -> Outcome) -> Outcome {
        self.now(work)
    }

    /// Returns whether work on the stream is recorded.
    pub(crate) fn is_captured(&self) -> Outcome<bool> {
        capture::admit(self)
    }

    /// Adds the work to the capture of the stream, if there is one, and returns whether there is
    /// one.
    pub(crate) fn record(&self, work: impl FnOnce() -> Outcome<Work>) -> Outcome<bool> {
        let is_captured = capture::admit(self)?;
        if is_captured {
            capture::record(self, work()?)?;
        }
        Ok(is_captured)
    }

    /// Waits for all work of the stream, as the host sees it.
    pub(crate) fn wait(&self) -> Outcome {
        capture::refuse(self, "waiting for a stream")?;
        self.wait_now()
    }

    fn wait_now(&self) -> Outcome {
        let gpu = self.gpu()?;
        self.take_turn(gpu)?;
        // SAFETY: the software GPU refuses a stream that is not live.
        Ok(unsafe { gpu.soft.stream_synchronize(self.soft) }?)
    }
}

/// Waits for all work of a context.
pub(crate) fn wait_for_context(context: &Context) -> Outcome {
    capture::refuse_in(context, "waiting for a context")?;
    for stream in all_of(process()?, context) {
        match stream.wait_now() {
            // Another thread has destroyed it meanwhile, and its work is waited for below.
            Err(failure) if failure.code == code::INVALID_HANDLE => {}
            waited => waited?,
        }
    }
    context.streams.wait_for_ended(context.gpu()?)
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
    if let Ok(gpu) = process.gpu(context.device) {
        context.streams.end(gpu);
    }
    for event in process.events.remove_where(|event| event.context == context.handle) {
        event.end(process);
    }
}

fn end(process: &Process, stream: &Stream) {
    capture::end_of(stream);
    attributes::end_of(stream);
    if let Ok(gpu) = process.gpu(stream.device) {
        // A failed device has no work to wait for.
        let _ = stream.leave(gpu);
        // SAFETY: the stream was taken out of its table, so no code uses it from now on. Its work
        // still runs.
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
    let is_legacy = false;
    let handle = process.streams.add(Stream { context: owner, device, soft, flags, priority, is_legacy, turn });
    context.gpu()?.soft.name_stream(soft, format!("stream {handle:?}"));
    out.set(handle)
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

    /// Returns whether all work of a stream has run, as `NOT_READY` if not. Each poll runs one
    /// piece of work.
    fn cuStreamQuery, per_thread cuStreamQuery_ptsz (handle: Handle<Stream>) {
        let stream = stream(handle)?;
        capture::refuse(&stream, "polling a stream")?;
        let gpu = stream.gpu()?;
        stream.take_turn(gpu)?;
        if gpu.soft.poll_stream(stream.soft)? {
            return Ok(());
        }
        Err(Failure::new(code::NOT_READY, "the stream has work that has not run"))
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

    /// Returns the context of a stream; the software GPU has no green contexts.
    fn cuStreamGetCtx_v2, per_thread cuStreamGetCtx_v2_ptsz (
        handle: Handle<Stream>, context: Out<Handle<Context>>, green: Out<u64>,
    ) {
        green.set_if_wanted(0);
        context.set(stream(handle)?.context)
    }

    /// Returns the device of a stream.
    fn cuStreamGetDevice, per_thread cuStreamGetDevice_ptsz (handle: Handle<Stream>, device: Out<c_int>) {
        device.set(stream(handle)?.device)
    }
}
