//! Atomics: the cost when lanes update the same place.
//!
//! Lanes that load or store one place share the pass; lanes that update it take turns. The rules
//! follow the counters of an H100. If the hardware has no instruction for an atomic in shared
//! memory, NVIDIA's assembler makes a loop of a load and an exchange, in which one lane of every
//! bank succeeds each turn. The model assumes that no other warp intervenes.

use super::banks::{self, Wavefronts};
use crate::counters::SECTOR_BYTES;
use crate::gpu::vocabulary::{AccessKind, lanes_of};

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    let lanes = || lanes_of(mask).map(|lane| addresses[lane]);
    let mut wanted: Vec<(u64, u64)> = lanes().map(|address| (address / SECTOR_BYTES, address)).collect();
    wanted.sort_unstable();
    let of_sector = |sector: &[(u64, u64)]| sector.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
    wanted.chunk_by(|a, b| a.0 == b.0).map(of_sector).sum::<usize>() as u32
}

/// The cost of an update of shared memory by the lanes of `mask`, of `bytes` bytes (2, 4 or 8) each
/// at its aligned address.
pub(crate) fn shared(addresses: &[u32; 32], mask: u32, bytes: u32, update: Update) -> Cost {
    let none = Wavefronts::default();
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
            Cost { turns: 1, updates: banks::wavefronts(addresses, mask, bytes, AccessKind::Store), loads: none }
        }
        Update::Loop => looped(addresses, mask, bytes),
    }
}

/// The fewest wavefronts possible for an update by `lanes` lanes that took `wavefronts`: the value
/// of [`banks::ideal_wavefronts`], doubled if each lane takes two passes.
#[inline]
pub(crate) fn ideal_wavefronts(wavefronts: u32, lanes: u32, bytes: u32, update: Update) -> u32 {
    let passes = match update {
        Update::Native | Update::Count => 1,
        Update::Compare | Update::Loop => 2,
    };
    wavefronts.min(passes * banks::ideal_wavefronts(wavefronts, lanes, bytes))
}

fn looped(addresses: &[u32; 32], mask: u32, bytes: u32) -> Cost {
    let mut cost = Cost::default();
    let mut waiting = mask;
    while waiting != 0 {
        let load = banks::wavefronts(addresses, waiting, bytes.max(4), AccessKind::Load);
        let groups = if bytes <= 4 { 1 } else { u32::from(waiting & 0xffff != 0) + u32::from(waiting >> 16 != 0) };
        cost.loads = Wavefronts { taken: cost.loads.taken + load.taken, ideal: cost.loads.ideal + load.ideal };
        cost.updates = Wavefronts { taken: cost.updates.taken + 2 * groups, ideal: cost.updates.ideal + 2 * groups };
        // The lowest lane of each bank succeeds. For 8 bytes, that holds in each half of the warp,
        // unless the other half updates the same place.
        let mut won: Vec<(usize, u32, u32)> = Vec::new();
        for lane in lanes_of(waiting) {
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
    for lane in lanes_of(mask) {
        lanes[addresses[lane] as usize / 4 % 32] += 1;
    }
    lanes.into_iter().max().unwrap_or(0)
}
