//! The layouts of rows.

use warpstride::layout::Layout;

use super::Row;
use crate::long::short_or_long;
use crate::matrices::Random;
pub(super) use crate::matrices::c_order as c;

/// A source, a destination, and where both storages start, in bytes behind an allocation's start.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) src: Layout,
    pub(super) dst: Layout,
    pub(super) starts: [usize; 2],
    /// The kernels of which one takes it. An empty list allows any.
    pub(super) kernels: &'static [&'static str],
}

/// The pairs of one width.
pub(super) struct Draw {
    pub(super) width: usize,
    /// Elements of 16 bytes.
    pub(super) lanes: usize,
    pub(super) is_soft: bool,
    /// Those of the pairs that follow.
    pub(super) kernels: &'static [&'static str],
    pub(super) random: Random,
    pub(super) pairs: Vec<Pair>,
}

impl Draw {
    pub(super) fn new(&Row(.., kernels, _, draw): &Row, width: usize, is_soft: bool) -> Self {
        let random = Random::new(60 + width as u64);
        let mut drawn = Self { width, lanes: 16 / width, is_soft, kernels, random, pairs: Vec::new() };
        draw(&mut drawn);
        drawn
    }

    pub(super) fn at(&mut self, src: Layout, dst: Layout, starts: [usize; 2]) {
        self.pairs.push(Pair { src, dst, starts, kernels: self.kernels });
    }

    pub(super) fn copy(&mut self, src: Layout, dst: Layout) {
        self.at(src, dst, [0, 0]);
    }

    pub(super) fn both(&mut self, one: Layout, other: Layout) {
        self.copy(one, other);
        self.copy(other, one);
    }

    /// Structs to planes by the first half of the kernels, and back by the other half.
    pub(super) fn structs(&mut self, packed: Layout, planes: Layout) {
        let (there, back) = self.kernels.split_at(self.kernels.len() / 2);
        for (kernels, src, dst) in [(there, packed, planes), (back, planes, packed)] {
            self.pairs.push(Pair { src, dst, starts: [0, 0], kernels });
        }
    }

    /// To C order.
    pub(super) fn from(&mut self, src: Layout) {
        self.copy(src, c(src.shape()));
    }

    pub(super) fn matrix(&mut self, sides: [usize; 2], starts: [usize; 3]) {
        let (src, dst) = matrix(sides, starts);
        self.copy(src, dst);
    }

    /// The number of images of `len` elements that `packed_quads` takes for large.
    pub(super) fn images(&self, len: usize) -> usize {
        short_or_long(256_usize << 10, 4 << 20).div_ceil(len * self.width)
    }
}

/// A C-order array with its axes in another order.
pub(super) fn permuted(shape: &[usize], axes: &[usize]) -> Layout {
    c(shape).permuted_axes(axes).unwrap()
}

/// Batches of matrices, transposed.
pub(super) fn turned(shape: &[usize; 3]) -> Layout {
    permuted(shape, &[0, 2, 1])
}

/// A C-order matrix whose rows are `pitch` elements apart, from element `start` on; its storage
/// ends with its last row.
pub(super) fn pitched(rows: usize, cols: usize, pitch: usize, start: usize) -> Layout {
    Layout::new(&[rows, cols], &[pitch as isize, 1], start, start + (rows - 1) * pitch + cols).unwrap()
}

/// A matrix and its transpose from these elements on, whose rows and columns have a gap.
pub(super) fn matrix([rows, cols]: [usize; 2], [from, to, gap]: [usize; 3]) -> (Layout, Layout) {
    (pitched(rows, cols, cols + gap, from), pitched(cols, rows, rows + gap, to).t())
}

/// Every pair of elements.
pub(super) fn product<A: Copy, B>(
    a: impl IntoIterator<Item = A>,
    b: impl IntoIterator<Item = B> + Clone,
) -> impl Iterator<Item = (A, B)> {
    a.into_iter().flat_map(move |one| b.clone().into_iter().map(move |other| (one, other)))
}

/// The part of a layout within these ranges of its axes.
pub(super) fn part<const N: usize>(layout: Layout, ranges: [std::ops::Range<usize>; N]) -> Layout {
    let cut = |layout: Layout, (axis, range)| layout.slice(axis, range, 1).unwrap();
    ranges.into_iter().enumerate().fold(layout, cut)
}

/// The layout backwards along the axes whose bits are set.
pub(super) fn backwards(layout: Layout, axes: usize) -> Layout {
    let some = (0..layout.rank()).filter(|axis| axes >> axis & 1 != 0);
    some.fold(layout, |layout, axis| layout.reverse(axis).unwrap())
}

/// Returns two layouts of 2 to 6 axes of odd and even extents; the source's axes are in any order,
/// some backwards or a part of a longer axis.
pub(super) fn random_axes(most: usize, random: &mut Random) -> [Layout; 2] {
    let rank = 2 + random.below(5);
    let mut shape = vec![1; rank];
    for axis in random.order(rank) {
        let left = most / shape.iter().product::<usize>();
        shape[axis] = 1 + random.below(left.clamp(1, if rank == 2 { 300 } else { 40 }));
    }
    let array = |shape: &[usize], random: &mut Random| {
        let gap = if random.below(4) == 0 { random.below(rank) } else { rank };
        let whole: Vec<usize> = (0..rank).map(|axis| shape[axis] + if axis == gap { 3 } else { 0 }).collect();
        let mut layout = c(&whole);
        for (axis, &extent) in shape.iter().enumerate() {
            layout = layout.slice(axis, ..extent, 1).unwrap();
            layout = if random.below(6) == 0 { layout.reverse(axis).unwrap() } else { layout };
        }
        layout
    };
    let src = array(&shape, random);
    let order = random.order(rank);
    let src = src.permuted_axes(&order).unwrap();
    let dst = array(src.shape(), random);
    [src, dst]
}
