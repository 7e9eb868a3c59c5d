//! Describes a task as boxes see it: strides in bytes, and the axes in the order of each side.
//!
//! Everything that does not depend on the box is computed here, once.

use crate::abi::granule;
use crate::layout::MAX_RANK;
use crate::layout::walk::Canonical;
use crate::ops::Align;
use crate::ops::units::wide::SECTOR;

/// An axis with strides in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Axis {
    pub(super) extent: u64,
    pub(super) src: i64,
    pub(super) dst: i64,
}

impl Axis {
    /// Returns the distance of neighbours in the source.
    pub(super) fn apart(&self) -> u64 {
        self.src.unsigned_abs()
    }
}

/// A set of axes: bit `i` stands for axis `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Axes(u32);

impl Axes {
    /// Returns the first axes.
    pub(super) fn first(count: usize) -> Self {
        Self((1 << count) - 1)
    }

    pub(super) fn has(self, axis: usize) -> bool {
        self.0 >> axis & 1 != 0
    }

    pub(super) fn insert(&mut self, axis: usize) {
        self.0 |= 1 << axis;
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the axes, the destination's innermost first.
    pub(super) fn each(self) -> impl Iterator<Item = usize> + Clone {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let axis = rest.trailing_zeros() as usize;
            (rest != 0).then(|| {
                rest &= rest - 1;
                axis
            })
        })
    }
}

/// A task as boxes see it.
#[derive(Debug)]
pub(super) struct Work {
    /// Bytes of an element.
    pub(super) width: u64,
    /// Bytes of a granule.
    pub(super) granule: u64,
    /// The number of elements.
    pub(super) elements: u64,
    /// The axes, the destination's innermost first.
    pub(super) axes: [Axis; MAX_RANK],
    /// All of them.
    pub(super) all: Axes,
    by_src: [usize; MAX_RANK],
    src_rank: usize,
    /// The number of axes that follow each other without gaps in the destination.
    pub(super) dense: usize,
    /// Bytes from the storages' starts to the first elements.
    pub(super) start: [i64; 2],
    /// Bytes to which these are aligned.
    pub(super) aligned: [u64; 2],
    /// Bytes of the source's storage from its first element to its last.
    pub(super) reach: [u64; 2],
    /// Axes that run backwards in the source.
    pub(super) backwards: Axes,
    /// Axes whose strides in the source are not whole granules.
    pub(super) off_granules: Axes,
    /// Axes whose strides in the source are not whole sectors.
    pub(super) off_sectors: Axes,
    /// The bitwise or of the destination's strides from each axis on.
    pub(super) strides_from: [u64; MAX_RANK + 1],
}

impl Work {
    pub(super) fn new(canonical: &Canonical, aligns: [Align; 2]) -> Self {
        let bytes = canonical.width as i64;
        let (width, granule) = (canonical.width as u64, u64::from(granule(canonical.width as u32)));
        let rank = canonical.axes().len();
        let start = [canonical.src_start as i64 * bytes, canonical.dst_start as i64 * bytes];
        let aligned = [0, 1].map(|side| {
            let bits = aligns[side].bytes() | start[side] as u64;
            bits & bits.wrapping_neg()
        });
        let [reach, _] = canonical.reach([canonical.width; 2]);
        let mut work = Self {
            width,
            granule,
            elements: canonical.len() as u64,
            axes: [Axis::default(); MAX_RANK],
            all: Axes::first(rank),
            by_src: [0; MAX_RANK],
            src_rank: 0,
            dense: 0,
            start,
            aligned,
            reach: [reach.first as u64, reach.end as u64],
            backwards: Axes::default(),
            off_granules: Axes::default(),
            off_sectors: Axes::default(),
            strides_from: [0; MAX_RANK + 1],
        };
        let mut run = bytes;
        for (place, axis) in canonical.axes().iter().enumerate() {
            let axis = Axis { extent: axis.extent as u64, src: axis.src as i64 * bytes, dst: axis.dst as i64 * bytes };
            if work.dense == place && axis.dst == run {
                run *= axis.extent as i64;
                work.dense += 1;
            }
            work.push(place, axis);
        }
        for place in (0..rank).rev() {
            work.strides_from[place] = work.strides_from[place + 1] | work.axes[place].dst.unsigned_abs();
        }
        work
    }

    /// Adds an axis, and sorts it among those of the source.
    fn push(&mut self, place: usize, axis: Axis) {
        self.axes[place] = axis;
        let sets = [
            (&mut self.backwards, axis.src < 0),
            (&mut self.off_granules, self.granule > self.width && !axis.apart().is_multiple_of(self.granule)),
            (&mut self.off_sectors, !axis.apart().is_multiple_of(SECTOR)),
        ];
        sets.into_iter().filter(|(_, is)| *is).for_each(|(set, _)| set.insert(place));
        if axis.src == 0 {
            return;
        }
        let mut at = self.src_rank;
        while at > 0 && self.axes[self.by_src[at - 1]].apart() > axis.apart() {
            self.by_src[at] = self.by_src[at - 1];
            at -= 1;
        }
        self.by_src[at] = place;
        self.src_rank += 1;
    }

    /// Returns the axes along which the source walks, its innermost first.
    pub(super) fn by_src(&self) -> &[usize] {
        &self.by_src[..self.src_rank]
    }

    /// Returns whether these bytes are not whole granules.
    pub(super) fn is_off(&self, bytes: u64) -> bool {
        self.granule > self.width && !bytes.is_multiple_of(self.granule)
    }
}
