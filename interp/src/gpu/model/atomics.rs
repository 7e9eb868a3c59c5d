//! Atomics: the cost when lanes update the same place.
//!
//! Lanes that load or store one place share the pass; lanes that update it take turns. The rules
//! follow the counters of an H100. If the hardware has no instruction for an atomic in shared
//! memory, NVIDIA's assembler makes a loop of a load and an exchange, in which one lane of every
//! bank succeeds each turn. The model assumes that no other warp intervenes.

use super::banks::{self, Wavefronts};
use super::coalesce::SECTOR_BYTES;

/// The way in which the hardware updates shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Update {
    /// One instruction.
    #[default]
    Native,
    /// One instruction that compares; it takes two passes for each lane.
    Compare,
    /// A count of the lanes at each word: lanes at one word share a pass.
    Count,
    /// A loop of loads and exchanges.
    Loop,
}

/// The cost of one update by a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The number of instructions: one, or one for each turn of the loop.
    pub(crate) turns: u32,
    /// The wavefronts of all these instructions.
    pub(crate) updates: Wavefronts,
    /// The wavefronts of the loop's loads; there is one load for each turn.
    pub(crate) loads: Wavefronts,
}

/// The sectors of an update of global memory by the lanes of `mask`, each at its aligned address.
/// Each sector counts as often as the largest number of its lanes that update one address.
pub(crate) fn sectors(addresses: &[u64; 32], mask: u32) -> u32 {
    let lanes = || (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| addresses[lane]);
    let mut wanted: Vec<(u64, u64)> = lanes().map(|address| (address / SECTOR_BYTES, address)).collect();
    wanted.sort_unstable();
    let of_sector = |sector: &[(u64, u64)]| sector.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
    wanted.chunk_by(|a, b| a.0 == b.0).map(of_sector).sum::<usize>() as u32
}

/// The cost of an update of shared memory by the lanes of `mask`, of `bytes` bytes (2, 4 or 8) each
/// at its aligned address.
pub(crate) fn shared(addresses: &[u32; 32], mask: u32, bytes: u32, update: Update) -> Cost {
    let none = Wavefronts { taken: 0, ideal: 0 };
    let groups = if bytes <= 4 { [mask, 0] } else { [mask & 0xffff, mask & 0xffff_0000] };
    let served = groups.map(|group| most_in_a_bank(addresses, group));
    let ideal = groups.map(|group| u32::from(group != 0)).iter().sum();
    match update {
        Update::Native => Cost { turns: 1, updates: Wavefronts { taken: served.iter().sum(), ideal }, loads: none },
        Update::Compare => {
            let taken: u32 = 2 * served.iter().sum::<u32>();
            Cost { turns: 1, updates: Wavefronts { taken, ideal: taken / 2 + ideal }, loads: none }
        }
        Update::Count => {
            Cost { turns: 1, updates: banks::wavefronts(addresses, mask, bytes, banks::Access::Store), loads: none }
        }
        Update::Loop => looped(addresses, mask, bytes),
    }
}

/// The fewest wavefronts possible for an update by `lanes` lanes that took `wavefronts`: the value
/// of [`banks::ideal_wavefronts`], doubled if each lane takes two passes.
pub(crate) fn ideal_wavefronts(wavefronts: u32, lanes: u32, bytes: u32, update: Update) -> u32 {
    let passes = match update {
        Update::Native | Update::Count => 1,
        Update::Compare | Update::Loop => 2,
    };
    wavefronts.min(passes * banks::ideal_wavefronts(wavefronts, lanes, bytes))
}

fn looped(addresses: &[u32; 32], mask: u32, bytes: u32) -> Cost {
    let mut cost =
        Cost { turns: 0, updates: Wavefronts { taken: 0, ideal: 0 }, loads: Wavefronts { taken: 0, ideal: 0 } };
    let mut waiting = mask;
    while waiting != 0 {
        let load = banks::wavefronts(addresses, waiting, bytes.max(4), banks::Access::Load);
        let groups = if bytes <= 4 { 1 } else { u32::from(waiting & 0xffff != 0) + u32::from(waiting >> 16 != 0) };
        cost.loads = Wavefronts { taken: cost.loads.taken + load.taken, ideal: cost.loads.ideal + load.ideal };
        cost.updates = Wavefronts { taken: cost.updates.taken + 2 * groups, ideal: cost.updates.ideal + 2 * groups };
        // The lowest lane of each bank succeeds. For 8 bytes, that holds in each half of the warp,
        // unless the other half updates the same place.
        let mut won: Vec<(usize, u32, u32)> = Vec::new();
        let contending = waiting;
        for lane in (0..32).filter(|lane| contending >> lane & 1 == 1) {
            let half = if bytes <= 4 { 0 } else { lane / 16 };
            let (bank, address) = (addresses[lane] / 4 % 32, addresses[lane]);
            if won.iter().all(|other| (other.0, other.1) != (half, bank) && other.2 != address) {
                won.push((half, bank, address));
                waiting &= !(1 << lane);
            }
        }
        cost.turns += 1;
    }
    cost
}

/// The largest number of lanes that access one bank.
fn most_in_a_bank(addresses: &[u32; 32], mask: u32) -> u32 {
    let mut lanes = [0_u32; 32];
    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
        lanes[addresses[lane] as usize / 4 % 32] += 1;
    }
    lanes.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: impl Fn(u32) -> u32) -> [u32; 32] {
        std::array::from_fn(|lane| address(lane as u32))
    }

    fn cost(addresses: &[u32; 32], mask: u32, bytes: u32, update: Update) -> [u32; 5] {
        let Cost { turns, updates, loads } = shared(addresses, mask, bytes, update);
        [turns, updates.taken, updates.taken - updates.ideal, loads.taken, loads.taken - loads.ideal]
    }

    #[test]
    fn lanes_at_one_address_count_their_sector_again() {
        let global = |address: fn(u64) -> u64| sectors(&std::array::from_fn(|lane| address(lane as u64)), u32::MAX);
        assert_eq!([global(|_| 64), global(|lane| 4 * lane), global(|lane| lane / 2 * 4)], [32, 4, 4]);
        assert_eq!([global(|lane| 8 * lane), global(|lane| 32 * (lane % 8))], [8, 32]);
        assert_eq!(sectors(&[0; 32], 0b1011), 3);
    }

    #[test]
    fn lanes_in_one_bank_take_turns() {
        let (one, row, pairs) = (at(|_| 8), at(|lane| 4 * lane), at(|lane| 8 * lane));
        assert_eq!(cost(&one, u32::MAX, 4, Update::Native), [1, 32, 31, 0, 0]);
        assert_eq!(cost(&row, u32::MAX, 4, Update::Native), [1, 1, 0, 0, 0]);
        assert_eq!(cost(&pairs, 0xff, 4, Update::Native), [1, 1, 0, 0, 0]);
        assert_eq!(cost(&pairs, u32::MAX, 4, Update::Compare), [1, 4, 1, 0, 0]);
        assert_eq!(cost(&one, u32::MAX, 4, Update::Compare), [1, 64, 31, 0, 0]);
        assert_eq!(cost(&one, u32::MAX, 4, Update::Count), [1, 1, 0, 0, 0]);
    }

    #[test]
    fn a_loop_turns_as_often_as_lanes_share_a_bank() {
        let (one, row, pairs) = (at(|_| 8), at(|lane| 4 * lane), at(|lane| 8 * lane));
        assert_eq!(cost(&row, u32::MAX, 4, Update::Loop), [1, 2, 0, 1, 0]);
        assert_eq!(cost(&one, u32::MAX, 4, Update::Loop), [32, 64, 0, 32, 0]);
        assert_eq!(cost(&pairs, u32::MAX, 4, Update::Loop), [2, 4, 0, 2 + 1, 1]);
        // The halves of the warp do not hinder each other, unless they update one place.
        assert_eq!(cost(&pairs, u32::MAX, 8, Update::Loop), [1, 4, 0, 2, 0]);
        assert_eq!(cost(&one, u32::MAX, 8, Update::Loop)[0], 32);
    }
}
