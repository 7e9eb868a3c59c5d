//! Host memory whose owner dropped it while a copy was in flight.
//!
//! A drop must not wait, and the memory must outlast the copy. So the drop parks the memory with an
//! event behind the copy, and later calls look whether the event has been passed.

use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

use super::{HostBlock, HostPool};
use crate::driver::{Driver, EventHandle};
use crate::sync::lock;

/// Host memory that a copy uses.
pub(crate) enum Lent {
    /// Page-locked memory of a pool, which may be another device's. It keeps the pool and not the
    /// device: two devices that park each other's memory would never close.
    Block(HostBlock, Arc<HostPool>),
    /// Pageable memory, freed with its owner.
    Owner(Box<dyn Send>),
}

/// The parked memory of a device.
#[derive(Default)]
pub(crate) struct Parked(Mutex<Vec<(EventHandle, Lent)>>);

/// Parked memory that one thread looks at. What is left goes back to the list, also on a panic of
/// the driver.
struct Taken<'p> {
    list: &'p Parked,
    parked: Vec<(EventHandle, Lent)>,
}

impl Parked {
    /// Keeps memory until the event's latest record has been passed. The event is the list's from
    /// now on.
    pub(crate) fn park(&self, event: EventHandle, lent: Lent) {
        lock(&self.0).push((event, lent));
    }

    /// Gives the memory back whose event has been passed, and its event to `retire`. Nothing waits.
    /// If the driver cannot say, the memory stays. The driver is asked without the lock, so that no
    /// drop waits for its answers; another thread finds nothing here meanwhile.
    pub(crate) fn reap(&self, driver: &dyn Driver, retire: impl Fn(EventHandle)) {
        let mut taken = Taken { list: self, parked: std::mem::take(&mut *lock(&self.0)) };
        let mut at = 0;
        while let Some(&(event, _)) = taken.parked.get(at) {
            // SAFETY: a parked event is live until it is retired, and nobody else has this one.
            if unsafe { driver.event_query(event) } == Ok(true) {
                let (event, lent) = taken.parked.swap_remove(at);
                give_back(lent);
                retire(event);
            } else {
                at += 1;
            }
        }
    }

    /// Waits for what is parked and gives it back, when the device of the pool `own` closes. If the
    /// driver panics, the rest stays for ever, because copies may still use it.
    pub(crate) fn close(&mut self, driver: &dyn Driver, own: &Arc<HostPool>) {
        let kept = |(event, lent)| (event, ManuallyDrop::new(lent));
        let parked: Vec<_> = std::mem::take(&mut *lock(&self.0)).into_iter().map(kept).collect();
        for (event, lent) in parked {
            // SAFETY: a parked event is live until it is destroyed below.
            let passed = unsafe { driver.event_synchronize(event) };
            match ManuallyDrop::into_inner(lent) {
                // A copy may still write it, and nothing is left to wait for.
                Lent::Owner(owner) if passed.is_err() => std::mem::forget(owner),
                // As above: another device would use the block again. A block that is not put back
                // stays page-locked.
                Lent::Block(_, pool) if passed.is_err() && !Arc::ptr_eq(&pool, own) => {}
                // The release of the device's own memory lets queued work run first.
                lent => give_back(lent),
            }
            // SAFETY: the event is live, and nothing uses it from now on. No caller is left to
            // receive a failure.
            let _ = unsafe { driver.event_destroy(event) };
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.parked.is_empty() {
            lock(&self.list.0).append(&mut self.parked);
        }
    }
}

fn give_back(lent: Lent) {
    match lent {
        Lent::Block(block, pool) => pool.put(block),
        Lent::Owner(owner) => drop(owner),
    }
}
