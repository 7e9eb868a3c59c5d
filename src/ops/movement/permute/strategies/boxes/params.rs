//! Writes the kernel's parameters of a chosen box.

use super::cut::Cut;
use super::work::{Axes, Work};
use crate::abi::{
    BOX_AXES, BOX_DIGITS, BoxAxis, BoxDigit, BoxesParams, Divisor, ENDS_LINES, ENDS_ROWS, GOES_ON, NUMBERS_LINES,
    NUMBERS_ROWS, WITHIN_BOTH,
};

/// Returns the parameters, without the places of tables and rows in shared memory.
pub(super) fn of(work: &Work, cut: &Cut, threads: u32) -> BoxesParams {
    let [src, dst, places_low] = cut.start(work);
    let [rows_low, lines_low, starts_low] = lows(work, cut);
    let [limit, last_limit, shorter] = row_end(work, cut);
    let by = Divisor::narrow(cut.vectors.max(1));
    let (rank, ended, axes) = axes(work, cut);
    BoxesParams {
        src: (src + rows_low) as u64,
        dst: (dst + lines_low) as u64,
        src_start: work.reach[0],
        src_end: work.reach[1],
        counter: 0,
        boxes: cut.boxes as u32,
        digit_rank: cut.cut.len() as u32,
        rank,
        flags: cut.flags,
        rows: cut.rows as u32,
        last_rows: cut.last_rows as u32,
        row: cut.row as u32,
        reach: cut.reach as u32,
        granules: cut.granules as u32,
        granules_multiplier: if cut.granules == 1 { 0 } else { u32::MAX / cut.granules as u32 + 1 },
        rows_at_once: threads / cut.granules as u32,
        pitch: (cut.granules * work.granule) as u32,
        gap: 0,
        rows_low: -rows_low as u32,
        lines: cut.lines as u32,
        len: cut.line as u32,
        last_len: cut.last_line as u32,
        heads: cut.heads as u32,
        vectors: cut.vectors as u32,
        vectors_multiplier: by.multiplier as u32,
        vectors_shift: by.shift as u32,
        places_low: places_low as u32,
        lines_low: -lines_low as u32,
        starts_low: starts_low as u32,
        slice: 1,
        slices: 0,
        ended,
        step: if cut.taken.both.is_some() { cut.choice.line_part as u32 } else { 1 },
        limit,
        last_limit,
        shorter,
        unit: cut.unit() as u32,
        turn: 0,
        places: 0,
        raw_places: 0,
        line_table: 0,
        indices: 0,
        slice_table: 0,
        state: 0,
        tile: 0,
        digits: digits(work, cut),
        axes,
    }
}

/// Returns the lowest offsets of rows in the source and of lines in the destination, and the bytes
/// by which lines go backwards in shared memory.
fn lows(work: &Work, cut: &Cut) -> [i64; 3] {
    let low = |axes: Axes, side: usize| -> i64 {
        axes.each().map(|axis| cut.most(axis) as i64 * walked(work, cut, axis)[side].min(0)).sum()
    };
    let of_part = |axis| (cut.taken.times as i64 - 1) * part(work, cut, axis)[0].min(0);
    [low(cut.taken.of_rows(), 0), low(cut.taken.of_lines(), 1), -cut.taken.both.map_or(0, of_part)]
}

/// Returns the indices in a box and in the last one of the axis that ends rows, and the bytes by
/// which that one's rows are shorter.
fn row_end(work: &Work, cut: &Cut) -> [u32; 3] {
    cut.taken.row_end.map_or([1, 1, 0], |axis| {
        let (taken, last) = (cut.taken.indices[axis], cut.taken.last(work, axis));
        [taken as u32, last as u32, ((taken + cut.more - last) * work.axes[axis].apart()) as u32]
    })
}

/// Returns the strides of an axis as the box walks it, in the source and in the destination.
fn walked(work: &Work, cut: &Cut, axis: usize) -> [i64; 2] {
    let along = &work.axes[axis];
    if cut.is_turned(work, axis) { [-along.src, -along.dst] } else { [along.src, along.dst] }
}

/// Returns the strides from one part of a row that lines end at to the next.
fn part(work: &Work, cut: &Cut, axis: usize) -> [i64; 2] {
    walked(work, cut, axis).map(|stride| stride * cut.choice.line_part as i64)
}

/// Returns the axes that number the boxes, the fastest first.
fn digits(work: &Work, cut: &Cut) -> [BoxDigit; BOX_DIGITS] {
    let mut digits = [BoxDigit { count: 1, multiplier: 0, shift: 0, roles: 0, src: 0, dst: 0 }; BOX_DIGITS];
    let others = cut.cut.each().filter(|&axis| !cut.fastest.contains(&Some(axis)));
    let takes_heads = cut.choice.takes_heads;
    for (to, axis) in digits.iter_mut().zip(cut.fastest.into_iter().flatten().chain(others)) {
        let (count, taken) = (cut.taken.count(work, axis), cut.taken.indices[axis]);
        let is_uneven = !work.axes[axis].extent.is_multiple_of(taken);
        let ends_both = cut.taken.both == Some(axis);
        let roles = [
            (cut.ended() == Some(axis) && (takes_heads || is_uneven), ENDS_LINES),
            (cut.taken.row_end == Some(axis) && (ends_both && takes_heads || is_uneven), ENDS_ROWS),
            (cut.taken.next == Some(axis) && takes_heads, GOES_ON),
        ];
        let [src, dst] = walked(work, cut, axis).map(|stride| taken as i64 * stride);
        let by = Divisor::narrow(count);
        *to = BoxDigit {
            count: count as u32,
            multiplier: by.multiplier as u32,
            shift: by.shift as u32,
            roles: roles.into_iter().filter(|(is, _)| *is).map(|(_, role)| role).sum(),
            src,
            dst,
        };
    }
    digits
}

/// Returns the axes of a box, their number, and the place of the one that ends rows.
fn axes(work: &Work, cut: &Cut) -> (u32, u32, [BoxAxis; BOX_AXES]) {
    let mut axes = [axis_of(1, WITHIN_BOTH, [0; 2]); BOX_AXES];
    let (mut rank, mut ended) = (0, u32::MAX);
    let in_line = cut.taken.in_line;
    let last = in_line.len().checked_sub(1);
    for axis in cut.taken.in_row.or(in_line).each() {
        let kind = match (cut.taken.in_row.has(axis), in_line.has(axis)) {
            (true, true) => WITHIN_BOTH,
            (false, _) => NUMBERS_ROWS,
            _ => NUMBERS_LINES,
        };
        let [src, dst] = walked(work, cut, axis);
        let dst = if kind == NUMBERS_LINES { dst } else { 0 };
        if cut.taken.row_end == Some(axis) && cut.taken.both.is_none() {
            ended = rank;
        }
        axes[rank as usize] = axis_of(cut.taken.in_one_line(axis), kind, [src, dst]);
        if last == Some(axis) {
            axes[rank as usize].multiplier = 0;
        }
        rank += 1;
    }
    if let Some(axis) = cut.taken.both
        && cut.taken.times > 1
    {
        ended = rank;
        axes[rank as usize] = axis_of(cut.taken.times, NUMBERS_LINES, part(work, cut, axis));
        rank += 1;
    }
    (rank, ended, axes)
}

fn axis_of(taken: u64, kind: u32, [src, dst]: [i64; 2]) -> BoxAxis {
    let Divisor { multiplier, shift, .. } = Divisor::narrow(taken);
    BoxAxis {
        taken: taken as u32,
        multiplier: multiplier as u32,
        shift: shift as u32,
        kind,
        src: src as u32,
        dst: dst as u32,
    }
}
