//! Lays a box's tables and rows out in shared memory, so that lanes share few banks.
//!
//! Gaps between rows are as old as tiles in shared memory (Ruetsch and Micikevicius 2009); the turn
//! of a vector's words among lanes is our own. A few warps are simulated: the places that their
//! lanes gather from are found once, and then each gap and each turn is tried on them.

use super::cut::Cut;
use super::work::Work;
use crate::abi::{
    BOX_AXES, BOXES_STATE, BoxAxis, BoxesParams, NUMBERS_LINES, NUMBERS_ROWS, ON_VECTORS, ROWS_DIFFER, WITHIN_BOTH,
};
use crate::context::BOXES_SHARED;
use crate::launch_shape::MAX_SHARED_BYTES;
use crate::ops::tuning::BoxesLayout;
use crate::ops::units::WARP;
use crate::ops::units::wide::{SECTOR, VECTOR};

/// Most lines of a box.
pub(super) const MOST_LINES: usize = 1024;
/// Warps that are simulated.
const SAMPLES: usize = 2;
/// Banks of shared memory.
const BANKS: usize = 32;
/// Words that are told apart.
const WORDS: usize = 1 << 14;

/// Gathering from shared memory: its slices, and the wavefronts of 32 lanes that gather 4 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    pub(super) slices: f64,
    pub(super) slice: f64,
    pub(super) conflicts: f64,
}

/// Returns the bytes of shared memory, without gaps.
pub(super) fn shared(cut: &Cut, granule: u64) -> u64 {
    let places = if cut.flags & ROWS_DIFFER != 0 { 9 } else { 5 };
    let tables = 8 * cut.rows + places * (cut.line + cut.heads) + 20 * cut.lines + u64::from(BOXES_STATE);
    tables + cut.rows * cut.granules * granule
}

/// Guesses the wavefronts of a gathering from the strides, before a box is laid out: the banks that
/// the lanes of a warp reach are a set that each axis of a line turns. Vectors whose words turn
/// cost `turned` wavefronts more.
pub(super) fn guess(work: &Work, cut: &Cut, turned: f64) -> f64 {
    let width = work.width;
    let (mut lanes, mut elements) = (WARP as u64 * 4 / width.max(4), VECTOR / width);
    let (all, mut banks) = (WARP as f64, if width > 4 { (1_u32 << (width / 4)) - 1 } else { 1 });
    let mut turn = 0;
    let add = |banks: u32, bytes: u64, count: u64| {
        (1..count).fold(banks, |sum, lane| sum | banks.rotate_left((lane * bytes / 4 % BANKS as u64) as u32))
    };
    for axis in cut.taken.in_line.each() {
        let count = cut.taken.in_one_line(axis);
        if count <= elements {
            elements /= count;
            continue;
        }
        let apart = work.axes[axis].apart() * elements;
        let along = count.div_ceil(elements).min(lanes);
        let in_row = cut.taken.in_row.has(axis);
        // Gaps between rows are chosen so that lanes share few banks.
        let bytes = if in_row { apart } else { 2 * 4 };
        if turn == 0 && in_row {
            turn = apart;
        }
        banks = add(banks, bytes, along);
        lanes = lanes.div_ceil(along);
        elements = 1;
        if lanes == 1 {
            break;
        }
    }
    if lanes > 1 {
        banks = add(banks, 4, lanes);
    }
    let straight = all / f64::from(banks.count_ones());
    if width > 4 || turn == 0 {
        return straight;
    }
    straight.min(all / f64::from(add(banks, turn / 4, 4).count_ones()) + turned)
}

/// The lines of a box in the order of their classes: lines of one class start alike.
struct Lines {
    /// The number of lines of each class.
    counts: [u32; SECTOR as usize],
    /// The number of slices of each class.
    parts: [u32; SECTOR as usize],
    /// The numbers of the lines in that order.
    order: [u16; MOST_LINES],
    walk: Walk,
    mask: u32,
}

impl Lines {
    fn new(params: &BoxesParams, takes_heads: bool) -> Self {
        let mask = if takes_heads { SECTOR as u32 - 1 } else { VECTOR as u32 - 1 };
        let mut found = Self {
            counts: [0; SECTOR as usize],
            parts: [0; SECTOR as usize],
            order: [0; MOST_LINES],
            walk: Walk::new(params, NUMBERS_LINES),
            mask,
        };
        if params.flags & ON_VECTORS != 0 {
            found.counts[0] = params.lines;
            return found;
        }
        let classes = &mut [0; MOST_LINES];
        let classes = found.classes(params, classes);
        for class in classes {
            found.counts[usize::from(*class)] += 1;
        }
        let (mut next, mut sum) = ([0; SECTOR as usize], 0);
        for (next, count) in next.iter_mut().zip(found.counts) {
            (*next, sum) = (sum, sum + count as usize);
        }
        for (line, class) in (0..).zip(classes) {
            let next = &mut next[usize::from(*class)];
            found.order[*next] = line;
            *next += 1;
        }
        found
    }

    /// Writes the class of each line.
    fn classes<'a>(&self, params: &BoxesParams, classes: &'a mut [u8; MOST_LINES]) -> &'a [u8] {
        let (mask, mut len) = (self.mask as u8, 1);
        classes[0] = params.lines_low as u8 & mask;
        for axis in self.walk.axes() {
            for index in 1..axis.taken as usize {
                let (known, next) = classes.split_at_mut(index * len);
                let more = (axis.dst as u8).wrapping_mul(index as u8);
                next.iter_mut().zip(&known[..len]).for_each(|(to, from)| *to = from.wrapping_add(more) & mask);
            }
            len *= axis.taken as usize;
        }
        &classes[..len]
    }

    /// Chooses the lines of a slice by the fewest instructions, and returns the slices too.
    fn slice(&mut self, params: &BoxesParams, policy: &BoxesLayout, threads: u32, n: u32) -> [u32; 2] {
        // Few classes have a number of lines of their own.
        let (mut alike, mut kinds) = ([(0, 0); SECTOR as usize], 0);
        for count in self.counts.into_iter().filter(|&count| count > 0) {
            let known = alike[..kinds].iter().position(|(other, _)| *other == count).unwrap_or(kinds);
            kinds = kinds.max(known + 1);
            alike[known] = (count, alike[known].1 + 1);
        }
        let cost = |slice: u32| {
            let (mut slices, mut most) = (0, 1);
            for &(count, classes) in &alike[..kinds] {
                let parts = count.div_ceil(slice);
                most = most.max(count.div_ceil(parts));
                slices += parts * classes;
            }
            let [vector, line] = [policy.vector, policy.line].map(|[once, each]| once + each * n);
            ((slices * params.vectors).div_ceil(threads) * (vector + most * line), slices)
        };
        let tried = policy.slices.map(|slice| (cost(slice), slice));
        let [mut slice, mut slices] =
            tried.into_iter().min_by_key(|tried| tried.0.0).map_or([1, 1], |best| [best.1, best.0.1]);
        if params.flags & ON_VECTORS != 0 {
            slice = params.lines.div_ceil(slices);
            slices = params.lines.div_ceil(slice);
        }
        self.parts = self.counts.map(|count| count.div_ceil(slice));
        [slice, slices]
    }

    /// Returns the start of a slice's first line in shared memory and in the destination.
    fn first(&self, params: &BoxesParams, number: u32) -> (u32, u32) {
        let line = if params.flags & ON_VECTORS != 0 { number * params.slice } else { self.first_of_class(number) };
        let (src, dst, _) = self.walk.at(line);
        (src.wrapping_add(params.starts_low), dst.wrapping_add(params.lines_low))
    }

    /// Returns the number of a slice's first line, where lines have classes.
    fn first_of_class(&self, number: u32) -> u32 {
        let (mut at, mut rest) = (0, number);
        for (count, parts) in self.counts.into_iter().zip(self.parts) {
            if rest < parts {
                at += rest * count.div_ceil(parts);
                return u32::from(self.order[at as usize]);
            }
            (at, rest) = (at + count, rest - parts);
        }
        u32::from(self.order[0])
    }
}

/// The place in shared memory of one element: its bytes without rows, its row, and the gaps before
/// that.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    bytes: u32,
    row: u32,
    gaps: u32,
}

/// The places from which sampled lanes gather.
struct Sampled {
    /// The places of four words of each lane's vector, and the vector.
    lanes: [[([Place; 4], u32); WARP]; SAMPLES],
    counts: [usize; SAMPLES],
    /// The words of a vector that are gathered by different instructions.
    words: usize,
    /// Words of shared memory that a lane gathers at once.
    of_lane: usize,
    /// The last request for each word, and that request.
    stamps: [u8; WORDS],
    stamp: u8,
}

impl Sampled {
    fn new(params: &BoxesParams, lines: &Lines, width: u32) -> Self {
        let (elements_log2, width_log2) = ((VECTOR as u32 / width).trailing_zeros(), width.trailing_zeros());
        let words_log2 = elements_log2.min(2);
        let words = 1 << words_log2;
        let mut sampled = Self {
            lanes: [const { [([Place { bytes: 0, row: 0, gaps: 0 }; 4], 0); WARP] }; SAMPLES],
            counts: [0; SAMPLES],
            words,
            of_lane: width.div_ceil(4) as usize,
            stamps: [0; WORDS],
            stamp: 0,
        };
        let (units, together) = (params.slices * params.vectors, if width <= 4 { 32 } else { 128 / width });
        let (bytes, walk) = (params.len * width, Walk::new(params, WITHIN_BOTH));
        for (sample, lanes) in sampled.lanes.iter_mut().enumerate() {
            let first = (units / 4 * (2 * sample as u32 + 1)) / 32 * 32;
            let (mut slice, mut vector) = (first / params.vectors.max(1), first % params.vectors.max(1));
            let mut line = lines.first(params, slice);
            for _ in first..(first + together).min(units) {
                let from = (line.1.wrapping_neg() & lines.mask) + 16 * vector;
                if from + 16 <= bytes + lines.mask {
                    let (places, number) = &mut lanes[sampled.counts[sample]];
                    for (word, place) in (0..).zip(&mut places[..words]) {
                        let (src, _, row) = walk.at((from >> width_log2) + (word << (elements_log2 - words_log2)));
                        let bytes = src.wrapping_add(params.places_low).wrapping_add(line.0);
                        *place = Place { bytes, row, gaps: row >> elements_log2 };
                    }
                    *number = vector;
                    sampled.counts[sample] += 1;
                }
                vector += 1;
                if vector == params.vectors {
                    (slice, vector) = (slice + 1, 0);
                    line = lines.first(params, slice);
                }
            }
        }
        sampled
    }

    /// Returns the mean wavefronts with these bytes between rows and between groups of rows, or a
    /// lower bound of it that is at least `most`.
    fn conflicts(&mut self, [pitch, gap]: [u32; 2], turn: u32, most: f64) -> f64 {
        let step = if self.words == 4 { 2 } else { 1 };
        let requests = SAMPLES * self.words.div_ceil(step);
        let mut sum = requests as u32;
        for request in 0..requests {
            let (sample, word) = (request % SAMPLES, request / SAMPLES * step);
            let mut banks = [0_u8; BANKS];
            self.stamp = self.stamp.wrapping_add(1);
            for (places, vector) in &self.lanes[sample][..self.counts[sample]] {
                let turned = if turn > 0 { (word + (vector >> (turn - 1)) as usize) & 3 } else { word };
                let Place { bytes, row, gaps } = places[turned];
                let first = bytes.wrapping_add(row * pitch + gaps * gap) / 4;
                for word in (first as usize..).take(self.of_lane) {
                    let stamp = &mut self.stamps[word % WORDS];
                    banks[word % BANKS] += u8::from(*stamp != self.stamp);
                    *stamp = self.stamp;
                }
            }
            sum += u32::from(banks.into_iter().max().unwrap_or(1).max(1)) - 1;
            if f64::from(sum) >= most * requests as f64 {
                break;
            }
        }
        f64::from(sum) / requests as f64
    }
}

/// Chooses slices, gaps and turns, and places the tables. Returns the gathering, and the bytes of
/// shared memory.
pub(super) fn lay_out(
    params: &mut BoxesParams,
    cut: &Cut,
    policy: &BoxesLayout,
    width: u32,
    threads: u32,
) -> (Gathering, u32) {
    let (granule, elements) = (params.pitch / params.granules, VECTOR as u32 / width);
    let mut lines = Lines::new(params, cut.choice.takes_heads);
    [params.slice, params.slices] = lines.slice(params, policy, threads, elements);
    let mut sampled = Sampled::new(params, &lines, width);
    let (natural, mut best) = (params.pitch, (f64::INFINITY, 0, 0, 0));
    let bytes = place(params, elements);
    // Gaps do not make a box a larger one.
    let most = if bytes > MAX_SHARED_BYTES { BOXES_SHARED } else { MAX_SHARED_BYTES };
    let gaps = policy.gaps.into_iter().take(if cut.rows == 1 { 1 } else { policy.gaps.len() });
    let turns = 1..if width <= 4 { 4 } else { 1 };
    for (turn, at) in gaps.map(|gap| (0, Some(gap))).chain(turns.map(|turn| (turn, None))) {
        let [pad, gap] = at.unwrap_or([best.1, best.2]);
        let extra = f64::from(turn.min(1)) * policy.turned + f64::from(pad + gap) * policy.gap;
        let added = granule * (params.rows * pad + params.rows / elements * gap);
        if 1.0 + extra >= best.0 || bytes + added > most {
            continue;
        }
        let cost = sampled.conflicts([natural + pad * granule, gap * granule], turn, best.0 - extra) + extra;
        if cost < best.0 {
            best = (cost, pad, gap, turn);
        }
    }
    let (conflicts, pad, gap, turn) = best;
    (params.pitch, params.gap, params.turn) = (natural + pad * granule, gap * granule, turn);
    let shared = place(params, elements);
    (Gathering { slices: f64::from(params.slices), slice: f64::from(params.slice), conflicts }, shared)
}

/// The layout of a box: fields of its [`BoxesParams`], by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaidOut {
    pitch: u32,
    gap: u32,
    turn: u32,
    slice: u32,
    slices: u32,
}

impl LaidOut {
    /// Returns what [`lay_out`] chose.
    pub(super) fn of(params: &BoxesParams) -> Self {
        let &BoxesParams { pitch, gap, turn, slice, slices, .. } = params;
        Self { pitch, gap, turn, slice, slices }
    }

    /// Lays a box out again, whose elements have `width` bytes.
    pub(super) fn restore(self, params: &mut BoxesParams, width: u32) {
        let Self { pitch, gap, turn, slice, slices } = self;
        *params = BoxesParams { pitch, gap, turn, slice, slices, ..*params };
        place(params, VECTOR as u32 / width);
    }
}

/// Places the tables and the rows, and returns the bytes of all.
fn place(params: &mut BoxesParams, elements: u32) -> u32 {
    let mut at = 0;
    let mut put = |bytes: u32| {
        let start = at;
        at += bytes.next_multiple_of(16);
        start
    };
    put(8 * params.rows);
    let entries = params.len + params.heads;
    params.places = put(4 * (entries + if elements == 1 { 0 } else { entries / elements }) + 4);
    if params.flags & ROWS_DIFFER != 0 {
        params.raw_places = put(4 * entries);
    }
    params.line_table = put(8 * params.lines);
    params.indices = put(4 * params.lines);
    params.slice_table = put(8 * params.slices);
    params.state = put(BOXES_STATE);
    params.tile = at;
    at + params.rows * params.pitch + params.rows / elements * params.gap + 16
}

/// The axes that a number walks.
struct Walk {
    axes: [Along; BOX_AXES],
    rank: usize,
}

/// An axis that a number walks: its indices, how a number is divided by them, and its strides. That
/// of the source is 0 where the axis numbers rows, and that of rows where it does not.
#[derive(Clone, Copy, Default)]
struct Along {
    taken: u32,
    multiplier: u32,
    shift: u32,
    src: u32,
    dst: u32,
    row: u32,
}

impl Walk {
    /// Takes the axes of elements of a line, or those that number lines.
    fn new(params: &BoxesParams, walked: u32) -> Self {
        let (mut walk, mut weight) = (Self { axes: [Along::default(); BOX_AXES], rank: 0 }, 1);
        for &BoxAxis { taken, multiplier, shift, kind, src, dst } in &params.axes[..params.rank as usize] {
            let numbers_rows = walked == WITHIN_BOTH && kind == NUMBERS_ROWS;
            if kind == walked || numbers_rows {
                let [src, row] = if numbers_rows { [0, weight] } else { [src, 0] };
                walk.axes[walk.rank] = Along { taken, multiplier, shift, src, dst, row };
                walk.rank += 1;
                weight *= if numbers_rows { taken } else { 1 };
            }
        }
        walk
    }

    fn axes(&self) -> &[Along] {
        &self.axes[..self.rank]
    }

    /// Walks as the kernel does: returns the offsets in the source and in the destination, and the
    /// row.
    fn at(&self, number: u32) -> (u32, u32, u32) {
        let (mut rest, mut src, mut dst, mut row) = (number, 0_u32, 0_u32, 0);
        for axis in self.axes() {
            let above = ((u64::from(rest << 1) * u64::from(axis.multiplier)) >> 32 >> axis.shift) as u32;
            let digit = rest - above * axis.taken;
            src = src.wrapping_add(digit.wrapping_mul(axis.src));
            dst = dst.wrapping_add(digit.wrapping_mul(axis.dst));
            row += digit * axis.row;
            rest = above;
            if rest == 0 {
                break;
            }
        }
        (src, dst, row)
    }
}
