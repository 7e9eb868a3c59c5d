//! How far the work of each lane has come, as events tell.
//!
//! A lane has an epoch, a number that grows by 1 whenever the allocator records an event on its
//! stream. Blocks that enter the arena get the epoch as their stamp, so an event stands for all
//! stamps below the epoch that it began.

use std::collections::VecDeque;

use crate::alloc::upstream::Upstream;
use crate::driver::{EventHandle, StreamHandle};
use crate::error::{Error, ErrorKind, Result};

/// The condition for other streams to use a lane's free blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// Nothing: their former uses have run.
    Passed,
    /// The event must be passed.
    Event(EventHandle),
    /// Nothing helps now: a driver failed when the lane was closed.
    Never,
}

/// A lane, open or not.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// `None` while no stream is open.
    pub(super) stream: Option<StreamHandle>,
    epoch: u64,
    /// The stamps up to here have passed.
    pub(super) passed: u64,
    /// True if blocks have the epoch as their stamp.
    unrecorded: bool,
    /// Recorded events, with the last stamp that each stands for.
    pending: VecDeque<(EventHandle, u64)>,
}

impl Clock {
    /// Returns the stamp of a block that enters the arena now.
    pub(super) fn stamp(&mut self) -> u64 {
        // Stamp 0 is that of memory without former uses.
        self.epoch = self.epoch.max(1);
        self.unrecorded = true;
        self.epoch
    }
}

/// The events that are recorded on no lane.
#[derive(Debug, Default)]
pub(super) struct Events(Vec<EventHandle>);

impl Events {
    /// Records an event that stands for all blocks of the lane that the arena has.
    fn record(&mut self, clock: &mut Clock, stream: StreamHandle, upstream: &dyn Upstream) -> Result<EventHandle> {
        let event = match self.0.pop() {
            Some(event) => event,
            None => upstream.event_create()?,
        };
        // SAFETY: the event is live until `destroy`, and the stream until its lane is closed.
        if let Err(error) = unsafe { upstream.event_record(event, stream) } {
            self.0.push(event);
            return Err(error);
        }
        clock.pending.push_back((event, clock.epoch));
        clock.epoch += 1;
        clock.unrecorded = false;
        Ok(event)
    }

    /// Returns what stands for all blocks of the lane that the arena has.
    pub(super) fn stand(&mut self, clock: &mut Clock, upstream: &dyn Upstream) -> Result<Stand> {
        if clock.unrecorded {
            return match clock.stream {
                Some(stream) => self.record(clock, stream, upstream).map(Stand::Event),
                None => Ok(Stand::Never),
            };
        }
        Ok(clock.pending.back().map_or(Stand::Passed, |&(event, _)| Stand::Event(event)))
    }

    /// Looks which events have been passed. `begin` records one where none is on its way.
    pub(super) fn poll(&mut self, clock: &mut Clock, begin: bool, upstream: &dyn Upstream) -> Result<()> {
        if begin && clock.pending.is_empty() {
            self.stand(clock, upstream)?;
        }
        while let Some(&(event, last)) = clock.pending.front() {
            // SAFETY: the event is live until `destroy`.
            if !unsafe { upstream.event_query(event) }? {
                break;
            }
            clock.passed = clock.passed.max(last);
            clock.pending.pop_front();
            self.0.push(event);
        }
        Ok(())
    }

    /// Ends a lane's stream. The memory that it used can be used again once the returned outcome's
    /// event, or a wait if there is none, has passed.
    pub(super) fn close(&mut self, clock: &mut Clock, upstream: &dyn Upstream) -> Result<()> {
        let stood = self.stand(clock, upstream);
        let stream = clock.stream.take();
        match (stood, stream) {
            (Ok(Stand::Passed | Stand::Event(_)), _) | (_, None) => Ok(()),
            (failed, Some(stream)) => {
                // SAFETY: the caller's stream lives until the end of the close.
                unsafe { upstream.stream_synchronize(stream) }?;
                clock.passed = clock.epoch;
                clock.epoch += 1;
                clock.unrecorded = false;
                failed.map(drop)
            }
        }
    }

    /// Returns the last event of each lane that may not have been passed.
    pub(super) fn last_of_all(&self, clocks: &[Clock]) -> Vec<EventHandle> {
        clocks.iter().filter_map(|clock| Some(clock.pending.back()?.0)).collect()
    }

    /// Waits for nothing, and destroys all events.
    pub(super) fn destroy(&mut self, clocks: &mut [Clock], upstream: &dyn Upstream) {
        let pending = clocks.iter_mut().flat_map(|clock| clock.pending.drain(..)).map(|(event, _)| event);
        for event in self.0.drain(..).chain(pending) {
            // A drop returns no error. SAFETY: the event is live, and no list holds it any more.
            let _ = unsafe { upstream.event_destroy(event) };
        }
    }
}

/// Says that there are too many lanes.
pub(super) fn too_many_lanes() -> Error {
    let sentence = "an allocator has at most 65536 streams at a time; drop some streams";
    Error::new(ErrorKind::OutOfMemory, sentence)
}
