//! Moves tiles of several axes by vectors, for sides whose runs start anywhere.
//!
//! A block loads the vectors that hold its part of the source, keeps them in shared memory as they
//! lie, and gathers the destination's vectors from there. Where a few whole matrices are contiguous
//! on both sides, a tile is one run of memory on either side.
//!
//! Worth, on an H100 (benches/record/2026-11-23-h100/quads.md): batches of 33 x 33 floats 2934 GB/s
//! (structs 1919), of 127 x 129 of 2 bytes 2564 (tiles 1617); structs of three bytes off words 2431
//! (`packed` 931).

use super::beside;
use super::growth::{Order, Packing};
use super::room::Room;
use super::side::{Lay, Runs};
use crate::abi::{Divisor, PACKED_LOADS, PACKED_QUADS, PACKED_STEPPED, PackedQuadsParams, QuadSide, STEPPED_LOADS};
use crate::launch_shape::{LaunchShape, MAX_SHARED_BYTES};
use crate::layout::walk::Axis;
use crate::ops::Align;
use crate::ops::movement::permute::strategies::{
    Considered, Decline, Launch, Step, Task, Widened, at_least, at_most, fields, grid,
};
use crate::ops::tuning;
use crate::ops::units::{BANK_ROW, VECTOR, WARP, WORD};

/// Most elements of a run: a tile has fewer.
const LONGEST: usize = MAX_SHARED_BYTES as usize;

/// Takes large arrays whose runs start anywhere, and batches of small matrices.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let Widened { canonical, .. } = task.widened();
    let constants = &task.permutes().quads;
    at_least(task.bytes(), constants.smallest, "bytes of a side", "the multiprocessors would not be busy")?;
    let mut packing = Packing::new(canonical)?;
    let aligns = [task.src_align, task.dst_align];
    let starts_on_vectors = |side| packing.starts(aligns, side, 0) >= VECTOR;
    let is_on_vectors = [0, 1].into_iter().all(starts_on_vectors);
    if packing.kept_whole(constants).is_none() && is_on_vectors {
        // Most plans are of such arrays, and a tile takes longer to grow than all else here.
        needs_split_vectors(&packing, 0, task)?;
    }
    let few = "structs of few fields move as structs";
    at_most(usize::from(fields::are_few(task)), 0, "images of structs of few fields that start on words", few)?;
    (packing.word, packing.longest) = (VECTOR, LONGEST);
    let is_kept = packing.grow_quads(constants, aligns);
    let aligned = packing.grains(aligns).map(|grain| grain >= VECTOR);
    if is_kept {
        // `packed` moves bytes whose sides are whole words by words: 8 x 8 bytes reach 0.88 of the
        // copy so, and less if they are gathered byte by byte.
        let [src, dst] = [&packing.src, &packing.dst].map(|order| packing.axes[order.axes[0]].extent);
        let is_whole = packing.width == 1 && (src | dst).is_multiple_of(8);
        at_most(usize::from(is_whole), 0, "sides of bytes that are whole words", "others move bytes by words")?;
    } else {
        if !is_on_vectors {
            needs_split_vectors(&packing, aligned.iter().filter(|&&aligned| !aligned).count(), task)?;
        }
        is_better(&packing, task)?;
    }
    let room = packing.room(aligned[0], None, 0);
    let lanes = Lanes::of(&packing, &room);
    let banks = "lanes that gather would share banks";
    let most = constants.ways[usize::from(!is_kept)][packing.width.trailing_zeros() as usize];
    at_most(lanes.ways, most, "lanes of a warp that share a bank", banks)?;
    *launch = Some(Launch::PackedQuads(step(&packing, &room, aligned, &lanes, task)?));
    Ok(if is_kept {
        "a few matrices are contiguous on both sides: they go through shared memory whole, by vectors on either side"
    } else {
        "the runs of a side start or end between 16-byte vectors: tiles of several axes, moved by vectors as they lie"
    })
}

/// Declines if the other strategies were faster on an H100.
fn is_better(packing: &Packing, task: &Task<'_>) -> Result<(), Decline> {
    let constants = &task.permutes().quads;
    if packing.is_together() {
        packing.goes_on(&constants.shortest_with_gaps)?;
        let longest = constants.longest_together[packing.width.trailing_zeros() as usize];
        let longest = if packing.turns_narrow() { usize::MAX } else { longest };
        let bytes = packing.axes[packing.dst.axes[0]].extent * packing.width;
        return at_most(bytes, longest, "bytes that stay together", LONG);
    }
    let [src, dst] = [&packing.src, &packing.dst].map(|order| packing.run(order) * packing.width);
    if packing.width < VECTOR && task.widened().canonical.src_span().is_empty() {
        let others = "vectors at the ends of runs of a source with gaps may not be read whole";
        at_least(src, constants.shortest_apart, "bytes of a run of the source", others)?;
    }
    by_whole_tiles(packing, task)?;
    let Ok(tiling) = task.tiling() else { return Ok(()) };
    if packing.width == VECTOR {
        return Ok(());
    }
    tiling.leaves_to_others(task)?;
    if tiling.has_folded_rows() {
        // Tiles of folded rows were faster for f32 24 x 25 x 26 x 27 x 28 by 4, 2, 0, 3, 1, where
        // they reach 0.87 of the copy. Where `packed` took over from them, this is faster.
        return beside::is_better(packing, task);
    }
    let split = "runs that end within sectors are short, and tiles share those sectors";
    at_least(src, constants.shortest, "bytes of a run of the source", split)?;
    // `packed` moves bytes by words where the destination's runs start on words.
    let by_words = packing.width == 1 && beside::dst_start(packing, task) >= WORD;
    if !by_words && tiling.is_sparse(packing.width, &task.permutes().tiles) {
        return at_least(dst, constants.shortest, "bytes of a run of the destination", split);
    }
    let is_better = match packing.width {
        1 | 4 => true,
        2 => beside::is_better(packing, task).is_ok(),
        _ => false,
    };
    let shortest = constants.shortest_stored[usize::from(is_better)];
    at_least(dst, shortest, "bytes of a run of the destination", split)
}

/// Declines if no side has runs that start between vectors, and tiles of one axis per side move
/// whole vectors. Where there are no such tiles, `packed` was slower.
fn needs_split_vectors(packing: &Packing, sides: usize, task: &Task<'_>) -> Result<(), Decline> {
    let has_gaps = packing.width < VECTOR && task.widened().canonical.src_span().is_empty();
    let Axis { extent, .. } = packing.axes[packing.src.axes[0]];
    let keeps = packing.is_together() && !packing.turns_narrow();
    let is_short_or_apart = !keeps || extent * packing.width <= task.permutes().quads.longest_of_vectors;
    let moves_any =
        || is_short_or_apart && !has_gaps && by_whole_tiles(packing, task).is_ok() && !fields::takes_many(task);
    let sides = if sides == 0 && moves_any() { 1 } else { sides };
    at_least(sides, 1, "sides whose runs start between vectors", "other kernels move whole vectors")
}

/// Declines what tiles of one axis per side move by whole vectors. Elements of 16 bytes are
/// vectors, and tiles of them are better if they are nearly full and no axis is short.
fn by_whole_tiles(packing: &Packing, task: &Task<'_>) -> Result<(), Decline> {
    let Ok(tiling) = task.tiling() else { return Ok(()) };
    let whole = "tiles move whole vectors";
    if packing.width < VECTOR {
        return at_most(2 * usize::from(!tiling.is_ragged), 0, "sides of whole vectors", whole);
    }
    if beside::is_better(packing, task).is_ok() {
        return Ok(());
    }
    let full = tiling.full_but(task.permutes().quads.empty_part);
    at_most(tiling.filled(VECTOR), full.saturating_sub(1), "micro-tiles that elements fill", whole)
}

const LONG: &str = "elements that stay together make runs that are long enough";

impl Packing {
    /// Grows a tile: a few whole matrices that are contiguous on both sides, or parts of axes with
    /// the shortest axes whole. Returns whether it has whole matrices.
    pub(super) fn grow_quads(&mut self, constants: &tuning::Quads, aligns: [Align; 2]) -> bool {
        let (kept, width_log2) = (self.kept_whole(constants), self.width.trailing_zeros() as usize);
        let most = match kept {
            None => constants.tile[width_log2],
            Some(kept) => [(constants.tile_of_kept / kept).max(1) * kept; 2],
        };
        let most = most.map(|bytes| bytes / self.width);
        let mut len = 1;
        for axis in [self.src.axes[0], self.dst.axes[0]] {
            let extent = self.axes[axis].extent;
            if self.taken[axis] == 1 && extent * self.width <= constants.whole_axis && len * extent <= most[0] {
                self.taken[axis] = extent;
                len *= extent;
            }
        }
        self.grow(most, [1, constants.longer_stored[width_log2]], aligns, VECTOR);
        self.src.inner = self.inner(&self.src);
        self.dst.inner = self.inner(&self.dst);
        kept.is_some()
    }

    /// Returns the bytes of a matrix that tiles have whole; `None` where it is too large, or keeps
    /// its order.
    fn kept_whole(&self, constants: &tuning::Quads) -> Option<usize> {
        let kept = self.kept().saturating_mul(self.width);
        (kept <= constants.kept && !self.is_together()).then_some(kept)
    }

    /// Returns whether the nearest elements of one side are those of the other.
    pub(super) fn is_together(&self) -> bool {
        self.src.axes[0] == self.dst.axes[0]
    }

    /// Returns whether narrow elements follow each other in opposite directions on the two sides:
    /// other kernels move them one by one.
    fn turns_narrow(&self) -> bool {
        self.is_together() && self.axes[self.dst.axes[0]].dst < 0 && self.width < WORD
    }
}

/// How the lanes of a warp gather the destination's vectors from shared memory.
pub(super) struct Lanes {
    /// Base-2 logarithm of the lanes that start with the same word.
    turn: u32,
    /// The most lanes that share a bank.
    pub(super) ways: usize,
}

impl Lanes {
    /// Takes the order in which fewer lanes share a bank: all start with the first words of their
    /// vectors, or the lanes after those that spread over the banks start a word later.
    pub(super) fn of(packing: &Packing, room: &Room) -> Self {
        let apart = VECTOR / packing.width * room.strides[packing.dst.axes[0]];
        let spread = (BANK_ROW >> apart.trailing_zeros().min(BANK_ROW.trailing_zeros())).trailing_zeros();
        let straight = WARP.trailing_zeros();
        let turns = [straight, spread.min(straight)];
        let orders = turns.map(|turn| Self { turn, ways: packing.ways(room, turn) });
        orders.into_iter().min_by_key(|lanes| lanes.ways).expect("there are two orders")
    }
}

impl Packing {
    /// Returns the most lanes that share a bank when the first warp gathers its first words.
    fn ways(&self, room: &Room, turn: u32) -> usize {
        let granule = self.width.max(WORD);
        let (lanes, words) = (WARP * WORD / granule, VECTOR / granule);
        let mut banks = [(0, u32::MAX); BANK_ROW / WORD];
        for lane in 0..lanes {
            let word = (lane >> turn) & (words - 1);
            let place = self.place(room, (lane * words + word) * granule / self.width) / WORD;
            let (shared, last) = &mut banks[place % (BANK_ROW / WORD)];
            if *last != place as u32 {
                (*shared, *last) = (*shared + 1, place as u32);
            }
        }
        banks.into_iter().map(|(shared, _)| shared).max().unwrap_or_default()
    }

    /// Returns the offset in shared memory of an element of the destination's first runs.
    fn place(&self, room: &Room, element: usize) -> usize {
        let inner = &self.dst.axes[..self.dst.inner];
        let (way, mut rest, mut place) = (self.way(room), element as u32, self.turned(inner, room));
        let inner = inner.iter().map(|&axis| (axis, way.strides[axis]));
        for (axis, stride) in inner.chain(self.outer(&self.dst).map(|axis| (axis, room.strides[axis]))) {
            let taken = self.taken[axis] as u32;
            place = place.wrapping_add(stride.wrapping_mul((rest % taken) as usize));
            rest /= taken;
            if rest == 0 {
                break;
            }
        }
        place
    }

    /// Returns how the destination's runs are lines of cells (see [`PackedQuadsParams`]), of at
    /// least the elements of a vector but one, as far as a run has them: the axes of a cell, the
    /// axis along which a line's cells lie, and the axes that number lines.
    fn lines(&self) -> (&[usize], usize, &[usize]) {
        let inner = &self.dst.axes[..self.dst.inner];
        let (mut len, mut last) = (self.taken[inner[0]], 0);
        while last + 1 < inner.len() && len + 1 < VECTOR / self.width {
            last += 1;
            len *= self.taken[inner[last]];
        }
        (&inner[..last], inner[last], &inner[last + 1..])
    }

    /// Returns the strides in shared memory along which the destination's runs go: negative, modulo
    /// 2^64, where they go backwards.
    fn way(&self, room: &Room) -> Room {
        let mut way = *room;
        for (stride, axis) in way.strides.iter_mut().zip(&self.axes) {
            *stride = if axis.dst < 0 { stride.wrapping_neg() } else { *stride };
        }
        way
    }

    /// Returns the bytes from the first index to the last of all axes that run backwards in the
    /// destination.
    fn turned(&self, axes: &[usize], room: &Room) -> usize {
        let backwards = axes.iter().filter(|&&axis| self.axes[axis].dst < 0);
        backwards.map(|&axis| (self.taken[axis] - 1) * room.strides[axis]).sum()
    }

    /// Returns the bytes of the cells along `axis` that a vector from a cell's last element on has,
    /// if they run backwards.
    fn beyond(&self, cell: usize, axis: usize, room: &Room) -> usize {
        let cells = (cell - 1 + VECTOR / self.width - 1) / cell;
        if self.axes[axis].dst < 0 { cells * room.strides[axis] } else { 0 }
    }
}

/// Returns the launch of a grown tile, by `packed_stepped` if the source's elements lie apart.
pub(super) fn step(
    packing: &Packing,
    room: &Room,
    aligned: [bool; 2],
    lanes: &Lanes,
    task: &Task<'_>,
) -> Result<Step<PackedQuadsParams>, Decline> {
    let Widened { canonical, index, .. } = task.widened();
    let width = canonical.width;
    let chunks = packing.chunks();
    let (family, loads, at_once) =
        if packing.gap != 1 { (PACKED_STEPPED, width, STEPPED_LOADS) } else { (PACKED_QUADS, VECTOR, PACKED_LOADS) };
    let mut src_side = side(packing, &packing.src, room, chunks, (loads, aligned[0]), |axis| axis.src)?;
    let mut dst_side = side(packing, &packing.dst, room, chunks, (VECTOR, aligned[1]), |axis| axis.dst)?;
    let (cells, axis, others) = packing.lines();
    let elements = |axes: &[usize]| axes.iter().map(|&axis| packing.taken[axis]).product::<usize>();
    let (cell, cell_count) = (elements(cells), packing.taken[axis]);
    let line = cell * cell_count;
    let way = packing.way(room);
    let table = if others.len() > 1 { packing.run(&packing.dst) / line + 1 } else { 0 };
    let offsets = if cell > 1 { cell * VECTOR / width } else { 0 };
    let lows = Lows::of(packing, [others, &[axis], cells], room, table > 0, cell)?;
    let (cells_rank, cells) = packing.digits(cells.iter().copied(), &way, |_| 0)?;
    let (lines_rank, lines) = packing.digits(others.iter().copied(), &way, |_| 0)?;
    let cell_table = (2 * table).next_multiple_of(8);
    let mut tables = (cell_table + 2 * offsets).next_multiple_of(8);
    for side in [&mut src_side, &mut dst_side] {
        side.table = tables as u64;
        tables += 8 * side.runs as usize;
    }
    let tile = tables.next_multiple_of(VECTOR);
    let shared = tile + room.bytes + 2 * VECTOR;
    at_most(shared, MAX_SHARED_BYTES as usize, "bytes of shared memory", "a block has less than the tile needs")?;
    let (tiles, blocks) = packing.tiles(canonical, chunks, *index);
    let params = PackedQuadsParams {
        tiles,
        gap: packing.gap as i64,
        tile: tile as u64,
        turn: u64::from(lanes.turn),
        low: lows.run as u64,
        lacking: lows.lacking as u64,
        line: Divisor::narrow(line as u64),
        table: table as u64,
        lines_low: lows.lines as u64,
        lines_rank,
        lines,
        step: way.strides[axis] as u64,
        cell_count: cell_count as u64,
        cell: Divisor::narrow(cell as u64),
        cell_table: cell_table as u64,
        cells_low: lows.cells as u64,
        cells_rank,
        cells,
        src_side,
        dst_side,
    };
    let [loaded, stored] = [&src_side, &dst_side].map(|side| (side.runs * side.quads.value) as usize);
    let rounds = loaded.div_ceil(at_once as usize).max(stored.div_ceil(PACKED_LOADS as usize));
    let threads = threads(rounds, task.permutes().quads.threads);
    let shape = LaunchShape { grid: grid(blocks), block: [threads as u32, 1, 1], dynamic_shared: shared as u32 };
    let entry = task.kernel(family, width, *index)?;
    Ok(Step { entry, shape, params })
}

/// Bytes of shared memory that keep offsets along axes that run backwards positive; see
/// [`PackedQuadsParams`].
struct Lows {
    /// To where a run starts, before the offsets of tables.
    run: usize,
    lines: usize,
    cells: usize,
    lacking: usize,
}

impl Lows {
    /// Returns those of runs whose axes are those of `lines`, of one line, and of `cells`.
    fn of(
        packing: &Packing,
        [lines, line, cells]: [&[usize]; 3],
        room: &Room,
        has_table: bool,
        cell: usize,
    ) -> Result<Self, Decline> {
        let [of_lines, of_line, of_cells] = [lines, line, cells].map(|axes| packing.turned(axes, room));
        let lines = if has_table { of_lines } else { 0 };
        let cells = if cell > 1 { of_cells + packing.beyond(cell, line[0], room) } else { 0 };
        let ahead = "a table's offsets have 16 bits";
        at_most(cells + room.bytes, u16::MAX as usize, "bytes of the tile and of the cells beyond it", ahead)?;
        let last = packing.dst.axes[packing.dst.inner - 1];
        let lacking = if packing.axes[last].dst < 0 { room.strides[last] } else { 0 };
        Ok(Self { run: (of_lines + of_line + of_cells).wrapping_sub(lines + cells), lines, cells, lacking })
    }
}

fn side(
    packing: &Packing,
    order: &Order,
    room: &Room,
    chunks: [usize; 2],
    (word, aligned): (usize, bool),
    stride: fn(&Axis) -> isize,
) -> Result<QuadSide, Decline> {
    let Lay { words, runs } = packing.lay(order, word, aligned);
    let Runs { len, unit, chunk, chunked } = packing.split(order, chunks);
    let (outer_rank, outer) = packing.outer_digits(order, room, stride)?;
    Ok(QuadSide {
        quads: Divisor::narrow(words as u64),
        len,
        unit,
        chunk,
        runs: runs as u64,
        table: 0,
        chunked,
        outer_rank,
        outer,
    })
}

/// Returns the threads that do this number of loads, each of several at once, in the fewest rounds,
/// all about full.
fn threads(loads: usize, most: usize) -> usize {
    loads.div_ceil(loads.div_ceil(most)).next_multiple_of(WARP)
}
