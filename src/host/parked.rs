//! Host memory whose owner dropped it while a copy was in flight.
//!
//! A drop must not wait, and the memory must outlast the copy. So the drop parks the memory with an
//! event behind the copy, and later calls look whether the event has been passed.

use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

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
pub(crate) struct Parked {
    /// Memory that no thread has looked at yet. A drop waits for this lock alone, and the driver is
    /// never asked under it.
    new: Mutex<Vec<(EventHandle, Lent)>>,
    /// The other memory, which a thread looks at under the lock.
    seen: Mutex<Vec<(EventHandle, Lent)>>,
}

impl Parked {
    /// Keeps memory until the event's latest record has been passed. The event is the list's from
    /// now on.
    pub(crate) fn park(&self, event: EventHandle, lent: Lent) {
        lock(&self.new).push((event, lent));
    }

    /// Gives the memory back whose event has been passed, and its event to `retire`. If the driver
    /// cannot say, the memory stays. This waits for no copy of this device. It waits for another
    /// thread that does the same, because the caller may need what that thread gives back, and for
    /// the work of another device that has closed, if this gives back the last memory of its pool.
    pub(crate) fn reap(&self, driver: &dyn Driver, retire: impl Fn(EventHandle)) {
        let mut seen = lock(&self.seen);
        seen.append(&mut lock(&self.new));
        let mut at = 0;
        while let Some(&(event, _)) = seen.get(at) {
            // SAFETY: a parked event is live until it is retired, and no other thread has this one.
            if unsafe { driver.event_query(event) } == Ok(true) {
                let (event, lent) = seen.swap_remove(at);
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
        let lists = [&mut self.seen, &mut self.new].map(|list| list.get_mut().unwrap_or_else(PoisonError::into_inner));
        let kept = |(event, lent)| (event, ManuallyDrop::new(lent));
        let parked: Vec<_> = lists.into_iter().flat_map(std::mem::take).map(kept).collect();
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

fn give_back(lent: Lent) {
    match lent {
        Lent::Block(block, pool) => pool.put(block),
        Lent::Owner(owner) => drop(owner),
    }
}
