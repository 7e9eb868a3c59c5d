//! The content of both drawings: the 128-byte rows that an access touches, and the lanes that touch
//! each of their 32 words.
//!
//! In global memory a row is a line of 4 sectors; in shared memory its words lie in banks 0 to 31.

use std::collections::BTreeMap;

use super::WarpAccess;
use crate::error::counted;
use crate::gpu::model::banks;
use crate::gpu::vocabulary::{FULL, lanes_of, lanes_where};

/// Words of a row, and banks of shared memory.
pub(super) const WORDS: usize = 32;
/// Words of a sector.
pub(super) const SECTOR_WORDS: usize = 8;
/// Bytes of a row.
pub(super) const ROW_BYTES: u64 = 128;
const WORD_BYTES: u64 = 4;

/// 128 bytes of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Address of the first byte.
    pub(super) start: u64,
    /// The lanes that touch each word, a bit each.
    pub(super) words: [u32; WORDS],
}

/// Lanes whose accesses shared memory serves together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// The lanes, a bit each, active or not.
    pub(super) lanes: u32,
    pub(super) rows: Vec<Row>,
    /// True if lanes at the same word take turns, as in most atomics.
    pub(super) one_by_one: bool,
    /// A count for each bank. For loads and stores: the words of the bank that the lanes touch; the
    /// maximum over the banks is the number of wavefronts. If lanes take turns at one word: the
    /// lanes that touch the bank.
    pub(super) in_bank: [u32; WORDS],
}

impl Row {
    /// Returns whether the access touches this sector.
    pub(super) fn touches(&self, sector: usize) -> bool {
        self.words[sector * SECTOR_WORDS..][..SECTOR_WORDS].iter().any(|lanes| *lanes != 0)
    }
}

impl WarpAccess {
    /// The addresses that the active lanes of `lanes` touch: the first byte of each access, and the
    /// lanes that touch it.
    pub(super) fn pieces(&self, lanes: u32) -> BTreeMap<u64, u32> {
        let mut pieces = BTreeMap::new();
        for lane in lanes_of(self.lanes() & lanes) {
            *pieces.entry(self.addresses[lane].unwrap_or_default()).or_default() |= 1 << lane;
        }
        pieces
    }

    /// The rows that the active lanes of `lanes` touch, by address.
    pub(super) fn rows(&self, lanes: u32) -> Vec<Row> {
        let mut rows = BTreeMap::new();
        for (first, lanes) in self.pieces(lanes) {
            let last = first.saturating_add(u64::from(self.width()) - 1);
            for word in first / WORD_BYTES..=last / WORD_BYTES {
                let words: &mut [u32; WORDS] = rows.entry(word * WORD_BYTES / ROW_BYTES * ROW_BYTES).or_default();
                words[word as usize % WORDS] |= lanes;
            }
        }
        rows.into_iter().map(|(start, words)| Row { start, words }).collect()
    }

    /// The groups of lanes that shared memory serves one after the other; groups without an active
    /// lane are left out.
    pub(super) fn groups(&self) -> Vec<Group> {
        let offsets = self.addresses.map(|address| address.unwrap_or_default() as u32);
        let size = banks::group_lanes(&offsets, self.lanes(), self.width(), self.kind);
        let groups = |one_by_one: bool| {
            let group = move |first| self.group((((1_u64 << size) - 1) as u32) << first, one_by_one);
            (0..32).step_by(size as usize).map(group).filter(|group| !group.rows.is_empty()).collect::<Vec<_>>()
        };
        // If an atomic took less than that, lanes at one word share it.
        let turns = groups(true);
        let all: u32 = turns.iter().map(Group::most_in_a_bank).sum();
        if self.kind.is_update() && self.taken >= all { turns } else { groups(false) }
    }

    fn group(&self, lanes: u32, one_by_one: bool) -> Group {
        let rows = self.rows(lanes);
        let mut in_bank = [0; WORDS];
        for row in &rows {
            for (count, lanes) in in_bank.iter_mut().zip(row.words) {
                *count += if one_by_one { lanes.count_ones() } else { u32::from(lanes != 0) };
            }
        }
        Group { lanes, rows, one_by_one, in_bank }
    }

    /// Bytes that a lane accesses, clamped to 1 to 16, because the field is public.
    pub(super) fn width(&self) -> u32 {
        self.bytes.clamp(1, 16)
    }

    /// The active lanes, a bit each.
    pub(super) fn lanes(&self) -> u32 {
        lanes_where(FULL, |lane| self.addresses[lane].is_some())
    }
}

impl Group {
    fn most_in_a_bank(&self) -> u32 {
        self.in_bank.into_iter().max().unwrap_or(0)
    }

    /// The unit of the count in each bank.
    pub(super) fn counted(&self) -> &'static str {
        if self.one_by_one { "lanes" } else { "words" }
    }

    /// `lanes 0 to 15: 1 wavefront`. If lanes take turns, a group has no number of wavefronts of
    /// its own.
    pub(super) fn heading(&self) -> String {
        let (first, last) = (self.lanes.trailing_zeros(), 31 - self.lanes.leading_zeros());
        let lanes = format!("lanes {first} to {last}");
        if self.one_by_one { lanes } else { format!("{lanes}: {}", counted(self.most_in_a_bank(), "wavefront")) }
    }
}
