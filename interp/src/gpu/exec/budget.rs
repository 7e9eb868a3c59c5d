//! The work that a launch may do in all, so that a launch without a foreseeable end is stopped.
//!
//! Blocks add to the sum in their order, whichever thread ran them and when. The block at which the
//! sum exceeds the limit is therefore the same for any number of host threads. The work of blocks
//! after the first unfinished one is kept until that block ends, and a thread that is far ahead
//! waits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Blocks that may run before an earlier one has ended; a GPU runs fewer at a time.
const WINDOW: u64 = 1 << 16;

/// The work left to the blocks of a launch.
pub(super) struct Budget {
    limit: u64,
    spent: Mutex<Spent>,
    /// Signals that the first unfinished block has ended.
    moved: Condvar,
}

#[derive(Default)]
struct Spent {
    /// The first block that is not in the sum.
    next: u64,
    sum: u64,
    /// The work of the blocks from `next` on, for those that have ended.
    ahead: VecDeque<Option<u64>>,
    /// True if the sum exceeds the limit.
    exceeded: bool,
    /// True if waiting threads should give up.
    closed: bool,
    /// The number of waiting threads.
    waiting: u32,
}

/// A guard for each thread. It stops the other threads' waiting if this one panics.
pub(super) struct Share<'a>(&'a Budget);

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, spent: Mutex::default(), moved: Condvar::new() }
    }

    /// Adds a block's work. Returns the block with which the sum exceeds the limit, to one caller
    /// only.
    pub(super) fn spend(&self, block: u64, work: u64) -> Option<u64> {
        let mut spent = self.lock();
        let spent = &mut *spent;
        if spent.exceeded {
            return None;
        }
        let place = (block - spent.next) as usize;
        if spent.ahead.len() <= place {
            spent.ahead.resize(place + 1, None);
        }
        spent.ahead[place] = Some(work);
        while let Some(&Some(work)) = spent.ahead.front() {
            spent.sum = spent.sum.saturating_add(work);
            if spent.sum > self.limit {
                spent.exceeded = true;
                return Some(spent.next);
            }
            spent.ahead.pop_front();
            spent.next += 1;
        }
        if spent.waiting > 0 {
            self.moved.notify_all();
        }
        None
    }

    /// Returns whether this block may run. If `may_wait`, it waits until the block may run or never
    /// will.
    pub(super) fn has_room(&self, block: u64, may_wait: bool) -> bool {
        if block < WINDOW {
            return true;
        }
        let mut spent = self.lock();
        if may_wait {
            spent.waiting += 1;
            let too_early = |spent: &mut Spent| block >= spent.next + WINDOW && !spent.closed;
            spent = self.moved.wait_while(spent, too_early).unwrap_or_else(PoisonError::into_inner);
            spent.waiting -= 1;
        }
        block < spent.next + WINDOW
    }

    /// Notes that a block has stopped: blocks far ahead of it will not run.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.moved.notify_all();
    }

    /// Returns the guard that each spending thread must hold.
    pub(super) fn share(&self) -> Share<'_> {
        Share(self)
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
