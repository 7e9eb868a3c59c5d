//! Chooses the block that a host thread runs next. In a launch with clusters, "block" below stands
//! for the blocks of a cluster, which run beside each other.
//!
//! Threads take blocks in order from one counter. A block that only waits for others is set aside,
//! and the next one begins. A flag may therefore come from any block, and all blocks of a grid may
//! meet, as far as they fit. A waiting block has another turn when some other blocks have ended, or
//! when no other block may begin.
//!
//! Counts are sums, so they do not depend on which thread ran which block. When a block stops, all
//! blocks before it have been taken and run to their end, so the lowest stop is the same for any
//! number of threads. A block that waits until the work limit is reported only if no block stopped
//! for another reason.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::block::cluster::{Cluster, Turn};
use super::block::{Launch, Worker};
use super::budget::Budget;
use super::grid::refusal;
use super::tally::Totals;
use crate::error::counted;
use crate::gpu::reason::Reason;
use crate::gpu::report::Report;
use crate::gpu::stop::Stop;

/// Blocks of a host thread that may have begun at a time. All blocks of a grid of no more may wait
/// for each other, however many host threads there are. An H100 holds 4224.
pub const MAX_BEGUN: u64 = 1 << 13;
/// The number of blocks of its thread that end before a waiting block has another turn: at first,
/// and at most.
const FIRST_PAUSE: u64 = 1;
const LONGEST_PAUSE: u64 = 64;

/// The number of blocks of a grid, and the number of them that run.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) blocks: u64,
    pub(super) taken: u64,
}

impl Part {
    /// The number of the block that is taken at this turn. The grid is divided into stretches of
    /// equal length, one for each turn; the block stands in its stretch at a multiple of the golden
    /// ratio. Blocks at equal distances might all lie in the same column of tiles.
    fn block(&self, turn: u64) -> u64 {
        let start = |turn: u64| (u128::from(turn) * u128::from(self.blocks) / u128::from(self.taken)) as u64;
        let ratio = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let within = u128::from(ratio) * u128::from(start(turn + 1) - start(turn));
        start(turn) + (within >> 64) as u64
    }
}

/// A launch's blocks, which host threads share.
pub(super) struct Blocks<'a> {
    launch: &'a Launch<'a>,
    part: Part,
    budget: Budget,
    /// The turn of the block that is taken next.
    next: AtomicU64,
    /// The lowest turn that has ended in a stop.
    first_stop: AtomicU64,
    /// Blocks of a host thread that may have begun at a time.
    begun: usize,
    done: Mutex<Done>,
}

/// The results of the threads that have finished.
struct Done {
    totals: Totals,
    stopped: Option<Stopped>,
}

/// Why a block stopped.
struct Stopped {
    /// True if it reached the work limit while it, or blocks beside it, waited. It may have waited
    /// for a block that stopped; that block's stop takes precedence.
    in_vain: bool,
    turn: u64,
    stop: Box<Stop>,
}

/// A block that waits for others.
struct Waiting {
    turn: u64,
    block: Box<Cluster>,
    /// The number of ended blocks of its thread at which it has another turn, and the pause after
    /// that turn.
    due: u64,
    pause: u64,
}

impl<'a> Blocks<'a> {
    /// Shares a launch's blocks. On each host thread, at most `begun` blocks begin before one ends.
    pub(super) fn new(launch: &'a Launch<'a>, part: Part, begun: u64) -> Self {
        let totals = Totals::new(launch.code.sites.len());
        Self {
            launch,
            part,
            budget: Budget::new(launch.limit),
            next: AtomicU64::new(0),
            first_stop: AtomicU64::new(u64::MAX),
            begun: begun.min(MAX_BEGUN) as usize,
            done: Mutex::new(Done { totals, stopped: None }),
        }
    }

    /// The loop of a host thread: runs blocks until none is left for it.
    pub(super) fn work(&self) {
        let _share = self.budget.share();
        // The worker is made only if a block is left for it.
        let Some(first) = self.take(true) else { return };
        let Some(worker) = Worker::new(self.launch) else {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            let stop = self.stop(first, self.out_of_memory());
            return Stopped { in_vain: false, turn: first, stop }.before(&mut done.stopped);
        };
        let (worker, stopped) = self.run(worker, first);
        let totals = worker.into_totals();
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.totals.merge(totals);
        if let Some(stopped) = stopped {
            stopped.before(&mut done.stopped);
        }
    }

    /// Runs the block of this turn and the remaining ones; returns why it stopped, if it did.
    fn run(&self, mut worker: Worker<'a>, first: u64) -> (Worker<'a>, Option<Stopped>) {
        let mut waiting = VecDeque::<Waiting>::new();
        let (mut stopped, mut ended) = (None, 0);
        // The work of the blocks that have ended since the last time that no block waited.
        let mut gone = 0_u64;
        let mut next = Some(self.begin(&mut worker, first));
        while let Some((turn, block, pause)) = next.take().or_else(|| self.pick(&mut worker, &mut waiting, ended)) {
            // A block begins while no block waits.
            if waiting.is_empty() && pause == FIRST_PAUSE && stopped.is_none() {
                gone = 0;
            }
            let elsewhere = waiting.iter().map(|waiting| waiting.block.work()).sum::<u64>().saturating_add(gone);
            let stop = match block.map(|block| worker.run(block, elsewhere)) {
                Some(Turn::Ended(work)) => {
                    ended += 1;
                    gone = gone.saturating_add(work);
                    self.budget.spend(turn, work).map(|last| (last, self.exhausted(last)))
                }
                Some(Turn::Waits(block)) => {
                    // Another thread may run the block that it waits for.
                    std::thread::yield_now();
                    let due = ended + pause;
                    waiting.push_back(Waiting { turn, block, due, pause: LONGEST_PAUSE.min(2 * pause) });
                    None
                }
                Some(Turn::Stopped(stop, work)) => {
                    gone = gone.saturating_add(work);
                    Some((turn, stop))
                }
                None => Some((turn, self.out_of_memory())),
            };
            if let Some((turn, stop)) = stop {
                let has_waited = elsewhere > 0 || pause > FIRST_PAUSE;
                let in_vain = has_waited && matches!(stop.reason, Reason::WorkLimit(_));
                Stopped { in_vain, turn, stop: self.stop(turn, stop) }.before(&mut stopped);
            }
            // Blocks before the first stop run to their end, because the lowest stop is reported.
            let first_stop = self.first_stop.load(Relaxed);
            waiting.retain(|waiting| waiting.turn < first_stop);
        }
        (worker, stopped)
    }

    /// The block to run next, with its pause if it waits again.
    fn pick(&self, worker: &mut Worker, waiting: &mut VecDeque<Waiting>, ended: u64) -> Option<Picked> {
        let is_due = waiting.front().is_some_and(|waiting| waiting.due <= ended);
        if !is_due
            && waiting.len() < self.begun
            && let Some(turn) = self.take(waiting.is_empty())
        {
            return Some(self.begin(worker, turn));
        }
        waiting.pop_front().map(|Waiting { turn, block, pause, .. }| (turn, Some(block), pause))
    }

    fn begin(&self, worker: &mut Worker, turn: u64) -> Picked {
        (turn, worker.begin(self.part.block(turn)), FIRST_PAUSE)
    }

    /// Takes the turn of the next block, if there is one. `may_wait`: wait for other blocks to end,
    /// if this one is far ahead of them.
    fn take(&self, may_wait: bool) -> Option<u64> {
        loop {
            let turn = self.next.load(Relaxed);
            if turn >= self.part.taken || turn > self.first_stop.load(Relaxed) || !self.budget.has_room(turn, may_wait)
            {
                return None;
            }
            if self.next.compare_exchange(turn, turn + 1, Relaxed, Relaxed).is_ok() {
                return Some(turn);
            }
        }
    }

    /// Prevents blocks with later turns from beginning.
    fn stop(&self, turn: u64, stop: Box<Stop>) -> Box<Stop> {
        self.first_stop.fetch_min(turn, Relaxed);
        self.budget.close();
        stop
    }

    /// The stop of a launch whose work limit is reached with the block of this turn.
    fn exhausted(&self, turn: u64) -> Box<Stop> {
        let Launch { kernel, limit, .. } = *self.launch;
        refusal(
            &kernel.name,
            Reason::LaunchLimit { limit, block: self.launch.block(self.launch.member(self.part.block(turn), 0)) },
        )
    }

    fn out_of_memory(&self) -> Box<Stop> {
        let context = format!(
            "the host lacks the {} for a block's registers and local memory; use smaller blocks",
            counted(self.launch.block_bytes() * self.launch.code.cluster_blocks(), "byte")
        );
        refusal(&self.launch.kernel.name, Reason::Launch(context))
    }

    /// Makes the report once all threads have finished.
    pub(super) fn into_report(self) -> Result<Report, Box<Stop>> {
        let Done { mut totals, stopped } = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some(Stopped { turn, stop, .. }) = stopped else { return Ok(totals.report(self.launch)) };
        let (findings, more_findings) = (std::mem::take(&mut totals.findings), totals.more_findings);
        let last = self.launch.code.cluster_blocks() - 1;
        let printed = totals.printed_until(self.launch.member(self.part.block(turn), last));
        Err(Box::new(Stop { findings, more_findings, printed, ..*stop }))
    }
}

/// A turn, its block if the host has the memory for it, and the pause after it.
type Picked = (u64, Option<Box<Cluster>>, u64);

impl Stopped {
    /// Replaces a known stop if this one takes precedence.
    fn before(self, known: &mut Option<Self>) {
        let rank = |stopped: &Self| (stopped.in_vain, stopped.turn);
        if known.as_ref().is_none_or(|known| rank(&self) < rank(known)) {
            *known = Some(self);
        }
    }
}

#[cfg(test)]
mod tests;
