//! Tiles of several axes: where what is contiguous on either side is many short axes, or lies off 16 bytes.

use std::fmt;

use super::plan::span;
use super::tile::Tile;
use crate::abi::{Digit, Divisor, EntryId, PACKED, PACKED_AXES, PACKED_STEPS, PACKED_STORES, PackedParams, PackedSide};
use crate::error::counted;
use crate::launch_shape::{LaunchShape, MAX_SHARED_BYTES};
use crate::layout::MAX_RANK;
use crate::ops::Align;
use crate::ops::canonical::{Axis as Walk, Canonical};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::tuning::{CACHED_MATRIX, RUN, SMALL, SMALLEST_PACKED, SMALLEST_PACKED_TILE, packed_tile};
use crate::ops::units::{BANKS, SECTOR, WORD};

/// Most elements of a run that has a table of its own; what is longer is several runs.
const LONGEST: usize = 1024;

/// A launch of `packed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) entry: EntryId,
    pub(super) shape: LaunchShape,
    /// Addresses from the starts of the storages.
    pub(super) params: PackedParams,
}

/// One side's order of the axes.
#[derive(Debug, Clone, Copy)]
struct Order {
    /// Axes by that side's stride.
    axes: [usize; MAX_RANK],
    /// How many of them, from the first, are one run of memory when taken whole.
    contiguous: usize,
    /// How many, from the first, are within a run of the tile; the others are numbered along.
    inner: usize,
}

/// What a block takes of the axes, and how they lie in shared memory.
#[derive(Debug, Clone)]
struct Tiling {
    width: usize,
    /// Bytes of a word.
    word: usize,
    rank: usize,
    axes: [Walk; MAX_RANK],
    src_start: usize,
    dst_start: usize,
    /// Positions of each axis in a tile.
    taken: [usize; MAX_RANK],
    src: Order,
    dst: Order,
}

/// How the axes of a tile lie in shared memory.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Bytes from one position to the next of each axis.
    strides: [usize; MAX_RANK],
    /// Bytes of all.
    bytes: usize,
    /// Axes that have another stride than was wanted.
    unmet: usize,
}

impl Tiling {
    /// The axes, in the directions in which the runs of both sides go forwards; `None` where a side has no run.
    fn new(canonical: &Canonical) -> Option<Self> {
        let rank = canonical.axes().len();
        let mut axes = [Walk { extent: 1, src: 0, dst: 0 }; MAX_RANK];
        axes[..rank].copy_from_slice(canonical.axes());
        let near = |stride: isize, extent: usize| stride.unsigned_abs().saturating_mul(extent) < i32::MAX as usize;
        let dst = Order::new(&axes[..rank], |axis| axis.dst, |axis| near(axis.src, axis.extent));
        let mut src = Order::new(&axes[..rank], |axis| axis.src, |axis| near(axis.dst, axis.extent));
        let both = |axis: usize| dst.axes[..dst.contiguous].contains(&axis);
        if let Some(end) = src.axes[..src.contiguous].iter().position(|&axis| axes[axis].src < 0 && both(axis)) {
            src.contiguous = end;
        }
        if src.contiguous == 0 || dst.contiguous == 0 {
            return None;
        }
        let (mut src_start, mut dst_start) = (canonical.src_start, canonical.dst_start);
        for &place in &src.axes[..src.contiguous] {
            let axis = &mut axes[place];
            if axis.src < 0 {
                let last = (axis.extent - 1) as isize;
                src_start = src_start.wrapping_add_signed(last * axis.src);
                dst_start = dst_start.wrapping_add_signed(last * axis.dst);
                *axis = Walk { extent: axis.extent, src: -axis.src, dst: -axis.dst };
            }
        }
        let (width, taken) = (canonical.width, [1; MAX_RANK]);
        Some(Self { width, word: width.max(WORD), rank, axes, src_start, dst_start, taken, src, dst })
    }

    /// What a block takes, and its threads: of tiles with runs about as long on both sides, or twice as long on one, what costs
    /// the least.
    fn grown(self, src_align: Align, dst_align: Align) -> (Self, usize) {
        let (mut best, mut least) = (self.clone(), (usize::MAX, 0));
        for weights in [[1, 1], [2, 1], [1, 2]] {
            let mut tiling = self.clone();
            tiling.grow(packed_tile(tiling.width) / tiling.width, weights);
            tiling.src.inner = tiling.inner(&tiling.src);
            tiling.dst.inner = tiling.inner(&tiling.dst);
            let cost = tiling.cost(src_align, dst_align);
            if cost.0 < least.0 {
                (best, least) = (tiling, cost);
            }
        }
        (best, least.1)
    }

    /// What it costs to move a word by the best number of threads, in parts of a thousand, and those threads.
    ///
    /// The steps of all threads, idle or not, for a word; and twice for the destination, once for the source, the sectors that
    /// runs lie in over those that they fill. Beside equal runs and 128 threads, of 14 packed cases on an H100 this made six 1 to
    /// 8 % faster and none more than 2 % slower.
    fn cost(&self, src_align: Align, dst_align: Align) -> (usize, usize) {
        let src = self.grain(&self.src, self.src_start, src_align, |axis| axis.src);
        let dst = self.grain(&self.dst, self.dst_start, dst_align, |axis| axis.dst);
        let split = |order: &Order, grain: usize| {
            if grain < SECTOR { 1000 * SECTOR / (self.run(order) * self.width) } else { 0 }
        };
        let sides = [self.lay(&self.src, src >= self.word), self.lay(&self.dst, dst >= self.word)];
        let words = self.run(&self.src) * self.runs(&self.src) * self.width / self.word;
        let (steps, threads) = threads(sides);
        (1000 * steps / (2 * words).max(1) + split(&self.src, src) + 2 * split(&self.dst, dst), threads)
    }

    /// Takes more and more of the side whose run is the shorter, by these weights of the two, until so many elements are taken.
    fn grow(&mut self, most: usize, [src_weight, dst_weight]: [usize; 2]) {
        let mut len = 1;
        loop {
            let frontiers = [&self.src, &self.dst].map(|order| self.frontier(order));
            let ((run, axis), _) = match frontiers {
                [Some(src), Some(dst)] if dst.0 * src_weight < src.0 * dst_weight => (dst, 1),
                [Some(src), _] => (src, 0),
                [None, Some(dst)] => (dst, 1),
                [None, None] => break,
            };
            let (have, extent) = (self.taken[axis], self.axes[axis].extent);
            let first = self.src.axes[0] == axis || self.dst.axes[0] == axis;
            let room = extent.min(most / (len / have)).min(if first { LONGEST } else { extent });
            if room <= have || run >= most {
                break;
            }
            self.taken[axis] = if extent <= 2 * have { extent } else { 2 * have }.min(room);
            len = len / have * self.taken[axis];
        }
        for order in [self.src, self.dst] {
            if let Some((run, axis)) = self.frontier(&order) {
                self.even_out(axis, run / self.taken[axis]);
            }
        }
    }

    /// Makes the parts of an axis alike, and multiples of a sector where they are more than that.
    fn even_out(&mut self, axis: usize, inner: usize) {
        let (extent, taken) = (self.axes[axis].extent, self.taken[axis]);
        let even = extent.div_ceil(extent.div_ceil(taken));
        let sector = SECTOR >> (inner * self.width).trailing_zeros().min(SECTOR.trailing_zeros());
        self.taken[axis] = if even > sector { even.next_multiple_of(sector).min(extent) } else { even };
    }

    /// Whether an H100 was found to move it faster so than by this tile, or by `elements`.
    fn is_best(&self, tile: Option<&Tile>, dst_align: Align) -> bool {
        let bytes = |order: &Order| self.axes[order.axes[0]].extent * self.width;
        let shortest = bytes(&self.src).min(bytes(&self.dst));
        let all = self.axes[..self.rank].iter().map(|axis| axis.extent).product::<usize>() * self.width;
        let dst_words = || {
            let starts = self.dst.axes[1..self.rank]
                .iter()
                .fold(self.dst_start, |bits, &axis| bits | self.axes[axis].dst as usize);
            starts.wrapping_mul(self.width).is_multiple_of(self.word) && dst_align.bytes() as usize >= self.word
        };
        match tile {
            // Of two axes alone none makes a short run longer but the other side's.
            Some(_) if self.rank == 2 => false,
            Some(tile) if tile.is_ragged() => match self.width {
                // Rows that are folded are long: of 24 x 25 x 26 x 27 x 28 by 4, 2, 0, 3, 1 it is 0.91 of the copy against 1.02.
                4 if all > SMALL && tile.has_folded_rows() && tile.is_full => false,
                _ if shortest < RUN / 2 => true,
                // Tiles without a margin: of 512 x 512 x 511 backwards 0.89 against 0.95.
                1 => all > SMALL && dst_words() && !(tile.is_on_sectors() && tile.is_full),
                // Tiles of 33 x 34 are half empty: 0.66 of the copy against 0.87. Of 61 x 73 it is 0.82 against 0.67.
                8 => all > SMALL && shortest < 3 * RUN / 2,
                _ => false,
            },
            Some(_) => self.width == 16 && shortest < 4 * RUN && all > SMALL,
            None if all < SMALLEST_PACKED => false,
            None if self.src.axes[0] == self.dst.axes[0] => shortest < RUN / 2,
            None => self.width < 4 || self.kept() * self.width > CACHED_MATRIX,
        }
    }

    /// Elements of the smallest block that is contiguous on both sides.
    fn kept(&self) -> usize {
        let (src, dst) = (&self.src.axes[..self.src.contiguous], &self.dst.axes[..self.dst.contiguous]);
        let alike = |&rank: &usize| src[..rank].iter().all(|axis| dst[..rank].contains(axis));
        let rank = (1..=src.len().min(dst.len())).find(alike);
        rank.map_or(usize::MAX / self.width, |rank| src[..rank].iter().map(|&axis| self.axes[axis].extent).product())
    }

    /// Elements of a side's run, and the axis that would make it longer.
    fn frontier(&self, order: &Order) -> Option<(usize, usize)> {
        let mut run = 1;
        for &axis in &order.axes[..order.contiguous] {
            run *= self.taken[axis];
            if self.taken[axis] < self.axes[axis].extent {
                return Some((run, axis));
            }
        }
        None
    }

    /// How many axes of the side's order are within a run of the tile, or of a part that a table holds.
    fn inner(&self, order: &Order) -> usize {
        let (mut inner, mut run) = (0, 1);
        for &axis in &order.axes[..order.contiguous.min(PACKED_AXES)] {
            run *= self.taken[axis];
            if inner > 0 && (self.taken[axis] == 1 || run > LONGEST) {
                break;
            }
            inner += 1;
            if self.taken[axis] < self.axes[axis].extent {
                break;
            }
        }
        inner
    }

    /// The axes that the side's runs are numbered along.
    fn outer<'a>(&'a self, order: &'a Order) -> impl Iterator<Item = usize> + 'a {
        order.axes[order.inner..self.rank].iter().copied().filter(|&axis| self.taken[axis] > 1)
    }

    fn run(&self, order: &Order) -> usize {
        order.axes[..order.inner].iter().map(|&axis| self.taken[axis]).product()
    }

    /// Elements from the first of a whole tile to its furthest along such strides of the source.
    fn reach(&self, along: fn(isize) -> bool) -> usize {
        let axes = self.axes[..self.rank].iter().zip(&self.taken).filter(|(axis, _)| along(axis.src));
        axes.map(|(axis, taken)| axis.src.unsigned_abs() * (taken - 1)).sum()
    }

    fn runs(&self, order: &Order) -> usize {
        self.outer(order).map(|axis| self.taken[axis]).product()
    }

    /// The power of two of bytes that all runs of a side start on.
    fn grain(&self, order: &Order, start: usize, align: Align, stride: fn(&Walk) -> isize) -> usize {
        let mut bits = start;
        for (place, &axis) in order.axes[..self.rank].iter().enumerate() {
            let (inside, Walk { extent, .. }) = (place < order.inner, self.axes[axis]);
            if !inside || self.taken[axis] < extent {
                bits |= (stride(&self.axes[axis]) as usize).wrapping_mul(if inside { self.taken[axis] } else { 1 });
            }
        }
        let bits = bits.wrapping_mul(self.width) | align.bytes() as usize;
        bits & bits.wrapping_neg()
    }

    /// The strides in shared memory, in the source's order: as short as words allow, or so that elements of the destination that
    /// follow each other are `step` words apart, modulo the banks.
    fn room(&self, aligned: bool, step: Option<usize>) -> Room {
        let wanted = step.map(|step| self.wanted(step));
        let (mut strides, mut bytes, mut unmet) = ([0; MAX_RANK], self.width, 0);
        let inner = &self.src.axes[..self.src.inner];
        for (place, axis) in inner.iter().copied().chain(self.outer(&self.src)).enumerate() {
            let outside = place >= self.src.inner;
            let in_word = self.word - 1;
            let natural = (self.axes[axis].src as usize).wrapping_mul(self.width) & in_word;
            let stride = if !outside && (!aligned || bytes & in_word != 0) {
                bytes
            } else {
                // Words that hold the end of a run and the start of the next must not be the same.
                let least = if outside && !aligned { bytes + self.word - 1 } else { bytes };
                let class = |power: usize, class: usize| least + (class.wrapping_sub(least) & (power - 1));
                let wanted = wanted.map_or(0, |wanted| wanted[axis]);
                let spread = class(BANKS, wanted);
                // Little is gained where it costs too much room.
                let is_met = wanted > 0 && wanted & in_word == natural && spread <= least + least / 4;
                unmet += usize::from(wanted > 0 && !is_met);
                if is_met { spread } else { class(self.word, natural) }
            };
            strides[axis] = stride;
            bytes = stride * self.taken[axis];
        }
        Room { strides, bytes, unmet }
    }

    /// The stride in bytes, modulo the banks, that each axis of the destination's run wants, or 0.
    fn wanted(&self, step: usize) -> [usize; MAX_RANK] {
        let mut wanted = [0; MAX_RANK];
        let first = self.dst.axes[0];
        let (mut stride, mut covered) = (step * self.word, 1);
        if self.src.axes[0] == first {
            stride = self.width;
        }
        let inner = self.dst.axes[..self.dst.inner].iter().copied();
        for axis in inner.chain(self.outer(&self.dst)) {
            // 0 stands for any.
            wanted[axis] = stride % BANKS + BANKS;
            stride = stride * self.taken[axis] % BANKS;
            covered *= self.taken[axis];
            if covered * self.width >= BANKS {
                break;
            }
        }
        wanted
    }

    /// Rounds that the lanes of a warp need for their first words of the destination, beyond one each.
    fn conflicts(&self, words: &[u16; BANKS], turn: usize) -> usize {
        // All of these are powers of two.
        let (banks, lanes) = (BANKS / self.word, self.word / self.width);
        let turn_log2 = (8 * self.width).trailing_zeros();
        let mut conflicts = 0;
        for step in 0..lanes {
            let (mut first, mut rounds) = ([u16::MAX; BANKS / 4], [0u8; BANKS / 4]);
            for lane in 0..banks {
                let turned = (lane & turn) >> turn_log2;
                let word = words[lane * lanes + ((step + turned) & (lanes - 1))];
                let bank = usize::from(word) & (banks - 1);
                if first[bank] == u16::MAX {
                    first[bank] = word;
                } else if first[bank] != word {
                    rounds[bank] += 1;
                }
            }
            conflicts += usize::from(rounds.into_iter().max().unwrap_or_default());
        }
        conflicts
    }

    /// The words of shared memory that the first elements of the destination lie in.
    fn words(&self, room: &Room) -> [u16; BANKS] {
        let mut walks = [(0, 0); MAX_RANK];
        let order = self.dst.axes[..self.dst.inner].iter().copied().chain(self.outer(&self.dst));
        let rank = order.zip(&mut walks).map(|(axis, to)| *to = (room.strides[axis], self.taken[axis])).count();
        let (mut words, mut digits, mut place) = ([0; BANKS], [0; MAX_RANK], 0);
        for to in &mut words {
            *to = (place >> self.word.trailing_zeros()) as u16;
            for (digit, (stride, taken)) in digits.iter_mut().zip(&walks[..rank]) {
                (*digit, place) = (*digit + 1, place + stride);
                if *digit < *taken {
                    break;
                }
                (*digit, place) = (0, place - stride * taken);
            }
        }
        words
    }

    /// The strides in shared memory with the fewest bank conflicts, and the least memory among those; and the turn.
    fn arrangement(&self, src_aligned: bool, dst_aligned: bool) -> (Room, usize) {
        let turn = if self.width < 4 && dst_aligned { 32 - 8 * self.width } else { 0 };
        let best_turn = |room: Room| {
            let words = self.words(&room);
            let straight = self.conflicts(&words, 0);
            let turned = if turn == 0 || straight == 0 { straight } else { self.conflicts(&words, turn) };
            if turned < straight { (turned, room, turn) } else { (straight, room, 0) }
        };
        let natural = best_turn(self.room(src_aligned, None));
        if natural.0 == 0 {
            return (natural.1, natural.2);
        }
        let stepped = (1..BANKS / self.word).step_by(2).map(|step| self.room(src_aligned, Some(step)));
        let stepped = stepped.min_by_key(|room| (room.unmet, room.bytes)).map_or(natural, best_turn);
        let (_, room, turn) = if stepped.0 < natural.0 { stepped } else { natural };
        (room, turn)
    }

    /// How threads can be laid over a side.
    fn lay(&self, order: &Order, aligned: bool) -> Lay {
        let (lanes, len) = (self.word / self.width, self.run(order));
        let words = if aligned { len.div_ceil(lanes) } else { (len + 2 * (lanes - 1)) / lanes };
        Lay { words, runs: self.runs(order) }
    }

    fn side(
        &self,
        order: &Order,
        room: &Room,
        chunks: [usize; 2],
        aligned: bool,
        threads: usize,
        stride: fn(&Walk) -> isize,
    ) -> Option<PackedSide> {
        let len = self.run(order);
        let lay = self.lay(order, aligned);
        let (across, Lay { words, runs }) = (lay.across(threads), lay);
        let down = threads / across;
        let digit = |axis: usize| {
            let Divisor { value, multiplier, shift } = Divisor::narrow(self.taken[axis] as u64);
            Digit {
                extent: value as u32,
                multiplier: multiplier as u32,
                shift: shift as u32,
                room: room.strides[axis] as u32,
                stride: stride(&self.axes[axis]) as i64,
            }
        };
        let digits = |axes: &mut dyn Iterator<Item = usize>| {
            let mut digits = [Digit { extent: 1, multiplier: 0, shift: 0, room: 0, stride: 0 }; PACKED_AXES];
            let mut rank = 0;
            for axis in axes {
                *digits.get_mut(rank)? = digit(axis);
                rank += 1;
            }
            Some((rank as u64, digits))
        };
        let reach = self.outer(order).map(|axis| stride(&self.axes[axis]).unsigned_abs() * (self.taken[axis] - 1));
        if reach.sum::<usize>() > i32::MAX as usize {
            return None;
        }
        let (inner_rank, inner) = digits(&mut order.axes[..order.inner].iter().copied())?;
        let (outer_rank, outer) = digits(&mut self.outer(order))?;
        let last = order.axes[order.inner - 1];
        let chunk = chunks.iter().position(|&axis| axis == last).unwrap_or(2);
        Some(PackedSide {
            words: words as u64,
            across: Divisor::narrow(across as u64),
            down: down as u64,
            len: len as u64,
            unit: (len / self.taken[last]) as u64,
            chunk: chunk as u64,
            runs: runs as u64,
            entries: runs.next_multiple_of(PACKED_STEPS as usize * down) as u64,
            chunked: chunks.map(|chunk| self.outer(order).position(|axis| axis == chunk).unwrap_or(MAX_RANK) as u64),
            run_table: 0,
            table: 0,
            aligned: u64::from(aligned),
            inner_rank,
            inner,
            outer_rank,
            outer,
        })
    }

    /// The parts of such an axis; how much of it each takes, and how long it is.
    fn parts(&self, axis: usize) -> (Walk, usize, usize) {
        let Walk { extent, src, dst } = *self.axes.get(axis).unwrap_or(&Walk { extent: 1, src: 0, dst: 0 });
        let taken = self.taken.get(axis).copied().unwrap_or(1);
        (Walk { extent: extent.div_ceil(taken), src: src * taken as isize, dst: dst * taken as isize }, taken, extent)
    }

    /// The axes of which a tile has a part, and the one past them all where there are fewer: the source's, the destination's.
    fn chunks(&self) -> [usize; 2] {
        let end = |order: &Order| self.frontier(order).map(|(_, axis)| axis).filter(|&axis| self.taken[axis] > 1);
        let (src, dst) = (end(&self.src), end(&self.dst));
        [src.unwrap_or(MAX_RANK), dst.filter(|_| src != dst).unwrap_or(MAX_RANK)]
    }
}

/// How the threads of a block are laid over the runs of a side.
#[derive(Debug, Clone, Copy)]
struct Lay {
    /// Most words of a run.
    words: usize,
    runs: usize,
}

impl Lay {
    /// Threads along a run: all of it, or equal parts that end on sectors.
    fn across(self, threads: usize) -> usize {
        if self.words <= threads {
            self.words
        } else {
            self.words.div_ceil(self.words.div_ceil(threads)).next_multiple_of(8)
        }
    }

    /// Words that a thread moves, so many runs at once, whether there are as many or not.
    fn steps(self, threads: usize, at_once: u32) -> usize {
        let across = self.across(threads);
        self.words.div_ceil(across) * self.runs.div_ceil(threads / across).next_multiple_of(at_once as usize)
    }
}

/// The threads of a block whose steps are the fewest, and those steps. Before its first words, a thread spends as long as on a few.
fn threads([src, dst]: [Lay; 2]) -> (usize, usize) {
    const START: usize = 4;
    let steps =
        |threads: usize| threads * (src.steps(threads, PACKED_STEPS) + dst.steps(threads, PACKED_STORES) + START);
    (128..=256).step_by(32).map(|threads| (steps(threads), threads)).min().unwrap_or_default()
}

impl Order {
    /// By strides; its runs go along axes that are `near` on the other side.
    fn new(axes: &[Walk], stride: fn(&Walk) -> isize, near: impl Fn(&Walk) -> bool) -> Self {
        let mut order = Self { axes: [0; MAX_RANK], contiguous: 0, inner: 0 };
        for (place, to) in order.axes[..axes.len()].iter_mut().enumerate() {
            *to = place;
        }
        // What is broadcast comes last.
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

impl Packed {
    /// The plan, where both sides have runs and it is better than this tile, or than to move element by element.
    pub(super) fn of(canonical: &Canonical, src_align: Align, dst_align: Align, tile: Option<&Tile>) -> Option<Self> {
        let width = canonical.width;
        let tiling = Tiling::new(canonical)?;
        if !tiling.is_best(tile, dst_align) {
            return None;
        }
        let (tiling, threads) = tiling.grown(src_align, dst_align);
        // Gaps on both sides end a tile early: of pixels without one channel it would be a pixel.
        if tiling.taken[..tiling.rank].iter().product::<usize>() * width < SMALLEST_PACKED_TILE {
            return None;
        }
        let src_aligned = tiling.grain(&tiling.src, tiling.src_start, src_align, |axis| axis.src) >= tiling.word;
        let dst_aligned = tiling.grain(&tiling.dst, tiling.dst_start, dst_align, |axis| axis.dst) >= tiling.word;
        let (room, turn) = tiling.arrangement(src_aligned, dst_aligned);
        let chunks = tiling.chunks();
        let src_side = tiling.side(&tiling.src, &room, chunks, src_aligned, threads, |axis| axis.src)?;
        let mut dst_side = tiling.side(&tiling.dst, &room, chunks, dst_aligned, threads, |axis| axis.dst)?;
        let lanes = (tiling.word / width) as u64;
        dst_side.run_table = src_side.entries * 8;
        dst_side.table = dst_side.run_table + dst_side.entries * 8;
        let table = if lanes > 1 { dst_side.words * lanes * 2 } else { 0 };
        let tile = (dst_side.table + table).next_multiple_of(16);
        let shared = tile as usize + room.bytes + 16;
        let index = index(canonical);
        let divisor = divisor(index);
        let parts = chunks.map(|axis| tiling.parts(axis));
        let batch = || (0..tiling.rank).filter(|&axis| tiling.taken[axis] == 1).map(|axis| &tiling.axes[axis]);
        let [first, second, ..] = axes(parts.iter().map(|(walk, ..)| walk), divisor);
        let span = span(canonical);
        let params = PackedParams {
            src: (tiling.src_start * width) as u64,
            dst: (tiling.dst_start * width) as u64,
            src_start: (span.start * width) as u64,
            src_end: (span.end * width) as u64,
            chunks: [first, second],
            chunk: parts.map(|(_, taken, _)| taken as u64),
            extents: parts.map(|(.., extent)| extent as u64),
            below: tiling.reach(|stride| stride < 0) as u64,
            above: tiling.reach(|stride| stride > 0) as u64,
            tile,
            turn: turn as u64,
            src_side,
            dst_side,
            rank: batch().count() as u64,
            axes: axes(batch(), divisor),
        };
        let blocks =
            parts.iter().map(|(walk, ..)| walk.extent).chain(batch().map(|axis| axis.extent)).product::<usize>();
        let shape =
            LaunchShape { grid: grid(blocks as u64), block: [threads as u32, 1, 1], dynamic_shared: shared as u32 };
        (shared <= MAX_SHARED_BYTES as usize).then_some(())?;
        Some(Self { entry: PACKED.entry(width, index)?, shape, params })
    }

    pub(super) fn reason(&self) -> &'static str {
        "the sides are contiguous along different axes, several of which make a run: tiles of those axes, moved in the runs of \
         either side"
    }
}

impl fmt::Display for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PackedParams { src_side, dst_side, .. } = &self.params;
        write!(
            f,
            "{}: tiles of {} of {}, stored as {} of {}, {}",
            self.entry,
            counted(src_side.runs, "run"),
            counted(src_side.len, "element"),
            dst_side.runs,
            dst_side.len,
            self.shape
        )
    }
}

#[cfg(test)]
mod tests;
