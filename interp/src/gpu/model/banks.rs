//! Shared memory's banks: the number of passes, or wavefronts, of one access of a warp.
//!
//! There are 32 banks of 4 bytes; word `w` lies in bank `w % 32`, and a wavefront serves one word
//! of each bank. Lanes that access the same word share it. 8-byte accesses are served in 2 groups
//! of 16 lanes, 16-byte accesses in 4 groups of 8, so that a group without conflicts fills one
//! wavefront. Only loads have a shortcut: if no lane has a neighbour (lane ^ 1 for all lanes, or
//! lane ^ 2 for all lanes) that reads another address, one wavefront serves two groups. An inactive
//! neighbour reads nothing. Source: NVIDIA's counters on an H100, which show all of this
//! (`docs/counters.md`).

use crate::gpu::vocabulary::each;

/// Whether lanes read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// `ld.shared`
    Load,
    /// `st.shared`
    Store,
}

/// Wavefronts of one access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wavefronts {
    /// The wavefronts that the access takes.
    pub(crate) taken: u32,
    /// The wavefronts that an access of this width takes without a bank conflict.
    pub(crate) ideal: u32,
}

/// The wavefronts of an access by the lanes of `mask`, each to `bytes` bytes (1, 2, 4, 8 or 16) at
/// its aligned address.
#[inline]
pub(crate) fn wavefronts(addresses: &[u32; 32], mask: u32, bytes: u32, access: Access) -> Wavefronts {
    let words = each(|lane| addresses[lane] / 4);
    if bytes <= 4 {
        let taken = narrow_group(&words, mask);
        return Wavefronts { taken, ideal: u32::from(mask != 0) };
    }
    let lanes = group_lanes(addresses, mask, bytes, access);
    let mut total = Wavefronts { taken: 0, ideal: 0 };
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
pub(crate) fn group_lanes(addresses: &[u32; 32], mask: u32, bytes: u32, access: Access) -> u32 {
    if bytes <= 4 {
        return 32;
    }
    let words = each(|lane| addresses[lane] / 4);
    let paired = access == Access::Load && (pairs_agree(&words, mask, 1) || pairs_agree(&words, mask, 2));
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
    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
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

/// Whether all active lanes read the same address as their active partner, whose number differs by
/// the bit `distance`.
fn pairs_agree(words: &[u32; 32], mask: u32, distance: usize) -> bool {
    (0..32).filter(|lane| mask >> lane & 1 == 1).all(|lane| {
        let partner = lane ^ distance;
        mask >> partner & 1 == 0 || words[lane] == words[partner]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(stride: u32) -> [u32; 32] {
        std::array::from_fn(|lane| lane as u32 * stride)
    }

    fn load(stride: u32, bytes: u32) -> (u32, u32) {
        let Wavefronts { taken, ideal } = wavefronts(&strided(stride), u32::MAX, bytes, Access::Load);
        (taken, ideal)
    }

    fn store(stride: u32, bytes: u32) -> (u32, u32) {
        let Wavefronts { taken, ideal } = wavefronts(&strided(stride), u32::MAX, bytes, Access::Store);
        (taken, ideal)
    }

    #[test]
    fn strides_of_words() {
        for (stride, expected) in [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (5, 1)]
        {
            assert_eq!(load(4 * stride, 4), (expected, 1), "load, {stride} words");
            assert_eq!(store(4 * stride, 4), (expected, 1), "store, {stride} words");
        }
    }

    #[test]
    fn narrow_elements_share_words() {
        for (stride, expected) in [(1, 1), (2, 1), (33, 1), (128, 32), (132, 1)] {
            assert_eq!(load(stride, 1), (expected, 1), "{stride} bytes");
        }
        for (stride, expected) in [(2, 1), (3, 2), (64, 32)] {
            assert_eq!(load(2 * stride, 2), (expected, 1), "{stride} halves");
        }
    }

    #[test]
    fn wide_elements_go_in_groups() {
        for (stride, expected) in [(1, (2, 2)), (3, (2, 2)), (4, (8, 2)), (16, (32, 2)), (32, (32, 2))] {
            assert_eq!(load(8 * stride, 8), expected, "{stride} doubles");
        }
        for (stride, expected) in [(1, (4, 4)), (3, (4, 4)), (4, (16, 4)), (8, (32, 4)), (16, (32, 4))] {
            assert_eq!(load(16 * stride, 16), expected, "load, {stride} quads");
            assert_eq!(store(16 * stride, 16), expected, "store, {stride} quads");
        }
    }

    #[test]
    fn neighbours_at_one_address_share_a_load_but_not_a_store() {
        assert_eq!((load(0, 8), store(0, 8)), ((1, 1), (2, 2)));
        assert_eq!((load(0, 16), store(0, 16)), ((2, 2), (4, 4)));
    }

    /// Halves and quarters of the warp cannot each pair in their own way.
    #[test]
    fn all_lanes_pair_alike_or_none_do() {
        let lanes = |pair: fn(u32) -> u32| std::array::from_fn(|lane| pair(lane as u32) * 8);
        let taken = |addresses| wavefronts(&addresses, u32::MAX, 8, Access::Load).taken;
        assert_eq!(taken(lanes(|lane| lane / 2)), 1);
        assert_eq!(taken(lanes(|lane| lane / 4 * 2 + lane % 2)), 1);
        assert_eq!(taken(lanes(|lane| lane / 8 * 4 + lane % 4)), 2, "lane ^ 4 is no neighbour");
        assert_eq!(taken(lanes(|lane| if lane < 16 { lane / 2 } else { lane / 4 * 2 + lane % 2 })), 2);
        assert_eq!(taken(lanes(|lane| if lane < 16 { lane / 2 } else { lane })), 2);
    }

    /// Every second lane alone forms pairs, so groups are twice as large: half of the ideal, and
    /// conflicts.
    #[test]
    fn a_lane_whose_neighbour_is_off_is_a_pair() {
        let even = |bytes, access| wavefronts(&strided(bytes), 0x5555_5555, bytes, access);
        assert_eq!(even(8, Access::Load), Wavefronts { taken: 2, ideal: 1 });
        assert_eq!(even(16, Access::Load), Wavefronts { taken: 4, ideal: 2 });
        assert_eq!(even(8, Access::Store), Wavefronts { taken: 2, ideal: 2 });
        let packed: [u32; 32] = std::array::from_fn(|lane| lane as u32 / 2 * 16);
        let quads = wavefronts(&packed, 0x5555_5555, 16, Access::Load);
        assert_eq!(quads, Wavefronts { taken: 2, ideal: 2 });
        assert_eq!(wavefronts(&strided(16), 1 << 9, 16, Access::Load), Wavefronts { taken: 1, ideal: 1 });
    }

    #[test]
    fn ideal_are_as_few_as_the_bytes_need() {
        assert_eq!([1, 4, 8, 16].map(|bytes| ideal_wavefronts(32, 32, bytes)), [1, 1, 2, 4]);
        assert_eq!(ideal_wavefronts(2, 16, 8), 1, "every second lane is off");
        assert_eq!(ideal_wavefronts(1, 32, 8), 1, "a broadcast");
        assert_eq!(ideal_wavefronts(0, 0, 4), 0);
    }

    #[test]
    fn only_active_lanes_count() {
        let column = strided(128);
        let taken = |mask| wavefronts(&column, mask, 4, Access::Load).taken;
        assert_eq!([taken(0), taken(1), taken(0b101), taken(0xffff)], [0, 1, 2, 16]);
        let first_group = wavefronts(&strided(8), 0xff, 8, Access::Load);
        assert_eq!(first_group, Wavefronts { taken: 1, ideal: 1 });
    }
}
