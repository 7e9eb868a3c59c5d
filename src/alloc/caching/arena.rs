//! The memory that lanes share: segments, divided into blocks that are split and merged.
//!
//! Finding a block is a best fit in an ordered map, so it takes the logarithm of the number of free
//! blocks. Neighbours are linked, so merging takes constant time.

use std::collections::{BTreeMap, BTreeSet};

/// The owner of free blocks that any lane may use at once.
pub(super) const ANY: u32 = u32::MAX;

/// No block.
const NONE: u32 = u32::MAX;

/// The purpose of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It is divided into many small blocks.
    Chunk,
    /// It is one large block.
    Whole,
}

/// The lane whose work used a free block last, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    /// Its id, or [`ANY`].
    pub(super) lane: u32,
    /// The lane's epoch at the free.
    pub(super) stamp: u64,
}

/// A block, free or not.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) address: u64,
    pub(super) bytes: u64,
    segment: u32,
    before: u32,
    after: u32,
    /// `None` while the block is in use, or in a lane's quick list.
    pub(super) free: Option<Owner>,
}

#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) bytes: u64,
    kind: Kind,
    first: u32,
    /// Blocks that are not free.
    out: u32,
    /// The turn in which the last block became free.
    idle_since: u64,
}

/// Segments and their free blocks.
#[derive(Debug, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    spare_nodes: Vec<u32>,
    /// A segment of 0 bytes stands for a free place in the list.
    segments: Vec<Segment>,
    spare_segments: Vec<u32>,
    /// Free blocks by kind, lane, bytes and address.
    free: BTreeMap<(Kind, u32, u64, u64), u32>,
    /// Segments that are free as a whole, by the turn since when.
    idle: BTreeSet<(u64, u32)>,
    turn: u64,
    pub(super) reserved: u64,
    pub(super) peak_reserved: u64,
}

impl Arena {
    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(super) fn segment(&self, segment: u32) -> &Segment {
        &self.segments[segment as usize]
    }

    /// Enters new memory as one free block.
    pub(super) fn add(&mut self, address: u64, bytes: u64, kind: Kind, owner: Owner) -> u32 {
        let segment = self.spare_segments.pop().unwrap_or(self.segments.len() as u32);
        let node = self.new_node(Node { address, bytes, segment, before: NONE, after: NONE, free: None });
        let made = Segment { address, bytes, kind, first: node, out: 1, idle_since: 0 };
        match self.segments.get_mut(segment as usize) {
            Some(spare) => *spare = made,
            None => self.segments.push(made),
        }
        self.reserved += bytes;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.release(node, owner);
        node
    }

    /// Returns the smallest free block of a kind from `least` to `most` bytes that `lane` may use
    /// at once.
    pub(super) fn fit(&self, kind: Kind, lane: u32, least: u64, most: u64) -> Option<u32> {
        let best = |lane| {
            let found = self.free.range((kind, lane, least, 0)..=(kind, lane, most, u64::MAX)).next();
            found.map(|(&(.., bytes, address), &node)| (bytes, address, node))
        };
        let own = best(lane);
        let of_any = best(ANY);
        own.into_iter().chain(of_any).min().map(|(.., node)| node)
    }

    /// Returns the smallest free block of any lane, as [`fit`](Self::fit).
    pub(super) fn fit_of_others(
        &self,
        kind: Kind,
        lanes: impl Iterator<Item = u32>,
        least: u64,
        most: u64,
    ) -> Option<u32> {
        lanes.filter_map(|lane| self.fit(kind, lane, least, most)).min_by_key(|&node| self.node(node).bytes)
    }

    /// Takes a free block, and leaves what it has beyond `bytes` free if its segment is a chunk.
    pub(super) fn take(&mut self, node: u32, bytes: u64) {
        let owner = self.unlist(node);
        let Node { address, bytes: all, segment, after, .. } = self.nodes[node as usize];
        let home = &mut self.segments[segment as usize];
        if home.out == 0 {
            self.idle.remove(&(home.idle_since, segment));
        }
        home.out += 1;
        if home.kind == Kind::Whole || all == bytes {
            return;
        }
        let rest = Node { address: address + bytes, bytes: all - bytes, segment, before: node, after, free: None };
        let rest = self.new_node(rest);
        self.nodes[node as usize].bytes = bytes;
        self.nodes[node as usize].after = rest;
        if after != NONE {
            self.nodes[after as usize].before = rest;
        }
        self.list(rest, owner);
    }

    /// Makes a block free, and merges it with free neighbours of the same owner.
    pub(super) fn release(&mut self, node: u32, owner: Owner) {
        let segment = self.nodes[node as usize].segment;
        self.merge(node, owner);
        let home = &mut self.segments[segment as usize];
        home.out -= 1;
        if home.out == 0 {
            self.turn += 1;
            home.idle_since = self.turn;
            self.idle.insert((self.turn, segment));
        }
    }

    /// Enters a block that is in no list into one, together with its neighbours.
    fn merge(&mut self, node: u32, mut owner: Owner) {
        let before = self.nodes[node as usize].before;
        let mut first = node;
        if let Some(stamp) = self.mergeable(before, owner.lane) {
            owner.stamp = owner.stamp.max(stamp);
            self.unlist(before);
            self.join(before, node);
            first = before;
        }
        let after = self.nodes[first as usize].after;
        if let Some(stamp) = self.mergeable(after, owner.lane) {
            owner.stamp = owner.stamp.max(stamp);
            self.unlist(after);
            self.join(first, after);
        }
        self.list(first, owner);
    }

    /// The stamp of a free block of a lane.
    fn mergeable(&self, node: u32, lane: u32) -> Option<u64> {
        let owner = self.nodes.get(node as usize)?.free?;
        (owner.lane == lane).then_some(owner.stamp)
    }

    /// Adds the block on the right to its neighbour.
    fn join(&mut self, left: u32, right: u32) {
        let Node { bytes, after, .. } = self.nodes[right as usize];
        self.nodes[left as usize].bytes += bytes;
        self.nodes[left as usize].after = after;
        if after != NONE {
            self.nodes[after as usize].before = left;
        }
        self.spare_nodes.push(right);
    }

    /// Gives all free blocks of `from` that satisfy `may` to another owner, and merges them there.
    pub(super) fn hand_over(&mut self, from: u32, may: impl Fn(u64) -> bool, to: Owner) {
        for kind in [Kind::Chunk, Kind::Whole] {
            let of_lane = self.free.range((kind, from, 0, 0)..=(kind, from, u64::MAX, u64::MAX));
            let nodes: Vec<u32> = of_lane.map(|(_, &node)| node).collect();
            for node in nodes {
                // A merge may have taken it already: then another node is listed at its place.
                let Some(owner) = self.nodes[node as usize].free.filter(|owner| owner.lane == from) else { continue };
                if may(owner.stamp) {
                    self.hand_over_one(node, to);
                }
            }
        }
    }

    /// Gives one free block to another owner.
    pub(super) fn hand_over_one(&mut self, node: u32, to: Owner) {
        self.unlist(node);
        self.merge(node, to);
    }

    /// Returns whether a lane has free blocks here.
    pub(super) fn owns(&self, lane: u32) -> bool {
        let mut kinds = [Kind::Chunk, Kind::Whole].into_iter();
        kinds.any(|kind| self.free.range((kind, lane, 0, 0)..=(kind, lane, u64::MAX, u64::MAX)).next().is_some())
    }

    /// Segments that are free as a whole, the longest first.
    pub(super) fn idle(&self) -> impl Iterator<Item = u32> {
        self.idle.iter().map(|&(_, segment)| segment)
    }

    /// Removes a segment that is free as a whole.
    pub(super) fn remove(&mut self, segment: u32) -> (u64, u64) {
        let Segment { address, bytes, idle_since, .. } = self.segments[segment as usize];
        for node in self.blocks(segment).collect::<Vec<_>>() {
            self.unlist(node);
            self.spare_nodes.push(node);
        }
        self.idle.remove(&(idle_since, segment));
        self.segments[segment as usize].bytes = 0;
        self.spare_segments.push(segment);
        self.reserved -= bytes;
        (address, bytes)
    }

    /// The blocks of a segment, by address.
    pub(super) fn blocks(&self, segment: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self.segments[segment as usize].first), |&node| {
            Some(self.nodes[node as usize].after).filter(|&after| after != NONE)
        })
    }

    /// All segments, by address.
    pub(super) fn segments(&self) -> Vec<u32> {
        let live = |&segment: &u32| self.segments[segment as usize].bytes > 0;
        let mut segments: Vec<u32> = (0..self.segments.len() as u32).filter(live).collect();
        segments.sort_unstable_by_key(|&segment| self.segments[segment as usize].address);
        segments
    }

    /// The bytes of the largest free block.
    pub(super) fn largest_free(&self) -> u64 {
        self.free.keys().map(|&(.., bytes, _)| bytes).max().unwrap_or(0)
    }

    /// Returns the number of entries that there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        let spare = self.spare_nodes.capacity() + self.spare_segments.capacity();
        self.nodes.capacity() + self.segments.capacity() + spare
    }

    /// Gives back the host memory behind the last block and the last segment. Returns the number of
    /// nodes that are left.
    pub(super) fn shrink(&mut self) -> u32 {
        let nodes = shrink(&mut self.nodes, &mut self.spare_nodes);
        shrink(&mut self.segments, &mut self.spare_segments);
        nodes
    }

    fn new_node(&mut self, node: Node) -> u32 {
        if let Some(spare) = self.spare_nodes.pop() {
            self.nodes[spare as usize] = node;
            return spare;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn key(&self, node: u32, lane: u32) -> (Kind, u32, u64, u64) {
        let node = &self.nodes[node as usize];
        (self.segments[node.segment as usize].kind, lane, node.bytes, node.address)
    }

    fn list(&mut self, node: u32, owner: Owner) {
        self.free.insert(self.key(node, owner.lane), node);
        self.nodes[node as usize].free = Some(owner);
    }

    fn unlist(&mut self, node: u32) -> Owner {
        let owner = self.nodes[node as usize].free.take().expect("it is in a list");
        self.free.remove(&self.key(node, owner.lane));
        owner
    }
}

/// Takes off the end of a list what is spare there, and returns the new length.
fn shrink<T>(all: &mut Vec<T>, spare: &mut Vec<u32>) -> u32 {
    let len = all.len() as u32;
    // The lowest are used first from now on, so that a later end is spare sooner.
    spare.sort_unstable_by(|a, b| b.cmp(a));
    let gone = spare.iter().zip((0..len).rev()).take_while(|(spare, last)| *spare == last).count();
    spare.drain(..gone);
    spare.shrink_to_fit();
    all.truncate(all.len() - gone);
    all.shrink_to_fit();
    len - gone as u32
}
