//! Transposes by tiles: one side is contiguous along one axis, the other along another.

use std::fmt;
use std::ops::Range;

use super::plan::span;
use crate::abi::{
    Divisor, EntryId, Fold, RAGGED_MARGIN, RAGGED_TILE, VECTOR_TILE, VECTOR_TILE_THREADS, VectorTileParams,
    ragged_tile_folds,
};
use crate::error::counted;
use crate::launch_shape::LaunchShape;
use crate::layout::MAX_RANK;
use crate::ops::Align;
use crate::ops::canonical::{Axis as Walk, Canonical};
use crate::ops::numbering::{axes, divisor, grid, index};
use crate::ops::tuning::{FOLDED_ROW, FULLER, RUN, SMALL, TILE_COLUMN, TileShape};
use crate::ops::units::SECTOR;
use crate::ops::units::VECTOR;

/// A launch of `vector_tile`, or of `ragged_tile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) entry: EntryId,
    pub(super) shape: LaunchShape,
    /// Addresses from the starts of the storages.
    pub(super) params: VectorTileParams,
    /// Whether elements fill at least three quarters of the tiles.
    pub(super) is_full: bool,
}

/// The matrix that a tile is cut from, and how often there is one.
#[derive(Debug, Clone)]
struct Matrices {
    /// Along the source's run: the source's stride is 1 and then goes on.
    cols: [Walk; 2],
    /// Along the destination's run.
    rows: [Walk; 2],
    batch: [Walk; MAX_RANK],
    rank: usize,
    src_start: usize,
    dst_start: usize,
    /// The source's elements in its storage, where they have no gaps; else empty.
    span: Range<usize>,
}

const NONE: Walk = Walk { extent: 1, src: 0, dst: 0 };

/// Which sides of a tile go on into the next axis whatever the length of the first.
#[derive(Debug, Clone, Copy)]
struct Long {
    rows: bool,
    cols: bool,
}

impl Matrices {
    /// The axes by their part in a transpose; `None` where it is none. Sides that are `long` are two axes where they can be,
    /// the others where one is too short.
    fn of(canonical: &Canonical, lanes: usize, long: Long) -> Option<Self> {
        let axes = canonical.axes();
        let row = axes.iter().position(|axis| axis.dst == 1 && axis.src.unsigned_abs() != 1)?;
        let col = axes.iter().position(|axis| axis.src.unsigned_abs() == 1)?;
        let (mut cols, mut rows) = ([axes[col], NONE], [axes[row], NONE]);
        let (mut src_start, mut dst_start) = (canonical.src_start, canonical.dst_start);
        if cols[0].src < 0 {
            // Forwards in the source, then, and backwards in the destination.
            let last = (cols[0].extent - 1) as isize;
            src_start = src_start.wrapping_add_signed(last * cols[0].src);
            dst_start = dst_start.wrapping_add_signed(last * cols[0].dst);
            cols[0] = Walk { extent: cols[0].extent, src: 1, dst: -cols[0].dst };
        }
        let (mut batch, mut rank) = ([NONE; MAX_RANK], 0);
        for (position, &axis) in axes.iter().enumerate() {
            let bytes = |run: &[Walk; 2]| run[0].extent * canonical.width;
            let short = |run: &[Walk; 2]| run[1] == NONE && bytes(run) < RUN;
            // Rows that end within a sector share it with the next index of the outer axis. The rows of a square are on one index
            // of that, or of wide elements on two.
            let shares = rows[1] == NONE && bytes(&rows) < FOLDED_ROW && !bytes(&rows).is_multiple_of(SECTOR);
            let wide = ragged_tile_folds(canonical.width as u32) && rows[0].extent >= lanes;
            let folds = (long.rows || short(&rows)) && rows[0].extent.is_multiple_of(lanes) || shares && wide;
            if position == row || position == col {
                continue;
            } else if folds && rows[1] == NONE && axis.dst == rows[0].extent as isize {
                rows[1] = axis;
            } else if (long.cols || short(&cols)) && cols[1] == NONE && axis.src == cols[0].extent as isize {
                cols[1] = axis;
            } else {
                batch[rank] = axis;
                rank += 1;
            }
        }
        Some(Self { cols, rows, batch, rank, src_start, dst_start, span: span(canonical) })
    }

    fn batch(&self) -> &[Walk] {
        &self.batch[..self.rank]
    }

    fn images(&self) -> usize {
        self.batch().iter().map(|axis| axis.extent).product()
    }

    /// The lowest bits of all places that rows start at, in elements: of the source, and of the destination.
    fn starts(&self) -> [usize; 2] {
        let src = self.rows.iter().chain(self.batch()).fold(self.src_start, |bits, axis| bits | axis.src as usize);
        let dst = self.cols.iter().chain(self.batch()).fold(self.dst_start, |bits, axis| bits | axis.dst as usize);
        [src, dst]
    }

    /// Whether tiles of whole quads are the better ones: every row of both sides starts on a quad of `lanes` elements and holds
    /// whole ones, and, where what is written does not stay in the L2 cache, those of the destination start on sectors. A
    /// sector that two tiles write takes an H100 a fifth of its speed.
    fn whole_quads(&self, lanes: usize, src_align: Align, dst_align: Align, small: bool) -> bool {
        let [src, dst] = self.starts();
        let write = if small { VECTOR } else { SECTOR };
        let quads = (src | dst | self.rows[0].extent | extent(&self.cols)).is_multiple_of(lanes);
        quads
            && dst.is_multiple_of(lanes * write / VECTOR)
            && src_align.bytes() >= VECTOR as u64
            && dst_align.bytes() >= write as u64
    }
}

fn extent(run: &[Walk; 2]) -> usize {
    run[0].extent * run[1].extent
}

impl Tile {
    /// The plan, where tiles are worth it.
    ///
    /// The tiles are cut as they were tuned for large matrices, or, where they `may_adapt`, to be as full as they can.
    pub(super) fn of(
        canonical: &Canonical,
        src_align: Align,
        dst_align: Align,
        tiles: &[TileShape],
        may_adapt: bool,
    ) -> Option<Self> {
        let width = canonical.width;
        let tuned = tiles.iter().find(|shape| shape.width == width)?;
        let lanes = VECTOR / width;
        let small = canonical.len() * width <= SMALL;
        let matrices = Matrices::of(canonical, lanes, Long { rows: false, cols: false })?;
        let is_whole = |matrices: &Matrices| matrices.whole_quads(lanes, src_align, dst_align, small);
        let whole = is_whole(&matrices);
        let Numbered { matrices, cut: chosen, down_first } = if whole {
            Numbered::whole(matrices, canonical, tuned, small, is_whole)?
        } else {
            let [_, starts] = matrices.starts();
            let sectors = starts.is_multiple_of(lanes * SECTOR / VECTOR) && dst_align.bytes() >= SECTOR as u64;
            let margin = if sectors { 0 } else { RAGGED_MARGIN as usize };
            Numbered::ragged(matrices, lanes, tuned, margin, may_adapt)?
        };
        let (cols, rows) = (extent(&matrices.cols), extent(&matrices.rows));
        let Cut { across_log2, tiles_across, tiles_down, .. } = chosen;
        let is_full = rows * cols / (lanes * lanes) >= chosen.squares() - chosen.squares() / 4;
        let index = index(canonical);
        let divisor = divisor(index);
        let family = if whole { VECTOR_TILE } else { RAGGED_TILE };
        let params = VectorTileParams {
            src: (matrices.src_start * width) as u64,
            dst: (matrices.dst_start * width) as u64,
            rows: rows as u64,
            cols: cols as u64,
            src_start: (matrices.span.start * width) as u64,
            src_end: (matrices.span.end * width) as u64,
            src_rows: fold(divisor, matrices.rows.map(|axis| (axis.extent, axis.src))),
            dst_rows: fold(divisor, matrices.cols.map(|axis| (axis.extent, axis.dst))),
            margin: chosen.margin as u64,
            across_log2: u64::from(across_log2),
            tiles_across: divisor(tiles_across as u64),
            tiles_down: divisor(tiles_down as u64),
            down_first: u64::from(down_first),
            rank: matrices.rank as u64,
            axes: axes(matrices.batch(), divisor),
        };
        let blocks = (tiles_across * tiles_down * matrices.images()) as u64;
        let shape = LaunchShape { grid: grid(blocks), block: [VECTOR_TILE_THREADS, 1, 1], dynamic_shared: 0 };
        Some(Self { entry: family.entry(width, index)?, shape, params, is_full })
    }

    pub(super) fn is_ragged(&self) -> bool {
        RAGGED_TILE.has(self.entry)
    }

    /// Whether it is of ragged rows that are two axes, and of columns that are one.
    pub(super) fn has_folded_rows(&self) -> bool {
        self.is_ragged() && self.params.src_rows.outer_stride != 0 && self.params.dst_rows.outer_stride == 0
    }

    /// Whether every row of the destination starts on a sector.
    pub(super) fn is_on_sectors(&self) -> bool {
        self.params.margin == 0
    }

    pub(super) fn reason(&self) -> &'static str {
        if self.is_ragged() {
            "the sides are contiguous along different axes, and rows start or end off 16 bytes, or off the sectors of 32 that are \
             written: tiles whose accesses are shifted to the aligned middle of each row"
        } else {
            "the sides are contiguous along different axes, and every row is whole 16-byte accesses: tiles turned in registers"
        }
    }
}

/// Matrices, how they are cut, and in what order the tiles follow each other.
struct Numbered {
    matrices: Matrices,
    cut: Cut,
    /// Whether tiles of a column follow each other, rather than those of a row.
    down_first: bool,
}

impl Numbered {
    /// Of whole quads, as `plain` matrices are: the side whose axis is the shorter one comes first and goes on into its next axis,
    /// so that blocks that run together move what is contiguous on one side; or the other one, or both, where tiles are fuller so.
    fn whole(
        plain: Matrices,
        canonical: &Canonical,
        tuned: &TileShape,
        small: bool,
        is_whole: impl Fn(&Matrices) -> bool,
    ) -> Option<Self> {
        let lanes = VECTOR / canonical.width;
        let numbered = |mut matrices: Matrices, down_first: bool| {
            if !down_first {
                matrices.batch[..matrices.rank].sort_unstable_by_key(|axis| axis.src.unsigned_abs());
            }
            let (cols, rows) = (extent(&matrices.cols), extent(&matrices.rows));
            let (across_log2, _) = split(tuned, false, small, cols.div_ceil(lanes), rows.div_ceil(lanes))?;
            let cut = Cut::new(tuned.squares(false, small).0, across_log2, lanes, 0, [cols, rows]);
            Some(Self { matrices, cut, down_first })
        };
        let long = |rows, cols, down_first| {
            let matrices = Matrices::of(canonical, lanes, Long { rows, cols }).filter(&is_whole)?;
            numbered(matrices, down_first)
        };
        let down = plain.rows[0].extent < plain.cols[0].extent;
        if plain.rank == 0 {
            // There is no axis to go on into.
            return numbered(plain, down);
        }
        let ways = [long(down, !down, down), long(!down, down, !down), long(true, true, down), numbered(plain, down)];
        ways.into_iter().flatten().min_by_key(|way| way.cut.squares() * way.matrices.images())
    }

    /// Of rows that start or end off quads, or off the sectors that are written: cut to be full, where they `may_adapt`.
    fn ragged(matrices: Matrices, lanes: usize, tuned: &TileShape, margin: usize, may_adapt: bool) -> Option<Self> {
        let (cols, rows) = (extent(&matrices.cols), extent(&matrices.rows));
        let (across_log2, _) = split(tuned, true, false, cols.div_ceil(lanes), rows.div_ceil(lanes))?;
        let cut_by = |across_log2| Cut::new(tuned.squares(true, false).0, across_log2, lanes, margin, [cols, rows]);
        let mut cut = cut_by(across_log2);
        if may_adapt {
            let most = tuned.most_across(true).min(cols.div_ceil(lanes).next_power_of_two().trailing_zeros());
            let fullest = (NARROWEST_LOG2..=most).rev().map(cut_by).min_by_key(Cut::cost);
            let fuller = |other: &Cut| other.cost() < cut.cost() - cut.cost() / FULLER;
            cut = fullest.filter(fuller).unwrap_or(cut);
        }
        // Tiles one below the other share the rows of a margin and the lines at their ends, which an H100 serves from its L2
        // cache where they follow each other, if all those of a column stay there until the next column needs their lines.
        let down_first = rows * (VECTOR << cut.across_log2) <= TILE_COLUMN;
        Some(Self { matrices, cut, down_first })
    }
}

/// Base-2 logarithm of the fewest squares along a row of the source that a ragged tile is given to be fuller.
const NARROWEST_LOG2: u32 = 2;

/// How tiles cut a matrix.
#[derive(Debug, Clone, Copy)]
struct Cut {
    across_log2: u32,
    tiles_across: usize,
    tiles_down: usize,
    /// Rows of squares of a tile that are not its own.
    margin: usize,
    /// Squares of a tile that are its own.
    own: usize,
}

impl Cut {
    /// Tiles of `1 << squares_log2` squares of `lanes` elements, of whose rows `margin` are shared with the tile above.
    fn new(squares_log2: u32, across_log2: u32, lanes: usize, margin: usize, [cols, rows]: [usize; 2]) -> Self {
        let down = (1 << (squares_log2 - across_log2)) - margin;
        // Ragged runs start up to a sector early.
        let early = (margin * lanes).saturating_sub(1);
        let (tiles_across, tiles_down) = (cols.div_ceil(lanes << across_log2), (rows + early).div_ceil(lanes * down));
        Self { across_log2, tiles_across, tiles_down, margin, own: down << across_log2 }
    }

    /// Those of all tiles, filled or not.
    fn squares(&self) -> usize {
        self.tiles_across * self.tiles_down * self.own
    }

    /// What they take: about as long whether they are filled, as measured on an H100, but a seventh longer where runs of the source
    /// are four squares, less than a line of its L2 cache.
    fn cost(&self) -> usize {
        if self.across_log2 > NARROWEST_LOG2 { self.squares() } else { self.squares() + self.squares() / 7 }
    }
}

/// How many squares of a tile, as logarithms, lie along a row and along a column of a matrix of so many quads by so many;
/// `None` where most of the tile would be empty.
pub(in crate::ops) fn split(
    tuned: &TileShape,
    ragged: bool,
    small: bool,
    cols: usize,
    rows: usize,
) -> Option<(u32, u32)> {
    let (squares, preferred) = tuned.squares(ragged, small);
    let ceil_log2 = |count: usize| count.next_power_of_two().trailing_zeros();
    // A run that is shorter leaves its squares to the other direction.
    let across = preferred.max(squares.saturating_sub(ceil_log2(rows))).min(ceil_log2(cols));
    let across = across.min(tuned.most_across(ragged));
    let down = squares - across;
    debug_assert!(!ragged || 1 << down > RAGGED_MARGIN, "a tile of {across} of {squares} has no rows of its own");
    let used = cols.min(1 << across) * rows.min(1 << down);
    let fewest = if ragged { RAGGED_MARGIN as usize } else { 1 };
    (4 * used >= 1 << squares && cols.min(rows) >= fewest).then_some((across, down))
}

/// A run of two axes; of one where the second has one index.
pub(super) fn fold(divisor: fn(u64) -> Divisor, [inner, outer]: [(usize, isize); 2]) -> Fold {
    // Of one axis no index reaches the outer: no quotient by its extent is more than 0.
    Fold { inner: divisor(inner.0 as u64), inner_stride: inner.1 as i64, outer_stride: outer.1 as i64 }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VectorTileParams { rows, cols, across_log2, down_first, .. } = self.params;
        let order = if down_first != 0 { "down the columns" } else { "along the rows" };
        let images: u64 = self.params.axes[..self.params.rank as usize].iter().map(|axis| axis.extent.value).product();
        write!(
            f,
            "{}: {images} of {rows} x {cols} elements, tiles of {} a row, numbered {order}, {}",
            self.entry,
            counted(1u64 << across_log2, "square"),
            self.shape
        )
    }
}
