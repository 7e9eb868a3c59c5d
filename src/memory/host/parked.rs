//! Host memory whose owner dropped it while a copy was in flight.
//!
//! A drop must not wait, and the memory must outlast the copy. So the drop parks the memory with an
//! event behind the copy, and later calls look whether the event has been passed.

use std::sync::Mutex;

use super::{HostBlock, HostPool};
use crate::driver::{Driver, EventHandle};
use crate::sync::lock;

/// Host memory that a copy uses.
pub(crate) enum Lent {
    /// Page-locked memory of the device's pool.
    Block(HostBlock),
    /// Other memory, freed with its owner: pageable, or of another device's pool.
    Owner(Box<dyn Send>),
}

/// The parked memory of a device.
#[derive(Default)]
pub(crate) struct Parked(Mutex<Vec<(EventHandle, Lent)>>);

impl Parked {
    /// Keeps memory until the event's latest record has been passed. The event is the list's from
    /// now on.
    pub(crate) fn park(&self, event: EventHandle, lent: Lent) {
        lock(&self.0).push((event, lent));
    }

    /// Gives the memory back whose event has been passed, and its event to `retire`. Nothing waits.
    /// If the driver cannot say, the memory stays.
    pub(crate) fn reap(&self, driver: &dyn Driver, pool: &HostPool, retire: impl Fn(EventHandle)) {
        let mut parked = lock(&self.0);
        let mut at = 0;
        while let Some(&(event, _)) = parked.get(at) {
            // SAFETY: a parked event is live until it leaves the list, which is locked.
            if unsafe { driver.event_query(event) } == Ok(true) {
                let (event, lent) = parked.swap_remove(at);
                give_back(lent, pool);
                retire(event);
            } else {
                at += 1;
            }
        }
    }

    /// Waits for what is parked and gives it back, when the device closes.
    pub(crate) fn close(&mut self, driver: &dyn Driver, pool: &HostPool) {
        for (event, lent) in std::mem::take(&mut *lock(&self.0)) {
            // SAFETY: a parked event is live until it is destroyed below.
            let passed = unsafe { driver.event_synchronize(event) };
            match lent {
                // A copy may still write it, and nothing is left to wait for.
                Lent::Owner(owner) if passed.is_err() => std::mem::forget(owner),
                // The release of page-locked memory lets queued work run first.
                lent => give_back(lent, pool),
            }
            // SAFETY: the event is live, and nothing uses it from now on. No caller is left to
            // receive a failure.
            let _ = unsafe { driver.event_destroy(event) };
        }
    }
}

fn give_back(lent: Lent, pool: &HostPool) {
    match lent {
        Lent::Block(block) => pool.put(block),
        Lent::Owner(owner) => drop(owner),
    }
}
