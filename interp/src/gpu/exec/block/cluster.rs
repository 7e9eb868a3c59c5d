//! Runs the blocks of a cluster beside each other, on one host thread.
//!
//! Each block runs until it ends or waits; then the next one runs. They meet at the barrier of the
//! cluster, and see each other's shared memory. A launch without clusters has a block in each.

use std::cell::{Cell, RefCell};

use super::super::barrier::OF_CLUSTER;
use super::super::bulk::{self, Transfers};
use super::super::observe;
use super::super::warp::Warp;
use super::{Block, Launch, Worker};
use crate::gpu::check::{Checker, OfBlock};
use crate::gpu::mem::POISON;
use crate::gpu::mem::cells::Scratch;
use crate::gpu::stop::Stop;

/// The rounds in which all blocks of a cluster only wait, after which other clusters run. In the
/// second one, a block sees what those after it did in the first.
const ROUNDS: usize = 2;

/// A cluster that has begun.
pub(in super::super) struct Cluster {
    blocks: Vec<Block>,
    /// The part of each block that the others see.
    peers: Vec<Peer>,
    /// Its copies in bulk that are under way.
    transfers: RefCell<Transfers>,
}

/// The part of a block that the others of its cluster see.
pub(in super::super) struct Peer {
    pub(in super::super) shared: Scratch,
    /// True if the block has ended.
    ended: Cell<bool>,
    /// The state that checkers keep for it; while the block runs, that of no block.
    checked: Option<RefCell<Box<OfBlock>>>,
}

/// The blocks of a cluster, as one of them sees them.
#[derive(Clone, Copy)]
pub(in super::super) struct Neighbours<'a> {
    pub(in super::super) peers: &'a [Peer],
    /// The rank of the block that sees them.
    pub(in super::super) rank: usize,
    /// The cluster's copies in bulk.
    pub(in super::super) transfers: &'a RefCell<Transfers>,
}

/// How a cluster's turn ends.
pub(in super::super) enum Turn {
    /// The cluster has ended; the value is its total work.
    Ended(u64),
    /// The whole cluster waits for others.
    Waits(Box<Cluster>),
    /// A block has stopped, after this much work of the cluster.
    Stopped(Box<Stop>, u64),
}

impl Peer {
    pub(in super::super) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Passes the state that checkers keep for the block, which does not run.
    pub(in super::super) fn checked(&self, with: impl FnOnce(&mut OfBlock)) {
        if let Some(checked) = &self.checked {
            with(&mut checked.borrow_mut());
        }
    }

    /// Switches the checkers to this block's state, or back.
    fn exchange(&self, checker: &mut Option<Box<Checker>>) {
        if let (Some(checker), Some(checked)) = (checker, &self.checked) {
            checker.swap(&mut checked.borrow_mut());
        }
    }
}

impl Cluster {
    /// The work of its blocks so far.
    pub(in super::super) fn work(&self) -> u64 {
        self.blocks.iter().map(|block| block.work).sum()
    }

    /// The blocks that have not ended, with their ranks.
    fn running(&self) -> impl Iterator<Item = (usize, &Block)> {
        self.blocks.iter().enumerate().filter(|(rank, _)| !self.peers[*rank].has_ended())
    }

    /// Returns whether all threads have arrived at the cluster's barrier.
    fn is_complete(&self) -> bool {
        let warps = || self.running().flat_map(|(_, block)| &block.warps).filter(|warp| warp.live != 0);
        let arrived = |warp: &Warp| warp.live & !warp.arrived[OF_CLUSTER as usize] == 0;
        warps().next().is_some() && warps().all(arrived)
    }

    /// The rank of a block that waits for ever, if all warps of the cluster wait at barriers: one
    /// that has not arrived at the barrier of the cluster.
    fn stuck(&self) -> Option<usize> {
        let waits = |warp: &Warp| warp.live == 0 || warp.wait.is_some();
        let all = self.running().all(|(_, block)| block.warps.iter().all(waits));
        let absent = |warp: &Warp| warp.live & !warp.arrived[OF_CLUSTER as usize] != 0;
        let mut running = self.running().filter(|_| all);
        running.find(|(_, block)| block.warps.iter().any(absent)).map(|(rank, _)| rank)
    }
}

impl Worker<'_> {
    /// Begins the cluster of this number, counted with x fastest; `None` if the host has too little
    /// memory.
    pub(in super::super) fn begin(&mut self, number: u64) -> Option<Box<Cluster>> {
        let mut cluster = match self.spare.pop() {
            Some(spare) => spare,
            None => self.room()?,
        };
        cluster.transfers.get_mut().clear();
        for (rank, (block, peer)) in cluster.blocks.iter_mut().zip(&mut cluster.peers).enumerate() {
            block.number = self.launch.member(number, rank as u64);
            block.work = self.launch.preparation();
            peer.shared.fill(POISON);
            peer.ended.set(false);
            block.restart(self.launch);
            peer.exchange(&mut self.checker);
            if let Some(checker) = &mut self.checker {
                checker.begin(block.number);
            }
            peer.exchange(&mut self.checker);
        }
        Some(cluster)
    }

    /// Allocates the host memory of a cluster.
    fn room(&self) -> Option<Box<Cluster>> {
        let ranks = || 0..self.launch.code.cluster_blocks();
        let peer = |_| {
            let checked = self.checker.as_ref().map(|checker| RefCell::new(Box::new(checker.another())));
            Some(Peer { shared: Scratch::new(self.launch.shared_bytes())?, ended: Cell::new(false), checked })
        };
        let blocks = ranks().map(|_| self.block()).collect::<Option<_>>()?;
        let peers = ranks().map(peer).collect::<Option<_>>()?;
        Some(Box::new(Cluster { blocks, peers, transfers: RefCell::default() }))
    }

    /// Runs a cluster until it ends or waits for others. `elsewhere` is the work of the blocks that
    /// share its limit.
    pub(in super::super) fn run(&mut self, mut cluster: Box<Cluster>, elsewhere: u64) -> Turn {
        let rounds = cluster.blocks.len().min(ROUNDS);
        let mut left = rounds;
        loop {
            for rank in 0..cluster.blocks.len() {
                if !cluster.peers[rank].has_ended()
                    && let Err(stop) = self.run_block(&mut cluster, rank, elsewhere)
                {
                    return self.stopped(*cluster, stop);
                }
            }
            left -= 1;
            if cluster.running().next().is_none() {
                let work = cluster.work();
                self.spare.push(cluster);
                return Turn::Ended(work);
            }
            if cluster.is_complete() {
                self.meet(&mut cluster);
                left = rounds;
            } else if let Some(rank) = cluster.stuck() {
                let fault = cluster.blocks[rank].deadlock();
                if let Err(stop) = self.ended(&mut cluster, rank, Some(fault)) {
                    return self.stopped(*cluster, stop);
                }
                left = rounds;
            }
            if left == 0 {
                return Turn::Waits(cluster);
            }
        }
    }

    /// Runs a block until it ends or waits for others.
    fn run_block(&mut self, cluster: &mut Cluster, rank: usize, elsewhere: u64) -> Result<(), Box<Stop>> {
        let others = cluster.work() - cluster.blocks[rank].work;
        let neighbours = Neighbours { peers: &cluster.peers, rank, transfers: &cluster.transfers };
        neighbours.peers[rank].exchange(&mut self.checker);
        let outcome = self.run_warps(&mut cluster.blocks[rank], neighbours, elsewhere.saturating_add(others));
        if let Ok(true) = outcome
            && !self.launch.code.bulks.is_empty()
        {
            bulk::end(neighbours, self.launch.global, self.launch.touched, self.checker.as_deref_mut());
        }
        neighbours.peers[rank].exchange(&mut self.checker);
        match outcome {
            Ok(false) => Ok(()),
            Ok(true) => self.ended(cluster, rank, None),
            Err(fault) => self.ended(cluster, rank, Some(fault)),
        }
    }

    /// Records that a block has ended, or that the fault of a warp has ended it.
    fn ended(&mut self, cluster: &mut Cluster, rank: usize, fault: Option<super::Ending>) -> Result<(), Box<Stop>> {
        let peer = &cluster.peers[rank];
        peer.ended.set(true);
        peer.exchange(&mut self.checker);
        let ended = self.end(&mut cluster.blocks[rank], fault);
        peer.exchange(&mut self.checker);
        ended
    }

    /// Keeps what the other blocks of a cluster have printed before one of them stopped.
    fn stopped(&mut self, mut cluster: Cluster, stop: Box<Stop>) -> Turn {
        for block in &mut cluster.blocks {
            self.totals.print(block.number, std::mem::take(&mut block.printed));
        }
        Turn::Stopped(stop, cluster.work())
    }

    /// Releases the threads of a cluster from its barrier.
    fn meet(&mut self, cluster: &mut Cluster) {
        self.pass_on(cluster);
        for warp in cluster.blocks.iter_mut().flat_map(|block| &mut block.warps) {
            warp.passed |= std::mem::take(&mut warp.arrived[OF_CLUSTER as usize]) & warp.live;
            if warp.wait.is_some_and(|wait| wait.barrier == OF_CLUSTER) {
                warp.passed = 0;
                warp.release(0);
            } else {
                warp.passed &= !warp.release_parked(OF_CLUSTER);
            }
        }
    }

    /// Tells racecheck that the threads of a cluster have met.
    fn pass_on(&mut self, cluster: &mut Cluster) {
        let Cluster { blocks, peers, .. } = cluster;
        let mut known = Vec::new();
        for (block, peer) in blocks.iter_mut().zip(&*peers) {
            peer.exchange(&mut self.checker);
            if let Some(checker) = &mut self.checker {
                for (warp, index) in block.warps.iter_mut().zip(0..) {
                    observe::warp_barriers(checker, index, warp);
                }
                let ended: Vec<u32> =
                    (0..).zip(&block.warps).filter(|(_, warp)| warp.live == 0).map(|(i, _)| i).collect();
                known.extend(checker.order().map(|order| order.leave(OF_CLUSTER, &ended)));
            }
            peer.exchange(&mut self.checker);
        }
        for (block, peer) in blocks.iter_mut().zip(&*peers) {
            peer.exchange(&mut self.checker);
            if let Some(checker) = &mut self.checker {
                if let Some(order) = checker.order() {
                    order.enter(&known);
                }
                block.work += checker.take_work();
            }
            peer.exchange(&mut self.checker);
        }
    }
}

impl Launch<'_> {
    /// The number of clusters of the grid in each direction.
    fn clusters(&self) -> [u64; 3] {
        let shape = self.code.cluster_shape();
        std::array::from_fn(|axis| u64::from(self.shape.grid[axis]) / shape[axis])
    }

    /// The number of the block of this rank in a cluster.
    pub(in super::super) fn member(&self, cluster: u64, rank: u64) -> u64 {
        if self.code.cluster.is_none() {
            return cluster;
        }
        let (shape, [across, down, _]) = (self.code.cluster_shape(), self.clusters());
        let cluster = [cluster % across, cluster / across % down, cluster / across / down];
        let within = [rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]];
        let [x, y, z]: [u64; 3] = std::array::from_fn(|axis| cluster[axis] * shape[axis] + within[axis]);
        let [width, height, _] = self.shape.grid.map(u64::from);
        x + width * (y + height * z)
    }
}
