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
use crate::device::lock;
use crate::driver::{Counted, Driver, DriverKind};
use crate::error::Result;
use crate::memory::host::HostPool;
use crate::stream::Stream;

/// The staging engine of a device.
pub(crate) struct Staging {
    driver: Arc<Counted>,
    policy: Policy,
    route: Mutex<Route>,
    /// Lanes that no copy uses.
    idle: Mutex<Vec<Lane>>,
    /// Threads of the copies that run.
    busy: AtomicUsize,
}

/// Copies `bytes` bytes to the device after the work that is queued on `stream`. Where the engine
/// wins, the host waits for that work and the bytes are there when this returns; else the driver's
/// copy is queued on the stream.
///
/// # Safety
///
/// - As [`Memory::copy_h2d`](crate::driver::Memory::copy_h2d).
/// - Only this stream has work that uses the range of the device, and no other thread queues such
///   work before this returns: [`queue_in_order`](super::queue_in_order) calls it.
pub(crate) unsafe fn upload(stream: &Stream, dst: u64, src: *const u8, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promises.
    if unsafe { staged(stream, Direction::Upload, dst, src.cast_mut(), bytes) }? {
        return Ok(());
    }
    // SAFETY: the caller's promises.
    unsafe { stream.context().driver().copy_h2d(dst, src, bytes, stream.handle()) }
}

/// Copies `bytes` bytes to the host after the work that is queued on `stream`, as [`upload`].
///
/// # Safety
///
/// - As [`Memory::copy_d2h`](crate::driver::Memory::copy_d2h).
/// - Only this stream has work that uses the range of the device, and no other thread queues such
///   work before this returns: [`queue_in_order`](super::queue_in_order) calls it.
pub(crate) unsafe fn download(stream: &Stream, dst: *mut u8, src: u64, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promises.
    if unsafe { staged(stream, Direction::Download, src, dst, bytes) }? {
        return Ok(());
    }
    // SAFETY: the caller's promises.
    unsafe { stream.context().driver().copy_d2h(dst, src, bytes, stream.handle()) }
}

/// Copies by the engine of the stream's device if that is the way. Else it returns false, and
/// nothing was copied.
///
/// # Safety
///
/// - As [`upload`] or [`download`].
unsafe fn staged(stream: &Stream, direction: Direction, device: u64, host: *mut u8, bytes: usize) -> Result<bool> {
    let context = stream.context();
    let staging = context.staging();
    let threads = staging.threads(bytes);
    // The device copies page-locked memory itself, at the speed of the link.
    if threads == 0 || staging.driver.is_page_locked(host, bytes) {
        return Ok(false);
    }
    stream.synchronize()?;
    // SAFETY: the caller's promises. The work that was queued has run, and the caller holds off
    // what comes behind, because the engine's streams are not known to it.
    unsafe { staging.copy(context.pinned(), direction, device, host, bytes, threads) }
}

impl Staging {
    pub(crate) fn new(driver: Arc<Counted>) -> Self {
        Self {
            driver,
            policy: Policy::DEFAULT,
            route: Mutex::default(),
            idle: Mutex::default(),
            busy: AtomicUsize::new(0),
        }
    }

    pub(super) fn set_route(&self, route: Route) {
        *lock(&self.route) = route;
    }

    /// Returns the threads with which a copy of `bytes` pageable bytes is staged; 0 if the driver's
    /// own copy is the better way.
    fn threads(&self, bytes: usize) -> usize {
        match *lock(&self.route) {
            Route::Driver => 0,
            Route::Staged(threads) => threads.get(),
            // The software GPU copies on the thread that waits, however many there are.
            Route::Auto if self.driver.info().kind == DriverKind::Soft => 0,
            Route::Auto => self.policy.threads(bytes, self.busy.load(Ordering::Relaxed)),
        }
    }

    /// Copies `bytes` bytes between the device and the host, and returns when they are there.
    /// Returns false, without a copy, if there is no memory for slots. After a failure or a panic
    /// no copy uses the host's memory either.
    ///
    /// # Safety
    ///
    /// - The range of the device lies within one live allocation. All work that writes it has run,
    ///   and no other work writes it meanwhile. For an upload that holds of all work that uses it.
    /// - The range of the host is valid for reads, or for a download for writes. No other code
    ///   writes it meanwhile, or for a download uses it.
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
        let made = std::iter::repeat_with(|| Lane::new(Arc::clone(&self.driver) as _)).map_while(Result::ok);
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
