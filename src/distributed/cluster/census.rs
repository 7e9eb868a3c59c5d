//! Counts the messages between boxes and the ranks of a side by their sizes, without a look at each
//! of them: the parts of an axis that share as much with a box are counted together, and the counts
//! of the axes multiply.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::side::{Grid, Region, Side};

/// Messages of one size.
pub(super) struct Alike {
    /// The elements of each.
    pub(super) elements: u64,
    /// The number of messages.
    pub(super) count: u64,
    /// The rank, modulo that of the census, of the other end.
    pub(super) residue: usize,
    /// The extents of each message, if it is one box.
    pub(super) extents: Vec<usize>,
    /// The extents of the part at the other end.
    pub(super) part: Vec<usize>,
}

/// Parts of an axis that share as much with each box, and whose rank has the same residue.
struct Parts {
    /// The extent that each box has in the part.
    shared: Vec<usize>,
    extent: usize,
    residue: usize,
    count: u64,
}

/// The messages between boxes and the parts of a side.
pub(super) struct Census<'a> {
    side: &'a Side,
    modulus: usize,
    known: HashMap<Along, Rc<Vec<Parts>>>,
}

/// An axis, and the range of each box along it.
type Along = (usize, Vec<Range<usize>>);

impl<'a> Census<'a> {
    pub(super) fn new(side: &'a Side, modulus: usize) -> Self {
        Self { side, modulus, known: HashMap::new() }
    }

    /// Visits the messages between disjoint boxes, taken together, and the parts of the side. Empty
    /// ones are left out.
    pub(super) fn visit(&mut self, boxes: &[Region], mut each: impl FnMut(&Alike)) {
        let parts: Vec<Rc<Vec<Parts>>> = (0..self.side.axes.len()).map(|axis| self.parts(axis, boxes)).collect();
        let is_one = boxes.len() == 1;
        let mut chosen = vec![0_usize; parts.len()];
        if parts.iter().any(|parts| parts.is_empty()) {
            return;
        }
        let mut alike = Alike { elements: 0, count: 0, residue: 0, extents: Vec::new(), part: Vec::new() };
        loop {
            let here = || parts.iter().zip(&chosen).map(|(parts, &at)| &parts[at]);
            let shared = |number| here().map(|parts: &Parts| parts.shared[number] as u64).product::<u64>();
            alike.elements = (0..boxes.len()).map(shared).sum();
            if alike.elements > 0 {
                alike.count = here().map(|parts| parts.count).product();
                alike.residue = here().map(|parts| parts.residue).sum::<usize>() % self.modulus;
                alike.part.clear();
                alike.part.extend(here().map(|parts| parts.extent));
                alike.extents.clear();
                alike.extents.extend(here().map(|parts| parts.shared[0]).filter(|_| is_one));
                each(&alike);
            }
            let Some(axis) = (0..chosen.len()).rev().find(|&axis| chosen[axis] + 1 < parts[axis].len()) else { return };
            chosen[axis] += 1;
            chosen[axis + 1..].fill(0);
        }
    }

    fn parts(&mut self, axis: usize, boxes: &[Region]) -> Rc<Vec<Parts>> {
        let ranges: Vec<Range<usize>> = boxes.iter().map(|region| region[axis].clone()).collect();
        let modulus = self.modulus;
        let grid = &self.side.axes[axis];
        Rc::clone(
            self.known.entry((axis, ranges)).or_insert_with_key(|(_, ranges)| Rc::new(parts(grid, ranges, modulus))),
        )
    }
}

/// Counts the parts of an axis that have elements in one of the ranges.
fn parts(grid: &Grid, ranges: &[Range<usize>], modulus: usize) -> Vec<Parts> {
    let full = || ranges.iter().filter(|range| !range.is_empty());
    let (Some(start), Some(end)) = (full().map(|range| range.start).min(), full().map(|range| range.end).max()) else {
        return Vec::new();
    };
    let first = grid.bounds.partition_point(|&bound| bound <= start) - 1;
    let mut counts: HashMap<(Vec<usize>, usize, usize), u64> = HashMap::new();
    for part in (first..grid.parts()).take_while(|&part| grid.bounds[part] < end) {
        let range = grid.bounds[part]..grid.bounds[part + 1];
        let shared: Vec<usize> = ranges.iter().map(|other| super::side::overlap(&range, other)).collect();
        if shared.iter().any(|&extent| extent > 0) {
            *counts.entry((shared, range.len(), part * grid.stride % modulus)).or_default() += 1;
        }
    }
    let counts = counts.into_iter();
    counts.map(|((shared, extent, residue), count)| Parts { shared, extent, residue, count }).collect()
}
