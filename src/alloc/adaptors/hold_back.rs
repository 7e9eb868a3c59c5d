//! Holds a producer back that is faster than the device.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::pass_on;
use crate::alloc::{Allocate, Block, Lane, Request};
use crate::driver::{Driver, EventHandle, StreamHandle};
use crate::error::Result;
use crate::sync::lock;

/// An allocator that waits before it allocates, while the bytes in use and the freed bytes whose
/// work still runs are more than a limit together.
///
/// A program that queues work faster than the device does it frees buffers that the device has not
/// come to yet. Without a limit it queues ever more work, whatever its allocator does. This one
/// makes it wait for the oldest of that work. Other threads wait too while their requests do not
/// fit. A free waits for none of them. No request waits for bytes in use: only the program itself
/// can free those.
#[derive(Debug)]
pub struct HoldBack<A> {
    inner: A,
    driver: Arc<dyn Driver>,
    bytes: u64,
    state: Mutex<Held>,
    /// A thread's wait for an event has ended.
    waited: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    /// Bytes in use or requested, and a request may be of any number.
    live: u128,
    /// Freed bytes behind an event each, the oldest first.
    behind: VecDeque<(EventHandle, u64)>,
    /// Freed bytes whose work may still run: those behind an event, those that a thread waits for,
    /// and those that no event stands for.
    queued: u64,
    /// Threads that wait for an event, without the lock.
    waiting: usize,
    /// Freed bytes by lane that no event stands for yet.
    unrecorded: BTreeMap<u32, (StreamHandle, u64)>,
    /// Events to use again.
    spare: Vec<EventHandle>,
}

/// A thread's wait for an event, without the lock. Its end counts the thread and the bytes out,
/// also if the driver panics: no producer waits for a thread that has ended.
struct Waiting<'h, A> {
    held_back: &'h HoldBack<A>,
    event: EventHandle,
    /// The freed bytes that the event stands for.
    passed: u64,
}

impl<A> Drop for Waiting<'_, A> {
    fn drop(&mut self) {
        let state = &mut *lock(&self.held_back.state);
        state.waiting -= 1;
        state.spare.push(self.event);
        state.queued -= self.passed;
        self.held_back.waited.notify_all();
    }
}

impl<A: Allocate> HoldBack<A> {
    /// Wraps `inner`, whose memory and streams are the driver's.
    pub fn new(inner: A, driver: Arc<dyn Driver>, bytes: u64) -> Self {
        Self { inner, driver, bytes, state: Mutex::default(), waited: Condvar::new() }
    }

    /// Records an event for what a lane has freed, if it may.
    fn record(&self, state: &mut Held, lane: u32) -> Result<()> {
        let Some(&(stream, bytes)) = state.unrecorded.get(&lane) else { return Ok(()) };
        let event = match state.spare.pop() {
            Some(event) => event,
            None => self.driver.event_create()?,
        };
        // SAFETY: the event lives until the drop, and the stream until its lane is closed.
        if let Err(error) = unsafe { self.driver.event_record(event, stream) } {
            state.spare.push(event);
            return Err(error);
        }
        state.unrecorded.remove(&lane);
        state.behind.push_back((event, bytes));
        Ok(())
    }

    /// Waits for the oldest work until `bytes` more are within the limit, or no work is left, and
    /// counts them as live. It waits without the lock, so that no free on another thread waits with
    /// it.
    fn make_room(&self, bytes: u64) -> Result<()> {
        let bytes = u128::from(bytes);
        let needed = |state: &Held| state.live + u128::from(state.queued) + bytes > u128::from(self.bytes);
        let mut state = lock(&self.state);
        while needed(&state) {
            if state.behind.is_empty() {
                for lane in state.unrecorded.keys().copied().collect::<Vec<_>>() {
                    self.record(&mut state, lane)?;
                }
            }
            let Some((event, passed)) = state.behind.pop_front() else {
                if state.waiting == 0 {
                    break;
                }
                // Another thread has the last event.
                state = self.waited.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.waiting += 1;
            drop(state);
            let waiting = Waiting { held_back: self, event, passed };
            // SAFETY: the event lives until the drop; out of the list, it is this thread's alone.
            let waited = unsafe { self.driver.event_synchronize(event) };
            drop(waiting);
            waited?;
            state = lock(&self.state);
        }
        state.live += bytes;
        Ok(())
    }
}

// SAFETY: the blocks are the inner allocator's, whose promises hold.
unsafe impl<A: Allocate> Allocate for HoldBack<A> {
    pass_on!(rest figures);

    fn is_over(&self, driver: &Arc<dyn Driver>) -> bool {
        Arc::ptr_eq(&self.driver, driver) && self.inner.is_over(driver)
    }

    unsafe fn open(&self, stream: StreamHandle) -> Result<Lane> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.open(stream) }
    }

    unsafe fn close(&self, lane: &Lane) -> Result<()> {
        let recorded = {
            let state = &mut *lock(&self.state);
            let recorded = self.record(state, lane.id);
            if let Some((_, bytes)) = state.unrecorded.remove(&lane.id) {
                // No event stands for them, so a request cannot wait for them.
                state.queued -= bytes;
            }
            recorded
        };
        // SAFETY: as the caller promises.
        recorded.and(unsafe { self.inner.close(lane) })
    }

    unsafe fn alloc(&self, request: &Request<'_>) -> Result<Block> {
        self.make_room(request.bytes)?;
        // SAFETY: as the caller promises.
        unsafe { self.inner.alloc(request) }.inspect_err(|_| lock(&self.state).live -= u128::from(request.bytes))
    }

    unsafe fn free(&self, block: Block, lane: &Lane) -> Result<()> {
        let bytes = block.bytes;
        // Without the lock, as every call of the inner allocator: it may be a program's own.
        // SAFETY: as the caller promises.
        let freed = unsafe { self.inner.free(block, lane) };
        let state = &mut *lock(&self.state);
        state.live -= u128::from(bytes);
        state.queued += bytes;
        let unrecorded = state.unrecorded.entry(lane.id).or_insert((lane.stream, 0));
        unrecorded.1 += bytes;
        // An event for each free would cost more than the free.
        let is_much = unrecorded.1 > self.bytes / 16;
        if is_much { freed.and(self.record(state, lane.id)) } else { freed }
    }
}

impl<A> Drop for HoldBack<A> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for event in state.spare.drain(..).chain(state.behind.drain(..).map(|(event, _)| event)) {
            // A drop returns no error. SAFETY: the event is live, and no list holds it any more.
            let _ = unsafe { self.driver.event_destroy(event) };
        }
    }
}
