//! Cuts the axes of a task into boxes, and describes a box by a few numbers.
//!
//! A box takes whole axes of each side from its innermost on, and a part of the next, as the tiles
//! of TTC and cuTT do. The numbers are those that the estimate needs. They cost a fraction of the
//! kernel's parameters, which only a chosen box gets.

use super::banks::MOST_LINES;
use super::work::{Axes, Work};
use crate::abi::{BACKWARDS, BOX_AXES, BOX_DIGITS, ENDS_BOTH, HAS_EDGES, ON_VECTORS, ROWS_DIFFER, TAKES_HEADS};
use crate::layout::MAX_RANK;
use crate::ops::tuning::{Boxes, BoxesSearch, Splits};
use crate::ops::units::wide::{SECTOR, VECTOR};

/// Boxes are fewer than this: their numbers have 31 bits.
const MOST_BOXES: u64 = 1 << 31;
/// Offsets within a box have 31 bits.
const MOST_OFFSET: u64 = i32::MAX as u64;

/// The part of each side's axes that a box takes: whole axes, and a part of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Choice {
    /// Whole axes of a row.
    pub(super) row_axes: usize,
    /// Indices of the source's next axis; 1 if the row ends before it.
    pub(super) row_part: u64,
    /// Whole axes of a line.
    pub(super) line_axes: usize,
    /// Indices of the destination's next axis; 1 if the line ends before it.
    pub(super) line_part: u64,
    /// True if lines end at whole sectors.
    pub(super) takes_heads: bool,
}

/// The axes of a box.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) in_row: Axes,
    pub(super) in_line: Axes,
    /// The indices that a box takes of each axis.
    pub(super) indices: [u64; MAX_RANK],
    /// The axis of which a row has a part.
    pub(super) row_end: Option<usize>,
    /// The axis of which a line has a part.
    pub(super) line_end: Option<usize>,
    /// The axis along which lines go on in the next box or the next line.
    pub(super) next: Option<usize>,
    /// The axis of which both have a part, and the lines that a row's part holds.
    pub(super) both: Option<usize>,
    pub(super) times: u64,
    /// Indices of that axis in a line.
    part: u64,
}

impl Taken {
    /// Takes the axes of a choice; `None` if the choice does not fit the work.
    fn fill(&mut self, work: &Work, choice: &Choice) -> Option<()> {
        let &Choice { row_axes, row_part, line_axes, line_part, takes_heads } = choice;
        let (mut in_row, mut in_line) = (Axes::default(), Axes::first(line_axes));
        work.by_src()[..row_axes].iter().for_each(|&axis| in_row.insert(axis));
        self.indices = [1; MAX_RANK];
        in_row.or(in_line).each().for_each(|axis| self.indices[axis] = work.axes[axis].extent);
        let row_end = (row_part > 1).then(|| work.by_src()[row_axes]);
        let line_end = (line_part > 1).then_some(line_axes);
        let both = row_end.filter(|_| row_end == line_end);
        if row_end.is_some_and(|axis| in_line.has(axis)) || line_end.is_some_and(|axis| in_row.has(axis)) {
            return None;
        }
        for (end, part, set) in [(line_end, line_part, &mut in_line), (row_end, row_part, &mut in_row)] {
            if let Some(axis) = end {
                set.insert(axis);
                self.indices[axis] = part;
            }
        }
        if let Some(axis) = both
            && (row_part % line_part != 0 || takes_heads && row_part >= work.axes[axis].extent)
        {
            return None;
        }
        self.times = if both.is_some() { row_part / line_part } else { 1 };
        self.next = line_end.or_else(|| (line_axes < work.dense && !in_row.has(line_axes)).then_some(line_axes));
        (self.in_row, self.in_line, self.part) = (in_row, in_line, line_part);
        (self.row_end, self.line_end, self.both) = (row_end, line_end, both);
        Some(())
    }

    /// Returns the indices of an axis in a line.
    pub(super) fn in_one_line(&self, axis: usize) -> u64 {
        if self.both == Some(axis) { self.part } else { self.indices[axis] }
    }

    /// Returns the axes that number rows.
    pub(super) fn of_rows(&self) -> Axes {
        self.in_line.without(self.in_row)
    }

    /// Returns the axes that number lines.
    pub(super) fn of_lines(&self) -> Axes {
        self.in_row.without(self.in_line)
    }

    fn product(&self, axes: Axes) -> u64 {
        axes.each().map(|axis| self.indices[axis]).product()
    }

    /// Returns the boxes along an axis.
    pub(super) fn count(&self, work: &Work, axis: usize) -> u64 {
        match self.indices[axis] {
            1 => work.axes[axis].extent,
            taken => work.axes[axis].extent.div_ceil(taken),
        }
    }

    /// Returns the indices of an axis in its last box.
    pub(super) fn last(&self, work: &Work, axis: usize) -> u64 {
        work.axes[axis].extent - (self.count(work, axis) - 1) * self.indices[axis]
    }
}

/// A box in numbers.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) choice: Choice,
    pub(super) taken: Taken,
    /// Bytes of a row.
    pub(super) row: u64,
    /// Rows, with those that only hold heads of following lines.
    pub(super) rows: u64,
    /// Elements of a line, and of the box with one index of the axis that ends it.
    pub(super) line: u64,
    pub(super) inner: u64,
    pub(super) lines: u64,
    /// Elements of a line's last sector that the next line starts with, at most.
    pub(super) heads: u64,
    /// Indices that rows hold more for these heads.
    pub(super) more: u64,
    /// The last index of the axis along which lines go on, with those for heads.
    pub(super) last_next: u64,
    pub(super) granules: u64,
    /// Vectors of a line.
    pub(super) vectors: u64,
    pub(super) boxes: u64,
    /// The axes that number boxes: the two fastest, and all.
    pub(super) fastest: [Option<usize>; 2],
    pub(super) cut: Axes,
    /// Boxes along the two fastest.
    pub(super) counts: [u64; 2],
    /// True if the fastest is the destination's first.
    pub(super) goes_by_dst: bool,
    pub(super) flags: u32,
    /// Bytes to which the starts of all lines are aligned.
    aligned: u64,
    /// Elements of a line, and rows, where the axis that ends lines has fewer indices.
    pub(super) last_line: u64,
    pub(super) last_rows: u64,
    /// Bytes from the lowest row's start to the highest one's end.
    pub(super) reach: u64,
    /// Sectors of a box on both sides, in which a part of one counts by its cost.
    pub(super) sectors: [f64; 2],
}

impl Cut {
    /// Cuts the work in place, because a cut is large, and counts the sectors of a box; `None` if
    /// the choice does not fit the work or the policy.
    pub(super) fn fill(&mut self, work: &Work, choice: &Choice, policy: &Boxes) -> Option<()> {
        let BoxesSearch { most, longest_row, few, .. } = policy.search;
        self.fill_uncounted(work, choice, few)?;
        if self.line + self.heads > most || self.rows > most || self.row > longest_row {
            return None;
        }
        self.sectors = [self.read(work, &policy.splits), self.written(work, &policy.splits)];
        Some(())
    }

    /// Cuts the work without the sectors, which only estimates need. `few` is that of the policy.
    pub(super) fn fill_uncounted(&mut self, work: &Work, choice: &Choice, few: u64) -> Option<()> {
        self.choice = *choice;
        self.taken.fill(work, choice)?;
        let taken = &self.taken;
        let line: u64 = taken.in_line.each().map(|axis| taken.in_one_line(axis)).product();
        let bytes = line * work.width;
        let strides = bytes | work.aligned[1] | work.strides_from[taken.in_line.len()];
        self.lines = taken.times * taken.product(taken.of_lines());
        self.aligned = strides & strides.wrapping_neg();
        if self.lines > MOST_LINES as u64 || choice.takes_heads && (self.aligned >= SECTOR || bytes < SECTOR) {
            return None;
        }
        self.inner = taken.next.map_or(line, |next| line / taken.in_one_line(next));
        self.rows = taken.product(taken.of_rows());
        (self.line, self.vectors) = (line, bytes / VECTOR);
        (self.heads, self.more, self.last_next, self.flags) = (0, 0, 0, 0);
        (self.last_line, self.last_rows) = (line, self.rows);
        let ended = self.ended();
        if let Some(axis) = ended {
            self.last_line = self.inner * self.taken.last(work, axis);
            self.last_rows = self.rows / self.taken.indices[axis] * self.taken.last(work, axis);
        }
        if choice.takes_heads {
            self.take_heads(work)?;
        }
        if ended.is_none() {
            self.last_rows = self.rows;
        }
        self.fetch(work)?;
        self.number(work, few)?;
        self.flags |= self.kinds(work);
        Some(())
    }

    /// Returns whether all lines start on whole vectors.
    pub(super) fn on_vectors(&self) -> bool {
        self.aligned >= VECTOR
    }

    /// Returns the flags of the kernel, without that of rows that differ.
    fn kinds(&self, work: &Work) -> u32 {
        let has_edges = self.choice.takes_heads
            || !self.on_vectors()
            || !(self.last_line * work.width).is_multiple_of(VECTOR)
            || self.taken.both.is_some_and(|axis| {
                !(self.inner * (self.taken.last(work, axis) % self.choice.line_part) * work.width)
                    .is_multiple_of(VECTOR)
            });
        let flags = [
            (has_edges, HAS_EDGES),
            (self.choice.takes_heads, TAKES_HEADS),
            (self.on_vectors() && !self.choice.takes_heads, ON_VECTORS),
            (self.taken.both.is_some(), ENDS_BOTH),
            (self.taken.both.is_some_and(|axis| work.backwards.has(axis)), BACKWARDS),
        ];
        flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum()
    }

    /// Returns the axis that ends lines but not rows.
    pub(super) fn ended(&self) -> Option<usize> {
        let ended = if self.choice.takes_heads { self.taken.next } else { self.taken.line_end };
        ended.filter(|_| self.taken.both.is_none())
    }

    /// Returns the elements of a line for each index of an axis that ends both sides.
    pub(super) fn unit(&self) -> u64 {
        if self.taken.both.is_some() { self.inner } else { 0 }
    }

    /// Lets lines end at whole sectors: their last elements lie in more indices or rows.
    fn take_heads(&mut self, work: &Work) -> Option<()> {
        let next = self.taken.next?;
        self.heads = SECTOR / work.width - 1;
        self.vectors = (self.line * work.width).div_ceil(SECTOR) * (SECTOR / VECTOR);
        let left = if self.taken.both.is_some() {
            self.more = self.heads.div_ceil(self.inner);
            let left = self.taken.last(work, next) % self.choice.line_part;
            self.inner * if left == 0 { self.choice.line_part } else { left }
        } else {
            self.taken.in_line.insert(next);
            self.last_next = (self.line + self.heads - 1) / self.inner;
            // The most rows of the last index are those of its first elements.
            let (mut rest, mut row, mut weight) = ((self.line + self.heads - 1) % self.inner, 0, 1);
            for axis in Axes::first(next).each() {
                let (taken, digit) = (self.taken.indices[axis], rest % self.taken.indices[axis]);
                rest /= taken;
                if !self.taken.in_row.has(axis) {
                    row += digit * weight;
                    weight *= taken;
                } else if digit > 0 {
                    row = weight - 1;
                }
            }
            self.rows = self.last_next * weight + row + 1;
            self.last_line
        };
        (left * work.width >= SECTOR).then_some(())
    }

    /// Measures the rows as they lie.
    fn fetch(&mut self, work: &Work) -> Option<()> {
        let &Taken { in_row, ref indices, both, row_end, .. } = &self.taken;
        let apart = |axis: usize| work.axes[axis].apart();
        self.row = work.width + in_row.each().map(|axis| (indices[axis] - 1) * apart(axis)).sum::<u64>();
        self.row += both.map_or(0, |axis| self.more * apart(axis));
        let rows = self.taken.of_rows();
        let above: u64 =
            rows.each().fold(0, |sum, axis| sum.saturating_add(self.most(axis).saturating_mul(apart(axis))));
        self.reach = above.saturating_add(self.row);
        let lines = |axis: usize| (indices[axis] - 1) * work.axes[axis].dst.unsigned_abs();
        let mut stored: u64 = self.taken.of_lines().each().map(lines).sum();
        if let Some(axis) = both {
            stored += (indices[axis] - self.choice.line_part) * work.axes[axis].dst.unsigned_abs();
        }
        if self.reach > MOST_OFFSET || stored > MOST_OFFSET {
            return None;
        }
        let differ = !rows.and(work.off_granules).is_empty();
        let part_is_off = row_end.is_some_and(|axis| work.is_off(apart(axis).wrapping_mul(indices[axis])));
        let shifts = differ
            || work.is_off(work.aligned[0])
            || work.is_off(self.start(work)[0].unsigned_abs())
            || !work.off_granules.without(in_row).is_empty()
            || part_is_off && row_end.is_some_and(|axis| indices[axis] != work.axes[axis].extent)
            || both.is_some_and(|axis| work.backwards.has(axis));
        self.granules = (self.row + if shifts { work.granule - work.width } else { 0 }).div_ceil(work.granule);
        self.flags |= if differ { ROWS_DIFFER } else { 0 };
        Some(())
    }

    /// Returns the last index of an axis that numbers rows.
    pub(super) fn most(&self, axis: usize) -> u64 {
        let goes_on = self.choice.takes_heads && self.taken.next == Some(axis);
        if goes_on { self.last_next } else { self.taken.indices[axis] - 1 }
    }

    /// Returns whether an axis is walked from its other end: backwards in the destination.
    pub(super) fn is_turned(&self, work: &Work, axis: usize) -> bool {
        work.backwards.has(axis) && self.taken.of_lines().has(axis)
    }

    /// Returns the bytes from the storages' starts to the first element of the first box's lowest
    /// row, and the bytes by which the first line's is not the lowest.
    pub(super) fn start(&self, work: &Work) -> [i64; 3] {
        let [mut src, mut dst] = work.start;
        let mut low = 0;
        for axis in self.taken.in_row.and(work.backwards).each() {
            let along = &work.axes[axis];
            if self.is_turned(work, axis) {
                let last = along.extent as i64 - 1;
                (src, dst) = (src + last * along.src, dst + last * along.dst);
                continue;
            }
            let more = if self.taken.both == Some(axis) { self.more } else { 0 };
            src += (self.taken.indices[axis] - 1 + more) as i64 * along.src;
            low -= (self.taken.in_one_line(axis) - 1 + more) as i64 * along.src;
        }
        [src, dst, low]
    }

    /// Numbers the boxes: the nearest axis of each side that boxes cut comes first, then the others
    /// in the destination's order.
    fn number(&mut self, work: &Work, few: u64) -> Option<()> {
        let ends = self.taken.row_end.into_iter().chain(self.taken.line_end).chain(self.taken.next);
        self.cut = work.all.without(self.taken.in_row.or(self.taken.in_line));
        for axis in ends.filter(|&axis| self.taken.indices[axis] < work.axes[axis].extent) {
            self.cut.insert(axis);
        }
        let mut counts = [1; MAX_RANK];
        self.cut.each().for_each(|axis| counts[axis] = self.taken.count(work, axis));
        let dst = self.cut.each().next();
        let src = work.by_src()[self.choice.row_axes..].iter().copied().find(|&axis| self.cut.has(axis));
        self.fastest = [dst, src.filter(|_| src != dst)];
        if let [Some(dst), Some(src)] = self.fastest
            && counts[src] < counts[dst]
            && counts[src] <= few
        {
            self.fastest.swap(0, 1);
        }
        self.goes_by_dst = dst.is_some() && self.fastest[0] == dst;
        self.counts = self.fastest.map(|axis| axis.map_or(1, |axis| counts[axis]));
        if self.fastest[1].is_none() {
            let others = self.cut.each().find(|&axis| Some(axis) != self.fastest[0]);
            self.counts[1] = others.map_or(1, |axis| counts[axis]);
        }
        self.boxes = self.cut.each().map(|axis| counts[axis]).product();
        let axes = self.taken.in_row.or(self.taken.in_line).len() + usize::from(self.taken.times > 1);
        (self.boxes < MOST_BOXES && self.cut.len() <= BOX_DIGITS && axes <= BOX_AXES).then_some(())
    }

    /// Returns the sectors that are read.
    fn read(&self, work: &Work, splits: &Splits) -> f64 {
        let &Taken { in_row, ref indices, row_end, .. } = &self.taken;
        let is_off = |axis: usize| {
            indices[axis] != work.axes[axis].extent && work.axes[axis].apart().wrapping_mul(indices[axis]) % SECTOR != 0
        };
        let off = !work.aligned[0].is_multiple_of(SECTOR)
            || !work.off_sectors.without(in_row).is_empty()
            || row_end.is_some_and(is_off);
        // Rows that follow each other in memory are one run.
        let (mut run, mut runs) = (self.row, self.rows);
        let rows = self.taken.of_rows();
        for &axis in work.by_src().iter().filter(|&&axis| rows.has(axis)) {
            if work.axes[axis].apart() <= run + splits.gap {
                run += (indices[axis] - 1) * work.axes[axis].apart();
                runs = runs.div_ceil(indices[axis]);
            }
        }
        let split = match (off, run % SECTOR == 0) {
            (true, _) => splits.read,
            (false, true) => 0.0,
            (false, false) => splits.read_end,
        };
        runs as f64 * ((run as f64 / SECTOR as f64).max(1.0) + split)
    }

    /// Returns the sectors that are written.
    fn written(&self, work: &Work, splits: &Splits) -> f64 {
        let split = match () {
            () if self.aligned >= SECTOR => 0.0,
            () if self.choice.takes_heads => splits.written_heads,
            () if self.aligned >= VECTOR => splits.written_vectors,
            () => splits.written_elements,
        };
        self.lines as f64 * ((self.line * work.width) as f64 / SECTOR as f64 + split)
    }
}
