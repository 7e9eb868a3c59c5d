//! Copies between ordinary memory of the host and a device, at the speed of the link.
//!
//! A driver copies pageable memory on one thread through one buffer. Here several threads do it:
//! each has a stream and a ring of page-locked slots, moves pieces between the caller's memory and
//! its slots, and the device copies the slots meanwhile. A slot is used again once the event behind
//! its copy has been passed.
//!
//! The threads are plain ones that end with the call, and take no task of anybody else: a caller
//! that is a worker of a pool cannot wait for itself. Streams and events stay with the engine
//! between calls, and the memory of the slots is that of the device's pool.

mod host_copy;
mod job;
mod lane;
mod policy;
#[cfg(all(test, feature = "interp"))]
mod tests;

pub use policy::Route;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, thread};

use self::job::Job;
use self::lane::{Lane, SLOTS, Slots};
use self::policy::{Direction, Policy};
use crate::driver::{Driver, DriverKind};
use crate::error::Result;
use crate::memory::host::HostPool;
use crate::sync::lock;

/// The staging engine of a device.
pub(crate) struct Staging {
    driver: Arc<dyn Driver>,
    policy: Policy,
    /// Lanes that no copy uses.
    idle: Mutex<Vec<Lane>>,
    /// Threads of the copies that run.
    busy: AtomicUsize,
}

impl Staging {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, policy: Policy::DEFAULT, idle: Mutex::default(), busy: AtomicUsize::new(0) }
    }

    /// Returns the threads with which a copy of `bytes` pageable bytes is staged; 0 if the driver's
    /// own copy is the better way.
    pub(crate) fn threads(&self, route: Route, bytes: usize) -> usize {
        match route {
            Route::Driver => 0,
            Route::Staged(threads) => threads.get(),
            // The software GPU copies on the thread that waits, however many there are.
            Route::Auto if self.driver.info().kind == DriverKind::Soft => 0,
            Route::Auto => self.policy.threads(bytes, self.busy.load(Ordering::Relaxed)),
        }
    }

    /// Copies `bytes` bytes to the device, and returns when they are there. Returns false, without
    /// a copy, if there is no memory for slots.
    ///
    /// # Safety
    ///
    /// - `dst .. dst + bytes` lies within one live allocation. All work that uses it has run, and
    ///   no other work uses it meanwhile.
    /// - `src` is valid for reads of `bytes` bytes, which no other code writes meanwhile.
    pub(crate) unsafe fn upload(
        &self,
        pool: &HostPool,
        dst: u64,
        src: *const u8,
        bytes: usize,
        threads: usize,
    ) -> Result<bool> {
        // SAFETY: the caller's promises.
        unsafe { self.copy(pool, Direction::Upload, dst, src.cast_mut(), bytes, threads) }
    }

    /// Copies `bytes` bytes to the host, and returns when they are there. Returns false, without a
    /// copy, if there is no memory for slots.
    ///
    /// # Safety
    ///
    /// - `src .. src + bytes` lies within one live allocation. All work that writes it has run, and
    ///   no other work writes it meanwhile.
    /// - `dst` is valid for writes of `bytes` bytes, which no other code uses meanwhile.
    pub(crate) unsafe fn download(
        &self,
        pool: &HostPool,
        dst: *mut u8,
        src: u64,
        bytes: usize,
        threads: usize,
    ) -> Result<bool> {
        // SAFETY: the caller's promises.
        unsafe { self.copy(pool, Direction::Download, src, dst, bytes, threads) }
    }

    /// Copies between the device and the host.
    ///
    /// # Safety
    ///
    /// - As [`Staging::upload`] or [`Staging::download`].
    unsafe fn copy(
        &self,
        pool: &HostPool,
        direction: Direction,
        device: u64,
        host: *mut u8,
        bytes: usize,
        threads: usize,
    ) -> Result<bool> {
        let piece = self.policy.slot_bytes(direction, bytes, threads, SLOTS);
        let lanes = self.lanes(pool, threads.min(bytes.div_ceil(piece)), piece);
        if lanes.is_empty() {
            return Ok(false);
        }
        let job = Job::new(direction, device, host, bytes, piece);
        let _busy = Busy::new(&self.busy, lanes.len());
        let run = |(slots, mut lane): (Slots<'_>, Lane)| {
            // SAFETY: the caller's promises. Each piece is taken once, and fits into a slot. The
            // lane is dropped before the slots.
            unsafe { lane.run(&job, &slots) }.map(|()| self.keep(lane))
        };
        let mut lanes = lanes.into_iter();
        let own = lanes.next();
        thread::scope(|scope| {
            // A lane without a thread is dropped, and the others take its pieces.
            let start = |lane| thread::Builder::new().spawn_scoped(scope, move || run(lane)).ok();
            let started: Vec<_> = lanes.filter_map(start).collect();
            let outcome = own.map_or(Ok(()), run);
            let join =
                |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            started.into_iter().map(join).fold(outcome, Result::and).map(|()| true)
        })
    }

    /// Takes `count` lanes with slots of `bytes` bytes each, or fewer if no more can be made.
    fn lanes<'p>(&self, pool: &'p HostPool, count: usize, bytes: usize) -> Vec<(Slots<'p>, Lane)> {
        let idle = {
            let mut idle = lock(&self.idle);
            let rest = idle.len().saturating_sub(count);
            idle.split_off(rest)
        };
        let made = std::iter::repeat_with(|| Lane::new(&self.driver)).map_while(Result::ok);
        let with_slots = |lane| Slots::new(pool, bytes).ok().map(|slots| (slots, lane));
        idle.into_iter().chain(made).take(count).map_while(with_slots).collect()
    }

    /// Keeps a lane for the next copy, if not more are idle than one copy uses.
    fn keep(&self, lane: Lane) {
        let mut idle = lock(&self.idle);
        if idle.len() < self.policy.most_threads {
            idle.push(lane);
        }
    }
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Counts the threads of a copy while it lives.
struct Busy<'a> {
    count: &'a AtomicUsize,
    threads: usize,
}

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicUsize, threads: usize) -> Self {
        count.fetch_add(threads, Ordering::Relaxed);
        Self { count, threads }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(self.threads, Ordering::Relaxed);
    }
}
