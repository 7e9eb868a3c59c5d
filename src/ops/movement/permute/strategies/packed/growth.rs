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

use super::side::threads;
use crate::abi::PACKED_AXES;
use crate::layout::MAX_RANK;
use crate::layout::walk::{Axis, Canonical, even_part, frontier, shorter_first};
use crate::ops::Align;
use crate::ops::movement::permute::strategies::{Decline, at_least, power_of_two};
use crate::ops::tuning;
use crate::ops::units::{SECTOR, WORD};

/// Fewest bytes of a run of the destination that ends before an axis that runs backwards.
const SHORTEST: usize = 4 * SECTOR;
/// Most elements of a run that has a table of its own. Longer runs are split.
const LONGEST: usize = 1024;
/// Costs are in thousandths.
const PARTS: usize = 1000;

/// One side's order of the axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// Axes by that side's stride.
    pub(super) axes: [usize; MAX_RANK],
    /// The number of axes, from the first, that are one run of memory when taken whole.
    pub(super) contiguous: usize,
    /// The number of axes, from the first, within a run of the tile. The others number the runs.
    pub(super) inner: usize,
}

/// The part of each axis that a block takes, and its positions in shared memory.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    pub(super) width: usize,
    /// Bytes of a word.
    pub(super) word: usize,
    /// From one element of a run of the source to the next, in elements; negative if it runs
    /// backwards.
    pub(super) gap: isize,
    /// Most elements of a run, or of the part of an axis that starts one. Longer runs are split.
    pub(super) longest: usize,
    pub(super) rank: usize,
    pub(super) axes: [Axis; MAX_RANK],
    pub(super) src_start: usize,
    pub(super) dst_start: usize,
    /// Indices of each axis in a tile.
    pub(super) taken: [usize; MAX_RANK],
    pub(super) src: Order,
    pub(super) dst: Order,
}

impl Packing {
    /// Takes the axes in the directions in which the runs of the source go forwards. Those of the
    /// destination may go backwards.
    pub(super) fn new(canonical: &Canonical) -> Result<Self, Decline> {
        let mut packing = Self::with_gap(canonical, 1);
        packing.turn();
        packing.checked()
    }

    /// Takes the axes in the directions in which the runs of both sides go forwards, with runs that
    /// end before axes that do not.
    pub(super) fn forwards(canonical: &Canonical) -> Result<Self, Decline> {
        let mut packing = Self::with_gap(canonical, 1);
        packing.cut();
        packing.turn();
        packing.checked()
    }

    /// Takes the axes as they are: the runs of the source have an element in every `gap`.
    pub(super) fn of_stepped(canonical: &Canonical, gap: isize) -> Result<Self, Decline> {
        Self::with_gap(canonical, gap).checked()
    }

    fn with_gap(canonical: &Canonical, gap: isize) -> Self {
        let rank = canonical.axes().len();
        let mut axes = [Axis::ONE; MAX_RANK];
        axes[..rank].copy_from_slice(canonical.axes());
        let near = |stride: isize, extent: usize| stride.unsigned_abs().saturating_mul(extent) < i32::MAX as usize;
        let dst = Order::new(&axes[..rank], 1, |axis| axis.dst, |axis| near(axis.src, axis.extent));
        let src = Order::new(&axes[..rank], gap, |axis| axis.src, |axis| near(axis.dst, axis.extent));
        let &Canonical { width, src_start, dst_start, .. } = canonical;
        let (word, longest, taken) = (width.max(WORD), LONGEST, [1; MAX_RANK]);
        Self { width, word, gap, longest, rank, axes, src_start, dst_start, taken, src, dst }
    }

    /// Ends one side's run before each axis of both that runs backwards.
    fn cut(&mut self) {
        let Self { width, axes, src, dst, .. } = self;
        // Such an axis is in the run of one side: the other run ends before it. The destination's
        // does if it is long enough then.
        let run = |inner: &[usize]| inner.iter().map(|&axis| axes[axis].extent).product::<usize>() * *width;
        for place in 0..src.contiguous {
            let axis = src.axes[place];
            let of_dst = dst.axes[..dst.contiguous].iter().position(|&other| other == axis);
            match of_dst.filter(|_| axes[axis].src < 0) {
                None => {}
                Some(of_dst) if run(&dst.axes[..of_dst]) >= run(&src.axes[..place]).max(SHORTEST) => {
                    dst.contiguous = of_dst;
                }
                Some(_) => {
                    src.contiguous = place;
                    break;
                }
            }
        }
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

    /// Declines if a side has no run.
    fn checked(self) -> Result<Self, Decline> {
        let apart = "a side has no run of near elements";
        at_least(self.src.contiguous, 1, "axes of the source's run", apart)?;
        at_least(self.dst.contiguous, 1, "axes of the destination's run", apart)?;
        Ok(self)
    }

    /// Grows a tile and returns it with its threads. Of tiles with runs about as long on both
    /// sides, or twice as long on one, it takes the cheapest.
    pub(super) fn grown(&self, aligns: [Align; 2], constants: &tuning::Packed) -> (Self, usize) {
        let mut best: Option<(Self, (usize, usize))> = None;
        let most = constants.tile[usize::from(self.width >= 8)] / self.width;
        for weights in constants.weights {
            let mut packing = self.clone();
            packing.grow([most; 2], weights, aligns, self.width);
            // Different weights often grow the same tile.
            if best.as_ref().is_some_and(|(best, _)| best.taken == packing.taken) {
                continue;
            }
            packing.src.inner = packing.inner(&packing.src);
            packing.dst.inner = packing.inner(&packing.dst);
            let cost = packing.cost(aligns, constants);
            if best.as_ref().is_none_or(|(_, least)| cost.0 < least.0) {
                best = Some((packing, cost));
            }
        }
        // The first weights are better than none.
        let (packing, (_, threads)) = best.expect("the constants have weights");
        (packing, threads)
    }

    /// Returns the cost of moving a word by the best number of threads, in thousandths, and that
    /// number.
    ///
    /// The cost is the steps of all threads, idle or not, per word, plus, weighted for each side,
    /// the ratio of the sectors that runs touch to those that they fill.
    fn cost(&self, aligns: [Align; 2], constants: &tuning::Packed) -> (usize, usize) {
        let [src, dst] = self.grains(aligns);
        let [src_weight, dst_weight] = constants.split_costs;
        let split = |order: &Order, grain: usize| {
            if grain < SECTOR { PARTS * SECTOR / (self.run(order) * self.width) } else { 0 }
        };
        let sides =
            [self.lay(&self.src, self.word, src >= self.word), self.lay(&self.dst, self.word, dst >= self.word)];
        let words = self.run(&self.src) * self.runs(&self.src) * self.width / self.word;
        let (steps, threads) = threads(sides, constants);
        let steps = PARTS * steps / (2 * words).max(1);
        (steps + src_weight * split(&self.src, src) + dst_weight * split(&self.dst, dst), threads)
    }

    /// Takes more of the side with the shorter run, by these weights of the two sides, until a tile
    /// has the most elements: the first number as one run of a side that may go on, the second as
    /// several runs of both. Parts of an axis are whole sectors of a side whose runs then start on
    /// `grain` bytes.
    pub(super) fn grow(&mut self, most: [usize; 2], weights: [usize; 2], aligns: [Align; 2], grain: usize) {
        let mut len = self.taken.iter().product::<usize>();
        loop {
            let frontiers = [&self.src, &self.dst].map(|order| self.frontier(order));
            let Some((run, axis)) = shorter_first(frontiers, weights).next() else { break };
            let is_run = frontiers.into_iter().flatten().any(|(run, _)| run == len);
            let most = most[usize::from(!is_run)];
            let (have, extent) = (self.taken[axis], self.axes[axis].extent);
            let first = self.src.axes[0] == axis || self.dst.axes[0] == axis;
            let room = extent.min(most / (len / have)).min(if first { self.longest } else { extent });
            if room <= have || run >= most {
                break;
            }
            self.taken[axis] = if extent <= 2 * have { extent } else { 2 * have }.min(room);
            len = len / have * self.taken[axis];
        }
        let ends =
            [&self.src, &self.dst].map(|order| self.frontier(order).map(|(run, axis)| (axis, run / self.taken[axis])));
        let whole = |inner: usize| SECTOR >> (inner * self.width).trailing_zeros().min(SECTOR.trailing_zeros());
        let starts =
            [0, 1].map(|side| self.starts(aligns, side, ends[side].map_or(0, |(axis, _)| self.position(side, axis))));
        let gains = |side: usize| ends[side].filter(|_| starts[side] >= grain);
        let wholes = [0, 1].map(|side| gains(side).map(|(axis, inner)| (axis, whole(inner))));
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
        rank.map_or(usize::MAX / self.width, |rank| src[..rank].iter().map(|&axis| self.axes[axis].extent).product())
    }

    /// Declines elements that keep their order, in runs of a source with gaps that are so short
    /// that `elements` was faster.
    pub(super) fn goes_on(&self, shortest: &[usize; 5]) -> Result<(), Decline> {
        let inner = &self.src.axes[..self.src.contiguous];
        let run = inner.iter().map(|&axis| self.axes[axis].extent).product::<usize>() * self.width;
        let run = if inner.len() == self.rank { usize::MAX } else { run };
        let why = "elements that keep their order move one by one at a copy's speed";
        at_least(run, shortest[self.width.trailing_zeros() as usize], "bytes of a run of a source with gaps", why)
    }

    /// Returns the elements of a side's run, and the axis that would extend it.
    pub(super) fn frontier(&self, order: &Order) -> Option<(usize, usize)> {
        let axes = order.axes[..order.contiguous].iter().copied();
        frontier(axes, &self.taken, |axis| self.axes[axis].extent)
    }

    /// Returns the number of axes of the side's order within a run of the tile, or within the part
    /// that a table holds.
    pub(super) fn inner(&self, order: &Order) -> usize {
        let (mut inner, mut run) = (0, 1);
        for &axis in &order.axes[..order.contiguous.min(PACKED_AXES)] {
            run *= self.taken[axis];
            if inner > 0 && (self.taken[axis] == 1 || run > self.longest) {
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
    pub(super) fn grains(&self, [src_align, dst_align]: [Align; 2]) -> [usize; 2] {
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
        power_of_two(bits.wrapping_mul(self.width) | aligns[side].bytes() as usize)
    }

    fn grain(&self, order: &Order, start: usize, align: Align, stride: fn(&Axis) -> isize) -> usize {
        let mut bits = start;
        for (place, &axis) in order.axes[..self.rank].iter().enumerate() {
            let (inside, Axis { extent, .. }) = (place < order.inner, self.axes[axis]);
            if !inside || self.taken[axis] < extent {
                bits |= (stride(&self.axes[axis]) as usize).wrapping_mul(if inside { self.taken[axis] } else { 1 });
            }
        }
        power_of_two(bits.wrapping_mul(self.width) | align.bytes() as usize)
    }
}

impl Order {
    /// Sorts the axes by stride. The runs have an element in every `gap`, and go along axes that
    /// are `near` on the other side. Where gaps are between, all axes of a run have one direction.
    fn new(axes: &[Axis], gap: isize, stride: fn(&Axis) -> isize, near: impl Fn(&Axis) -> bool) -> Self {
        let mut order = Self { axes: [0; MAX_RANK], contiguous: 0, inner: 0 };
        for (place, to) in order.axes[..axes.len()].iter_mut().enumerate() {
            *to = place;
        }
        // Broadcast axes come last.
        order.axes[..axes.len()].sort_unstable_by_key(|&axis| stride(&axes[axis]).unsigned_abs().wrapping_sub(1));
        let mut run = gap.unsigned_abs();
        let turns = |stride: isize| gap != 1 && stride.signum() != gap.signum();
        for &axis in &order.axes[..axes.len()] {
            if stride(&axes[axis]).unsigned_abs() != run || turns(stride(&axes[axis])) || !near(&axes[axis]) {
                break;
            }
            run *= axes[axis].extent;
            order.contiguous += 1;
        }
        order
    }
}
