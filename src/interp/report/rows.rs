//! What both drawings show: the 128-byte rows that an access touches, and which lanes touch which of their 32 words.
//!
//! In global memory a row is a line of 4 sectors; in shared memory its words lie in banks 0 to 31.

use std::collections::BTreeMap;

use super::WarpAccess;
use crate::error::counted;
use crate::interp::model::banks;
use crate::interp::vocabulary::AccessKind;

/// Words of a row, and banks of shared memory.
pub(super) const WORDS: usize = 32;
/// Words of a sector.
pub(super) const SECTOR_WORDS: usize = 8;
/// Bytes of a row.
pub(super) const ROW_BYTES: u64 = 128;
const WORD_BYTES: u64 = 4;

/// 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Address of the first.
    pub(super) start: u64,
    /// For each word the lanes that touch it, a bit each.
    pub(super) words: [u32; WORDS],
}

/// Lanes whose accesses to shared memory are served together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// A bit each, active or not.
    pub(super) lanes: u32,
    pub(super) rows: Vec<Row>,
    /// Whether lanes at one word take turns too, as those of most atomics do.
    pub(super) one_by_one: bool,
    /// For each bank how many of its words they touch, and of loads and stores the most is the number of wavefronts; or how
    /// many of them touch it, where they go one by one.
    pub(super) in_bank: [u32; WORDS],
}

impl Row {
    /// Whether a sector of it is touched.
    pub(super) fn touches(&self, sector: usize) -> bool {
        self.words[sector * SECTOR_WORDS..][..SECTOR_WORDS].iter().any(|lanes| *lanes != 0)
    }
}

impl WarpAccess {
    /// What the active ones of `lanes` touch, by address: the first byte of each, and the lanes that touch it.
    pub(super) fn pieces(&self, lanes: u32) -> BTreeMap<u64, u32> {
        let mut pieces = BTreeMap::new();
        for lane in each(self.lanes() & lanes) {
            *pieces.entry(self.address(lane)).or_default() |= 1 << lane;
        }
        pieces
    }

    /// The rows that the active ones of `lanes` touch, by address.
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

    /// The groups of lanes that shared memory serves one after the other, where any is active.
    pub(super) fn groups(&self) -> Vec<Group> {
        let size = banks::group_lanes(&self.offsets(), self.lanes(), self.width(), self.direction());
        let groups = |one_by_one: bool| {
            let group = move |first| self.group((((1_u64 << size) - 1) as u32) << first, one_by_one);
            (0..32).step_by(size as usize).map(group).filter(|group| !group.rows.is_empty()).collect::<Vec<_>>()
        };
        // An atomic that took less lets lanes at one word share.
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

    /// Bytes of a lane, whatever was written into the field.
    pub(super) fn width(&self) -> u32 {
        self.bytes.clamp(1, 16)
    }

    /// The active lanes, a bit each.
    pub(super) fn lanes(&self) -> u32 {
        each(u32::MAX).filter(|lane| self.addresses[*lane as usize].is_some()).fold(0, |lanes, lane| lanes | 1 << lane)
    }

    fn address(&self, lane: u32) -> u64 {
        self.addresses[lane as usize].unwrap_or_default()
    }

    fn offsets(&self) -> [u32; 32] {
        self.addresses.map(|address| address.unwrap_or_default() as u32)
    }

    fn direction(&self) -> banks::Access {
        match self.kind {
            AccessKind::Load => banks::Access::Load,
            AccessKind::Store | AccessKind::Atomic | AccessKind::Reduction => banks::Access::Store,
        }
    }
}

impl Group {
    fn most_in_a_bank(&self) -> u32 {
        self.in_bank.into_iter().max().unwrap_or(0)
    }

    /// What is counted in each bank.
    pub(super) fn counted(&self) -> &'static str {
        if self.one_by_one { "lanes" } else { "words" }
    }

    /// `lanes 0 to 15: 1 wavefront`; lanes that go one by one take some each.
    pub(super) fn heading(&self) -> String {
        let (first, last) = (self.lanes.trailing_zeros(), 31 - self.lanes.leading_zeros());
        let lanes = format!("lanes {first} to {last}");
        if self.one_by_one { lanes } else { format!("{lanes}: {}", counted(self.most_in_a_bank(), "wavefront")) }
    }
}

/// The lanes of a mask.
pub(super) fn each(lanes: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |lane| lanes >> lane & 1 == 1)
}
