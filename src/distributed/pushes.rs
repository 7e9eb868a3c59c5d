//! Queues copies among the GPUs of one host: kernels store into peers' memory.
//!
//! Each rank pushes what others get, because loads from a peer are slower than stores to it. A rank
//! begins when its own operands and those of its peers are ready, and a result is used after all
//! ranks that store into it are done. Events say both, so the host waits for nothing. Copies
//! between GPUs that do not use each other's memory are queued along: see `staged.rs`.

use std::sync::Arc;

use super::Gpus;
use super::gpus::Rank;
use super::push::Push;
use super::staged::Staged;
use crate::context::{Allocation, Shared, queue_across};
use crate::error::Result;
use crate::stream::Stream;

/// Copies of several ranks, which run at once.
#[derive(Debug)]
pub(super) struct Pushes {
    gpus: Arc<Gpus>,
    /// The launches of each rank.
    of: Vec<Vec<Push>>,
    /// Those that kernels cannot make.
    staged: Staged,
}

/// The stream of a launch. Launches on one run one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// The device's default stream.
    Default,
    /// The stream for copies to peers.
    Peers,
    /// The stream for the copy to itself.
    Own,
}

impl Lane {
    fn stream(self, rank: &Rank) -> &Stream {
        match self {
            Self::Default => rank.device.default_stream(),
            Self::Peers => &rank.peers.stream,
            Self::Own => &rank.own.stream,
        }
    }
}

impl Pushes {
    pub(super) fn new(gpus: &Arc<Gpus>, of: Vec<Vec<Push>>, staged: Staged) -> Self {
        Self { gpus: Arc::clone(gpus), of, staged }
    }

    /// Returns the launches of each rank.
    pub(super) fn of(&self) -> &[Vec<Push>] {
        &self.of
    }

    /// Returns the other copies.
    pub(super) fn staged(&self) -> &Staged {
        &self.staged
    }

    /// Returns the GPUs that they are for.
    pub(super) fn gpus(&self) -> &Arc<Gpus> {
        &self.gpus
    }

    /// Queues the copies of all ranks, after all former uses of the operands: the sources and the
    /// results of all ranks.
    ///
    /// # Safety
    ///
    /// - The layouts of each copy lie within the source of its rank and the result of the one that
    ///   it goes to.
    /// - No two copies write the same element, and no copy reads what another writes.
    pub(super) unsafe fn queue(&self, operands: [&[&Shared<Allocation>]; 2]) -> Result<()> {
        let (_queueing, ranks) = self.gpus.lock();
        let streams = || ranks.iter().map(|rank| rank.device.default_stream());
        let used = operands.iter().flat_map(|of| streams().zip(of.iter().copied())).chain(self.staged.memory(ranks));
        let [from, to] = operands.map(|of| of.iter().map(|memory| memory.address()).collect::<Vec<_>>());
        queue_across(used.collect(), || {
            let unwound = WaitOnUnwind(self, ranks);
            // SAFETY: as the caller promises; `queue_across` orders it after former uses.
            let pushed = unsafe { self.push_all(ranks, &from, &to) };
            // After a failure too, so that no later use comes before the copies that are queued.
            let joined = self.join_all(ranks);
            std::mem::forget(unwound);
            if joined.is_err() {
                self.wait_for_all(ranks);
            }
            pushed.and(joined)
        })
    }

    /// Makes the default stream of the first rank wait for the copies of all ranks, so that a time
    /// between two points of it has all of them.
    pub(super) fn follow_all(&self) -> Result<()> {
        let (_queueing, ranks) = self.gpus.lock();
        ranks.iter().try_for_each(|rank| ranks[0].device.default_stream().wait_across(&rank.done))
    }

    /// Queues the copies of each rank behind the operands of its peers.
    ///
    /// # Safety
    ///
    /// As [`Pushes::queue`], for storages at these addresses. [`Pushes::join_all`] follows, or a
    /// wait for all streams of the ranks.
    unsafe fn push_all(&self, ranks: &[Rank], from: &[u64], to: &[u64]) -> Result<()> {
        for rank in ranks {
            rank.device.default_stream().record(&rank.ready)?;
        }
        for (number, pushes) in self.of.iter().enumerate() {
            let rank = &ranks[number];
            let mut waited: Vec<(Lane, usize)> = vec![(Lane::Default, number)];
            for push in pushes {
                let (lane, stream) = (push.lane, push.lane.stream(rank));
                for &operand in std::iter::once(&number).chain(push.to()) {
                    if !waited.contains(&(lane, operand)) {
                        stream.wait_across(&ranks[operand].ready)?;
                        waited.push((lane, operand));
                    }
                }
                // SAFETY: as the caller promises. The buffers live until their drops, which come
                // after this work in the order of their streams: `join_all` orders later uses after
                // it. The GPUs share their memory, as `Gpus::over` arranged.
                unsafe { push.queue(&rank.device, from[number], to, stream.handle()) }?;
            }
        }
        // SAFETY: as the caller promises; the callers hold the lock of the ranks.
        unsafe { self.staged.queue(ranks, from, to) }
    }

    /// Makes the stream of each rank wait for what reads or writes its operands.
    fn join_all(&self, ranks: &[Rank]) -> Result<()> {
        let nothing = Vec::new();
        self.staged.join(ranks)?;
        for (number, rank) in ranks.iter().enumerate() {
            let (stream, pushes) = (rank.device.default_stream(), self.of.get(number).unwrap_or(&nothing));
            for (lane, beside) in [(Lane::Peers, &rank.peers), (Lane::Own, &rank.own)] {
                if pushes.iter().any(|push| push.lane == lane) {
                    beside.stream.record(&beside.joined)?;
                    stream.wait(&beside.joined)?;
                }
            }
            stream.record(&rank.done)?;
        }
        for (number, pushes) in self.of.iter().enumerate() {
            for (peer, rank) in ranks.iter().enumerate() {
                if peer != number && pushes.iter().any(|push| push.to().contains(&peer)) {
                    rank.device.default_stream().wait_across(&ranks[number].done)?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the copies of all ranks. Where they could not be joined, nothing else orders later
    /// uses after those that are queued. A device whose wait fails has stopped its work.
    fn wait_for_all(&self, ranks: &[Rank]) {
        for rank in ranks {
            for lane in [Lane::Default, Lane::Peers, Lane::Own] {
                let _ = lane.stream(rank).synchronize();
            }
        }
        self.staged.wait();
    }
}

/// Waits when dropped, which happens only if a driver panicked: the locks of the operands end then.
struct WaitOnUnwind<'a>(&'a Pushes, &'a [Rank]);

impl Drop for WaitOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.wait_for_all(self.1);
    }
}
