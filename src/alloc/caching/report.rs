//! Lists the memory that is held, and its holders, for figures, snapshots and errors.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

use super::arena::ANY;
use super::lane::still;
use super::{Caching, Core};
use crate::alloc::{BlockState, BlockView, Figures, SegmentView, Snapshot};
use crate::error::{Error, ErrorKind, counted};

/// Most holders that an error names.
const MOST_HOLDERS: usize = 5;

impl Caching {
    pub(super) fn sum_up(&self, core: &mut Core) -> Figures {
        let active = self.active(core);
        core.peak_active = core.peak_active.max(active);
        let mut figures = Figures {
            active,
            peak_active: core.peak_active,
            reserved: core.arena.reserved,
            peak_reserved: core.arena.peak_reserved,
            free: core.arena.reserved.saturating_sub(active),
            largest_free: core.arena.largest_free(),
            misses: core.misses,
            taken: core.taken,
            given_back: core.given_back,
            blocks: still(self.sums(core), |sums| &sums.allocations, |sums| &sums.frees),
            allocations: 0,
        };
        for slot in (0..core.clocks.len() as u32).map(|lane| self.lanes.entry(lane)) {
            figures.allocations += slot.sums.allocations.load(Relaxed);
            slot.quick.enter().each(|block| {
                figures.largest_free = figures.largest_free.max(core.arena.node(block.node).bytes);
            });
        }
        figures
    }

    /// Returns the lane whose quick list has a block, for all such blocks.
    fn cached(&self, core: &Core) -> HashMap<u32, u32> {
        let mut cached = HashMap::new();
        for lane in 0..core.clocks.len() as u32 {
            self.lanes.entry(lane).quick.enter().each(|block| {
                cached.insert(block.node, lane);
            });
        }
        cached
    }

    pub(super) fn view(&self, core: &mut Core) -> Snapshot {
        let cached = self.cached(core);
        let block = |node: u32| {
            let held = core.arena.node(node);
            let holder = self.holders.entry(node);
            let (state, lane, site) = match (held.free, cached.get(&node)) {
                (Some(owner), _) => (BlockState::Free, Some(owner.lane).filter(|&lane| lane != ANY), None),
                (None, Some(&lane)) => (BlockState::Cached, Some(lane), None),
                (None, None) => (BlockState::Active, Some(holder.lane()), holder.site().map(Location::to_string)),
            };
            BlockView { address: held.address, bytes: held.bytes, state, lane, site }
        };
        let segment = |segment| {
            let blocks = core.arena.blocks(segment).map(block).collect();
            let piece = core.arena.segment(segment);
            SegmentView { address: piece.address, bytes: piece.bytes, blocks }
        };
        let segments = core.arena.segments().into_iter().map(segment).collect();
        Snapshot { figures: self.sum_up(core), segments }
    }

    /// Says why a request cannot be met. The advice lists the holders, the largest first: the lines
    /// of a program help its author, and not the users of the program.
    pub(super) fn out_of_memory(&self, core: &mut Core, wanted: u64) -> Error {
        let cached = self.cached(core);
        let mut holders: BTreeMap<(String, u32), (u64, u64)> = BTreeMap::new();
        for node in core.arena.segments().into_iter().flat_map(|segment| core.arena.blocks(segment)) {
            let held = core.arena.node(node);
            if held.free.is_none() && !cached.contains_key(&node) {
                let holder = self.holders.entry(node);
                let site = holder.site().map_or_else(String::new, Location::to_string);
                let sum = holders.entry((site, holder.lane())).or_default();
                *sum = (sum.0 + held.bytes, sum.1 + 1);
            }
        }
        let mut holders: Vec<_> = holders.into_iter().collect();
        holders.sort_by_key(|(_, (bytes, _))| std::cmp::Reverse(*bytes));
        let figures = self.sum_up(core);
        let what = format!(
            "the device has no {} for a block: {} in use, {} free in the cache, the largest piece {}",
            size(wanted),
            size(figures.active),
            size(figures.free),
            size(figures.largest_free)
        );
        let mut advice = String::new();
        for (at, ((site, lane), (bytes, blocks))) in holders.iter().take(MOST_HOLDERS).enumerate() {
            let (before, blocks) = (if at == 0 { "by line: " } else { ", " }, counted(blocks, "block"));
            // Writing to a string cannot fail.
            let _ = write!(advice, "{before}{site} holds {} in {blocks} on stream {lane}", size(*bytes));
        }
        if holders.len() > MOST_HOLDERS {
            let _ = write!(advice, ", and {} more", holders.len() - MOST_HOLDERS);
        }
        if !advice.is_empty() {
            advice += "; ";
        }
        advice += "drop what is no longer needed, or use smaller buffers";
        Error::advised(ErrorKind::OutOfMemory, what, advice)
    }
}

/// A number of bytes in the largest unit of which there is one.
fn size(bytes: u64) -> String {
    let unit = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")].into_iter().find(|&(unit, _)| bytes >= unit);
    unit.map_or_else(
        || counted(bytes, "byte").to_string(),
        |(unit, name)| format!("{:.1} {name}", bytes as f64 / unit as f64),
    )
}
