//! A stream with a ring of page-locked slots, which one thread uses at a time.

use std::array;
use std::ptr::NonNull;
use std::sync::Arc;

use super::job::Job;
use super::past_caches::copy_past_caches;
use super::policy::Direction;
use crate::driver::{Driver, EventHandle, HostKind, StreamHandle};
use crate::error::{Error, Result};

/// Slots of a lane. While one is filled or emptied by the host, the copies of the others are queued
/// or run.
pub(super) const SLOTS: usize = 4;

/// A stream, its slots, and an event for each slot that is passed when its copy has run.
pub(super) struct Lane {
    driver: Arc<dyn Driver>,
    stream: StreamHandle,
    /// `None` until the first use, and after a failure.
    slots: Option<Slots>,
    /// One for each slot, or fewer if making them failed.
    events: Vec<EventHandle>,
}

/// The memory of the slots.
#[derive(Clone, Copy)]
struct Slots {
    memory: NonNull<u8>,
    /// Bytes of each.
    bytes: usize,
}

// SAFETY: the lane is the only owner of its memory, and the driver's handles go to any thread.
unsafe impl Send for Lane {}

impl Lane {
    pub(super) fn new(driver: &Arc<dyn Driver>) -> Result<Self> {
        let stream = driver.stream_create()?;
        // From here on a failure drops the lane with what it has.
        let mut lane = Self { driver: Arc::clone(driver), stream, slots: None, events: Vec::with_capacity(SLOTS) };
        for _ in 0..SLOTS {
            lane.events.push(driver.event_create()?);
        }
        Ok(lane)
    }

    /// Makes each slot hold at least `bytes` bytes. No copy of the lane may be in flight.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.slots.is_some_and(|slots| slots.bytes >= bytes) {
            return Ok(());
        }
        self.free_slots()?;
        self.slots = Some(Slots { memory: self.driver.alloc_host(bytes * SLOTS, HostKind::Cached)?, bytes });
        Ok(())
    }

    fn free_slots(&mut self) -> Result<()> {
        match self.slots.take() {
            // SAFETY: the memory is the driver's, and no copy of the lane is in flight: `run` and
            // `drop` have waited.
            Some(slots) => unsafe { self.driver.free_host(slots.memory) },
            None => Ok(()),
        }
    }

    /// Copies pieces of `job` until none is left, and returns when they are copied. Even after a
    /// failure none of its copies is in flight any more.
    ///
    /// # Safety
    ///
    /// - The job's range of the device lies within one live allocation, which no other work uses.
    /// - The job's range of the host is valid for reads, or for a download for writes, and no other
    ///   code uses the pieces that this lane takes.
    /// - [`Lane::reserve`] has made room for the job's pieces.
    pub(super) unsafe fn run(&mut self, job: &Job) -> Result<()> {
        let copied = match job.direction {
            // SAFETY: the caller's promises, here and below.
            Direction::Upload => unsafe { self.upload(job) },
            // SAFETY: as above.
            Direction::Download => unsafe { self.download(job) },
        };
        let outcome = copied.and(self.synchronize());
        if outcome.is_err() {
            job.fail();
        }
        outcome
    }

    /// # Safety
    ///
    /// - As [`Lane::run`].
    unsafe fn upload(&mut self, job: &Job) -> Result<()> {
        let mut slots = (0..SLOTS).cycle();
        let mut used = 0;
        while let Some(piece) = job.take() {
            let slot = slots.next().unwrap_or_default();
            if used < SLOTS {
                used += 1;
            } else {
                self.wait(slot)?;
            }
            let staged = self.slot(slot);
            // SAFETY: the caller promises the piece, which fits into the slot; the slot's last copy
            // has run.
            unsafe { staged.copy_from_nonoverlapping(job.host.wrapping_add(piece.start), piece.len()) };
            // SAFETY: the caller promises the piece of the device. The slot stays as it is until
            // `wait` or `synchronize` has seen this copy run.
            unsafe { self.driver.copy_h2d(job.device + piece.start as u64, staged, piece.len(), self.stream) }?;
            self.record(slot)?;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// - As [`Lane::run`].
    unsafe fn download(&mut self, job: &Job) -> Result<()> {
        let mut pieces = array::from_fn::<_, SLOTS, _>(|_| None);
        // Queues the next piece into a slot, if there is one.
        let queue = |slot: usize| {
            let Some(piece) = job.take() else { return Ok::<_, Error>(None) };
            // SAFETY: the caller promises the piece of the device. Nothing uses the slot until
            // `wait` or `synchronize` has seen this copy run.
            unsafe {
                self.driver.copy_d2h(self.slot(slot), job.device + piece.start as u64, piece.len(), self.stream)
            }?;
            self.record(slot)?;
            Ok(Some(piece))
        };
        for (slot, piece) in pieces.iter_mut().enumerate() {
            *piece = queue(slot)?;
        }
        for slot in (0..SLOTS).cycle() {
            // The first slot without a piece was left when no piece was.
            let Some(piece) = pieces[slot].take() else { break };
            self.wait(slot)?;
            // SAFETY: the caller promises the piece of the host; the slot's copy has run, and wrote
            // as many bytes.
            unsafe { copy_past_caches(self.slot(slot), job.host.wrapping_add(piece.start), piece.len()) };
            pieces[slot] = queue(slot)?;
        }
        Ok(())
    }

    /// Returns the start of a slot.
    fn slot(&self, slot: usize) -> *mut u8 {
        let slots = self.slots.expect("`reserve` made slots before the first piece");
        slots.memory.as_ptr().wrapping_add(slot * slots.bytes)
    }

    fn record(&self, slot: usize) -> Result<()> {
        // SAFETY: both are live as long as the lane.
        unsafe { self.driver.event_record(self.events[slot], self.stream) }
    }

    /// Waits until the last copy of a slot has run. It asks again and again, so that the thread is
    /// there when it has: the copy takes less time than a sleep.
    fn wait(&self, slot: usize) -> Result<()> {
        // SAFETY: the event is live as long as the lane.
        while !unsafe { self.driver.event_query(self.events[slot]) }? {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is live as long as the lane.
        unsafe { self.driver.stream_synchronize(self.stream) }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // No caller is left for a failure. By the driver's contract no copy uses the slots after
        // the wait, whatever it returns.
        let _ = self.synchronize();
        let _ = self.free_slots();
        for &event in &self.events {
            // SAFETY: the event is live, and not used from now on.
            let _ = unsafe { self.driver.event_destroy(event) };
        }
        // SAFETY: the stream is live, and not used from now on.
        let _ = unsafe { self.driver.stream_destroy(self.stream) };
    }
}
