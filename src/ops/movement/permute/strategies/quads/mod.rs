//! Moves tiles of several axes by vectors, for sides whose runs start anywhere.
//!
//! A block loads the vectors that hold its part of the source, keeps them in shared memory as they
//! lie, and gathers the destination's vectors from there. Where a few whole matrices are contiguous
//! on both sides, a tile is one run of memory on either side.
//!
//! Worth, on an H100 (benches/record/2026-11-23-h100/quads.md): batches of 33 x 33 floats 2934 GB/s
//! (structs 1919), of 127 x 129 of 2 bytes 2564 (tiles 1617).

mod growth;
mod room;
mod side;
#[cfg(test)]
mod tests;

use std::fmt;

use self::growth::{Order, Packing};
use self::room::Room;
use self::side::{Lay, Runs};
use super::{Considered, Decline, Launch, Offer, Step, Task, Widened, at_most, estimate, grid, width_log2};
use crate::abi::{Divisor, PACKED_LOADS, PACKED_QUADS, PackedQuadsParams, QuadSide};
use crate::error::counted;
use crate::launch_shape::{LaunchShape, MAX_SHARED_BYTES};
use crate::layout::walk::Axis;
use crate::ops::Align;
use crate::ops::tuning;
use crate::ops::units::{BANK_ROW, SECTOR, VECTOR, WARP, WORD};

/// Takes arrays with a run on either side.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let constants = &task.permutes().quads;
    let mut packing = Packing::new(&task.widened().canonical)?;
    let aligns = [task.src_align, task.dst_align];
    let is_kept = packing.grow_quads(constants, aligns);
    let aligned = packing.grains(aligns).map(|grain| grain >= VECTOR);
    let room = packing.room(aligned[0]);
    let lanes = Lanes::of(&packing, &room);
    let step = step(&packing, &room, aligned, &lanes, task)?;
    let time = time(task, &packing, aligned, &lanes, step.shape.grid[0]);
    *launch = Some(Launch::Quads(step));
    let reason = if is_kept {
        "a few matrices are contiguous on both sides: they go through shared memory whole, by vectors on either side"
    } else {
        "each side has runs, which may start or end between 16-byte vectors: tiles of several axes, moved by vectors \
         as they lie"
    };
    Ok(Offer { reason, time })
}

/// Estimates the time: runs between sectors share them with others, tiles at the end of an axis are
/// partly empty, and lanes that share a bank wait.
fn time(task: &Task<'_>, packing: &Packing, aligned: [bool; 2], lanes: &Lanes, tiles: u32) -> f64 {
    let [src, dst] = [&packing.src, &packing.dst].map(|order| (packing.run(order) * packing.width) as f64);
    let tile = src * packing.runs(&packing.src) as f64;
    let elements = (task.widened().len * packing.width) as f64;
    let split = |run: f64, aligned: bool| if aligned { 0.0 } else { SECTOR as f64 / run };
    let costs = [
        1.0,
        split(src, aligned[0]),
        split(dst, aligned[1]),
        f64::from(tiles) * tile / elements - 1.0,
        lanes.ways.saturating_sub(2) as f64,
        VECTOR as f64 / src,
    ];
    task.traffic() * estimate(&task.permutes().estimates.quads[width_log2(packing.width)], costs)
}

impl Packing {
    /// Grows a tile: a few whole matrices that are contiguous on both sides, or parts of axes with
    /// the shortest axes whole. Returns whether it has whole matrices.
    fn grow_quads(&mut self, constants: &tuning::Quads, aligns: [Align; 2]) -> bool {
        let (kept, width_log2) = (self.kept_whole(constants), width_log2(self.width));
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
        self.grow(most, [1, constants.longer_stored[width_log2]], aligns);
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
    fn is_together(&self) -> bool {
        self.src.axes[0] == self.dst.axes[0]
    }
}

/// How the lanes of a warp gather the destination's vectors from shared memory.
struct Lanes {
    /// Base-2 logarithm of the lanes that start with the same word.
    turn: u32,
    /// The most lanes that share a bank.
    ways: usize,
}

impl Lanes {
    /// Takes the order in which fewer lanes share a bank: all start with the first words of their
    /// vectors, or the lanes after those that spread over the banks start a word later.
    fn of(packing: &Packing, room: &Room) -> Self {
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

/// Returns the launch of a grown tile.
fn step(
    packing: &Packing,
    room: &Room,
    aligned: [bool; 2],
    lanes: &Lanes,
    task: &Task<'_>,
) -> Result<Step<PackedQuadsParams>, Decline> {
    let Widened { canonical, index, .. } = task.widened();
    let width = canonical.width;
    let chunks = packing.chunks();
    let mut src_side = side(packing, &packing.src, room, chunks, aligned[0], |axis| axis.src)?;
    let mut dst_side = side(packing, &packing.dst, room, chunks, aligned[1], |axis| axis.dst)?;
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
    let rounds = loaded.max(stored).div_ceil(PACKED_LOADS as usize);
    let threads = threads(rounds, task.permutes().quads.threads);
    let shape = LaunchShape { grid: grid(blocks), block: [threads as u32, 1, 1], dynamic_shared: shared as u32 };
    let entry = task.kernel(PACKED_QUADS, width, *index)?;
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
    aligned: bool,
    stride: fn(&Axis) -> isize,
) -> Result<QuadSide, Decline> {
    let Lay { words, runs } = packing.lay(order, aligned);
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

impl fmt::Display for Step<PackedQuadsParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: PackedQuadsParams { src_side, dst_side, .. } } = self;
        let (runs, len) = (counted(src_side.runs, "run"), counted(src_side.len, "element"));
        write!(f, "{entry}: tiles of {runs} of {len}, stored as {} of {}, {shape}", dst_side.runs, dst_side.len)
    }
}
