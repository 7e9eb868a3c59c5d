//! Cuts tiles of several axes for `packed_quads` and `affine_quads`, and places them in shared
//! memory.

mod growth;
mod room;
mod side;
#[cfg(test)]
mod tests;

use self::growth::Order;
pub(in crate::ops) use self::growth::Packing;
use self::room::Room;
use self::side::{Lay, Runs};
use crate::abi::{CHANNEL_SHIFT, Divisor, Index, PACKED_LOADS, PackedQuadsParams, QuadSide};
use crate::launch_shape::MAX_SHARED_BYTES;
use crate::layout::MAX_RANK;
use crate::layout::walk::{Axis, Canonical};
use crate::ops::Align;
use crate::ops::plan::{Decline, at_most};
use crate::ops::tuning;
use crate::ops::units::{BANK_ROW, SECTOR, VECTOR, WARP, WORD};

/// A grown tile as the kernels take it.
pub(in crate::ops) struct Cut {
    pub(in crate::ops) params: PackedQuadsParams,
    pub(in crate::ops) kept: Kept,
    pub(in crate::ops) blocks: u64,
    /// Threads of a block.
    pub(in crate::ops) threads: u32,
    /// Bytes of dynamic shared memory.
    pub(in crate::ops) shared: u32,
    /// The costs of the layouts, which the estimates weigh.
    pub(in crate::ops) costs: [f64; 6],
}

/// A tile as a plan keeps it, from which its parameters are written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct Kept {
    taken: [u32; MAX_RANK],
    /// Axes within the runs of the source and of the destination.
    inner: [u8; 2],
    lay: LaidOut,
}

impl Kept {
    /// Writes the parameters of work from which the tile was cut, with the same arguments.
    pub(in crate::ops) fn params(
        &self,
        canonical: &Canonical,
        widths: [usize; 2],
        index: Index,
        aligns: [Align; 2],
        marked: Option<Marked>,
    ) -> PackedQuadsParams {
        let again = "the tile was cut from this work before";
        let mut packing = Packing::new(canonical, widths).expect(again);
        packing.taken = self.taken.map(|taken| taken as usize);
        [packing.src.inner, packing.dst.inner] = self.inner.map(usize::from);
        packing.place_tables(canonical, index, aligns, self.lay, marked).expect(again).0
    }
}

/// How a tile lies in shared memory, and how lanes gather from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LaidOut {
    /// Bytes between the runs of the source.
    between: u8,
    /// Base-2 logarithm of the lanes that start with the same word.
    turn: u8,
    /// True if lanes that follow each other gather for different runs of the destination.
    across: bool,
}

/// How elements are marked by their index along an axis; see `AffineQuadsParams`.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Marked {
    /// The axis, if elements have marks.
    pub(in crate::ops) axis: Option<usize>,
}

impl Marked {
    /// Returns the strides in shared memory with which elements of the destination are found.
    fn room(self, room: &Room) -> Room {
        let mut marked = *room;
        if let Some(axis) = self.axis {
            marked.strides[axis] += 1 << CHANNEL_SHIFT;
        }
        marked
    }
}

impl Packing {
    /// Grows a tile: a few whole matrices that are contiguous on both sides, or parts of axes with
    /// the shortest axes whole. Returns whether it has whole matrices.
    pub(in crate::ops) fn grow_quads(&mut self, constants: &tuning::Quads, aligns: [Align; 2]) -> bool {
        let (kept, width) = (self.kept_whole(constants), self.width());
        let width_log2 = width.trailing_zeros() as usize;
        let most = match kept {
            None => constants.tile[width_log2],
            Some(kept) => [(constants.tile_of_kept / kept).max(1) * kept; 2],
        };
        let most = most.map(|bytes| bytes / width);
        let mut len = 1;
        for axis in [self.src.axes[0], self.dst.axes[0]] {
            let extent = self.axes[axis].extent;
            if self.taken[axis] == 1 && extent * width <= constants.whole_axis && len * extent <= most[0] {
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
        let kept = self.kept().saturating_mul(self.width());
        (kept <= constants.kept && !self.shares_nearest_axis()).then_some(kept)
    }

    /// Returns whether neighbouring elements of one side are neighbours on the other.
    fn shares_nearest_axis(&self) -> bool {
        self.src.axes[0] == self.dst.axes[0]
    }
}

/// How the lanes of a warp gather the destination's vectors from shared memory.
struct Lanes {
    /// Base-2 logarithm of the lanes that start with the same word.
    turn: u32,
    /// The runs for which lanes that follow each other gather.
    across: usize,
    /// The most lanes that share a bank.
    ways: usize,
}

impl Lanes {
    /// Takes the order in which fewer lanes share a bank: all start with the first words of their
    /// vectors, or the lanes after those that spread over the banks start a word later.
    fn of(packing: &Packing, room: &Room) -> Self {
        let apart = VECTOR / packing.dst.width * room.strides[packing.dst.axes[0]];
        let spread = (BANK_ROW >> apart.trailing_zeros().min(BANK_ROW.trailing_zeros())).trailing_zeros();
        let straight = WARP.trailing_zeros();
        Self::best(packing, room, spread.min(straight), 1)
    }

    /// Takes such an order of lanes across the runs of the destination, if these are so few that a
    /// warp stores two sectors of each. With 16 runs of one sector each, boxes were 6 % faster.
    fn across(packing: &Packing, room: &Room) -> Option<Self> {
        let runs = packing.runs(&packing.dst);
        let few = (2..=WARP * VECTOR / (2 * SECTOR)).contains(&runs);
        few.then(|| Self::best(packing, room, runs.ilog2(), runs))
    }

    /// Takes the better of two orders: all lanes start with the same word, or those after `2^turn`
    /// others a word later.
    fn best(packing: &Packing, room: &Room, turn: u32, across: usize) -> Self {
        let (of, straight) =
            (|turn| Self { turn, across, ways: packing.ways(room, turn, across) }, WARP.trailing_zeros());
        let first = of(straight);
        if first.ways == 1 || turn == straight {
            return first;
        }
        let turned = of(turn);
        if turned.ways < first.ways { turned } else { first }
    }
}

impl Packing {
    /// Returns the bytes between the runs of a tile, and how lanes gather from it. Where many would
    /// share a bank, this is a vector between runs that have several, or else lanes gather across
    /// runs.
    fn spread(&self, aligned: bool, constants: &tuning::Quads) -> (usize, Lanes) {
        let tight = self.room(aligned, 0);
        let lanes = Lanes::of(self, &tight);
        if lanes.ways <= constants.calm {
            return (0, lanes);
        }
        if self.run(&self.src) * self.src.width >= constants.spread_run {
            let spread = Lanes::of(self, &self.room(aligned, VECTOR));
            if spread.ways < lanes.ways {
                return (VECTOR, spread);
            }
        }
        let across = Lanes::across(self, &tight).filter(|across| across.ways < lanes.ways);
        (0, across.unwrap_or(lanes))
    }

    /// Returns the most lanes that share a bank when the first warp gathers its first words.
    fn ways(&self, room: &Room, turn: u32, across: usize) -> usize {
        let granule = self.dst.width.max(WORD);
        let (lanes, words) = (WARP * WORD / granule, VECTOR / granule);
        let (place, mut banks) = (self.places(room), [(0, u32::MAX); BANK_ROW / WORD]);
        for lane in 0..lanes {
            let word = (lane >> turn) & (words - 1);
            let (run, vector) = (lane % across, lane / across);
            let element = run * self.run(&self.dst) + (vector * words + word) * granule / self.dst.width;
            let place = place(element) / WORD;
            let (shared, last) = &mut banks[place % (BANK_ROW / WORD)];
            if *last != place as u32 {
                (*shared, *last) = (*shared + 1, place as u32);
            }
        }
        banks.into_iter().map(|(shared, _)| shared).max().unwrap_or_default()
    }

    /// Returns the offset in shared memory of each element of the destination's first runs.
    fn places(&self, room: &Room) -> impl Fn(usize) -> usize {
        let inner = &self.dst.axes[..self.dst.inner];
        let (way, first) = (self.way(room), self.turned(inner, room));
        let inner = inner.iter().map(|&axis| (axis, way.strides[axis]));
        let outer = self.outer(&self.dst).map(|axis| (axis, room.strides[axis]));
        let (mut axes, mut rank) = ([(1, 0); MAX_RANK], 0);
        for (axis, stride) in inner.chain(outer) {
            axes[rank] = (self.taken[axis] as u32, stride);
            rank += 1;
        }
        move |element| {
            let (mut rest, mut place) = (element as u32, first);
            for (taken, stride) in &axes[..rank] {
                place = place.wrapping_add(stride.wrapping_mul((rest % taken) as usize));
                rest /= taken;
                if rest == 0 {
                    break;
                }
            }
            place
        }
    }

    /// Returns how the destination's runs are lines of cells (see [`PackedQuadsParams`]), of at
    /// least the elements of a vector but one, as far as a run has them: the axes of a cell, the
    /// axis along which a line's cells lie, and the axes that number lines.
    fn lines(&self) -> (&[usize], usize, &[usize]) {
        let inner = &self.dst.axes[..self.dst.inner];
        let (mut len, mut last) = (self.taken[inner[0]], 0);
        while last + 1 < inner.len() && len + 1 < VECTOR / self.dst.width {
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
        let cells = (cell - 1 + VECTOR / self.dst.width - 1) / cell;
        if self.axes[axis].dst < 0 { cells * room.strides[axis] } else { 0 }
    }
}

impl Packing {
    /// Returns the grown tile as the kernels take it. Its elements may be marked; then entries of
    /// tables have 4 bytes.
    pub(in crate::ops) fn cut(
        &self,
        canonical: &Canonical,
        index: Index,
        aligns: [Align; 2],
        constants: &tuning::Quads,
        marked: Option<Marked>,
    ) -> Result<Cut, Decline> {
        let aligned = self.aligned(aligns);
        let (between, lanes) = self.spread(aligned[0], constants);
        let lay = LaidOut { between: between as u8, turn: lanes.turn as u8, across: lanes.across > 1 };
        let (params, shared, blocks) = self.place_tables(canonical, index, aligns, lay, marked)?;
        let [loaded, stored] = [&params.src_side, &params.dst_side].map(|side| (side.runs * side.quads.value) as usize);
        let rounds = loaded.max(stored).div_ceil(PACKED_LOADS as usize);
        let threads = threads(rounds, constants.threads) as u32;
        let waiting = lanes.ways.saturating_sub(constants.calm);
        let costs = self.costs(canonical.len(), aligned, waiting, blocks);
        let inner = [&self.src, &self.dst].map(|order| order.inner as u8);
        // A tile fits in shared memory.
        let kept = Kept { taken: self.taken.map(|taken| taken as u32), inner, lay };
        Ok(Cut { params, kept, blocks, threads, shared, costs })
    }

    /// Returns whether all runs of the source and of the destination start on vectors.
    fn aligned(&self, aligns: [Align; 2]) -> [bool; 2] {
        self.grains(aligns).map(|grain| grain >= VECTOR)
    }

    /// Places the tables and the tile in shared memory: returns the parameters, the bytes of shared
    /// memory, and the blocks.
    fn place_tables(
        &self,
        canonical: &Canonical,
        index: Index,
        aligns: [Align; 2],
        lay: LaidOut,
        marked: Option<Marked>,
    ) -> Result<(PackedQuadsParams, u32, u64), Decline> {
        let aligned = self.aligned(aligns);
        let room = self.room(aligned[0], usize::from(lay.between));
        let chunks = self.chunks();
        let (tiles, blocks) = self.tiles(canonical, chunks, index);
        let places = marked.map_or(room, |marked| marked.room(&room));
        let mut src_side = self.side(&self.src, &room, chunks, aligned[0], |axis| axis.src)?;
        let mut dst_side = self.side(&self.dst, &places, chunks, aligned[1], |axis| axis.dst)?;
        let (cells, axis, others) = self.lines();
        let elements = |axes: &[usize]| axes.iter().map(|&axis| self.taken[axis]).product::<usize>();
        let (cell, cell_count) = (elements(cells), self.taken[axis]);
        let line = cell * cell_count;
        let way = self.way(&places);
        let entry = if marked.is_some() { WORD } else { WORD / 2 };
        let table = if others.len() > 1 { self.run(&self.dst) / line + 1 } else { 0 };
        let offsets = if cell > 1 { cell * VECTOR / self.dst.width } else { 0 };
        let lows = Lows::of(self, [others, &[axis], cells], &places, table > 0, cell);
        if marked.is_none() {
            lows.check_16_bits(&room)?;
        }
        let (cells_rank, cells) = self.digits(cells.iter().copied(), &way, |_| 0)?;
        let (lines_rank, lines) = self.digits(others.iter().copied(), &way, |_| 0)?;
        let cell_table = (entry * table).next_multiple_of(8);
        let tables = (cell_table + entry * offsets).next_multiple_of(8);
        let tile = place_runs([&mut src_side, &mut dst_side], tables).next_multiple_of(VECTOR);
        let shared = tile + room.bytes + 2 * VECTOR;
        at_most(shared, MAX_SHARED_BYTES as usize, "bytes of shared memory", "a block has less than the tile needs")?;
        let params = PackedQuadsParams {
            tiles,
            tile: tile as u64,
            turn: u64::from(lay.turn),
            across: Divisor::narrow(if lay.across { dst_side.runs } else { 1 }),
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
        Ok((params, shared as u32, blocks))
    }

    /// Returns what the layouts cost: runs between sectors share them with others, tiles at the end
    /// of an axis are partly empty, and lanes that share a bank wait.
    fn costs(&self, len: usize, aligned: [bool; 2], waiting: usize, tiles: u64) -> [f64; 6] {
        let [src, dst] = [&self.src, &self.dst].map(|order| (self.run(order) * order.width) as f64);
        let tile = (self.run(&self.src) * self.runs(&self.src)) as f64;
        let split = |run: f64, aligned: bool| if aligned { 0.0 } else { SECTOR as f64 / run };
        [
            1.0,
            split(src, aligned[0]),
            split(dst, aligned[1]),
            tiles as f64 * tile / len as f64 - 1.0,
            waiting as f64,
            VECTOR as f64 / src,
        ]
    }

    fn side(
        &self,
        order: &Order,
        room: &Room,
        chunks: [usize; 2],
        aligned: bool,
        stride: fn(&Axis) -> isize,
    ) -> Result<QuadSide, Decline> {
        let Lay { words, runs } = self.lay(order, aligned);
        let Runs { len, unit, chunk, chunked } = self.split(order, chunks);
        let (outer_rank, outer) = self.outer_digits(order, room, stride)?;
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

    /// Returns the axis' parts that blocks number, as their number and the product of those that
    /// are numbered faster, and its indices in a part.
    pub(in crate::ops) fn numbered(&self, axis: usize) -> ([usize; 2], usize) {
        let chunks = self.chunks();
        let parts = chunks.map(|chunk| self.parts(chunk).0.extent);
        let extent = self.axes[axis].extent;
        let numbered = match chunks.iter().position(|&chunk| chunk == axis) {
            Some(1) => [parts[1], 1],
            Some(_) => [parts[0], parts[1]],
            None if self.taken[axis] == extent => [1, 1],
            None => {
                let before = (0..axis).filter(|&axis| self.taken[axis] == 1).map(|axis| self.axes[axis].extent);
                [extent, parts[0] * parts[1] * before.product::<usize>()]
            }
        };
        (numbered, self.taken[axis])
    }
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
    /// Declines tiles that are too large for tables whose entries have 16 bits.
    fn check_16_bits(&self, room: &Room) -> Result<(), Decline> {
        let ahead = "a table's offsets have 16 bits";
        at_most(self.cells + room.bytes, u16::MAX as usize, "bytes of the tile and of the cells beyond it", ahead)
    }

    /// Returns those of runs whose axes are those of `lines`, of one line, and of `cells`.
    fn of(packing: &Packing, [lines, line, cells]: [&[usize]; 3], room: &Room, has_table: bool, cell: usize) -> Self {
        let [of_lines, of_line, of_cells] = [lines, line, cells].map(|axes| packing.turned(axes, room));
        let lines = if has_table { of_lines } else { 0 };
        let cells = if cell > 1 { of_cells + packing.beyond(cell, line[0], room) } else { 0 };
        let last = packing.dst.axes[packing.dst.inner - 1];
        let lacking = if packing.axes[last].dst < 0 { room.strides[last] } else { 0 };
        Self { run: (of_lines + of_line + of_cells).wrapping_sub(lines + cells), lines, cells, lacking }
    }
}

/// Places the tables of runs from this byte on, and returns the byte behind them.
fn place_runs(sides: [&mut QuadSide; 2], start: usize) -> usize {
    sides.into_iter().fold(start, |at, side| {
        side.table = at as u64;
        at + 8 * side.runs as usize
    })
}

/// Returns the threads that do this number of loads, each of several at once, in the fewest rounds,
/// all about full.
fn threads(loads: usize, most: usize) -> usize {
    loads.div_ceil(loads.div_ceil(most)).next_multiple_of(WARP)
}
