//! The parts of a split as a grid, and the boxes that ranks have in it.

use std::ops::Range;

use crate::distributed::Split;

/// A box of the array, a range for each axis of the result.
pub(super) type Region = Vec<Range<usize>>;

/// The source or the result of a redistribution, with the axes in the result's order.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) axes: Vec<Grid>,
    /// The axes in the order in which they lie in memory, the slowest first.
    pub(super) storage: Vec<usize>,
    /// The extents that each rank stores.
    padded: Option<Vec<usize>>,
    pub(super) ranks: usize,
}

/// The cuts of an axis.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    /// The start of each part, and the axis's extent.
    pub(super) bounds: Vec<usize>,
    /// Ranks from a part to the next one.
    pub(super) stride: usize,
}

impl Grid {
    pub(super) fn parts(&self) -> usize {
        self.bounds.len() - 1
    }
}

impl Side {
    /// Takes a split whose axes are `storage` of the result.
    pub(super) fn new(split: &Split, storage: &[usize]) -> Self {
        let mut axes: Vec<Grid> = vec![Grid { bounds: Vec::new(), stride: 1 }; storage.len()];
        for (&axis, &extent) in storage.iter().zip(split.shape()) {
            axes[axis].bounds = vec![0, extent];
        }
        let mut ranks = 1;
        for (axis, bounds) in split.cuts().rev() {
            axes[storage[axis]] = Grid { bounds: bounds.to_vec(), stride: ranks };
            ranks *= bounds.len() - 1;
        }
        let padded = split.padding().map(|stored| {
            let mut padded = vec![0; stored.len()];
            storage.iter().zip(stored).for_each(|(&axis, &extent)| padded[axis] = extent);
            padded
        });
        Self { axes, storage: storage.to_vec(), padded, ranks }
    }

    /// Returns the box of a rank. Ranks without a part have an empty one.
    pub(super) fn region(&self, rank: usize) -> Region {
        let range = |axis: &Grid| {
            let part = rank / axis.stride % axis.parts();
            let end = if rank < self.ranks { axis.bounds[part + 1] } else { axis.bounds[part] };
            axis.bounds[part]..end
        };
        self.axes.iter().map(range).collect()
    }

    /// Returns the boxes of ranks that follow each other. They are disjoint.
    pub(super) fn regions(&self, ranks: Range<usize>) -> Vec<Region> {
        let ranks = ranks.start.min(self.ranks)..ranks.end.min(self.ranks);
        let mut cut: Vec<usize> = (0..self.axes.len()).filter(|&axis| self.axes[axis].parts() > 1).collect();
        cut.sort_by_key(|&axis| std::cmp::Reverse(self.axes[axis].stride));
        let whole = |axis: &Grid| 0..axis.bounds[axis.parts()];
        let mut found = Vec::new();
        self.divide(&cut, ranks, self.axes.iter().map(whole).collect(), &mut found);
        found
    }

    /// Divides ranks into boxes: those of one part of the slowest axis, those of whole parts of it,
    /// and the rest.
    fn divide(&self, cut: &[usize], ranks: Range<usize>, region: Region, found: &mut Vec<Region>) {
        if ranks.is_empty() {
            return;
        }
        let Some((&axis, faster)) = cut.split_first() else {
            found.push(region);
            return;
        };
        let Grid { bounds, stride } = &self.axes[axis];
        let with = |parts: Range<usize>| {
            let mut region = region.clone();
            region[axis] = bounds[parts.start]..bounds[parts.end];
            region
        };
        let (first, last) = (ranks.start / stride, (ranks.end - 1) / stride);
        let whole = ranks.start.div_ceil(*stride)..ranks.end / stride;
        if first == last && whole.is_empty() {
            let before = first * stride;
            return self.divide(faster, ranks.start - before..ranks.end - before, with(first..first + 1), found);
        }
        if first < whole.start {
            self.divide(faster, ranks.start - first * stride..*stride, with(first..first + 1), found);
        }
        if !whole.is_empty() {
            found.push(with(whole.clone()));
        }
        if last >= whole.end {
            self.divide(faster, 0..ranks.end - last * stride, with(last..last + 1), found);
        }
    }

    /// Returns the side with one part for each `size` ranks that follow each other, if each such
    /// group is a box and the boxes are a grid.
    pub(super) fn grouped(&self, size: usize) -> Option<Self> {
        let mut side = self.clone();
        for axis in side.axes.iter_mut().filter(|axis| axis.parts() > 1) {
            let parts = axis.parts();
            let span = axis.stride * parts;
            // The last group may be smaller along the slowest axis, behind which nothing follows.
            let is_slowest = span == self.ranks;
            if axis.stride >= size {
                axis.stride = exact(axis.stride, size)?;
            } else if span <= size {
                exact(size, span).or(is_slowest.then_some(1))?;
                *axis = Grid { bounds: vec![0, axis.bounds[parts]], stride: 1 };
            } else {
                let joined = exact(size, axis.stride)?;
                exact(parts, joined).or(is_slowest.then_some(1))?;
                let mut bounds: Vec<usize> = axis.bounds[..parts].iter().copied().step_by(joined).collect();
                bounds.push(axis.bounds[parts]);
                *axis = Grid { bounds, stride: 1 };
            }
        }
        side.ranks = self.ranks.div_ceil(size);
        Some(side)
    }

    /// Returns the extents that a rank stores whose part has these.
    pub(super) fn stored<'a>(&'a self, part: &'a [usize]) -> &'a [usize] {
        self.padded.as_deref().unwrap_or(part)
    }

    /// Returns whether a box with these extents is one run of the memory of a part that stores
    /// `stored`.
    pub(super) fn is_run(&self, extents: &[usize], stored: &[usize]) -> bool {
        let mut whole = true;
        self.storage.iter().rev().all(|&axis| {
            let goes_on = whole || extents[axis] == 1;
            whole &= extents[axis] == stored[axis];
            goes_on
        })
    }

    /// Returns the axes of a box that has more than one element along them, as they lie in memory.
    pub(super) fn order<'a>(&'a self, extents: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        self.storage.iter().copied().filter(|&axis| extents[axis] != 1)
    }
}

/// Divides without a remainder.
fn exact(number: usize, by: usize) -> Option<usize> {
    number.is_multiple_of(by).then(|| number / by)
}

/// Returns the number of elements that two boxes have in common.
pub(super) fn common(a: &Region, b: &Region) -> u64 {
    a.iter().zip(b).map(|(a, b)| overlap(a, b) as u64).product()
}

/// Returns the length of the range that two ranges have in common.
pub(super) fn overlap(a: &Range<usize>, b: &Range<usize>) -> usize {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}
