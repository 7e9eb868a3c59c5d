//! The messages between pairs of ranks.

use super::side::{Region, Side, common, overlap};
use crate::distributed::Redistribution;

/// The two sides of a redistribution on hosts of `gpus` ranks each.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    pub(super) from: Side,
    pub(super) to: Side,
    /// The source with one part for each host, if these are a grid.
    pub(super) from_hosts: Option<Side>,
    /// The boxes that each host has of the source.
    boxes: Vec<Vec<Region>>,
    /// The box of each rank in the source and in the result.
    regions: Vec<[Region; 2]>,
    width: u64,
    pub(super) gpus: usize,
}

impl Pairs {
    pub(super) fn new(plan: &Redistribution, gpus: usize) -> Self {
        let axes = plan.axes();
        let mut storage = vec![0; axes.len()];
        axes.iter().enumerate().for_each(|(axis, &of_source)| storage[of_source] = axis);
        let from = Side::new(plan.source(), &storage);
        let to = Side::new(plan.result(), &(0..axes.len()).collect::<Vec<_>>());
        let hosts = plan.ranks().div_ceil(gpus);
        let boxes = (0..hosts).map(|host| from.regions(host * gpus..(host + 1) * gpus)).collect();
        let regions = (0..hosts * gpus).map(|rank| [from.region(rank), to.region(rank)]).collect();
        Self { from_hosts: from.grouped(gpus), from, to, boxes, regions, width: plan.width() as u64, gpus }
    }

    /// Returns the number of hosts that have a part.
    pub(super) fn hosts(&self) -> usize {
        self.boxes.len()
    }

    /// Returns the number of GPUs of these hosts. The last ones may have no part.
    pub(super) fn ranks(&self) -> usize {
        self.regions.len()
    }

    /// Returns the ranks of a host.
    pub(super) fn of_host(&self, host: usize) -> std::ops::Range<usize> {
        host * self.gpus..(host + 1) * self.gpus
    }

    pub(super) fn source(&self, rank: usize) -> &Region {
        &self.regions[rank][0]
    }

    pub(super) fn result(&self, rank: usize) -> &Region {
        &self.regions[rank][1]
    }

    /// Returns the boxes that a host has of the source.
    pub(super) fn of_host_boxes(&self, host: usize) -> &[Region] {
        &self.boxes[host]
    }

    pub(super) fn bytes_of(&self, elements: u64) -> u64 {
        elements * self.width
    }

    /// Returns the bytes that a rank has for another one.
    pub(super) fn bytes(&self, from: usize, to: usize) -> u64 {
        self.bytes_of(common(self.source(from), self.result(to)))
    }

    /// Returns the bytes that all ranks of a host have for a rank.
    pub(super) fn bytes_of_host(&self, host: usize, to: usize) -> u64 {
        self.bytes_of(self.boxes[host].iter().map(|region| common(region, self.result(to))).sum())
    }

    /// Returns whether a message between two ranks is packed, and unpacked.
    pub(super) fn passes_between(&self, from: usize, to: usize) -> [bool; 2] {
        let (source, result) = (self.source(from), self.result(to));
        self.passes(&extents(source, result), &lengths(source), &lengths(result))
    }

    /// Returns whether a message is packed, and unpacked, by its extents and those of the parts. A
    /// slice that is one run of the source is sent as it lies there. Another one is packed in the
    /// result's order. On arrival it needs no copy if it is one run of the result in its order.
    pub(super) fn passes(&self, extents: &[usize], source: &[usize], result: &[usize]) -> [bool; 2] {
        let packs = !self.from.is_run(extents, self.from.stored(source));
        let in_order = packs || self.from.order(extents).eq(self.to.order(extents));
        [packs, !in_order || !self.to.is_run(extents, self.to.stored(result))]
    }

    /// Returns whether a message from a host with these extents, in the result's order, is copied
    /// to its place: if it is not one run there.
    pub(super) fn is_arranged(&self, extents: &[usize], result: &[usize]) -> bool {
        self.from_hosts.is_none() || !self.to.is_run(extents, self.to.stored(result))
    }
}

/// Returns the extents of what two boxes have in common.
pub(super) fn extents(a: &Region, b: &Region) -> Vec<usize> {
    a.iter().zip(b).map(|(a, b)| overlap(a, b)).collect()
}

/// Returns the extents of a box.
pub(super) fn lengths(region: &Region) -> Vec<usize> {
    region.iter().map(ExactSizeIterator::len).collect()
}
