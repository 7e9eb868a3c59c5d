//! Shared memory's banks: the number of passes, or wavefronts, of one access of a warp.
//!
//! There are 32 banks of 4 bytes; word `w` lies in bank `w % 32`, and a wavefront serves one word
//! of each bank. Lanes that access the same word share it. 8-byte accesses are served in 2 groups
//! of 16 lanes, 16-byte accesses in 4 groups of 8, so that a group without conflicts fills one
//! wavefront. Only loads have a shortcut: if no lane has a neighbour (lane ^ 1 for all lanes, or
//! lane ^ 2 for all lanes) that reads another address, one wavefront serves two groups. An inactive
//! neighbour reads nothing. Source: NVIDIA's counters on an H100, which show all of this
//! (`docs/counters.md`).

use crate::gpu::vocabulary::{AccessKind, each, lanes_of};

/// Wavefronts of one access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wavefronts {
    /// The wavefronts that the access takes.
    pub(crate) taken: u32,
    /// The wavefronts that an access of this width takes without a bank conflict.
    pub(crate) ideal: u32,
}

/// The wavefronts of an access by the lanes of `mask`, each to `bytes` bytes (1, 2, 4, 8 or 16) at
/// its aligned address.
#[inline]
pub(crate) fn wavefronts(addresses: &[u32; 32], mask: u32, bytes: u32, access: AccessKind) -> Wavefronts {
    let words = each(|lane| addresses[lane] / 4);
    if bytes <= 4 {
        let taken = narrow_group(&words, mask);
        return Wavefronts { taken, ideal: u32::from(mask != 0) };
    }
    let lanes = group_lanes(addresses, mask, bytes, access);
    let mut total = Wavefronts::default();
    for first in (0..32).step_by(lanes as usize) {
        let group = mask & (((1_u64 << lanes) - 1) as u32) << first;
        total.taken += wide_group(&words, group, bytes / 4);
        total.ideal += u32::from(group != 0);
    }
    total
}

/// The ideal that Nsight Compute's source page shows for an access by `lanes` lanes that took
/// `wavefronts`: the fewest wavefronts that can carry the lanes' bytes, 128 each, or the wavefronts
/// taken if lanes share data. Bank conflicts refer to another ideal, [`Wavefronts::ideal`], which
/// does not allow for inactive lanes. Equal to the profiler's value on an H100.
#[inline]
pub(crate) fn ideal_wavefronts(wavefronts: u32, lanes: u32, bytes: u32) -> u32 {
    wavefronts.min((lanes * bytes).div_ceil(128))
}

/// The number of neighbouring lanes that are served together: all 32, or fewer if each accesses 8
/// or 16 bytes.
#[inline]
pub(crate) fn group_lanes(addresses: &[u32; 32], mask: u32, bytes: u32, access: AccessKind) -> u32 {
    if bytes <= 4 {
        return 32;
    }
    let words = each(|lane| addresses[lane] / 4);
    let paired = access == AccessKind::Load && (pairs_agree(&words, mask, 1) || pairs_agree(&words, mask, 2));
    if paired { 256 / bytes } else { 128 / bytes }
}

/// A group with one word for each lane: the largest number of distinct words in one bank.
#[inline]
fn narrow_group(words: &[u32; 32], mask: u32) -> u32 {
    if mask == u32::MAX {
        // All banks are distinct, as in every well laid out access.
        let banks = words.iter().fold(0_u32, |banks, word| banks | 1 << (word % 32));
        if banks == u32::MAX || words.iter().all(|word| *word == words[0]) {
            return 1;
        }
    }
    wide_group(words, mask, 1)
}

/// A group with `words_each` consecutive words for each lane.
fn wide_group(words: &[u32; 32], mask: u32, words_each: u32) -> u32 {
    if is_without_conflict(words, mask, words_each) {
        return u32::from(mask != 0);
    }
    let mut distinct = [0_u32; 128];
    let mut count = 0;
    for lane in lanes_of(mask) {
        for word in words[lane]..words[lane] + words_each {
            distinct[count] = word;
            count += 1;
        }
    }
    let distinct = &mut distinct[..count];
    if !distinct.is_sorted_by(|before, after| before < after) {
        distinct.sort_unstable();
    }
    let mut banks = [0_u32; 32];
    let mut previous = None;
    for &word in distinct.iter() {
        banks[(word % 32) as usize] += u32::from(previous != Some(word));
        previous = Some(word);
    }
    banks.iter().fold(0, |most, &bank| most.max(bank))
}

/// Returns whether each bank has one word at most, as in every well laid out access.
fn is_without_conflict(words: &[u32; 32], mask: u32, words_each: u32) -> bool {
    let (mut held, mut banks, mut rest) = ([0_u32; 32], 0_u32, mask);
    while rest != 0 {
        let first = words[rest.trailing_zeros() as usize];
        for word in first..first + words_each {
            let bank = word % 32;
            if banks >> bank & 1 == 1 && held[bank as usize] != word {
                return false;
            }
            banks |= 1 << bank;
            held[bank as usize] = word;
        }
        rest &= rest - 1;
    }
    true
}

/// Returns whether all active lanes read the same address as their active partner, whose number
/// differs by the bit `distance`.
fn pairs_agree(words: &[u32; 32], mask: u32, distance: usize) -> bool {
    lanes_of(mask).all(|lane| {
        let partner = lane ^ distance;
        mask >> partner & 1 == 0 || words[lane] == words[partner]
    })
}
