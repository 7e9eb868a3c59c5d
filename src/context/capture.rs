//! Captures: work that a stream records and does not run.

use std::sync::{Arc, Mutex, MutexGuard};

use super::stream::Inner;
use super::{Allocation, Context, Joint, Kernels, Shared, Stream};
use crate::driver::GraphHandle;
use crate::error::{Result, require};
use crate::sync::lock;

/// The memory that the recorded work of a stream's capture uses so far. `None` once the capture has
/// ended, and the stream is an ordinary one.
pub(super) type Captured = Mutex<Option<Vec<Shared<Allocation>>>>;

/// Holds off the end of a capture.
pub(crate) type Capturing<'a> = MutexGuard<'a, Option<Vec<Shared<Allocation>>>>;

/// The result of a capture.
pub(crate) struct Capture {
    pub(crate) graph: CapturedGraph,
    /// The memory that the work uses.
    pub(crate) memory: Joint,
    /// The kernels that the work may launch; `None` if nothing is left that could.
    pub(crate) kernels: Option<Arc<Kernels>>,
}

/// A graph of the driver, which its drop destroys.
pub(crate) struct CapturedGraph {
    context: Arc<Context>,
    handle: GraphHandle,
}

impl CapturedGraph {
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the handle, which is live as long as `self`.
    pub(crate) fn handle(&self) -> GraphHandle {
        self.handle
    }
}

impl Capture {
    /// Captures what `work` queues on a stream of its own. The capture has ended when this returns
    /// or unwinds.
    pub(crate) fn of(context: &Arc<Context>, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Self> {
        // Taken first, because `work` may drop the last handle of the device.
        let kernels = context.kernels();
        let stream = Stream::make(context, None, Some(Mutex::new(Some(Vec::new()))))?;
        // SAFETY: the stream is live as long as `stream`, and nothing is queued on it.
        let begun = unsafe { context.driver().capture_begin(stream.handle()) };
        let running = Running { stream: &stream, begun: begun.is_ok() };
        begun.and_then(|()| work(&stream))?;
        running.end(kernels)
    }
}

/// A capture that has begun. Its drop ends it, after a failure or a panic.
struct Running<'a> {
    stream: &'a Stream,
    begun: bool,
}

impl Running<'_> {
    fn end(mut self, kernels: Option<Arc<Kernels>>) -> Result<Capture> {
        self.begun = false;
        let (graph, memory) = end(&self.stream.inner)?;
        Ok(Capture { graph, memory: Joint::new(memory), kernels })
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.begun {
            // The failure that comes first is returned: a refused call makes this one fail too.
            let _ = end(&self.stream.inner);
        }
        // The stream may have a clone that outlives the capture. It is an ordinary stream from here
        // on, so `Context::synchronize` waits for it.
        let inner = &self.stream.inner;
        // The drop of memory calls the allocator, so it comes without the lock.
        let recorded = inner.captured.as_ref().and_then(|captured| lock(captured).take());
        drop(recorded);
        inner.context.enter(Arc::downgrade(inner));
    }
}

/// Ends the capture of a stream, while no other thread queues work on it.
fn end(inner: &Inner) -> Result<(CapturedGraph, Vec<Shared<Allocation>>)> {
    let mut captured = inner.captured.as_ref().map(lock);
    // SAFETY: the stream is live as long as `inner`.
    let ended = unsafe { inner.context.driver().capture_end(inner.handle) };
    let memory = captured.as_mut().and_then(|captured| captured.take()).unwrap_or_default();
    // The drop of memory calls the allocator, so after a failure it comes without the lock.
    drop(captured);
    Ok((CapturedGraph { context: Arc::clone(&inner.context), handle: ended? }, memory))
}

impl Drop for CapturedGraph {
    fn drop(&mut self) {
        // SAFETY: no other owner holds the handle, and it is not used again.
        let destroyed = unsafe { self.context.driver().graph_destroy(self.handle) };
        self.context.note_drop(destroyed, || "destroying a captured graph".into());
    }
}

impl Stream {
    /// Keeps allocations for the graph if this stream is being captured, and holds off the end of
    /// the capture until the result is dropped. `None` if the stream runs its work.
    #[inline]
    pub(crate) fn record_uses(&self, used: &[&Shared<Allocation>]) -> Option<Capturing<'_>> {
        let mut captured = self.capturing()?;
        captured.as_mut()?.extend(used.iter().map(|&memory| memory.clone()));
        Some(captured)
    }

    /// Returns whether work that is queued here is recorded and does not run.
    #[inline]
    pub(crate) fn is_capturing(&self) -> bool {
        self.capturing().is_some()
    }

    /// Refuses a call that cannot be captured, such as a wait or a copy from or to the host.
    pub(crate) fn check_not_capturing(&self, call: &str) -> Result<()> {
        require!(
            !self.is_capturing(),
            InvalidArgument,
            "{call} cannot be captured: a capture takes operations on device memory; do it before the capture, or after \
             the graph's launch"
        );
        Ok(())
    }

    #[inline]
    fn capturing(&self) -> Option<Capturing<'_>> {
        self.inner.captured.as_ref().map(lock).filter(|captured| captured.is_some())
    }
}
