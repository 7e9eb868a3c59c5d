//! Orders streams by the memory they share.
//!
//! Each allocation remembers the stream of its last use. A use on another stream first makes that
//! stream wait for the former, so that all uses of an allocation are totally ordered and no wait
//! can be forgotten. The price: two reads of one buffer on different streams do not overlap. The
//! idea is cudarc's event pair, with one event instead of two, because a transpose is bound by
//! memory and gains nothing from overlapping another.
//!
//! The other stream waits for all work that is queued on the former at that moment. Where more work
//! follows before another stream takes over, a fence behind the last use makes the wait exact.

use std::mem;
use std::sync::PoisonError;

use super::home::Home;
use super::joint::Part;
use super::{Allocation, Capturing, Event, Shared, Stream};
use crate::error::Result;
use crate::sync::{Mutex, MutexGuard, lock};

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
    /// The work of the stream on the memory, for which another stream must wait first.
    queued: Queued,
    /// The event of the allocation's fences, once it has had one.
    fence: Option<Box<Event>>,
    /// Set while the last use is a graph's, and then that knows the stream.
    joint: Option<Part>,
}

/// The work of a stream on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queued {
    No,
    /// It ends with all work that is queued on the stream now, at the latest.
    Yes,
    /// It ends with the event of the fence.
    #[cfg_attr(not(feature = "pipeline"), allow(dead_code, reason = "pipelines alone have fences"))]
    Fenced,
}

impl Use {
    /// Ends a joint use, so that this one knows the stream.
    #[cold]
    fn part(&mut self, joint: Part, home: &Stream) {
        self.away = joint.leave().filter(|stream| stream != home);
        self.queued = Queued::Yes;
    }
}

impl LastUse {
    /// Nothing has used the memory since its home's stream got it; `fresh`, if nothing that used it
    /// before may still run.
    #[inline]
    pub(super) fn new(home: Home, fresh: bool) -> Self {
        let queued = if fresh { Queued::No } else { Queued::Yes };
        Self { home, last: Mutex::new(Use { away: None, queued, fence: None, joint: None }) }
    }

    #[inline]
    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the stream of the last use, or the one that the memory was allocated on.
    pub(crate) fn stream(&self) -> Stream {
        self.lock().stream().clone()
    }

    /// Queues an event behind the last use. A later use on another stream then waits for that
    /// alone, and not for what is queued on the stream of the last use by then. `make` makes the
    /// event, for the allocation's first fence.
    #[cfg_attr(not(feature = "pipeline"), allow(dead_code, reason = "pipelines alone have fences"))]
    pub(crate) fn fence(&self, make: impl FnOnce() -> Result<Event>) -> Result<()> {
        let mut locked = self.lock();
        if locked.last.queued == Queued::No {
            return Ok(());
        }
        if locked.last.fence.is_none() {
            locked.last.fence = Some(Box::new(make()?));
        }
        let event = locked.last.fence.as_deref().expect("it was made");
        locked.stream().record(event)?;
        locked.last.queued = Queued::Fenced;
        Ok(())
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_> {
        let mut locked = Locked { home: self.home.stream(), last: lock(&self.last) };
        if let Some(joint) = locked.last.joint.take() {
            locked.last.part(joint, locked.home);
        }
        locked
    }

    /// Returns the home and that stream, once no other handle uses the memory.
    #[inline]
    pub(super) fn last(&mut self) -> (&Home, &Stream) {
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(joint) = last.joint.take() {
            last.part(joint, self.home.stream());
        }
        (&self.home, last.away.as_ref().unwrap_or(self.home.stream()))
    }
}

/// The last use of an allocation, while it is locked.
pub(super) struct Locked<'a> {
    home: &'a Stream,
    last: MutexGuard<'a, Use>,
}

impl Locked<'_> {
    #[inline]
    fn stream(&self) -> &Stream {
        self.last.away.as_ref().unwrap_or(self.home)
    }

    /// Makes the last use a part of a joint one.
    pub(super) fn join(&mut self, joint: Part) {
        self.last.away = None;
        self.last.joint = Some(joint);
    }

    /// Makes `stream` the last to use the allocation, after the former stream. It does not wait
    /// again for the stream in `waited`. If the stream stays the same, this counts no handle.
    ///
    /// It returns the former handle, to be dropped without a lock: the drop of a stream's last one
    /// calls the allocator, which may be a program's own.
    #[inline]
    pub(super) fn follow(&mut self, stream: &Stream, waited: &mut Option<Stream>) -> Result<Option<Stream>> {
        let former = if self.stream() == stream { None } else { self.leave(stream, waited)? };
        self.last.queued = Queued::Yes;
        Ok(former)
    }

    #[cold]
    fn leave(&mut self, stream: &Stream, waited: &mut Option<Stream>) -> Result<Option<Stream>> {
        match (self.last.queued, &self.last.fence) {
            (Queued::No, _) => {}
            (Queued::Fenced, Some(event)) => stream.wait(event)?,
            _ => wait_once(stream, self.stream(), waited)?,
        }
        // Also if the work is not queued afterwards: the stream now waits for the former uses, so
        // it stands for them.
        Ok(mem::replace(&mut self.last.away, (stream != self.home).then(|| stream.clone())))
    }
}

/// Queues work on `stream` that uses allocations, after all their former uses.
///
/// `queue` runs under the locks of the allocations, so another thread that uses one of them comes
/// wholly before or after; else it could order itself after work that is not queued yet. Several
/// allocations may be the same.
///
/// If the stream is being captured, nothing is ordered: the graph keeps the allocations, and its
/// launches use them. A graph of another owner keeps nothing: see [`Stream::check_keeps_memory`].
pub(crate) fn queue_in_order<const N: usize, R>(
    stream: &Stream,
    used: [&Shared<Allocation>; N],
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let _held = hold(stream, used)?;
    queue()
}

/// The locks that keep other uses of allocations out. Handles of former streams are dropped behind
/// the locks.
type Held<'a, const N: usize> = (Option<Capturing<'a>>, [Option<Locked<'a>>; N], [Option<Stream>; N]);

/// Makes `stream` the last to use allocations, after their former uses, and returns the locks that
/// keep other uses of them out. They are taken in the order of the allocations' addresses, so two
/// threads never wait for each other.
///
/// It does not depend on the work, so the compiler makes one for each number of allocations and not
/// one for each operation.
fn hold<'a, const N: usize>(stream: &'a Stream, mut used: [&'a Shared<Allocation>; N]) -> Result<Held<'a, N>> {
    // Before the locks, so that a failure drops it behind them too.
    let mut formers = [const { None }; N];
    let mut locks = [const { None }; N];
    stream.check_keeps_memory()?;
    if let Some(capturing) = stream.record_uses(&used) {
        return Ok((Some(capturing), locks, formers));
    }
    used.sort_unstable_by_key(|memory| memory.place());
    for (at, memory) in used.into_iter().enumerate() {
        // An allocation that is already locked is the same one.
        if at == 0 || !memory.is_same(used[at - 1]) {
            locks[at] = Some(memory.last_use().lock());
        }
    }
    let mut waited = None;
    for (last, former) in locks.iter_mut().zip(&mut formers) {
        if let Some(last) = last {
            *former = last.follow(stream, &mut waited)?;
        }
    }
    Ok((None, locks, formers))
}

/// Queues work on several streams, each of which uses the allocations beside it, after all their
/// former uses. The streams may be of several devices, and `queue` orders them among each other.
///
/// `queue` runs under the locks of all the allocations: see [`queue_in_order`].
///
/// # Errors
///
/// `InvalidArgument` if a stream is captured; else the driver's error.
#[cfg(feature = "distributed")]
pub(crate) fn queue_across<'a, R>(
    mut used: Vec<(&'a Stream, &'a Shared<Allocation>)>,
    queue: impl FnOnce() -> Result<R>,
) -> Result<R> {
    // Before the locks, so that a failure drops them behind the locks.
    let mut formers = Vec::with_capacity(used.len());
    used.sort_unstable_by_key(|(_, memory)| memory.place());
    used.dedup_by(|a, b| a.1.is_same(b.1));
    for (stream, _) in &used {
        stream.check_not_capturing("work of several GPUs")?;
        stream.check_keeps_memory()?;
    }
    let mut locks: Vec<(&Stream, Locked<'_>)> =
        used.iter().map(|(stream, memory)| (*stream, memory.last_use().lock())).collect();
    for (stream, last) in &mut locks {
        formers.extend(last.follow(stream, &mut None)?);
    }
    let queued = queue();
    drop(locks);
    queued
}

/// Makes `stream` wait for a former one, unless that is the stream in `waited`.
pub(super) fn wait_once(stream: &Stream, former: &Stream, waited: &mut Option<Stream>) -> Result<()> {
    if waited.as_ref() != Some(former) {
        stream.wait_for(former)?;
        *waited = Some(former.clone());
    }
    Ok(())
}
