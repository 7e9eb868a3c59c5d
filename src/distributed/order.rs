//! Orders the copies of the ranks of a host, so that two seldom push to one GPU at once.

use super::{Move, Redistribution};

/// The most ranks whose copies are ordered by a look at all of them.
const FEW: usize = 64;

/// Returns the copies from each rank, in the order in which it makes them; the copy of a rank to
/// itself is the last, because it runs beside the others.
///
/// Each rank begins its next copy when the one before has ended, and never waits for the rank that
/// it sends to: two that push to one GPU share its link. So of the ranks that are free first, those
/// choose first that have fewest copies left, and each chooses a rank that is free, if there is
/// one, and else the nearest one behind. Where each rank sends as much to each other one, they take
/// turns around the ring.
pub(super) fn of_host(plan: &Redistribution) -> Vec<Vec<Move>> {
    let ranks = plan.ranks();
    let moves = (0..ranks).map(|rank| plan.moves_from(rank));
    if ranks > FEW {
        return moves.collect();
    }
    let (own, mut waiting): (Vec<Move>, Vec<Move>) = moves.flatten().partition(|part| part.from == part.to);
    let mut order: Vec<Vec<Move>> = vec![Vec::new(); ranks];
    let (mut sends, mut gets) = (vec![End::default(); ranks], vec![End::default(); ranks]);
    waiting.iter().for_each(|part| sends[part.from].left += 1);
    while let Some(next) = (0..waiting.len()).min_by_key(|&number| {
        let Move { from, to, .. } = waiting[number];
        let (send, get) = (&sends[from], &gets[to]);
        (send.free, send.left, get.free.max(send.free), (to + ranks - from) % ranks, from)
    }) {
        let part = waiting.swap_remove(next);
        let (send, get) = (&mut sends[part.from], &mut gets[part.to]);
        get.free = get.free.max(send.free) + part.bytes;
        send.free += part.bytes;
        send.left -= 1;
        order[part.from].push(part);
    }
    own.into_iter().for_each(|part| order[part.from].push(part));
    order
}

/// The sends of a rank, or its receives. Times are in bytes.
#[derive(Debug, Clone, Default)]
struct End {
    /// The time from which on it is free.
    free: u64,
    /// The copies that have not begun, of a rank that sends.
    left: usize,
}

#[cfg(test)]
mod tests;
