//! The order of the default streams: the legacy one waits for all blocking streams of its context, and they for it.
//!
//! CUDA's manual, "Default Stream". The software GPU has streams that wait for nothing, so the order is made of events: each
//! stream has a mark of its latest work, and a stream that has not seen another's latest mark waits for it first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use warpstride::driver::{EventHandle, Streams as _};

use super::{NON_BLOCKING, Stream};
use crate::arguments::Handle;
use crate::code::Outcome;
use crate::context::Context;
use crate::process::{Gpu, process};

/// The default streams of a context.
pub(crate) struct Streams(Mutex<Defaults>);

#[derive(Default)]
struct Defaults {
    legacy: Option<Arc<Stream>>,
    of_threads: HashMap<ThreadId, Arc<Stream>>,
}

/// A stream's place in the order.
#[derive(Default)]
pub(super) struct Turn(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// The number of pieces of work that it has queued.
    queued: u64,
    /// For each other stream, by its number in the driver, how much of its work this one waits for.
    of_others: HashMap<u64, u64>,
}

impl Turn {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let made = default_stream(context)?;
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
        let made = default_stream(context)?;
        defaults.of_threads.insert(thread, Arc::clone(&made));
        Ok(made)
    }

    /// Returns all default streams that there are.
    pub(crate) fn defaults(&self) -> Vec<Arc<Stream>> {
        let defaults = self.lock();
        defaults.legacy.iter().chain(defaults.of_threads.values()).map(Arc::clone).collect()
    }

    fn find_legacy(&self) -> Option<Arc<Stream>> {
        self.lock().legacy.clone()
    }
}

fn default_stream(context: &Context) -> Outcome<Arc<Stream>> {
    let soft = context.gpu()?.soft.stream_create()?;
    let (owner, device, turn) = (context.handle, context.device, Turn::default());
    Ok(Arc::new(Stream { handle: Handle::NULL, context: owner, device, soft, flags: 0, priority: 0, turn }))
}

impl Stream {
    /// Makes the stream wait for what its next work comes behind.
    pub(super) fn take_turn(&self, gpu: &Gpu) -> Outcome {
        if self.flags & NON_BLOCKING == 0 {
            let process = process()?;
            let context = process.contexts.get(self.context)?;
            let legacy = context.streams.find_legacy();
            if legacy.as_ref().is_some_and(|legacy| legacy.soft == self.soft) {
                for other in super::all_of(process, &context) {
                    if other.flags & NON_BLOCKING == 0 {
                        self.come_behind(&other, gpu)?;
                    }
                }
            } else if let Some(legacy) = legacy {
                self.come_behind(&legacy, gpu)?;
            }
        }
        self.turn.lock().queued += 1;
        Ok(())
    }

    /// Waits for the latest work of another stream, unless it does already.
    fn come_behind(&self, other: &Stream, gpu: &Gpu) -> Outcome {
        if other.soft == self.soft {
            return Ok(());
        }
        let queued = other.turn.lock().queued;
        let mut seen = self.turn.lock();
        let known = seen.of_others.entry(other.soft.0).or_default();
        if *known == queued {
            return Ok(());
        }
        *known = queued;
        let event: EventHandle = gpu.soft.event_create_untimed()?;
        // SAFETY: the event was just made, and the stream is live as long as its object.
        let recorded = unsafe { gpu.soft.event_record(event, other.soft) };
        // SAFETY: as above.
        let waits = recorded.and_then(|()| unsafe { gpu.soft.event_wait(event, self.soft) });
        // SAFETY: nobody else knows the event, and a queued wait holds without it.
        let _ = unsafe { gpu.soft.event_destroy(event) };
        Ok(waits?)
    }
}
