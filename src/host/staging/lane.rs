//! A stream with a ring of page-locked slots, which one thread uses at a time.

use std::array;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::host_copy::{Stores, copy};
use super::job::Job;
use super::policy::Direction;
use crate::driver::{Driver, EventHandle, StreamHandle};
use crate::error::{Error, Result};

/// Slots of a lane. While one is filled or emptied by the host, the copies of the others are queued
/// or run.
pub(super) const SLOTS: usize = 4;

/// Times that a thread asks for a busy slot before the driver waits for it, and the pause between
/// two of them. A copy of a slot of 2 MiB takes 40 us of a link of 50 GB/s.
const QUERIES: usize = 32;
const PAUSE: Duration = Duration::from_micros(4);

/// A stream, and an event for each slot that is passed when its copy has run.
pub(super) struct Lane {
    driver: Arc<dyn Driver>,
    stream: StreamHandle,
    /// One for each slot, or fewer if making them failed.
    events: Vec<EventHandle>,
}

/// The page-locked memory of a lane's slots, for one copy.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    /// The first byte of all slots, which lie one behind the other.
    pub(super) first: NonNull<u8>,
    /// Bytes of each slot.
    pub(super) bytes: usize,
}

// SAFETY: any thread may use the memory, and `Lane::run` has it to itself.
unsafe impl Send for Slots {}

impl Slots {
    /// Returns the start of a slot.
    fn start(&self, slot: usize) -> *mut u8 {
        self.first.as_ptr().wrapping_add(slot * self.bytes)
    }
}

impl Lane {
    pub(super) fn new(driver: Arc<dyn Driver>) -> Result<Self> {
        let stream = driver.stream_create()?;
        // From here on a failure drops the lane with what it has.
        let mut lane = Self { driver, stream, events: Vec::with_capacity(SLOTS) };
        for _ in 0..SLOTS {
            lane.events.push(lane.driver.event_create()?);
        }
        Ok(lane)
    }

    /// Copies pieces of `job` through `slots` until none is left, and returns when they are copied.
    /// No copy uses the slots from then on, even after a failure. If this unwinds, that holds once
    /// the lane is dropped.
    ///
    /// # Safety
    ///
    /// - The job's range of the device lies within one live allocation, which no other work uses.
    /// - The job's range of the host is valid for reads, or for a download for writes, and no other
    ///   code uses the pieces that this lane takes.
    /// - The job's pieces are no larger than the slots, which are page-locked memory that nothing
    ///   else uses.
    pub(super) unsafe fn run(&mut self, job: &Job, slots: Slots) -> Result<()> {
        let copied = match job.direction {
            // SAFETY: the caller's promises, here and below.
            Direction::Upload => unsafe { self.upload(job, slots) },
            // SAFETY: as above.
            Direction::Download => unsafe { self.download(job, slots) },
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
    unsafe fn upload(&self, job: &Job, slots: Slots) -> Result<()> {
        for turn in 0.. {
            let Some(piece) = job.take() else { break };
            let slot = turn % SLOTS;
            if turn >= SLOTS {
                self.wait(slot)?;
            }
            let staged = slots.start(slot);
            // SAFETY: the caller promises the piece, which fits into the slot; the slot's last copy
            // has run.
            unsafe { copy(Stores::ThroughCaches, job.host.wrapping_add(piece.start), staged, piece.len()) };
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
    unsafe fn download(&self, job: &Job, slots: Slots) -> Result<()> {
        let mut pieces = array::from_fn::<_, SLOTS, _>(|_| None);
        // Queues the next piece into a slot, if there is one.
        let queue = |slot: usize| {
            let Some(piece) = job.take() else { return Ok::<_, Error>(None) };
            // SAFETY: the caller promises the piece of the device. Nothing uses the slot until
            // `wait` or `synchronize` has seen this copy run.
            unsafe {
                self.driver.copy_d2h(slots.start(slot), job.device + piece.start as u64, piece.len(), self.stream)
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
            unsafe { copy(Stores::PastCaches, slots.start(slot), job.host.wrapping_add(piece.start), piece.len()) };
            pieces[slot] = queue(slot)?;
        }
        Ok(())
    }

    fn record(&self, slot: usize) -> Result<()> {
        // SAFETY: both are live as long as the lane.
        unsafe { self.driver.event_record(self.events[slot], self.stream) }
    }

    /// Waits until the last copy of a slot has run. It is the oldest of the lane, so that all slots
    /// are busy meanwhile. The thread asks a few times, which is faster than a wait in the driver
    /// where each thread has a core, and pauses in between: a thread that asks without a pause
    /// holds up the others of the copy. Then the driver waits.
    fn wait(&self, slot: usize) -> Result<()> {
        for _ in 0..QUERIES {
            // SAFETY: the event is live as long as the lane.
            if unsafe { self.driver.event_query(self.events[slot]) }? {
                return Ok(());
            }
            let asked = Instant::now();
            while asked.elapsed() < PAUSE {
                std::hint::spin_loop();
            }
        }
        // SAFETY: as above.
        unsafe { self.driver.event_synchronize(self.events[slot]) }
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
        for &event in &self.events {
            // SAFETY: the event is live, and not used from now on.
            let _ = unsafe { self.driver.event_destroy(event) };
        }
        // SAFETY: the stream is live, and not used from now on.
        let _ = unsafe { self.driver.stream_destroy(self.stream) };
    }
}
