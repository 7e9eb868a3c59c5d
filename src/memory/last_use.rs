//! Orders streams by the memory they share.
//!
//! Each allocation remembers the stream of its last use. A use on another stream first makes that
//! stream wait for the former, so that all uses of an allocation are totally ordered and no wait
//! can be forgotten. The price: two reads of one buffer on different streams do not overlap. The
//! idea is cudarc's event pair, with one event instead of two, because a transpose is bound by
//! memory and gains nothing from overlapping another.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Allocation;
use crate::device::lock;
use crate::error::Result;
use crate::stream::Stream;

/// The stream that last used an allocation.
#[derive(Debug)]
pub(crate) struct LastUse(Mutex<Use>);

#[derive(Debug)]
struct Use {
    stream: Stream,
    /// Whether the stream has work on the memory, so that another stream must wait for it first.
    queued: bool,
}

impl LastUse {
    /// Nothing has used the memory since `stream` got it; `fresh`, if nothing that used it before
    /// may still run.
    pub(super) fn new(stream: Stream, fresh: bool) -> Self {
        Self(Mutex::new(Use { stream, queued: !fresh }))
    }

    /// Returns the stream of the last use, or the one that the memory was allocated on.
    pub(crate) fn stream(&self) -> Stream {
        lock(&self.0).stream.clone()
    }

    /// The same, once nobody else uses the memory.
    pub(super) fn last(&mut self) -> &Stream {
        &self.0.get_mut().unwrap_or_else(PoisonError::into_inner).stream
    }
}

/// Queues work on `stream` that uses allocations, after all their former uses.
///
/// `queue` runs under the locks of the allocations, so another thread that uses one of them comes
/// wholly before or after; else it could order itself after work that is not queued yet. The locks
/// are taken in the order of their addresses, so two threads never wait for each other. Several
/// allocations may be the same.
///
/// If the stream is being captured, nothing is ordered: the graph keeps the allocations, and its
/// launches use them.
pub(crate) fn queue_in_order<const N: usize, R>(
    stream: &Stream,
    mut used: [&Arc<Allocation>; N],
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
    if let Some(_capturing) = stream.record_uses(&used) {
        return queue();
    }
    used.sort_unstable_by_key(|&memory| Arc::as_ptr(memory));
    let mut locks = [const { None }; N];
    for (at, memory) in used.into_iter().enumerate() {
        // An allocation that is already locked is the same one.
        if at == 0 || !Arc::ptr_eq(memory, used[at - 1]) {
            locks[at] = Some(lock(&memory.last_use().0));
        }
    }
    let mut waited = None;
    for last in locks.iter_mut().flatten() {
        follow(stream, last, &mut waited)?;
    }
    queue()
}

type Lock<'a> = MutexGuard<'a, Use>;

thread_local! {
    /// The room for the locks of the largest graph that this thread has launched; it holds no lock.
    static ROOM: Cell<Vec<Lock<'static>>> = const { Cell::new(Vec::new()) };
}

/// Queues work as [`queue_in_order`] does that uses any number of allocations, in the order of
/// their addresses and each once. It allocates if `used` is longer than ever before on this thread.
pub(crate) fn queue_all_in_order<R>(
    stream: &Stream,
    used: &[Arc<Allocation>],
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let mut locks: Vec<Lock<'_>> = ROOM.try_with(Cell::take).unwrap_or_default();
    locks.extend(used.iter().map(|memory| lock(&memory.last_use().0)));
    let mut waited = None;
    let followed = locks.iter_mut().try_for_each(|last| follow(stream, last, &mut waited));
    let queued = followed.and_then(|()| queue());
    locks.clear();
    // Collecting in place keeps the room and ends the borrow of the locks.
    let room = locks.into_iter().map(|_| unreachable!("it was cleared")).collect();
    // A thread that ends has no room to keep.
    let _ = ROOM.try_with(|kept| kept.set(room));
    queued
}

/// Makes `stream` the last to use an allocation, after the former stream. It does not wait again
/// for the stream in `waited`. If the stream stays the same, this does nothing and counts no
/// handle.
fn follow(stream: &Stream, last: &mut Use, waited: &mut Option<Stream>) -> Result<()> {
    if last.stream != *stream {
        if last.queued && waited.as_ref() != Some(&last.stream) {
            stream.wait_for(&last.stream)?;
        }
        // Also if the work is not queued afterwards: the stream now waits for the former uses, so
        // it stands for them.
        let former = std::mem::replace(&mut last.stream, stream.clone());
        if last.queued {
            *waited = Some(former);
        }
    }
    last.queued = true;
    Ok(())
}
