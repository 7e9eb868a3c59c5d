//! Orders streams by the memory they share.
//!
//! Each allocation remembers the stream of its last use. A use on another stream first makes that
//! stream wait for the former, so that all uses of an allocation are totally ordered and no wait
//! can be forgotten. The price: two reads of one buffer on different streams do not overlap. The
//! idea is cudarc's event pair, with one event instead of two, because a transpose is bound by
//! memory and gains nothing from overlapping another.

use std::sync::{Arc, Mutex};

use super::Allocation;
use crate::device::lock;
use crate::error::Result;
use crate::stream::Stream;

/// The stream that last used an allocation.
#[derive(Debug, Default)]
pub(crate) struct LastUse(Mutex<Option<Stream>>);

impl LastUse {
    /// Returns the stream of the last use, if there was one.
    pub(crate) fn stream(&self) -> Option<Stream> {
        lock(&self.0).clone()
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
fn follow(stream: &Stream, last: &mut Option<Stream>, waited: &mut Option<Stream>) -> Result<()> {
    if last.as_ref() != Some(stream) {
        if let Some(former) = last.as_ref().filter(|&former| waited.as_ref() != Some(former)) {
            stream.wait_for(former)?;
        }
        // Also if the work is not queued afterwards: the stream now waits for the former uses, so
        // it stands for them.
        *waited = last.replace(stream.clone());
    }
    Ok(())
}
