//! How much a launch may do in all, so that one whose end nobody would see is stopped.
//!
//! The sum is over blocks in their order, whoever ran them and when: so the block at which it exceeds the limit is the same
//! for any number of host threads.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What is left for the blocks of a launch.
pub(super) struct Budget {
    limit: u64,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    /// The first block that is not in the sum.
    next: u64,
    sum: u64,
    /// The work of blocks that ended before one that comes before them.
    ahead: BTreeMap<u64, u64>,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, spent: Mutex::default() }
    }

    /// Adds a block's work. The block with which the sum exceeds the limit, to one caller.
    pub(super) fn spend(&self, block: u64, work: u64) -> Option<u64> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = &mut *spent;
        spent.ahead.insert(block, work);
        while let Some(work) = spent.ahead.remove(&spent.next) {
            spent.sum = spent.sum.saturating_add(work);
            if spent.sum > self.limit {
                return Some(spent.next);
            }
            spent.next += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_exceeds_it_is_the_same_in_any_order() {
        let work = [3, 4, 1, 5, 9, 2];
        for order in [[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4], [5, 4, 3, 2, 1, 0], [2, 0, 4, 1, 5, 3]] {
            let budget = Budget::new(12);
            let told: Vec<u64> =
                order.into_iter().filter_map(|block| budget.spend(block, work[block as usize])).collect();
            assert_eq!(told, [3], "{order:?}");
            let enough = Budget::new(24);
            assert!(order.into_iter().all(|block| enough.spend(block, work[block as usize]).is_none()), "{order:?}");
        }
    }
}
