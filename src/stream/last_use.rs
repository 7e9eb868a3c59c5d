//! The order between streams, kept by the memory they share.
//!
//! Each allocation remembers the stream of its last use. A use on another stream first makes that
//! stream wait for the former, so that all uses of an allocation are totally ordered and no wait
//! can be forgotten. The price is that two reads of one buffer on different streams do not overlap;
//! the idea is cudarc's event pair, with one instead of two because a transpose is bound by the
//! memory and gains nothing from overlapping another.

use std::sync::Mutex;

use super::Stream;
use crate::device::lock;
use crate::error::Result;

/// The stream that last used an allocation.
#[derive(Debug, Default)]
pub(crate) struct LastUse(Mutex<Option<Stream>>);

impl LastUse {
    /// The stream of the last use, if there was one.
    pub(crate) fn stream(&self) -> Option<Stream> {
        lock(&self.0).clone()
    }
}

/// Queues work on `stream` that uses allocations, after all their former uses.
///
/// `queue` runs under the locks of the allocations: another thread that uses one of them comes
/// wholly before or after, else it could order itself behind work that is not queued yet. The locks
/// are taken in the order of their addresses, so that two threads never wait for each other;
/// several may be the same allocation.
pub(crate) fn queue_in_order<const N: usize, R>(
    stream: &Stream,
    mut uses: [&LastUse; N],
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
    uses.sort_unstable_by_key(|&last| std::ptr::from_ref(last));
    let mut locks = [const { None }; N];
    for (at, last) in uses.into_iter().enumerate() {
        // What is locked already is the same allocation.
        if at == 0 || !std::ptr::eq(last, uses[at - 1]) {
            locks[at] = Some(lock(&last.0));
        }
    }
    let mut waited = None;
    for last in locks.iter_mut().flatten() {
        follow(stream, last, &mut waited)?;
    }
    queue()
}

/// Makes `stream` the last to use an allocation, behind the former; it need not wait for the one of
/// `waited` again. Nothing to do, not even to count a handle, where the stream stays the same.
fn follow(stream: &Stream, last: &mut Option<Stream>, waited: &mut Option<Stream>) -> Result<()> {
    if last.as_ref() != Some(stream) {
        if let Some(former) = last.as_ref().filter(|&former| waited.as_ref() != Some(former)) {
            stream.wait_for(former)?;
        }
        // Also if the work is then not queued: the stream now waits for the former uses, so it
        // stands for them.
        *waited = last.replace(stream.clone());
    }
    Ok(())
}
