//! Orders streams by the memory they share.
//!
//! Each allocation remembers the stream of its last use. A use on another stream first makes that
//! stream wait for the former, so that all uses of an allocation are totally ordered and no wait
//! can be forgotten. The price: two reads of one buffer on different streams do not overlap. The
//! idea is cudarc's event pair, with one event instead of two, because a transpose is bound by
//! memory and gains nothing from overlapping another.

use std::sync::{Arc, Mutex, PoisonError};

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
pub(crate) fn queue_in_order<const N: usize, R>(
    stream: &Stream,
    mut used: [&Arc<Allocation>; N],
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
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
