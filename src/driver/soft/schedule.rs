//! Orders queued work: as late as waits allow, and otherwise as a seed decides.
//!
//! A GPU may run queued work at once or much later, so a program that forgets a wait is right or
//! wrong by chance. Here work runs only when a wait needs it, so a forgotten wait shows. The idea
//! is Miri's: a scheduler that explores the legal orders, the same for the same seed.
//!
//! - Even seeds are strictly late: waiting for a point in a stream runs what that point depends on
//!   and nothing else.
//! - Odd seeds also run work that no wait needs yet in between.
//! - If several streams are waited for, the seed decides which runs next.
//!
//! Two kinds of work may hold their stream back. A call of the host runs while other threads use
//! the schedule, so its stream is busy until [`Schedule::finish`]. A condition can be taken once it
//! holds. Work that no wait needs may make it hold, so that runs where a needed condition does not.
//!
//! Otherwise nothing deadlocks. A wait holds the record that was the event's latest when the wait
//! was queued, so it only points at something queued before it. Of all needed items, the one that
//! was queued first can always run.
//!
//! This file knows nothing of memory or kernels: the driver defines the work.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::clocks::{Clock, Clocks};
use super::order::Order;
use crate::error::{Result, refuse};
use crate::random::SplitMix64;

/// Streams with queued work, records and waits.
#[derive(Debug)]
pub(super) struct Schedule<W> {
    streams: BTreeMap<u64, Queue<W>>,
    draw: SplitMix64,
    strictly_late: bool,
    /// The order of work, if that is followed.
    order: Option<Order>,
}

#[derive(Debug)]
struct Queue<W> {
    items: VecDeque<Item<W>>,
    /// The number of items that have left the front.
    done: u64,
    /// False once destroyed; the queue then lives until it is empty.
    live: bool,
    /// True while the call at its front runs.
    busy: bool,
}

#[derive(Debug)]
enum Item<W> {
    Work(W),
    /// A call of the host, which stays at the front until it is back.
    Call(W),
    Until(Condition),
    Record(Arc<Mark>),
    Wait(Arc<Mark>),
}

/// A condition that holds the work behind it back. It is asked while the schedule is locked.
#[derive(Clone)]
pub(super) struct Condition(pub(super) Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

/// The next step on the way to a goal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<W> {
    /// The goal is reached.
    Reached,
    /// This work is to run before the next use of the schedule, which assumes that it has run.
    Work(W),
    /// This call of the host is to run, and then [`Schedule::finish`].
    Call(W),
    /// Nothing can run before a call is back.
    Busy,
    /// Nothing can run before a condition holds.
    Unmet,
}

/// One record of an event: a position in a stream, and the time at which it was passed.
#[derive(Debug)]
pub(super) struct Mark {
    stream: u64,
    position: u64,
    passed: OnceLock<Instant>,
    /// The work that comes before it, if that is followed.
    behind: Option<Clock>,
}

impl Mark {
    /// Returns when the mark was passed; `None` if it has not been.
    pub(super) fn passed(&self) -> Option<Instant> {
        self.passed.get().copied()
    }
}

/// The work that must have run.
#[derive(Debug)]
pub(super) struct Goal {
    /// For each stream, the number of its items since it was made.
    ends: BTreeMap<u64, u64>,
    /// The work that the host knows of then, if that is followed.
    known: Option<Clock>,
}

impl<W: Clone> Schedule<W> {
    /// Makes a schedule without streams; `seed` decides the order.
    pub(super) fn new(seed: u64) -> Self {
        let strictly_late = seed.is_multiple_of(2);
        Self { streams: BTreeMap::new(), draw: SplitMix64(seed), strictly_late, order: None }
    }

    /// Follows an order of work from now on.
    pub(super) fn follow(&mut self, order: Order) {
        self.order = Some(order);
    }

    /// The order of work, if it is followed.
    pub(super) fn order(&mut self) -> Option<&mut Order> {
        self.order.as_mut()
    }

    fn clocks(&mut self) -> Option<&mut Clocks> {
        self.order.as_mut().map(|order| &mut order.clocks)
    }

    /// Adds a stream.
    pub(super) fn open(&mut self, stream: u64) {
        self.streams.insert(stream, Queue { items: VecDeque::new(), done: 0, live: true, busy: false });
    }

    /// Ends a stream, which keeps its queued work. Returns false if it is not live.
    pub(super) fn close(&mut self, stream: u64) -> bool {
        let Some(queue) = self.streams.get_mut(&stream).filter(|queue| queue.live) else { return false };
        queue.live = false;
        if queue.items.is_empty() {
            self.streams.remove(&stream);
        }
        if let Some(clocks) = self.clocks() {
            clocks.close(stream);
        }
        true
    }

    /// Returns whether `stream` may be used.
    pub(super) fn is_live(&self, stream: u64) -> bool {
        self.streams.get(&stream).is_some_and(|queue| queue.live)
    }

    /// Returns whether all work of `stream` has run.
    pub(super) fn is_idle(&self, stream: u64) -> bool {
        self.streams.get(&stream).is_none_or(|queue| queue.items.is_empty())
    }

    /// Queues work. Does nothing if `stream` is not live.
    pub(super) fn push(&mut self, stream: u64, work: W) {
        self.queue(stream, |_| Item::Work(work));
    }

    /// Queues a call of the host.
    pub(super) fn push_call(&mut self, stream: u64, call: W) {
        self.queue(stream, |_| Item::Call(call));
    }

    /// Holds what is queued from now on back until a condition holds.
    pub(super) fn push_until(&mut self, stream: u64, condition: Condition) {
        if let Some(clocks) = self.clocks() {
            clocks.until(stream);
        }
        self.queue(stream, |_| Item::Until(condition));
    }

    /// Notes that the host was told that a goal is reached.
    pub(super) fn host_knows(&mut self, goal: &Goal) {
        if let (Some(clocks), Some(known)) = (self.clocks(), &goal.known) {
            clocks.host_has(known);
        }
    }

    /// Queues a record. Its mark is passed when all earlier work has run.
    pub(super) fn record(&mut self, stream: u64) -> Option<Arc<Mark>> {
        let mut mark = None;
        let behind = self.clocks().map(|clocks| clocks.record(stream));
        self.queue(stream, |position| {
            Item::Record(Arc::clone(mark.insert(Arc::new(Mark { stream, position, passed: OnceLock::new(), behind }))))
        });
        mark
    }

    /// Makes work that is queued on `stream` from now on wait for `mark`.
    pub(super) fn wait(&mut self, stream: u64, mark: &Arc<Mark>) {
        if let (Some(clocks), Some(behind)) = (self.clocks(), &mark.behind) {
            clocks.wait(stream, behind);
        }
        if mark.passed().is_none() {
            self.queue(stream, |_| Item::Wait(Arc::clone(mark)));
        }
    }

    /// Returns all work that is queued on `stream` now, with what it waits for.
    pub(super) fn everything_on(&mut self, stream: u64) -> Goal {
        let known = self.clocks().map(|clocks| clocks.all_of(|of| of == stream));
        self.goal(self.streams.get(&stream).map(|queue| (stream, queue.end())).into_iter().collect(), known)
    }

    /// Returns all work up to `mark`, with what it waits for.
    pub(super) fn up_to(&self, mark: &Mark) -> Goal {
        let need = (mark.stream, mark.position + 1);
        self.goal(Some(need).filter(|_| mark.passed().is_none()).into_iter().collect(), mark.behind.clone())
    }

    /// Returns all work that is queued on these streams now, with what it waits for.
    pub(super) fn everything_where(&mut self, is_meant: impl Fn(u64) -> bool) -> Goal {
        let known = self.clocks().map(|clocks| clocks.all_of(&is_meant));
        let meant = self.streams.iter().filter(|(stream, _)| is_meant(**stream));
        self.goal(meant.map(|(&stream, queue)| (stream, queue.end())).collect(), known)
    }

    /// Returns all queued work.
    #[cfg(test)]
    pub(super) fn everything(&mut self) -> Goal {
        self.everything_where(|_| true)
    }

    /// Takes the next work towards `goal`.
    ///
    /// # Errors
    ///
    /// `Driver` if no needed work can run, ever. This cannot happen, since the work that was queued
    /// first always can. Taking it for the goal instead would give back memory that queued copies
    /// still use.
    pub(super) fn next(&mut self, goal: &Goal) -> Result<Next<W>> {
        while goal.ends.iter().any(|(&stream, &end)| self.done(stream) < end) {
            let anything = !self.strictly_late && self.draw.below(2) == 0;
            let mut ready = self.ready(Some(goal).filter(|_| !anything));
            let (mut waits_for_call, mut waits_for_condition) = (false, false);
            if ready.is_empty() {
                let needed = self.streams.iter().filter(|(stream, queue)| queue.is_needed(**stream, goal));
                for (_, queue) in needed {
                    waits_for_call |= queue.busy;
                    // The condition is not asked again: it may hold by now.
                    waits_for_condition |= matches!(queue.items.front(), Some(Item::Until(_)));
                }
                if waits_for_condition {
                    ready = self.ready(None);
                }
            }
            let Some(&stream) = ready.get(self.draw.below(ready.len() as u64) as usize) else {
                match (waits_for_condition, waits_for_call) {
                    (true, _) => return Ok(Next::Unmet),
                    (false, true) => return Ok(Next::Busy),
                    (false, false) => {
                        refuse!(Driver, "the software GPU's queued work waits for itself; please report this as a bug")
                    }
                }
            };
            if let Some(next) = self.step(stream) {
                return Ok(next);
            }
        }
        Ok(Next::Reached)
    }

    /// Notes that the call at the front of `stream` is back.
    pub(super) fn finish(&mut self, stream: u64) {
        let Some(queue) = self.streams.get_mut(&stream).filter(|queue| queue.busy) else { return };
        queue.busy = false;
        self.take(stream);
    }

    /// Drops all queued work: on a failed device nothing runs any more.
    pub(super) fn clear(&mut self) {
        self.streams.retain(|_, queue| queue.live);
        for queue in self.streams.values_mut() {
            queue.done = queue.end();
            queue.items.clear();
            queue.busy = false;
        }
    }

    fn queue(&mut self, stream: u64, item: impl FnOnce(u64) -> Item<W>) {
        if let Some(queue) = self.streams.get_mut(&stream).filter(|queue| queue.live) {
            let item = item(queue.end());
            queue.items.push_back(item);
        }
    }

    /// Adds everything that a set of needs waits for; each item is visited once.
    fn goal(&self, mut pending: Vec<(u64, u64)>, known: Option<Clock>) -> Goal {
        let mut ends = BTreeMap::new();
        while let Some((stream, end)) = pending.pop() {
            let Some(queue) = self.streams.get(&stream) else { continue };
            let known = ends.entry(stream).or_insert(queue.done);
            let fresh = (*known - queue.done) as usize..end.saturating_sub(queue.done) as usize;
            if fresh.is_empty() {
                continue;
            }
            *known = end;
            for item in queue.items.range(fresh) {
                if let Item::Wait(mark) = item
                    && mark.passed().is_none()
                {
                    pending.push((mark.stream, mark.position + 1));
                }
            }
        }
        Goal { ends, known }
    }

    fn done(&self, stream: u64) -> u64 {
        // A stream that is gone was destroyed and has run all its work.
        self.streams.get(&stream).map_or(u64::MAX, |queue| queue.done)
    }

    /// Returns the streams whose first item may run now and counts towards the goal, if there is
    /// one.
    fn ready(&self, goal: Option<&Goal>) -> Vec<u64> {
        let counts = |stream, queue: &Queue<W>| goal.is_none_or(|goal| queue.is_needed(stream, goal));
        let ready = self.streams.iter().filter(|(stream, queue)| counts(**stream, queue) && queue.can_run());
        ready.map(|(&stream, _)| stream).collect()
    }

    /// Takes the first item of `stream`, which may run. A call stays where it is.
    fn step(&mut self, stream: u64) -> Option<Next<W>> {
        let queue = self.streams.get_mut(&stream)?;
        if let Some(Item::Call(call)) = queue.items.front() {
            queue.busy = true;
            return Some(Next::Call(call.clone()));
        }
        match self.take(stream)? {
            Item::Work(work) => Some(Next::Work(work)),
            Item::Record(mark) => {
                mark.passed.get_or_init(Instant::now);
                None
            }
            Item::Call(_) | Item::Until(_) | Item::Wait(_) => None,
        }
    }

    fn take(&mut self, stream: u64) -> Option<Item<W>> {
        let queue = self.streams.get_mut(&stream)?;
        let item = queue.items.pop_front()?;
        queue.done += 1;
        if queue.items.is_empty() && !queue.live {
            self.streams.remove(&stream);
        }
        Some(item)
    }
}

impl<W> Queue<W> {
    /// Returns the number of items it has had, including those that have left.
    fn end(&self) -> u64 {
        self.done + self.items.len() as u64
    }

    /// Returns whether its first item may run now.
    fn can_run(&self) -> bool {
        match self.items.front() {
            None => false,
            Some(Item::Wait(mark)) => mark.passed().is_some(),
            Some(Item::Until(Condition(holds))) => holds(),
            Some(Item::Call(_)) => !self.busy,
            Some(Item::Work(_) | Item::Record(_)) => true,
        }
    }

    /// Returns whether its first item counts towards a goal.
    fn is_needed(&self, stream: u64, goal: &Goal) -> bool {
        goal.ends.get(&stream).is_some_and(|&end| self.done < end)
    }
}

#[cfg(test)]
mod tests;
