//! Orders the launches of a graph, whose memory may be hundreds of allocations.
//!
//! A launch makes itself the last use of each. To lock and write them all costs more than the
//! driver's launch, so a graph has one last use for all of its allocations, the joint one. Any
//! other use of an allocation takes it out of the joint use first, and the next launch takes it
//! back. A graph that is launched again and again locks nothing but the joint use and what others
//! have used in between.
//!
//! Locks are taken in this order: the room of the launch, allocations by their addresses, a joint
//! use. So no two threads wait for each other.

use std::cell::Cell;

use super::last_use::{Locked, wait_once};
use super::{Allocation, Shared, Stream};
use crate::error::Result;
use crate::sync::{Arc, Mutex, lock};

/// The memory of a graph.
pub(crate) struct Joint {
    /// Each allocation once, in the order of addresses.
    memory: Vec<Shared<Allocation>>,
    last: Arc<Mutex<JointUse>>,
    /// Room for the places of the allocations that a launch takes back, which it locks.
    apart: Mutex<Vec<u32>>,
}

/// The last use of those allocations that are not apart.
#[derive(Debug)]
struct JointUse {
    /// The stream of the latest launch; `None` before the first one.
    stream: Option<Stream>,
    /// The places of the allocations that have a last use of their own.
    apart: Vec<u32>,
}

/// A part of a joint use: one allocation's.
#[derive(Debug)]
pub(super) struct Part {
    joint: Arc<Mutex<JointUse>>,
    place: u32,
}

impl Part {
    /// Takes the allocation, which is locked, out of the joint use. Returns the stream of that use.
    pub(super) fn leave(self) -> Option<Stream> {
        let mut joint = lock(&self.joint);
        joint.apart.push(self.place);
        joint.stream.clone()
    }
}

thread_local! {
    /// Room for the most locks that this thread has taken for a launch; it holds no lock.
    static ROOM: Cell<Vec<Locked<'static>>> = const { Cell::new(Vec::new()) };
    /// The same for the handles of former streams.
    static FORMERS: Cell<Vec<Stream>> = const { Cell::new(Vec::new()) };
}

impl Joint {
    pub(crate) fn new(mut memory: Vec<Shared<Allocation>>) -> Self {
        memory.sort_unstable_by_key(Shared::place);
        memory.dedup_by(|a, b| a.is_same(b));
        let joint = JointUse { stream: None, apart: (0..memory.len() as u32).collect() };
        let apart = Mutex::new(Vec::with_capacity(memory.len()));
        Self { memory, last: Arc::new(Mutex::new(joint)), apart }
    }

    /// Adds the memory of another graph.
    pub(crate) fn add(&mut self, other: Self) {
        let mut memory = std::mem::take(&mut self.memory);
        memory.extend(other.memory);
        *self = Self::new(memory);
    }

    /// Returns the number of allocations.
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Queues work on `stream` that uses all of the memory, after all former uses, as
    /// [`queue_in_order`](super::queue_in_order) does. It allocates if it takes back more
    /// allocations than ever before on this thread.
    pub(crate) fn queue<R>(&self, stream: &Stream, queue: impl FnOnce() -> Result<R>) -> Result<R> {
        stream.check_keeps_memory()?;
        // Before the locks, so that a panic drops them behind the locks too.
        let mut formers = FORMERS.try_with(Cell::take).unwrap_or_default();
        let mut locks: Vec<Locked<'_>> = ROOM.try_with(Cell::take).unwrap_or_default();
        let queued = self.queue_with(&mut locks, &mut formers, stream, queue);
        locks.clear();
        formers.clear();
        // Collecting in place keeps the room and ends the borrow of the locks.
        let room = locks.into_iter().map(|_| unreachable!("it was cleared")).collect();
        // A thread that ends has no room to keep.
        let _ = ROOM.try_with(|kept| kept.set(room));
        let _ = FORMERS.try_with(|kept| kept.set(formers));
        queued
    }

    fn queue_with<'a, R>(
        &'a self,
        locks: &mut Vec<Locked<'a>>,
        formers: &mut Vec<Stream>,
        stream: &Stream,
        queue: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let mut apart = lock(&self.apart);
        apart.clear();
        let mut joint = lock(&self.last);
        // Only a launch takes allocations back, and this is the only one now. So the list grows at
        // most, and if it has not grown then all that are apart are locked.
        while joint.apart.len() > apart.len() {
            apart.clear();
            apart.extend(&joint.apart);
            drop(joint);
            locks.clear();
            apart.sort_unstable();
            locks.extend(apart.iter().map(|&place| self.memory[place as usize].last_use().lock()));
            joint = lock(&self.last);
        }
        let mut waited = None;
        formers.extend(joint.follow(stream, apart.len() < self.memory.len(), &mut waited)?);
        for last in locks.iter_mut() {
            formers.extend(last.follow(stream, &mut waited)?);
        }
        // From here on the stream stands for the former uses of each.
        for (last, &place) in locks.iter_mut().zip(&*apart) {
            last.join(Part { joint: Arc::clone(&self.last), place });
        }
        joint.apart.clear();
        queue()
    }
}

impl JointUse {
    /// Makes `stream` the last to use the memory jointly, after the former stream if there are
    /// `parts`. Returns the former handle, as [`Locked::follow`] does.
    fn follow(&mut self, stream: &Stream, parts: bool, waited: &mut Option<Stream>) -> Result<Option<Stream>> {
        if self.stream.as_ref() == Some(stream) {
            return Ok(None);
        }
        if let Some(former) = self.stream.as_ref().filter(|_| parts) {
            wait_once(stream, former, waited)?;
        }
        // Also if the work is not queued afterwards: the stream now waits for the former uses.
        Ok(self.stream.replace(stream.clone()))
    }
}
