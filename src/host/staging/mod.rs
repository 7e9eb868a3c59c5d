//! Copies between ordinary memory of the host and a device, at the speed of the link.
//!
//! A driver copies pageable memory on one thread through one buffer. Here several threads do it:
//! each has a stream and a ring of page-locked slots, moves pieces between the caller's memory and
//! its slots, and the device copies the slots meanwhile. A slot is used again once the event behind
//! its copy has been passed.
//!
//! The threads are the engine's own, and take no other tasks: a caller that is a worker of a pool
//! cannot wait for itself. They stay with their streams and events between calls, and the memory of
//! the slots goes back to the device's pool.

mod helper;
mod host_copy;
mod job;
mod lane;
mod policy;
#[cfg(all(test, feature = "interp"))]
mod tests;

pub use policy::Route;

use std::fmt;
use std::iter::{from_fn, successors};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use self::helper::Helper;
#[cfg(feature = "pipeline")]
use self::host_copy::Stores;
use self::job::Job;
use self::lane::{Lane, SLOTS, Slots};
pub(crate) use self::policy::Direction;
use self::policy::Policy;
use super::{HostBlock, HostPool};
use crate::driver::{Counted, Driver, DriverKind, HostKind};
#[cfg(feature = "pipeline")]
use crate::element::Element;
use crate::error::Result;
use crate::sync::lock;

/// Copies elements within the host, past the caches if the processor can, for large copies whose
/// result is not read soon.
///
/// # Panics
///
/// If the lengths differ.
#[cfg(feature = "pipeline")]
pub(crate) fn copy_past_caches<T: Element>(src: &[T], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len(), "a copy is between slices of one length");
    // SAFETY: both slices have these bytes, of elements without padding, and an exclusive borrow
    // overlaps no other.
    unsafe { host_copy::copy(Stores::PastCaches, src.as_ptr().cast(), dst.as_mut_ptr().cast(), size_of_val(src)) };
}

/// The staging engine of a device.
pub(crate) struct Staging {
    driver: Arc<Counted>,
    /// By direction.
    policies: [Policy; 2],
    route: Mutex<Route>,
    /// Threads that no copy uses.
    idle: Mutex<Vec<Helper>>,
    /// Threads of the copies that run.
    busy: AtomicUsize,
}

impl Staging {
    pub(crate) fn new(driver: Arc<Counted>) -> Self {
        Self {
            driver,
            policies: [Policy::UPLOAD, Policy::DOWNLOAD],
            route: Mutex::default(),
            idle: Mutex::default(),
            busy: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set_route(&self, route: Route) {
        *lock(&self.route) = route;
    }

    /// Returns the threads with which a copy of `bytes` pageable bytes is staged; 0 if the driver's
    /// own copy is the better way.
    fn threads(&self, direction: Direction, bytes: usize) -> usize {
        match *lock(&self.route) {
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

    /// Copies `bytes` bytes between the device and the host if the engine is the way: after `wait`,
    /// and they are there when this returns. Else it returns false, and nothing was copied.
    ///
    /// # Safety
    ///
    /// - As `copy`, once `wait` has returned.
    pub(crate) unsafe fn copy_after(
        &self,
        wait: impl FnOnce() -> Result<()>,
        pool: &HostPool,
        direction: Direction,
        device: u64,
        host: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        let threads = self.threads(direction, bytes);
        // The device copies page-locked memory itself, at the speed of the link.
        if threads == 0 || self.driver.is_page_locked(host, bytes) {
            return Ok(false);
        }
        wait()?;
        // SAFETY: the caller's promises.
        unsafe { self.copy(pool, direction, device, host, bytes, threads) }
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
        let piece = self.policy(direction).slot_bytes(bytes, threads, SLOTS);
        let Some((block, count)) = slots(pool, threads.min(bytes.div_ceil(piece)), piece) else { return Ok(false) };
        let helpers = self.helpers(count);
        if helpers.is_empty() {
            pool.put(block);
            return Ok(false);
        }
        let job = Arc::new(Job::new(direction, device, host, bytes, piece));
        let busy = Busy::new(&self.busy, helpers.len());
        for (at, helper) in helpers.iter().enumerate() {
            // SAFETY: the block has room for the slots of each helper.
            let first = unsafe { block.memory().add(at * SLOTS * piece) };
            // SAFETY: the caller's promises. Each piece is taken once and fits into a slot. Below,
            // this waits for every helper, and only then gives the slots back.
            unsafe { helper.start(&job, Slots { first, bytes: piece }) };
        }
        let (mut outcome, mut panic, mut ended) = (Ok(true), None, Vec::new());
        for helper in helpers {
            match helper.wait() {
                Ok(Ok(())) => ended.extend(self.keep(helper)),
                Ok(Err(error)) => {
                    outcome = outcome.and(Err(error));
                    ended.push(helper);
                }
                Err(payload) => {
                    panic = Some(payload);
                    ended.push(helper);
                }
            }
        }
        drop(busy);
        pool.put(block);
        // This waits for their threads, so it comes when all parts of the copy are done.
        drop(ended);
        panic.map_or(outcome, |payload| resume_unwind(payload))
    }

    /// Takes `count` helpers, or fewer if no more can be made.
    fn helpers(&self, count: usize) -> Vec<Helper> {
        let idle = {
            let mut idle = lock(&self.idle);
            let rest = idle.len().saturating_sub(count);
            idle.split_off(rest)
        };
        let make = || Lane::new(Arc::clone(&self.driver) as _).ok().and_then(|lane| Helper::new(lane).ok());
        let made = from_fn(make);
        idle.into_iter().chain(made).take(count).collect()
    }

    /// Keeps a helper for the next copy. It returns the helper if as many are idle as one copy
    /// uses.
    fn keep(&self, helper: Helper) -> Option<Helper> {
        let mut idle = lock(&self.idle);
        if Some(idle.len()) >= self.policies.iter().map(|policy| policy.most_threads).max() {
            return Some(helper);
        }
        idle.push(helper);
        None
    }
}

/// Takes memory for the slots of `count` helpers, with slots of `bytes` bytes each; or of fewer
/// helpers, by their number, if there is no more memory.
fn slots(pool: &HostPool, count: usize, bytes: usize) -> Option<(HostBlock, usize)> {
    let fewer = successors(Some(count), |count| Some(count / 2)).take_while(|&count| count > 0);
    // One block for all, because each call of the driver that locks memory costs time by itself.
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
