//! Copies between ordinary memory of the host and a device, at the speed of the link.
//!
//! A driver copies pageable memory on one thread through one buffer. Here several threads do it:
//! each has a stream and a ring of page-locked slots, moves pieces between the caller's memory and
//! its slots, and the device copies the slots meanwhile. A slot is used again once the event behind
//! its copy has been passed.
//!
//! The threads are the engine's own, and take no task of anybody else: a caller that is a worker of
//! a pool cannot wait for itself. They stay with their streams and events between calls, and the
//! memory of the slots goes back to the device's pool.

mod helper;
mod host_copy;
mod job;
mod lane;
mod policy;
#[cfg(all(test, feature = "interp"))]
mod tests;

pub(crate) use policy::Direction;
pub use policy::Route;

use std::fmt;
use std::iter::successors;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use self::helper::Helper;
use self::job::Job;
use self::lane::{Lane, SLOTS, Slots};
use self::policy::Policy;
use crate::driver::{Driver, DriverKind, HostKind};
use crate::error::Result;
use crate::memory::host::{HostBlock, HostPool};
use crate::sync::lock;

/// The staging engine of a device.
pub(crate) struct Staging {
    driver: Arc<dyn Driver>,
    /// By direction.
    policies: [Policy; 2],
    /// Threads that no copy uses.
    idle: Mutex<Vec<Helper>>,
    /// Threads of the copies that run.
    busy: AtomicUsize,
}

impl Staging {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, policies: [Policy::UPLOAD, Policy::DOWNLOAD], idle: Mutex::default(), busy: AtomicUsize::new(0) }
    }

    /// Returns the threads with which a copy of `bytes` pageable bytes is staged; 0 if the driver's
    /// own copy is the better way.
    pub(crate) fn threads(&self, route: Route, direction: Direction, bytes: usize) -> usize {
        match route {
            Route::Driver => 0,
            Route::Staged(threads) => threads.get(),
            // The software GPU copies on the thread that waits, however many there are.
            Route::Auto if self.driver.info().kind == DriverKind::Soft => 0,
            Route::Auto => self.policy(direction).threads(bytes, self.busy.load(Ordering::Relaxed)),
        }
    }

    fn policy(&self, direction: Direction) -> &Policy {
        &self.policies[direction as usize]
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
        let piece = self.policy(direction).slot_bytes(bytes, threads, SLOTS);
        let mut helpers = self.helpers(threads.min(bytes.div_ceil(piece)));
        let Some((block, count)) = slots(pool, helpers.len(), piece) else { return Ok(false) };
        let rest = helpers.split_off(count);
        rest.into_iter().for_each(|helper| self.keep(helper));

        let job = Arc::new(Job::new(direction, device, host, bytes, piece));
        let busy = Busy::new(&self.busy, count);
        for (at, helper) in helpers.iter().enumerate() {
            // SAFETY: the block has room for the slots of each helper.
            let first = unsafe { block.memory().add(at * SLOTS * piece) };
            // SAFETY: the caller's promises. Each piece is taken once and fits into a slot. Below,
            // this waits for every helper, and only then gives the slots back.
            unsafe { helper.start(&job, Slots { first, bytes: piece }) };
        }
        let (mut outcome, mut panic) = (Ok(true), None);
        for helper in helpers {
            match helper.wait() {
                Ok(Ok(())) => self.keep(helper),
                Ok(Err(error)) => outcome = outcome.and(Err(error)),
                Err(payload) => panic = Some(payload),
            }
        }
        drop(busy);
        pool.put(block);
        panic.map_or(outcome, |payload| resume_unwind(payload))
    }

    /// Takes `count` helpers, or fewer if no more can be made.
    fn helpers(&self, count: usize) -> Vec<Helper> {
        let idle = {
            let mut idle = lock(&self.idle);
            let rest = idle.len().saturating_sub(count);
            idle.split_off(rest)
        };
        let make = || Lane::new(&self.driver).ok().and_then(|lane| Helper::new(lane).ok());
        let made = std::iter::repeat_with(make).map_while(|made| made);
        idle.into_iter().chain(made).take(count).collect()
    }

    /// Keeps a helper for the next copy, if not more are idle than one copy uses.
    fn keep(&self, helper: Helper) {
        let mut idle = lock(&self.idle);
        if Some(idle.len()) < self.policies.iter().map(|policy| policy.most_threads).max() {
            idle.push(helper);
        }
    }
}

/// Takes memory for the slots of `count` helpers, with slots of `bytes` bytes each; or of fewer
/// helpers, by their number, if there is no more memory.
fn slots(pool: &HostPool, count: usize, bytes: usize) -> Option<(HostBlock, usize)> {
    let fewer = successors(Some(count), |count| Some(count / 2)).take_while(|&count| count > 0);
    // One block for all: to lock it takes hardly longer than to lock the slots of one.
    fewer.into_iter().find_map(|count| Some((pool.take(count * SLOTS * bytes, HostKind::Cached).ok()?, count)))
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").field("policies", &self.policies).finish_non_exhaustive()
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
