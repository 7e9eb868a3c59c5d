//! How a tile of several axes grows until the runs of both sides are long.
//!
//! A tile starts with one element. Repeatedly it takes more of the side with the shorter run, along
//! that side's next axis, until it has the bytes of a tile:
//!
//! ```text
//! taken = 1 of every axis
//! while there is room:
//!     side = the one whose run is shorter, by the weights of the two
//!     take twice as much of the side's first axis that is not taken whole, or all of it
//! make the parts of the last axis of each side even
//! ```

use crate::abi::PACKED_AXES;
use crate::layout::MAX_RANK;
use crate::layout::walk::{Axis, Canonical, even_part, frontier, shorter_first};
use crate::ops::Align;
use crate::ops::plan::{Decline, at_least};
use crate::ops::units::{SECTOR, VECTOR, power_of_two};

/// One side's order of the axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// Bytes of an element on that side.
    pub(super) width: usize,
    /// Axes by that side's stride.
    pub(super) axes: [usize; MAX_RANK],
    /// The number of axes, from the first, that are one run of memory when taken whole.
    pub(super) contiguous: usize,
    /// The number of axes, from the first, within a run of the tile. The others number the runs.
    pub(super) inner: usize,
}

/// The part of each axis that a block takes, and its positions in shared memory.
#[derive(Debug, Clone)]
pub(in crate::ops) struct Packing {
    pub(super) rank: usize,
    pub(in crate::ops) axes: [Axis; MAX_RANK],
    pub(super) src_start: usize,
    pub(super) dst_start: usize,
    /// Indices of each axis in a tile.
    pub(super) taken: [usize; MAX_RANK],
    pub(super) src: Order,
    pub(super) dst: Order,
}

impl Packing {
    /// Takes the axes of elements that have these widths in the source and in the destination, in
    /// the directions in which the runs of the source go forwards. Those of the destination may go
    /// backwards.
    pub(in crate::ops) fn new(canonical: &Canonical, [src_width, dst_width]: [usize; 2]) -> Result<Self, Decline> {
        let rank = canonical.axes().len();
        let mut axes = [Axis::ONE; MAX_RANK];
        axes[..rank].copy_from_slice(canonical.axes());
        let near = |stride: isize, extent: usize| stride.unsigned_abs().saturating_mul(extent) < i32::MAX as usize;
        let dst = Order::new(&axes[..rank], dst_width, |axis| axis.dst, |axis| near(axis.src, axis.extent));
        let src = Order::new(&axes[..rank], src_width, |axis| axis.src, |axis| near(axis.dst, axis.extent));
        let &Canonical { src_start, dst_start, .. } = canonical;
        let mut packing = Self { rank, axes, src_start, dst_start, taken: [1; MAX_RANK], src, dst };
        packing.turn();
        let apart = "a side has no run of near elements";
        at_least(packing.src.contiguous, 1, "axes of the source's run", apart)?;
        at_least(packing.dst.contiguous, 1, "axes of the destination's run", apart)?;
        Ok(packing)
    }

    /// Returns the bytes of an element of the source and of the destination.
    pub(super) fn widths(&self) -> [usize; 2] {
        [self.src.width, self.dst.width]
    }

    /// Returns the bytes of an element of the wider side.
    pub(super) fn width(&self) -> usize {
        self.src.width.max(self.dst.width)
    }

    /// Turns the axes of the source's run round that run backwards.
    fn turn(&mut self) {
        let Self { axes, src, src_start, dst_start, .. } = self;
        for &place in &src.axes[..src.contiguous] {
            if axes[place].src < 0 {
                axes[place] = axes[place].turned(src_start, dst_start);
            }
        }
    }

    /// Takes more of the side with the shorter run, by these weights of the two sides, until a tile
    /// has the most elements: the first number as one run of a side that may go on, the second as
    /// several runs of both. Parts of an axis are whole sectors of a side whose runs then start on
    /// vectors.
    pub(super) fn grow(&mut self, most: [usize; 2], weights: [usize; 2], aligns: [Align; 2]) {
        let mut len = self.taken.iter().product::<usize>();
        loop {
            let frontiers = [&self.src, &self.dst].map(|order| self.frontier(order));
            let Some((run, axis)) = shorter_first(frontiers, weights).next() else { break };
            let is_run = frontiers.into_iter().flatten().any(|(run, _)| run == len);
            let most = most[usize::from(!is_run)];
            let (have, extent) = (self.taken[axis], self.axes[axis].extent);
            let room = extent.min(most / (len / have));
            if room <= have || run >= most {
                break;
            }
            self.taken[axis] = if extent <= 2 * have { extent } else { 2 * have }.min(room);
            len = len / have * self.taken[axis];
        }
        let ends =
            [&self.src, &self.dst].map(|order| self.frontier(order).map(|(run, axis)| (axis, run / self.taken[axis])));
        let whole = |side: usize, inner: usize| {
            SECTOR >> (inner * self.widths()[side]).trailing_zeros().min(SECTOR.trailing_zeros())
        };
        let starts =
            [0, 1].map(|side| self.starts(aligns, side, ends[side].map_or(0, |(axis, _)| self.position(side, axis))));
        let gains = |side: usize| ends[side].filter(|_| starts[side] >= VECTOR);
        let wholes = [0, 1].map(|side| gains(side).map(|(axis, inner)| (axis, whole(side, inner))));
        for (axis, _) in ends.into_iter().flatten() {
            // The parts of an axis are made equal, and multiples of `whole` indices if they are
            // larger. Where the axis ends both runs, that is the larger of both sides' sectors.
            let whole = wholes.iter().flatten().filter(|end| end.0 == axis).map(|&(_, whole)| whole).max();
            let (extent, whole) = (self.axes[axis].extent, whole.unwrap_or(1));
            let even = even_part(extent, self.taken[axis]);
            self.taken[axis] = if even > whole { even.next_multiple_of(whole).min(extent) } else { even };
        }
    }

    /// Returns the elements of the smallest block that is contiguous on both sides.
    pub(super) fn kept(&self) -> usize {
        let (src, dst) = (&self.src.axes[..self.src.contiguous], &self.dst.axes[..self.dst.contiguous]);
        let alike = |&rank: &usize| src[..rank].iter().all(|axis| dst[..rank].contains(axis));
        let rank = (1..=src.len().min(dst.len())).find(alike);
        rank.map_or(usize::MAX / self.width(), |rank| src[..rank].iter().map(|&axis| self.axes[axis].extent).product())
    }

    /// Returns the elements of a side's run, and the axis that would extend it.
    pub(super) fn frontier(&self, order: &Order) -> Option<(usize, usize)> {
        let axes = order.axes[..order.contiguous].iter().copied();
        frontier(axes, &self.taken, |axis| self.axes[axis].extent)
    }

    /// Returns the number of axes of the side's order within a run of the tile, or within the part
    /// that a table holds.
    pub(super) fn inner(&self, order: &Order) -> usize {
        let mut inner = 0;
        for &axis in &order.axes[..order.contiguous.min(PACKED_AXES)] {
            if inner > 0 && self.taken[axis] == 1 {
                break;
            }
            inner += 1;
            if self.taken[axis] < self.axes[axis].extent {
                break;
            }
        }
        inner
    }

    /// Returns the axes that number the side's runs.
    pub(super) fn outer<'a>(&'a self, order: &'a Order) -> impl Iterator<Item = usize> + 'a {
        order.axes[order.inner..self.rank].iter().copied().filter(|&axis| self.taken[axis] > 1)
    }

    /// Returns the elements of a run of a side.
    pub(super) fn run(&self, order: &Order) -> usize {
        order.axes[..order.inner].iter().map(|&axis| self.taken[axis]).product()
    }

    /// Returns the elements from the first of a whole tile to its furthest along these strides of
    /// the source.
    pub(super) fn reach(&self, along: fn(isize) -> bool) -> usize {
        let axes = self.axes[..self.rank].iter().zip(&self.taken).filter(|(axis, _)| along(axis.src));
        axes.map(|(axis, taken)| axis.src.unsigned_abs() * (taken - 1)).sum()
    }

    /// Returns the number of runs of a side.
    pub(super) fn runs(&self, order: &Order) -> usize {
        self.outer(order).map(|axis| self.taken[axis]).product()
    }

    /// Returns the powers of two of bytes that all runs of the source and of the destination start
    /// on.
    pub(in crate::ops) fn grains(&self, [src_align, dst_align]: [Align; 2]) -> [usize; 2] {
        let src = self.grain(&self.src, self.src_start, src_align, |axis| axis.src);
        [src, self.grain(&self.dst, self.dst_low(), dst_align, |axis| axis.dst)]
    }

    /// Returns the lowest address of the first run of the destination, in elements.
    pub(super) fn dst_low(&self) -> usize {
        let backwards = self.dst.axes[..self.dst.inner].iter().filter(|&&axis| self.axes[axis].dst < 0);
        backwards.fold(self.dst_start, |low, &axis| {
            low.wrapping_add_signed(self.axes[axis].dst * (self.taken[axis] - 1) as isize)
        })
    }

    /// Returns the place of an axis in the order of the source (side 0) or of the destination (1).
    fn position(&self, side: usize, axis: usize) -> usize {
        let order = [&self.src, &self.dst][side];
        order.axes[..self.rank].iter().position(|&other| other == axis).unwrap_or(0)
    }

    /// Returns the power of two of bytes that all runs of the source (side 0) or of the destination
    /// (1) start on, if tiles take whole sectors of the axis at `place` of the side's order, and
    /// all of those before it.
    pub(super) fn starts(&self, aligns: [Align; 2], side: usize, place: usize) -> usize {
        let (order, start) = [(&self.src, self.src_start), (&self.dst, self.dst_start)][side];
        let stride = |axis: &Axis| [axis.src, axis.dst][side];
        let (inside, others) = order.axes[..self.rank].split_at(self.rank.min(place + 1));
        // A run starts at its lowest address: the last index of an axis that runs backwards.
        let start =
            inside.iter().map(|&axis| &self.axes[axis]).filter(|axis| stride(axis) < 0).fold(start, |low, axis| {
                low.wrapping_add_signed(stride(axis).wrapping_mul((axis.extent - 1) as isize))
            });
        let bits = others.iter().fold(start, |bits, &axis| bits | stride(&self.axes[axis]) as usize);
        power_of_two(bits.wrapping_mul(order.width) | aligns[side].bytes() as usize)
    }

    fn grain(&self, order: &Order, start: usize, align: Align, stride: fn(&Axis) -> isize) -> usize {
        let mut bits = start;
        for (place, &axis) in order.axes[..self.rank].iter().enumerate() {
            let (inside, Axis { extent, .. }) = (place < order.inner, self.axes[axis]);
            if !inside || self.taken[axis] < extent {
                bits |= (stride(&self.axes[axis]) as usize).wrapping_mul(if inside { self.taken[axis] } else { 1 });
            }
        }
        power_of_two(bits.wrapping_mul(order.width) | align.bytes() as usize)
    }
}

impl Order {
    /// Sorts the axes by stride. A run goes along axes that are `near` on the other side.
    fn new(axes: &[Axis], width: usize, stride: fn(&Axis) -> isize, near: impl Fn(&Axis) -> bool) -> Self {
        let mut order = Self { width, axes: [0; MAX_RANK], contiguous: 0, inner: 0 };
        for (place, to) in order.axes[..axes.len()].iter_mut().enumerate() {
            *to = place;
        }
        // Broadcast axes come last.
        order.axes[..axes.len()].sort_unstable_by_key(|&axis| stride(&axes[axis]).unsigned_abs().wrapping_sub(1));
        let mut run = 1;
        for &axis in &order.axes[..axes.len()] {
            if stride(&axes[axis]).unsigned_abs() != run || !near(&axes[axis]) {
                break;
            }
            run *= axes[axis].extent;
            order.contiguous += 1;
        }
        order
    }
}
