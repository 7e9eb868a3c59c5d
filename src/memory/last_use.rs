//! Orders streams by the memory they share.
//!
//! Each allocation remembers the stream of its last use. A use on another stream first makes that
//! stream wait for the former, so that all uses of an allocation are totally ordered and no wait
//! can be forgotten. The price: two reads of one buffer on different streams do not overlap. The
//! idea is cudarc's event pair, with one event instead of two, because a transpose is bound by
//! memory and gains nothing from overlapping another.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Allocation;
use super::home::Home;
use super::shared::Shared;
use crate::device::lock;
use crate::error::Result;
use crate::stream::Stream;

/// The stream that last used an allocation.
#[derive(Debug)]
pub(crate) struct LastUse {
    home: Home,
    last: Mutex<Use>,
}

#[derive(Debug)]
struct Use {
    /// `None` while it is the home's, so that most buffers hold no handle of it.
    away: Option<Stream>,
    /// Whether the stream has work on the memory, so that another stream must wait for it first.
    queued: bool,
}

impl LastUse {
    /// Nothing has used the memory since its home's stream got it; `fresh`, if nothing that used it
    /// before may still run.
    #[inline]
    pub(super) fn new(home: Home, fresh: bool) -> Self {
        Self { home, last: Mutex::new(Use { away: None, queued: !fresh }) }
    }

    #[inline]
    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the stream of the last use, or the one that the memory was allocated on.
    pub(crate) fn stream(&self) -> Stream {
        lock(&self.last).away.as_ref().unwrap_or(self.home.stream()).clone()
    }

    #[inline]
    fn lock(&self) -> Locked<'_> {
        Locked { home: self.home.stream(), last: lock(&self.last) }
    }

    /// The home and that stream, once nobody else uses the memory.
    #[inline]
    pub(super) fn last(&mut self) -> (&Home, &Stream) {
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        (&self.home, last.away.as_ref().unwrap_or(self.home.stream()))
    }
}

/// The last use of an allocation, while it is locked.
struct Locked<'a> {
    home: &'a Stream,
    last: MutexGuard<'a, Use>,
}

impl Locked<'_> {
    /// Makes `stream` the last to use the allocation, after the former stream. It does not wait
    /// again for the stream in `waited`. If the stream stays the same, this counts no handle.
    #[inline]
    fn follow(&mut self, stream: &Stream, waited: &mut Option<Stream>) -> Result<()> {
        if self.last.away.as_ref().unwrap_or(self.home) != stream {
            self.leave(stream, waited)?;
        }
        self.last.queued = true;
        Ok(())
    }

    #[cold]
    fn leave(&mut self, stream: &Stream, waited: &mut Option<Stream>) -> Result<()> {
        let former = self.last.away.as_ref().unwrap_or(self.home);
        if self.last.queued && waited.as_ref() != Some(former) {
            stream.wait_for(former)?;
            *waited = Some(former.clone());
        }
        // Also if the work is not queued afterwards: the stream now waits for the former uses, so
        // it stands for them.
        self.last.away = (stream != self.home).then(|| stream.clone());
        Ok(())
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
    mut used: [&Shared<Allocation>; N],
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
    if let Some(_capturing) = stream.record_uses(&used) {
        return queue();
    }
    used.sort_unstable_by_key(|memory| memory.place());
    let mut locks = [const { None }; N];
    for (at, memory) in used.into_iter().enumerate() {
        // An allocation that is already locked is the same one.
        if at == 0 || !memory.is_same(used[at - 1]) {
            locks[at] = Some(memory.last_use().lock());
        }
    }
    let mut waited = None;
    for last in locks.iter_mut().flatten() {
        last.follow(stream, &mut waited)?;
    }
    queue()
}

thread_local! {
    /// The room for the locks of the largest graph that this thread has launched; it holds no lock.
    static ROOM: Cell<Vec<Locked<'static>>> = const { Cell::new(Vec::new()) };
}

/// Queues work as [`queue_in_order`] does that uses any number of allocations, in the order of
/// their addresses and each once. It allocates if `used` is longer than ever before on this thread.
pub(crate) fn queue_all_in_order<R>(
    stream: &Stream,
    used: &[Shared<Allocation>],
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let mut locks: Vec<Locked<'_>> = ROOM.try_with(Cell::take).unwrap_or_default();
    locks.extend(used.iter().map(|memory| memory.last_use().lock()));
    let mut waited = None;
    let followed = locks.iter_mut().try_for_each(|last| last.follow(stream, &mut waited));
    let queued = followed.and_then(|()| queue());
    locks.clear();
    // Collecting in place keeps the room and ends the borrow of the locks.
    let room = locks.into_iter().map(|_| unreachable!("it was cleared")).collect();
    // A thread that ends has no room to keep.
    let _ = ROOM.try_with(|kept| kept.set(room));
    queued
}
