//! Finds the boxes with the least estimated time.
//!
//! A coarse grid of boxes comes first: each side's runs grow by whole axes, and by parts of the
//! next axis in powers of two. Then the parts of the best ones change in small steps, as long as
//! the estimate falls. The boxes that fit the task and are cut have a limit, so that planning takes
//! little time.

use super::cut::{Choice, Cut};
use super::model::Model;
use super::work::{Axes, Work};
use crate::ops::tuning::{Boxes, BoxesSearch};
use crate::ops::units::wide::SECTOR;

/// Boxes that are kept.
pub(in crate::ops::movement::permute) const KEPT: usize = 6;
/// Most parts of an axis for which the coarse grid has room.
const PARTS: usize = 12;
/// Steps along an axis, and all neighbours of a box.
const STEPS: usize = 4;
const NEIGHBOURS: usize = 3 + 2 * STEPS;

/// A box, the threads of its block, and its estimate in cycles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) choice: Choice,
    pub(super) threads: u32,
    pub(super) cycles: f64,
    /// True once its neighbours are tried.
    pub(super) is_start: bool,
}

/// The best boxes found, the best first.
struct Search<'a> {
    work: &'a Work,
    policy: &'a Boxes,
    found: [Option<Found>; KEPT],
    cuts: usize,
    /// The box that is tried.
    cut: Cut,
}

/// Returns the best boxes, the best first.
pub(super) fn best(work: &Work, policy: &Boxes) -> [Option<Found>; KEPT] {
    let mut search = Search { work, policy, found: [None; KEPT], cuts: 0, cut: Cut::default() };
    search.coarse();
    search.refine();
    search.found
}

impl Search<'_> {
    /// Tries the boxes of the coarse grid.
    fn coarse(&mut self) {
        let (work, by_src) = (self.work, self.work.by_src());
        let (mut in_row, mut row, whole_axes) = (Axes::default(), work.width, ([1; PARTS], 1));
        for row_axes in 0..=by_src.len() {
            let next = by_src.get(row_axes).copied();
            let rows = next.map_or(whole_axes, |axis| {
                parts(
                    work.axes[axis].extent,
                    work.axes[axis].apart(),
                    self.policy.search.parts[0],
                    self.row_unit(in_row, axis),
                )
            });
            let mut line = work.width;
            for line_axes in 0..=work.dense {
                if self.cuts >= self.policy.search.cuts[0] {
                    return;
                }
                let is_last = line_axes == work.dense;
                let extent = if is_last { 1 } else { work.axes[line_axes].extent };
                let lines = parts(extent, line, self.policy.search.parts[1], self.line_unit(line_axes, line));
                let in_line = Axes::first(line_axes);
                let rows = if next.is_some_and(|axis| in_line.has(axis)) { &whole_axes } else { &rows };
                let lines = if in_row.has(line_axes) { &whole_axes } else { &lines };
                let outside = in_row.without(in_line).each();
                let whole = outside.map(|axis| work.axes[axis].extent).product::<u64>();
                for &line_part in &lines.0[..lines.1] {
                    let both = (line_part > 1 && next == Some(line_axes)).then_some(line_part);
                    let times = both.map_or(whole_axes, |part| multiples(part, extent));
                    let rows = if both.is_some() { &times } else { rows };
                    for &row_part in &rows.0[..rows.1] {
                        let choice = Choice { row_axes, row_part, line_axes, line_part, takes_heads: true };
                        let lines = whole * both.map_or(row_part, |part| row_part.div_ceil(part));
                        self.either(choice, line * line_part, lines);
                    }
                }
                line = line.saturating_mul(extent);
                if line > self.policy.line[1] {
                    break;
                }
            }
            let Some(axis) = next else { break };
            in_row.insert(axis);
            row += (work.axes[axis].extent - 1) * work.axes[axis].apart();
            if row > self.policy.search.longest_row {
                break;
            }
        }
    }

    /// Returns the indices of a part of an axis with which rows start at whole sectors, or 1.
    fn row_unit(&self, mut in_row: Axes, axis: usize) -> u64 {
        in_row.insert(axis);
        let others = self.work.off_sectors.without(in_row).is_empty() && self.work.aligned[0].is_multiple_of(SECTOR);
        if others { of_sectors(self.work.axes[axis].apart()) } else { 1 }
    }

    /// Returns the indices of a part of an axis with which lines start at whole sectors, or 1.
    fn line_unit(&self, axis: usize, inner: u64) -> u64 {
        let others = self.work.aligned[1] | self.work.strides_from[(axis + 1).min(self.work.dense)];
        if others.is_multiple_of(SECTOR) { of_sectors(inner) } else { 1 }
    }

    /// Tries a box of the coarse grid if its size is suitable: with lines that end at sectors, or
    /// else as they lie.
    fn either(&mut self, choice: Choice, line: u64, lines: u64) {
        if self.cuts < self.policy.search.cuts[0] && self.suits(line, lines) && !self.attempt(choice) {
            self.attempt(Choice { takes_heads: false, ..choice });
        }
    }

    /// Returns whether a box may have so many lines of so many bytes.
    fn suits(&self, line: u64, lines: u64) -> bool {
        let [[shortest, longest], [least, most]] = [self.policy.line, self.policy.tile];
        (shortest..=longest).contains(&line) && (least..=most).contains(&line.saturating_mul(lines))
    }

    /// Cuts a box and keeps it if it is among the best. Returns whether the choice fits the task.
    fn attempt(&mut self, choice: Choice) -> bool {
        if self.cut.fill(self.work, &choice, self.policy).is_none() {
            return false;
        }
        self.cuts += 1;
        let cut = &self.cut;
        let (line, last) = (cut.line * self.work.width, self.found[KEPT - 1].map_or(f64::INFINITY, |last| last.cycles));
        let model = Model::new(self.policy, self.work, cut);
        if !self.suits(line, cut.lines) || !model.fits() || model.least() >= last {
            return true;
        }
        let conflicts = model.conflicts(self.work);
        let suited = self.policy.blocks.iter().filter(|block| block.suits(line * cut.lines));
        let timed =
            suited.map(|block| (model.cycles(block.threads, model.sliced(block.threads, conflicts)), block.threads));
        let Some((cycles, threads)) = timed.min_by(|a, b| a.0.total_cmp(&b.0)) else { return true };
        if self.found[KEPT - 1].is_some_and(|last| last.cycles <= cycles) {
            return true;
        }
        let mut at = KEPT - 1;
        while at > 0 && self.found[at - 1].is_none_or(|before| before.cycles > cycles) {
            self.found[at] = self.found[at - 1];
            at -= 1;
        }
        self.found[at] = Some(Found { choice, threads, cycles, is_start: false });
        true
    }

    /// Tries the neighbours of the best boxes, as long as there are better ones.
    fn refine(&mut self) {
        let BoxesSearch { starts, cuts: [_, most], .. } = self.policy.search;
        while self.cuts < most {
            let best = self.found.iter_mut().take(starts).flatten();
            let Some(start) = best.into_iter().find(|found| !found.is_start) else { return };
            start.is_start = true;
            let choice = start.choice;
            for next in self.neighbours(choice).into_iter().flatten() {
                let known = self.found.iter().flatten().any(|found| found.choice == next);
                if self.cuts < most && !known {
                    self.attempt(next);
                }
            }
        }
    }

    /// Returns the boxes that differ by little.
    fn neighbours(&self, choice: Choice) -> [Option<Choice>; NEIGHBOURS] {
        let Choice { row_axes, row_part, line_axes, line_part, takes_heads } = choice;
        let (work, by_src) = (self.work, self.work.by_src());
        let extent = |axis: usize| work.axes[axis].extent;
        let mut all = [None; NEIGHBOURS];
        all[0] = Some(Choice { takes_heads: !takes_heads, ..choice });
        let both = row_part > 1 && line_part > 1 && by_src[row_axes] == line_axes;
        let row_end = (row_axes + usize::from(row_part > 1)).checked_sub(1).map(|at| by_src[at]);
        if let Some(axis) = row_end {
            let (axes, taken) = if row_part > 1 { (row_axes, row_part) } else { (row_axes - 1, extent(axis)) };
            for (to, part) in all[1..=STEPS].iter_mut().zip(stepped(taken, extent(axis))) {
                let row_part = if both { part / line_part * line_part } else { part };
                *to = match row_part {
                    0..=1 => None,
                    _ if row_part >= extent(axis) && !both => {
                        Some(Choice { row_axes: axes + 1, row_part: 1, ..choice })
                    }
                    _ => Some(Choice { row_axes: axes, row_part: row_part.min(extent(axis)), ..choice }),
                };
            }
        }
        let line_end = (line_axes + usize::from(line_part > 1)).checked_sub(1);
        if let Some(axis) = line_end {
            let taken = if line_part > 1 { line_part } else { extent(axis) };
            for (to, part) in all[1 + STEPS..NEIGHBOURS - 2].iter_mut().zip(stepped(taken, extent(axis))) {
                let row_part = if both { row_part / line_part * part } else { row_part };
                *to = match part {
                    0..=1 => None,
                    _ if both => (row_part <= extent(axis)).then_some(Choice { row_part, line_part: part, ..choice }),
                    _ if part >= extent(axis) => Some(Choice { line_axes: axis + 1, line_part: 1, ..choice }),
                    _ => Some(Choice { line_axes: axis, line_part: part, ..choice }),
                };
            }
        }
        if line_part == 1 && line_axes < work.dense && extent(line_axes) > 2 {
            let ends_rows = row_part > 1 && by_src[row_axes] == line_axes;
            all[NEIGHBOURS - 2] = Some(Choice { line_part: if ends_rows { row_part } else { 2 }, ..choice });
        }
        if row_part == 1 && row_axes < by_src.len() && extent(by_src[row_axes]) > 2 {
            let ends_lines = line_part > 1 && by_src[row_axes] == line_axes;
            all[NEIGHBOURS - 1] = Some(Choice { row_part: if ends_lines { line_part } else { 2 }, ..choice });
        }
        all
    }
}

/// Returns the part of an axis if as few as have `part` are about equal.
fn even(extent: u64, part: u64) -> u64 {
    extent.div_ceil(extent.div_ceil(part.clamp(1, extent)))
}

/// Returns parts of an axis that are a step longer and shorter: even ones, and as they come.
fn stepped(part: u64, extent: u64) -> [u64; STEPS] {
    let (longer, shorter) = ((part * 7 / 5).max(part + 1), (part * 5 / 7).max(1));
    let unless = |known: u64, part: u64| if part == known { 0 } else { part };
    let (even_longer, even_shorter) = (even(extent, longer), even(extent, shorter));
    [even_longer, unless(even_longer, longer.min(extent)), even_shorter, unless(even_shorter, shorter)]
}

/// Returns even parts of an axis whose bytes, with those within, grow from 64 to `most`, after 1.
/// They are multiples of `unit` if those are little longer.
fn parts(extent: u64, inner: u64, most: u64, unit: u64) -> ([u64; PARTS], usize) {
    let (mut parts, mut count, mut target) = ([1; PARTS], 1, 64);
    while target <= most && count < PARTS {
        let part = even(extent, ((target + inner / 2) / inner).max(2));
        let rounded = part.next_multiple_of(unit);
        let part = if rounded <= part + part / 4 { rounded } else { part };
        if part >= extent {
            break;
        }
        if part > parts[count - 1] {
            parts[count] = part;
            count += 1;
        }
        target *= 2;
    }
    (parts, count)
}

/// Returns the indices of an axis with this stride that are whole sectors.
fn of_sectors(stride: u64) -> u64 {
    SECTOR >> stride.trailing_zeros().min(SECTOR.trailing_zeros())
}

/// Returns the parts of an axis that are some times `part`, after 1 for none.
fn multiples(part: u64, extent: u64) -> ([u64; PARTS], usize) {
    let (mut parts, mut count) = ([1; PARTS], 1);
    while count < 7 && part << (count - 1) <= extent {
        parts[count] = part << (count - 1);
        count += 1;
    }
    (parts, count)
}
