//! The order of the default streams: the legacy one waits for all blocking streams of its context,
//! and they for it.
//!
//! CUDA's manual, "Default Stream". The software GPU has streams that wait for nothing, so the
//! order is made of events. A context keeps the blocking streams with work that its legacy stream
//! does not wait for yet, so the cost is that of the streams that were used, however many there
//! are. A stream enters that list after it has queued its work: work of two threads at the same
//! time has no order, and the next work on the legacy stream finds it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use warpstride::driver::{StreamHandle, Streams as _};

use super::{NON_BLOCKING, Stream};
use crate::code::Outcome;
use crate::context::Context;
use crate::process::{Gpu, process};

/// The default streams of a context, and the order of its blocking ones.
pub(crate) struct Streams(Mutex<Defaults>);

#[derive(Default)]
struct Defaults {
    legacy: Option<Arc<Stream>>,
    of_threads: HashMap<ThreadId, Arc<Stream>>,
    /// The blocking streams whose work the legacy stream does not wait for yet.
    fresh: BTreeMap<u64, StreamHandle>,
    /// A stream that waits for the work of destroyed streams, for those who wait for the whole
    /// context.
    ended: Option<StreamHandle>,
}

/// A stream's place in the order: for the legacy stream, the number of pieces of work that it has
/// queued; for another one, how many of those it waits for.
#[derive(Default)]
pub(super) struct Turn(AtomicU64);

/// Ends the default streams of a thread when it ends.
struct OfThread(ThreadId);

thread_local! {
    static OF_THREAD: RefCell<Option<OfThread>> = const { RefCell::new(None) };
}

impl Drop for OfThread {
    fn drop(&mut self) {
        let Ok(process) = process() else { return };
        if crate::process::forked().is_some() {
            return;
        }
        for (_, context) in process.contexts.all() {
            let ended = context.streams.lock().of_threads.remove(&self.0);
            if let Some(stream) = ended {
                super::end(process, &stream);
            }
        }
    }
}

impl Streams {
    pub(crate) fn new(_gpu: &Gpu) -> Outcome<Self> {
        Ok(Self(Mutex::default()))
    }

    fn lock(&self) -> MutexGuard<'_, Defaults> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the legacy default stream.
    pub(crate) fn legacy(&self, context: &Context) -> Outcome<Arc<Stream>> {
        let mut defaults = self.lock();
        if let Some(stream) = &defaults.legacy {
            return Ok(Arc::clone(stream));
        }
        let made = default_stream(context, true)?;
        defaults.legacy = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Returns the default stream of the calling thread.
    pub(crate) fn of_thread(&self, context: &Context) -> Outcome<Arc<Stream>> {
        let mut defaults = self.lock();
        let thread = std::thread::current().id();
        if let Some(stream) = defaults.of_threads.get(&thread) {
            return Ok(Arc::clone(stream));
        }
        let made = default_stream(context, false)?;
        defaults.of_threads.insert(thread, Arc::clone(&made));
        // A thread that ends already keeps its streams until the context ends.
        let _ = OF_THREAD.try_with(|of| of.borrow_mut().get_or_insert_with(|| OfThread(thread)).0);
        Ok(made)
    }

    /// Returns all default streams that there are.
    pub(crate) fn defaults(&self) -> Vec<Arc<Stream>> {
        let defaults = self.lock();
        defaults.legacy.iter().chain(defaults.of_threads.values()).map(Arc::clone).collect()
    }

    /// Waits for the work of streams that were destroyed.
    pub(super) fn wait_for_ended(&self, gpu: &Gpu) -> Outcome {
        let ended = self.lock().ended;
        let Some(ended) = ended else { return Ok(()) };
        // SAFETY: the stream lives as long as the context.
        Ok(unsafe { gpu.soft.stream_synchronize(ended) }?)
    }

    /// Ends the stream that waits for destroyed ones, with its context.
    pub(super) fn end(&self, gpu: &Gpu) {
        if let Some(ended) = self.lock().ended.take() {
            // SAFETY: it was taken out, so no code uses it from now on.
            let _ = unsafe { gpu.soft.stream_destroy(ended) };
        }
    }
}

fn default_stream(context: &Context, is_legacy: bool) -> Outcome<Arc<Stream>> {
    let soft = context.gpu()?.soft.stream_create()?;
    let (owner, device, turn) = (context.handle, context.device, Turn::default());
    let (flags, priority) = (0, 0);
    let name = if is_legacy { "the default stream" } else { "the default stream of a thread" };
    context.gpu()?.soft.name_stream(soft, name.to_owned());
    Ok(Arc::new(Stream { context: owner, device, soft, flags, priority, is_legacy, turn }))
}

/// Makes one stream wait for all work that another one has now. Both are live.
pub(super) fn come_behind(gpu: &Gpu, later: StreamHandle, earlier: StreamHandle) -> warpstride::Result<()> {
    if gpu.soft.needs_no_wait(earlier)? {
        return Ok(());
    }
    let event = gpu.soft.event_create_untimed()?;
    // SAFETY: the event was just made, and the software GPU refuses a stream that is not live.
    let recorded = unsafe { gpu.soft.event_record(event, earlier) };
    // SAFETY: as above.
    let waits = recorded.and_then(|()| unsafe { gpu.soft.event_wait(event, later) });
    // SAFETY: no other code knows the event, and a queued wait holds without it.
    let _ = unsafe { gpu.soft.event_destroy(event) };
    waits
}

impl Stream {
    fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }

    /// Makes the stream wait for what its next work comes behind.
    pub(super) fn take_turn(&self, gpu: &Gpu) -> Outcome {
        if !self.is_blocking() {
            return Ok(());
        }
        let context = process()?.contexts.get(self.context)?;
        let mut defaults = context.streams.lock();
        if self.is_legacy {
            for (_, stream) in std::mem::take(&mut defaults.fresh) {
                match come_behind(gpu, self.soft, stream) {
                    // Another thread has destroyed it meanwhile; `leave` has made this stream wait
                    // for its work.
                    Err(error) if error.kind() == warpstride::ErrorKind::InvalidHandle => {}
                    came => came?,
                }
            }
        } else if let Some(legacy) = &defaults.legacy {
            let queued = legacy.turn.0.load(Ordering::Acquire);
            if self.turn.0.swap(queued, Ordering::AcqRel) != queued {
                come_behind(gpu, self.soft, legacy.soft)?;
            }
        }
        Ok(())
    }

    /// Notes that work was queued.
    pub(super) fn end_turn(&self) -> Outcome {
        if self.is_legacy {
            self.turn.0.fetch_add(1, Ordering::AcqRel);
        } else if self.is_blocking() {
            let context = process()?.contexts.get(self.context)?;
            context.streams.lock().fresh.insert(self.soft.0, self.soft);
        }
        Ok(())
    }

    /// Lets those who wait for the context, or the legacy stream, wait for a stream's work after
    /// its end.
    pub(super) fn leave(&self, gpu: &Gpu) -> Outcome {
        let Some(context) = process()?.contexts.find(self.context) else { return Ok(()) };
        let was_fresh = context.streams.lock().fresh.contains_key(&self.soft.0);
        if was_fresh {
            let legacy = context.streams.legacy(&context)?;
            come_behind(gpu, legacy.soft, self.soft)?;
        }
        let mut defaults = context.streams.lock();
        defaults.fresh.remove(&self.soft.0);
        if gpu.soft.needs_no_wait(self.soft)? {
            return Ok(());
        }
        let ended = match defaults.ended {
            Some(ended) => ended,
            None => *defaults.ended.insert(gpu.soft.stream_create()?),
        };
        Ok(come_behind(gpu, ended, self.soft)?)
    }
}
